/* Another value takes a filter's name while an old handle still adds. A handle
 * that was silent for a while touches nothing of it; what was on its way in that
 * moment costs the new filter at most some bits of its own. */
#include "support/items.h"
#include "support/second_driver.h"
#include "support/served.h"

#include "redis/record.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ONE_PIPELINE = 20, MANY = 10000, KEPT = 50, STALE_MS = 120 };

static hibloom_store *plain, *flying; /* flying: what it sends can be held */
static hibloom_item *many, *kept;

static int set_up(void **state)
{
    (void)served_set_up(state);
    plain = test_connect(redis_server_uri(server), NULL);
    flying = second_store(redis_server_socket(server), HIBLOOM_COMMANDS_SETBIT);
    many = items_new("late", MANY);
    kept = items_new("kept", KEPT);
    return 0;
}

static int tear_down(void **state)
{
    items_free(many);
    items_free(kept);
    hibloom_store_free(plain);
    hibloom_store_free(flying);
    return served_tear_down(state);
}

/* ---- All values of the server, to be compared ------------------------------------ */

enum { KEYS_MAX = 16 };

struct values {
    size_t count;
    redisReply *keys, *value[KEYS_MAX];
};

static struct values values_read(void)
{
    struct values values = {.keys = redisCommand(redis, "KEYS *")};

    values.count = values.keys->elements;
    assert_in_range(values.count, 0, KEYS_MAX);
    for (size_t i = 0; i < values.count; i++)
        values.value[i] = redisCommand(redis, "GET %b", values.keys->element[i]->str, values.keys->element[i]->len);
    return values;
}

static void values_free(struct values *values)
{
    for (size_t i = 0; i < values->count; i++)
        freeReplyObject(values->value[i]);
    freeReplyObject(values->keys);
}

/* Byte for byte, and no other keys. */
static void assert_as_it_was(struct values *before)
{
    assert_int_equal(test_command(redis, "DBSIZE"), before->count);
    for (size_t i = 0; i < before->count; i++) {
        const redisReply *key = before->keys->element[i], *value = before->value[i];
        redisReply *now = redisCommand(redis, "GET %b", key->str, key->len);
        assert_int_equal(now->len, value->len);
        assert_memory_equal(now->str, value->str, value->len);
        freeReplyObject(now);
    }
    values_free(before);
}

/* Are these the generation, the id or the epoch of a trailer, or the list of ids? */
static bool is_of_ids(const redisReply *value, size_t bytes, size_t at)
{
    unsigned text = 0, key = 0, keys = 0;
    const size_t column = at - (value->len - RECORD_TRAILER);

    assert_int_equal(sscanf(value->str + value->len - RECORD_TRAILER, " %4u %*u %5u/%5u", &text, &key, &keys), 3);
    if (at >= value->len - RECORD_TRAILER)
        return column >= RECORD_IDENTITY_AT && column < 83;
    return key == 0 && keys > 1 && at < bytes + (size_t)keys * RECORD_ID_DIGITS;
}

/* The same but for bits that are set now and were not: in the first so many bytes,
 * and in ids, which no crc covers. True: none in ids, so it is intact. */
static bool only_bits_were_set(struct values *before, size_t bytes)
{
    bool intact = true;

    assert_int_equal(test_command(redis, "DBSIZE"), before->count);
    for (size_t i = 0; i < before->count; i++) {
        const redisReply *key = before->keys->element[i], *value = before->value[i];
        redisReply *now = redisCommand(redis, "GET %b", key->str, key->len);
        assert_int_equal(now->len, value->len);
        for (size_t at = 0; at < value->len; at++) {
            assert_int_equal(value->str[at] & ~now->str[at], 0);
            if (at < bytes || value->str[at] == now->str[at])
                continue;
            assert_true(is_of_ids(value, bytes, at));
            intact = false;
        }
        freeReplyObject(now);
    }
    values_free(before);
    return intact;
}

/* ---- What takes its place ---------------------------------------------------------- */

static const struct upkeep {
    const char *old, *fresh;
    size_t bytes; /* of bits in each key of the fresh one */
} changes[] = {
    {"bits=4000000 hashes=7 seed=1", "bits=4000 hashes=7 seed=2", 500},
    {"bits=4000 hashes=7 seed=1", "bits=4000000 hashes=7 seed=2", 500000},
    {"bits=4000 hashes=7 seed=1", "bits=4000 hashes=7 seed=2", 500},
    {"bits=4000 hashes=7 seed=1", "bits=4000 hashes=7 seed=1", 500}, /* the very same spec */
    {"bits=4000 hashes=7 seed=1", "bits=3600 hashes=7 seed=1", 450}, /* bits fall into its tail */
    {"bits=40960 hashes=7 seed=1 layout=blocked", "bits=1024 hashes=7 seed=2 layout=blocked", 128},
    {"bits=400000 hashes=7 seed=1 segments=5", "bits=4000 hashes=7 seed=2 segments=5", 100},
    {"bits=400000 hashes=7 seed=1 segments=5", "bits=4000 hashes=7 seed=2 segments=2", 250},
    {"bits=400000 hashes=4 seed=1 layout=partitioned", "bits=4000 hashes=4 seed=2 layout=partitioned", 500},
    {"bits=400000 hashes=4 seed=1 layout=partitioned", "bits=4000 hashes=3 seed=2 layout=partitioned", 500},
    {"bits=400000 hashes=4 seed=1 layout=partitioned", "bits=4000 hashes=3 seed=2 segments=3", 167},
};
enum { CHANGES = sizeof changes / sizeof changes[0] };

static hibloom *fresh_one; /* what took the name */

static void replace(void *argument)
{
    const struct upkeep *change = argument;

    assert_ok(hibloom_delete(plain, "seen"), plain);
    fresh_one = test_open(plain, "seen", change->fresh);
    assert_ok(hibloom_add_many(fresh_one, kept, KEPT, NULL), plain);
}

static void assert_kept(void)
{
    bool found[KEPT];

    assert_ok(hibloom_contains_many(fresh_one, kept, KEPT, found), plain);
    for (int i = 0; i < KEPT; i++)
        assert_true(found[i]);
}

static bool is_one_of(hibloom_status status, hibloom_status a, hibloom_status b)
{
    return status == a || status == b;
}

/* ---- A handle that was silent -------------------------------------------------------- */

static void a_handle_that_was_silent_touches_nothing_of_the_new_filter(void **state)
{
    static const size_t counts[] = {1, 100, MANY};
    static bool is_new[MANY];

    (void)state;
    for (int c = 0; c < CHANGES; c++) {
        hibloom *old = test_open(plain, "seen", changes[c].old);
        assert_ok(hibloom_add_many(old, many, 100, NULL), plain);
        replace((void *)(uintptr_t)&changes[c]);
        test_sleep_ms(STALE_MS);
        for (int n = 0; n < 6; n++) {
            struct values before = values_read();
            const hibloom_status status = hibloom_add_many(old, many, counts[n % 3], n < 3 ? NULL : is_new);
            assert_status(status, HIBLOOM_EMISMATCH, plain);
            assert_as_it_was(&before);
        }
        hibloom_close(old);
        hibloom_close(fresh_one);
        served_leave_nothing(NULL);
    }
}

/* A call of many items asks first, whenever its last guard was. */
static void a_large_call_asks_first(void **state)
{
    (void)state;
    for (int c = 0; c < CHANGES; c++) {
        hibloom *old = test_open(plain, "seen", changes[c].old);
        assert_ok(hibloom_add_many(old, many, MANY, NULL), plain);
        replace((void *)(uintptr_t)&changes[c]);
        struct values before = values_read();
        assert_status(hibloom_add_many(old, many, MANY, NULL), HIBLOOM_EMISMATCH, plain);
        assert_as_it_was(&before);
        hibloom_close(old);
        hibloom_close(fresh_one);
        served_leave_nothing(NULL);
    }
}

/* COPY over it, of a filter of the same size, or RENAME: never a silent "no". */
static void another_filter_of_the_same_size_is_not_taken_for_it(void **state)
{
    static const char *const commands[] = {"COPY other seen REPLACE", "RENAME other seen"};
    bool found = true;

    (void)state;
    for (int i = 0; i < 4; i++) {
        hibloom *old = test_open(plain, "seen", "bits=4000 hashes=7 seed=1");
        hibloom *other = test_open(plain, "other", i < 2 ? "bits=4000 hashes=7 seed=1" : "bits=4000 hashes=7 seed=2");
        assert_ok(hibloom_add(old, "x", 1, NULL), plain);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        test_command(redis, commands[i % 2]);
#pragma GCC diagnostic pop
        assert_status(hibloom_contains(old, "x", 1, &found), HIBLOOM_EMISMATCH, plain);
        assert_status(hibloom_add(old, "x", 1, &found), HIBLOOM_EMISMATCH, plain);
        assert_status(hibloom_clear(old), HIBLOOM_EMISMATCH, plain);
        assert_status(hibloom_expire(old, 1), HIBLOOM_EMISMATCH, plain);
        assert_status(hibloom_drop(old), HIBLOOM_EMISMATCH, plain);
        assert_true(found);
        assert_int_equal(test_command(redis, "TTL seen"), 0 - 1);
        hibloom_close(old);
        hibloom_close(other);
        served_leave_nothing(NULL);
    }
}

/* ---- What was on its way --------------------------------------------------------------- */

static struct values taken_before; /* right after the name was taken */

static void replace_and_read(void *argument)
{
    replace(argument);
    taken_before = values_read();
}

/* Opened anew it is whole, and has its items. Where ids were hit it is an error to
 * all, and never a wrong "no". */
static void check_the_new_filter(bool intact)
{
    hibloom *opened = NULL;
    bool found[KEPT];

    if (intact) {
        assert_kept();
        assert_ok(hibloom_open(&opened, plain, "seen", NULL), plain);
    } else if (hibloom_open(&opened, plain, "seen", NULL) != HIBLOOM_OK) {
        return;
    }
    const hibloom_status status = hibloom_contains_many(opened, kept, KEPT, found);
    assert_true(status == HIBLOOM_OK || !intact);
    for (int i = 0; i < KEPT && status == HIBLOOM_OK; i++)
        assert_true(found[i]);
    hibloom_close(opened);
}

/* The add's commands number `at` are on their way when the name is taken. True:
 * the new filter is intact. */
static bool add_while_replaced(const struct upkeep *change, size_t n, bool exact, unsigned at)
{
    static bool is_new[MANY];
    hibloom *old = test_open(flying, "seen", change->old);
    bool intact = true;

    fresh_one = NULL;
    assert_ok(hibloom_add_many(old, many + MANY / 2, 100, NULL), flying);
    second_store_hold(flying, at, replace_and_read, (void *)(uintptr_t)change);
    memset(is_new, 7, sizeof is_new);
    const hibloom_status status = hibloom_add_many(old, many, n, exact ? is_new : NULL);
    if (fresh_one == NULL) { /* it takes fewer round trips */
        assert_ok(status, flying);
    } else {
        assert_status(status, HIBLOOM_EMISMATCH, flying);
        for (size_t i = 0; i < n; i++)
            assert_int_equal(((unsigned char *)is_new)[i], 7);
        intact = only_bits_were_set(&taken_before, change->bytes);
        check_the_new_filter(intact);
        hibloom_close(fresh_one);
    }
    hibloom_close(old);
    served_leave_nothing(NULL);
    return intact;
}

static void what_was_on_its_way_costs_the_new_filter_at_most_bits(void **state)
{
    int intact = 0;

    (void)state;
    for (int c = 0; c < CHANGES; c++)
        for (int n = 0; n < 4; n++)
            intact += add_while_replaced(&changes[c], n < 2 ? 1 : ONE_PIPELINE, n % 2, 0);
    assert_in_range(intact, 4 * CHANGES - 8, 4 * CHANGES);
}

/* Several pipelines, and the name taken before each of them. */
static void of_a_longer_call_no_more_stays(void **state)
{
    int intact = 0;

    (void)state;
    for (int c = 0; c < CHANGES; c++)
        for (unsigned at = 0; at < 4; at++) {
            intact += add_while_replaced(&changes[c], 100, at % 2, at / 2);
            intact += add_while_replaced(&changes[c], MANY, false, at);
            intact += add_while_replaced(&changes[c], MANY, true, at);
        }
    assert_in_range(intact, 12 * CHANGES / 2, 12 * CHANGES);
    print_message("%d of %d were intact\n", intact, 12 * CHANGES);
}

/* ---- Two adders in the same moment --------------------------------------------------------- */

static hibloom *second_adder;

static void add_by_the_second(void *argument)
{
    (void)argument;
    assert_int_not_equal(hibloom_add_many(second_adder, many + ONE_PIPELINE, ONE_PIPELINE, NULL), HIBLOOM_OK);
}

static void replace_and_let_the_second_add(void *argument)
{
    replace_and_read(argument);
    second_store_hold(flying, 1, add_by_the_second, NULL); /* before the first takes its bits back */
}

/* Each takes its own bits back; the tail is whole after the last one. */
static void of_two_adders_at_once_no_more_stays(void **state)
{
    hibloom_store *other = second_store(redis_server_socket(server), HIBLOOM_COMMANDS_SETBIT);

    (void)state;
    for (int c = 0; c < CHANGES; c++) {
        hibloom *old = test_open(flying, "seen", changes[c].old);
        second_adder = test_open(other, "seen", changes[c].old);
        assert_ok(hibloom_add(old, "first", 5, NULL), flying);
        assert_ok(hibloom_add(second_adder, "first", 5, NULL), other);
        second_store_hold(flying, 0, replace_and_let_the_second_add, (void *)(uintptr_t)&changes[c]);
        assert_status(hibloom_add_many(old, many, ONE_PIPELINE, NULL), HIBLOOM_EMISMATCH, flying);
        check_the_new_filter(only_bits_were_set(&taken_before, changes[c].bytes));
        hibloom_close(fresh_one);
        hibloom_close(second_adder);
        hibloom_close(old);
        served_leave_nothing(NULL);
    }
    hibloom_store_free(other);
}

static void add_more_to_the_new_filter(void *argument)
{
    (void)argument;
    assert_ok(hibloom_add_many(fresh_one, many + MANY / 2, 300, NULL), plain);
}

static void replace_and_hold_what_follows(void *argument)
{
    replace(argument);
    second_store_hold(flying, 1, add_more_to_the_new_filter, NULL); /* before late bits are taken back */
}

/* One of these items finds a late bit set, and counts on it. */
static void an_item_of_the_new_filter_that_counts_on_late_bits_stays(void **state)
{
    static bool answers[300];

    (void)state;
    for (int round = 0; round < 10; round++) {
        hibloom *old = test_open(flying, "seen", "bits=4000 hashes=7 seed=1");
        assert_ok(hibloom_add(old, "first", 5, NULL), flying);
        second_store_hold(flying, 0, replace_and_hold_what_follows, (void *)(uintptr_t)&changes[2]);
        assert_status(hibloom_add_many(old, many + round * ONE_PIPELINE, ONE_PIPELINE, round % 2 ? answers : NULL),
                      HIBLOOM_EMISMATCH, flying);
        assert_ok(hibloom_contains_many(fresh_one, many + MANY / 2, 300, answers), plain);
        for (int i = 0; i < 300; i++)
            assert_true(answers[i]);
        hibloom_close(fresh_one);
        hibloom_close(old);
        served_leave_nothing(NULL);
    }
}

/* ---- And a bitmap of another program ------------------------------------------------------ */

static void drop_it(void *argument)
{
    (void)argument;
    assert_ok(hibloom_delete(plain, "seen"), plain);
}

static void put_bare_bitmap(void)
{
    test_command(redis, "SETBIT seen 17 1");
    test_command(redis, "SETBIT seen 4242 1");
}

static void adders_cut_off_by_a_drop_do_not_touch_a_bitmap_that_came_after(void **state)
{
    static const char text[] = "bits=40000 hashes=7 seed=1";
    static bool is_new[100];
    hibloom *old[4];
    bool found = true;

    (void)state;
    for (int i = 0; i < 4; i++)
        old[i] = test_open(flying, "seen", text);
    second_store_hold(flying, 0, drop_it, NULL);
    for (int i = 0; i < 4; i++)
        assert_status(hibloom_add_many(old[i], many, 100, i % 2 ? is_new : NULL), HIBLOOM_ENOTFOUND, flying);
    assert_int_equal(test_command(redis, "DBSIZE"), 0);
    put_bare_bitmap();
    test_sleep_ms(STALE_MS);
    for (int i = 0; i < 4; i++) {
        struct values before = values_read();
        const hibloom_status status = hibloom_add_many(old[i], many, i < 2 ? 1 : MANY, NULL);
        assert_true(is_one_of(status, HIBLOOM_ENOTFOUND, HIBLOOM_ECORRUPT));
        assert_true(is_one_of(hibloom_contains(old[i], "x", 1, &found), HIBLOOM_ENOTFOUND, HIBLOOM_ECORRUPT));
        assert_int_not_equal(hibloom_drop(old[i]), HIBLOOM_OK);
        assert_int_not_equal(hibloom_clear(old[i]), HIBLOOM_OK);
        assert_true(found);
        assert_as_it_was(&before);
        hibloom_close(old[i]);
    }
    assert_status(hibloom_delete(plain, "seen"), HIBLOOM_ENOTFOUND, plain);
    assert_int_equal(test_command(redis, "STRLEN seen"), 4242 / 8 + 1);
}

static void replace_by_a_bitmap(void *argument)
{
    drop_it(argument);
    put_bare_bitmap();
}

/* On its way: its bits are those that it has, and it may be longer by zeros. */
static void a_bitmap_that_came_meanwhile_keeps_its_bits_and_gets_none(void **state)
{
    (void)state;
    for (int n = 0; n < 4; n++) {
        static bool is_new[100];
        hibloom *old = test_open(flying, "seen", "bits=40000 hashes=7 seed=1");
        assert_ok(hibloom_add(old, "first", 5, NULL), flying);
        second_store_hold(flying, 0, replace_by_a_bitmap, NULL);
        assert_int_not_equal(hibloom_add_many(old, many, n < 2 ? 1 : 100, n % 2 ? is_new : NULL), HIBLOOM_OK);
        assert_int_equal(test_command(redis, "BITCOUNT seen"), 2);
        assert_int_equal(test_command(redis, "GETBIT seen 17"), 1);
        assert_int_equal(test_command(redis, "GETBIT seen 4242"), 1);
        hibloom_close(old);
        served_leave_nothing(NULL);
    }
}

#define TEST(function) cmocka_unit_test_teardown(function, served_leave_nothing)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_handle_that_was_silent_touches_nothing_of_the_new_filter),
        TEST(a_large_call_asks_first),
        TEST(another_filter_of_the_same_size_is_not_taken_for_it),
        TEST(what_was_on_its_way_costs_the_new_filter_at_most_bits),
        TEST(of_a_longer_call_no_more_stays),
        TEST(of_two_adders_at_once_no_more_stays),
        TEST(an_item_of_the_new_filter_that_counts_on_late_bits_stays),
        TEST(adders_cut_off_by_a_drop_do_not_touch_a_bitmap_that_came_after),
        TEST(a_bitmap_that_came_meanwhile_keeps_its_bits_and_gets_none),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
