/* What a filter is in Redis, seen from outside: the string that holds it, what
 * late adds may do to that, how it is counted, and the repair of what was lost. */
#include "support/backend.h"
#include "support/items.h"
#include "support/record.h"
#include "support/redis_server.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void the_value_is_bits_then_the_spec_then_a_trailer(void **state)
{
    struct backend *b = *state;
    hibloom_position positions[HIBLOOM_HASHES_MAX];
    char name[TEST_NAME_SIZE], text[HIBLOOM_SPEC_TEXT_SIZE];
    hibloom *filter = backend_open(b, test_name(name), "capacity=1000 error=0.01 seed=1"), *second;
    const hibloom_spec *spec = hibloom_spec_of(filter);
    struct stored_record record, after;

    assert_ok(hibloom_add(filter, "x", 1, NULL), b->store);
    assert_int_equal(test_command(b->outside, "BITCOUNT %s 0 1199", name), 7);
    assert_ok(hibloom_positions(spec, "x", 1, positions), NULL);
    for (uint32_t i = 0; i < spec->hashes; i++)
        assert_int_equal(test_command(b->outside, "GETBIT %s %llu", name, (unsigned long long)positions[i].bit), 1);
    assert_ok(hibloom_spec_format(spec, text, sizeof text), NULL);
    record_stored(b->outside, name, &record);
    assert_string_equal(record.text, text);
    assert_int_equal(record.bytes, 1200);
    assert_int_equal(record.length, 1200 + strlen(text) + TRAILER);
    assert_true(record.key == 0 && record.keys == 1 && record.state == 'r' && record.epoch == 0);
    assert_int_equal(keys_with(b->outside, name), 1);

    /* a second look changes nothing, a clear the epoch, and one made anew is another */
    second = backend_open(b, name, "capacity=1000 error=0.01");
    hibloom_close(second);
    record_stored(b->outside, name, &after);
    assert_string_equal(after.trailer, record.trailer);
    assert_ok(hibloom_clear(filter), b->store);
    record_stored(b->outside, name, &after);
    assert_true(after.epoch == 1 && after.id == record.id && after.generation == record.generation);
    backend_drop(b, filter);
    filter = backend_open(b, name, text);
    record_stored(b->outside, name, &after);
    assert_true(after.id != record.id && after.generation > record.generation && after.epoch == 0);
    assert_string_equal(after.text, text);
    backend_drop(b, filter);
}

/* Of SETBIT, BITFIELD and the script that an add may send. */
static long long writes(struct backend *b)
{
    return redis_server_calls_of(b->outside, "setbit") + redis_server_calls_of(b->outside, "bitfield");
}

/* A handle on a larger filter of that name that was dropped: its adds fail. What
 * of them has reached the new one is taken back, but for bits among the new one's
 * own; and after a while of silence nothing is sent at all. */
static void a_stale_adder_harms_nothing_and_hides_nothing(void **state)
{
    struct backend *b = *state;
    char name[TEST_NAME_SIZE], item[16];
    hibloom *stale = backend_open(b, test_name(name), "bits=1000000 hashes=7 seed=1"), *fresh;
    hibloom *silent = backend_open(b, name, "bits=1000000 hashes=7 seed=1");
    struct stored_record before, after;
    bool found = true, is_new = true;

    assert_ok(hibloom_delete(b->store, name), b->store);
    fresh = backend_open(b, name, "bits=1000 hashes=7 seed=2");
    assert_true(backend_add(b, fresh, "x", 1));
    record_stored(b->outside, name, &before);
    assert_status(hibloom_add(stale, "y", 1, NULL), HIBLOOM_EMISMATCH, b->store);
    assert_status(hibloom_add(stale, "y", 1, &is_new), HIBLOOM_EMISMATCH, b->store);
    assert_true(is_new);
    record_stored(b->outside, name, &after); /* no longer than it was */
    assert_string_equal(after.trailer, before.trailer);
    assert_true(backend_contains(b, fresh, "x", 1));
    assert_false(backend_contains(b, fresh, "z", 1));

    test_sleep_ms(150);
    const long long sent = writes(b);
    for (int i = 0; i < 2000; i++) {
        const int len = snprintf(item, sizeof item, "%d", i);
        assert_status(hibloom_add(i % 2 ? stale : silent, item, (size_t)len, NULL), HIBLOOM_EMISMATCH, b->store);
    }
    assert_int_equal(writes(b), sent);
    hibloom_close(silent);

    /* and once the new one is lost, no number of them makes it look whole */
    test_command(b->outside, "DEL %s", name);
    for (int i = 0; i < 2000; i++) {
        const int len = snprintf(item, sizeof item, "%d", i);
        assert_status(hibloom_add(i % 2 ? stale : fresh, item, (size_t)len, NULL), HIBLOOM_ENOTFOUND, b->store);
    }
    assert_status(hibloom_contains(fresh, "x", 1, &found), HIBLOOM_ENOTFOUND, b->store);
    assert_true(found);
    assert_int_equal(keys_with(b->outside, name), 0);
    hibloom_close(stale);
    hibloom_close(fresh);
}

/* An add is so soon after the filter was opened that its bits are sent before
 * it is known that the filter is gone. */
static void late_bits_are_taken_back_within_the_call(void **state)
{
    static const char *const texts[] = {"bits=1000000 hashes=7", "php-poly8 bits=65536",
                                        "bits=100000 hashes=7 segments=5", "bits=102400 hashes=7 layout=blocked"};
    struct backend *b = *state;
    char name[TEST_NAME_SIZE];
    int late[4] = {0};

    for (int round = 0; round < 80; round++) {
        hibloom *filter = backend_open(b, test_name(name), texts[round % 4]);
        const long long before = writes(b);
        bool is_new = true;
        for (int i = 0; i < 8; i++)
            test_command(b->outside, "DEL %s %s:%d", name, name, i);
        const hibloom_status status = hibloom_add(filter, "late", 4, round % 8 < 4 ? NULL : &is_new);
        assert_status(status, HIBLOOM_ENOTFOUND, b->store);
        assert_true(is_new);
        assert_int_equal(keys_with(b->outside, name), 0);
        late[round % 4] += writes(b) > before;
        hibloom_close(filter);
    }
    for (int t = 0; t < 4; t++)
        assert_true(late[t] > 0); /* but for where the machine was too slow for that */
}

static void info_counts_by_ranges_of_16_megabytes(void **state)
{
    struct backend *b = *state;
    char name[TEST_NAME_SIZE];
    hibloom_info info;
    hibloom *filter = backend_open(b, test_name(name),
                                   "bits=268435457 hashes=7 seed=1 segments=1"); /* 32 MB and a bit */
    const long long before = redis_server_calls_of(b->outside, "bitcount");

    assert_true(backend_add(b, filter, "x", 1));
    assert_ok(hibloom_get_info(filter, &info), b->store);
    assert_int_equal(info.bits_set, 7);
    assert_int_equal(redis_server_calls_of(b->outside, "bitcount") - before, 3);
    backend_drop(b, filter);
}

/* What a handle has asked for is no bit that it has set: another program's
 * bitmap under the name stays, and late bits in it are taken back. */
static void another_bitmap_is_not_taken_back_with_late_bits(void **state)
{
    enum { N = 100, THEIRS = 60 };
    struct backend *b = *state;
    hibloom_item *items = items_new("late", N);
    char name[TEST_NAME_SIZE];
    hibloom *filter = NULL;
    bool found[N];
    int late = 0;

    test_name(name);
    for (int i = 0; i < 20; i++) { /* so soon that the bits are sent before it is known, but for a slow machine */
        hibloom_close(filter);
        filter = backend_open(b, name, "capacity=1000 error=0.001");
        test_command(b->outside, "SET %s %b", name, "\xff\xff\xff\xff\xff\xff\xff\xf0", (size_t)8);
        const long long before = writes(b);
        assert_status(hibloom_add(filter, items[i].data, items[i].len, i % 2 ? found : NULL), HIBLOOM_ENOTFOUND,
                      b->store);
        late += writes(b) > before;
        assert_int_equal(test_command(b->outside, "BITCOUNT %s", name), THEIRS);
        if (i < 19)
            test_command(b->outside, "DEL %s", name);
    }
    assert_true(late > 0);
    for (int i = 0; i < 3; i++)
        assert_status(hibloom_contains_many(filter, items, N, found), HIBLOOM_ENOTFOUND, b->store);
    for (int i = 0; i < N; i++)
        assert_status(hibloom_add(filter, items[i].data, items[i].len, i % 2 ? found : NULL), HIBLOOM_ENOTFOUND,
                      b->store);
    assert_int_equal(test_command(b->outside, "BITCOUNT %s", name), THEIRS);
    assert_int_equal(test_command(b->outside, "BITCOUNT %s 0 6", name), 56);

    /* as long as the filter was, it is not what late bits can be */
    test_command(b->outside, "SETBIT %s 40000 1", name);
    assert_status(hibloom_contains_many(filter, items, N, found), HIBLOOM_ECORRUPT, b->store);
    assert_status(hibloom_add(filter, items[0].data, items[0].len, NULL), HIBLOOM_ECORRUPT, b->store);
    assert_int_equal(test_command(b->outside, "BITCOUNT %s", name), THEIRS + 1);
    test_command(b->outside, "DEL %s", name);
    hibloom_close(filter);
    items_free(items);
}

static void a_lost_filter_of_one_key_is_gone_and_not_repaired(void **state)
{
    struct backend *b = *state;
    char name[TEST_NAME_SIZE];
    hibloom *filter = backend_open(b, test_name(name), "capacity=1000 error=0.001 seed=1"), *other;
    bool found = true;

    assert_true(backend_add(b, filter, "x", 1));
    assert_ok(hibloom_repair(b->store, name), b->store);
    assert_true(backend_contains(b, filter, "x", 1)); /* nothing was lost, nothing is changed */
    test_command(b->outside, "DEL %s", name);
    assert_status(hibloom_open(&other, b->store, name, NULL), HIBLOOM_ENOTFOUND, b->store);
    assert_status(hibloom_add(filter, "y", 1, NULL), HIBLOOM_ENOTFOUND, b->store);
    assert_status(hibloom_contains(filter, "y", 1, &found), HIBLOOM_ENOTFOUND, b->store);
    assert_status(hibloom_repair(b->store, name), HIBLOOM_ENOTFOUND, b->store);
    assert_int_equal(keys_with(b->outside, name), 0);
    other = backend_open(b, name, "capacity=1000 error=0.001 seed=1");
    assert_false(backend_contains(b, other, "x", 1));
    assert_status(hibloom_contains(filter, "y", 1, &found), HIBLOOM_EMISMATCH, b->store);
    assert_true(found);
    hibloom_close(filter);
    backend_drop(b, other);
}

static void repair_makes_a_lost_key_anew_and_only_that(void **state)
{
    struct backend *b = *state;
    char name[TEST_NAME_SIZE], key[TEST_NAME_SIZE + 8];
    hibloom *filter = backend_open(b, test_name(name), "php-poly8 bits=65536"), *other;
    struct stored_record before[8], after;
    bool found = true;

    assert_true(backend_add(b, filter, "x", 1));
    assert_ok(hibloom_expire(filter, 1000), b->store);
    assert_ok(hibloom_repair(b->store, name), b->store);
    assert_true(backend_contains(b, filter, "x", 1)); /* nothing was lost, nothing is changed */
    for (int i = 0; i < 8; i++) {
        snprintf(key, sizeof key, "%s:%d", name, i);
        record_stored(b->outside, key, &before[i]);
    }

    test_command(b->outside, "DEL %s:3", name);
    assert_status(hibloom_open(&other, b->store, name, NULL), HIBLOOM_ECORRUPT, b->store);
    assert_status(hibloom_add(filter, "y", 1, NULL), HIBLOOM_ECORRUPT, b->store);
    assert_status(hibloom_contains(filter, "y", 1, &found), HIBLOOM_ECORRUPT, b->store);
    assert_int_equal(test_command(b->outside, "EXISTS %s:3", name), 0); /* it has not begun it again */
    assert_ok(hibloom_repair(b->store, name), b->store);
    assert_int_equal(test_command(b->outside, "BITCOUNT %s:3 0 8191", name), 0);
    assert_status(hibloom_contains(filter, "x", 1, &found), HIBLOOM_ECORRUPT, b->store); /* a key it does not know */
    assert_status(hibloom_add(filter, "y", 1, NULL), HIBLOOM_ECORRUPT, b->store);
    assert_true(found);
    hibloom_close(filter);

    assert_ok(hibloom_open(&filter, b->store, name, NULL), b->store);
    assert_false(backend_contains(b, filter, "x", 1));
    assert_true(backend_add(b, filter, "x", 1));
    assert_ok(hibloom_repair(b->store, name), b->store);
    assert_true(backend_contains(b, filter, "x", 1));
    for (int i = 0; i < 8; i++) {
        snprintf(key, sizeof key, "%s:%d", name, i);
        record_stored(b->outside, key, &after);
        assert_int_equal(after.generation, before[i].generation);
        assert_int_equal(after.id == before[i].id, i != 3);
        assert_in_range(test_command(b->outside, "PTTL %s", key), 990000, i == 0 ? 1000000 : 1001000);
    }
    backend_drop(b, filter);
    assert_status(hibloom_repair(b->store, name), HIBLOOM_ENOTFOUND, b->store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_REDIS(the_value_is_bits_then_the_spec_then_a_trailer),
        ON_REDIS(a_stale_adder_harms_nothing_and_hides_nothing),
        ON_REDIS(late_bits_are_taken_back_within_the_call),
        ON_REDIS(info_counts_by_ranges_of_16_megabytes),
        ON_REDIS(another_bitmap_is_not_taken_back_with_late_bits),
        ON_REDIS(a_lost_filter_of_one_key_is_gone_and_not_repaired),
        ON_REDIS(repair_makes_a_lost_key_anew_and_only_that),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
