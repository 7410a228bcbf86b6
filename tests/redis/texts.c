/* Spec texts on every store: who makes a filter, for how long, and what a newer version has written. */
#include "redis/record.h"
#include "support/backend.h"

#include <stdio.h>
#include <string.h>

#define SIZED "capacity=1000 error=0.01"
#define DAY 86400000

/* The time to live is there from the moment in which the filter is. (That each key has it is simulated.) */
static void a_new_filter_gets_its_time_to_live(void **state)
{
    static const char *const texts[] = {SIZED, SIZED " segments=3", SIZED " window=1h slices=2", SIZED " growth=2"};
    struct backend *b = *state;
    hibloom_store *store = b->store;

    for (size_t i = 0; i < COUNT(texts); i++) {
        hibloom *filter;
        char name[TEST_NAME_SIZE], text[100];
        hibloom_info info;
        snprintf(text, sizeof text, "%s new.ttl=1d", texts[i]);
        assert_ok(hibloom_open(&filter, store, test_name(name), text), store);
        assert_ok(hibloom_get_info(filter, &info, sizeof info), store);
        assert_in_range(info.ttl_ms, DAY - 60000, DAY);
        assert_ok(hibloom_expire(filter, 0), store);
        assert_int_equal(hibloom_reopen(filter), HIBLOOM_OK); /* a wish is for a new one */
        assert_ok(hibloom_get_info(filter, &info, sizeof info), store);
        assert_int_equal(info.ttl_ms, -1);
        assert_dropped(filter, store);
    }
}

static void a_filter_is_made_once_and_that_is_told(void **state)
{
    struct backend *b = *state;
    hibloom_store *store = b->store, *second = b->redis ? test_store(NULL) : store;
    hibloom *filter, *other;
    char name[TEST_NAME_SIZE];
    bool found;

    assert_fails(hibloom_open(&filter, store, test_name(name), "hash=siphash"), HIBLOOM_ENOTFOUND, store,
                 "to make one, a size is missing: capacity= and error=");
    assert_status(hibloom_open(&filter, store, name, SIZED " create=no"), HIBLOOM_ENOTFOUND, store);
    assert_status(hibloom_open(&filter, store, name, NULL), HIBLOOM_ENOTFOUND, store);
    assert_status(hibloom_open(&filter, store, name, ""), HIBLOOM_EINVAL, store);
    assert_status(hibloom_open(&filter, store, name, "redisson capacity=100 error=0.1"), HIBLOOM_EINVAL, store);
    assert_ok(hibloom_open(&filter, store, name, SIZED " create=only new.prefer=lookup"), store);
    assert_true(hibloom_created(filter));
    assert_fails(hibloom_open(&other, second, name, SIZED " create=only"), HIBLOOM_EMISMATCH, second, "create=only");
    assert_fails(hibloom_open(&other, second, name, "capacity=2k"), HIBLOOM_EMISMATCH, second,
                 "has capacity=1000, and the text says capacity=2000");
    assert_ok(hibloom_open(&other, second, name, SIZED), second);
    assert_false(hibloom_created(other));
    assert_string_equal(hibloom_spec_of(other), hibloom_spec_of(filter));
    assert_ptr_equal(hibloom_store_of(other), second);
    assert_string_equal(hibloom_name_of(other), name);
    assert_ok(hibloom_near_cache(other, 1000), second);
    assert_ok(hibloom_drop_by_name(store, name), store);
    assert_status(hibloom_contains(other, "a", 1, &found), HIBLOOM_ENOTFOUND, second);
    assert_ok(hibloom_reopen(other), second);
    assert_true(hibloom_created(other));
    assert_ok(hibloom_reopen(filter), store); /* though its text says create=only */
    assert_false(hibloom_created(filter));
    assert_ok(hibloom_add(other, "a", 1, NULL), second);
    assert_ok(hibloom_contains(other, "a", 1, &found), second);
    assert_true(found);
    assert_dropped(other, second);
    test_close(filter, b->redis ? second : NULL);
}

/* With a crc that is right. */
static void write_key(struct backend *b, const char *key, const char *text, enum record_state state, uint64_t id)
{
    struct record record = {
        .text_len = (uint32_t)strlen(text), .keys = 1, .bytes = 10, .generation = 1, .id = id, .state = state};
    char value[10 + SPEC_TEXT_SIZE + RECORD_TRAILER] = {0};

    record.crc = record_crc(&record, text);
    memcpy(value + 10, text, record.text_len);
    record_format(&record, value + 10 + record.text_len);
    test_command(b->outside, "SET %s %b", key, value, (size_t)10 + record.text_len + RECORD_TRAILER);
}

#define TEXT "hash=xxh3 layout=classic bits=80 hashes=3 seed=0123456789abcde"

/* As a later version may write it: a word that is unknown here. */
static void a_newer_filter_is_told_from_a_damaged_one(void **state)
{
    char name[TEST_NAME_SIZE];
    struct backend *b = *state;
    hibloom_store *store = b->store;
    hibloom *filter;

    write_key(b, test_name(name), TEXT "f colour=blue", RECORD_READY, 5);
    assert_fails(hibloom_open(&filter, store, name, NULL), HIBLOOM_ENOTSUP, store,
                 "was made by a newer hibloom: colour");
    assert_status(hibloom_open(&filter, store, name, SIZED), HIBLOOM_ENOTSUP, store);
    test_command(b->outside, "SETRANGE %s 15 y", name);
    assert_status(hibloom_open(&filter, store, name, NULL), HIBLOOM_ECORRUPT, store);
    test_command(b->outside, "DEL %s", name);
}

static void a_link_of_another_seed_is_damage(void **state)
{
    struct backend *b = *state;
    char name[TEST_NAME_SIZE], link[TEST_NAME_SIZE + 3];
    hibloom *filter;

    write_key(b, test_name(name), TEXT "0 capacity=9 error=0.01 growth=2", RECORD_GROWN, 5);
    snprintf(link, sizeof link, "%s:+1", name);
    write_key(b, link, TEXT "1 capacity=18 error=0.01 growth=2 link=1 chain=0000000000000005", RECORD_READY, 6);
    assert_fails(hibloom_open(&filter, b->store, name, NULL), HIBLOOM_ECORRUPT, b->store, "has another hash, seed");
    assert_ok(hibloom_drop_by_name(b->store, name), b->store);
    assert_int_equal(test_command(b->outside, "EXISTS %s", link), 0);
    write_key(b, link, TEXT "0", RECORD_READY, 7); /* a filter of its own is in the way of one that is to grow */
    assert_fails(hibloom_open(&filter, b->store, name, "capacity=9 error=0.01 growth=2"), HIBLOOM_EMISMATCH, b->store,
                 "in the way of a growing one");
    assert_int_equal(test_command(b->outside, "EXISTS %s", name), 0);
    assert_ok(hibloom_drop_by_name(b->store, link), b->store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_ALL(a_new_filter_gets_its_time_to_live),
        ON_ALL(a_filter_is_made_once_and_that_is_told),
        ON(a_newer_filter_is_told_from_a_damaged_one, setbit),
        ON(a_link_of_another_seed_is_damage, setbit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
