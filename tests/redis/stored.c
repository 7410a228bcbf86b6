/* What a filter is in Redis, seen from outside: the string that holds it, what
 * late adds may do to that, how it is counted, and the repair of what was lost. */
#include "support/backend.h"
#include "support/items.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void the_bitmap_is_plain_and_sealed(void **state)
{
    struct backend *b = *state;
    hibloom_position positions[HIBLOOM_HASHES_MAX];
    char name[TEST_NAME_SIZE], text[HIBLOOM_SPEC_TEXT_SIZE];
    hibloom *filter = backend_open(b, test_name(name), "capacity=1000 error=0.01 seed=1");
    const hibloom_spec *spec = hibloom_spec_of(filter);

    assert_ok(hibloom_add(filter, "x", 1, NULL), b->store);
    assert_int_equal(test_command(b->outside, "STRLEN %s", name), 1200 + 8);
    assert_int_equal(test_command(b->outside, "BITCOUNT %s 0 1199", name), 7);
    assert_ok(hibloom_positions(spec, "x", 1, positions), NULL);
    for (uint32_t i = 0; i < spec->hashes; i++)
        assert_int_equal(test_command(b->outside, "GETBIT %s %llu", name, (unsigned long long)positions[i].bit), 1);
    redisReply *reply = redisCommand(b->outside, "GETRANGE %s 1200 -1", name);
    assert_non_null(reply);
    assert_string_equal(reply->str, "hibloom1");
    freeReplyObject(reply);
    reply = redisCommand(b->outside, "GET {%s}:spec", name);
    assert_non_null(reply);
    assert_ok(hibloom_spec_format(spec, text, sizeof text), NULL);
    assert_string_equal(reply->str, text);
    freeReplyObject(reply);
    backend_drop(b, filter);
}

/* A handle on a larger filter of that name that was dropped: its adds fail, but
 * they have reached the new one, and made it longer. */
static void a_stale_adder_harms_nothing_and_hides_nothing(void **state)
{
    struct backend *b = *state;
    char name[TEST_NAME_SIZE], item[16];
    hibloom *stale = backend_open(b, test_name(name), "bits=1000000 hashes=7 seed=1"), *fresh;
    bool found = true;

    assert_ok(hibloom_delete(b->store, name), b->store);
    fresh = backend_open(b, name, "bits=1000 hashes=7 seed=2");
    assert_true(backend_add(b, fresh, "x", 1));
    assert_status(hibloom_add(stale, "y", 1, NULL), HIBLOOM_EMISMATCH, b->store);
    assert_in_range(test_command(b->outside, "STRLEN %s", name), 134, 125000);
    assert_true(backend_contains(b, fresh, "x", 1));
    assert_false(backend_contains(b, fresh, "z", 1));

    /* and once the new one is lost, no number of them makes it look whole */
    test_command(b->outside, "DEL %s", name);
    for (int i = 0; i < 2000; i++) {
        const int len = snprintf(item, sizeof item, "%d", i);
        assert_status(hibloom_add(stale, item, (size_t)len, NULL), HIBLOOM_EMISMATCH, b->store);
    }
    assert_status(hibloom_contains(fresh, "x", 1, &found), HIBLOOM_ECORRUPT, b->store);
    assert_true(found);
    hibloom_close(stale);
    backend_drop(b, fresh);
}

static void info_counts_by_ranges_of_16_megabytes(void **state)
{
    struct backend *b = *state;
    char name[TEST_NAME_SIZE];
    hibloom_info info;
    hibloom *filter = backend_open(b, test_name(name), "bits=268435457 hashes=7 seed=1"); /* 32 MB and a bit */
    const long long before = test_calls_of(b->outside, "bitcount");

    assert_true(backend_add(b, filter, "x", 1));
    assert_ok(hibloom_get_info(filter, &info), b->store);
    assert_int_equal(info.bits_set, 7);
    assert_int_equal(test_calls_of(b->outside, "bitcount") - before, 3);
    backend_drop(b, filter);
}

/* What a handle has asked for is no bit that it has set: another program's
 * bitmap under the name stays, though a late add may have put bits into it. */
static void another_bitmap_is_not_taken_back_with_late_bits(void **state)
{
    enum { N = 100, THEIRS = 60 };
    struct backend *b = *state;
    hibloom_item *items = items_new("late", N);
    char name[TEST_NAME_SIZE];
    bool found[N];

    hibloom *filter = backend_open(b, test_name(name), "capacity=1000 error=0.001");
    test_command(b->outside, "DEL %s {%s}:spec", name, name);
    for (int i = 0; i < THEIRS; i++)
        test_command(b->outside, "SETBIT %s %d 1", name, i);
    for (int i = 0; i < 3; i++)
        assert_status(hibloom_contains_many(filter, items, N, found), HIBLOOM_ENOTFOUND, b->store);
    assert_status(hibloom_add(filter, items[0].data, items[0].len, NULL), HIBLOOM_ENOTFOUND, b->store);
    assert_true(test_command(b->outside, "BITCOUNT %s", name) >= THEIRS);
    test_command(b->outside, "DEL %s {%s}:hibloom-l", name, name);
    hibloom_close(filter);
    items_free(items);
}

static void repair_makes_a_lost_bitmap_anew_and_only_that(void **state)
{
    static const char *const texts[] = {"capacity=1000 error=0.001", "php-poly8 bits=65536"};
    struct backend *b = *state;
    char name[TEST_NAME_SIZE];

    for (size_t t = 0; t < 2; t++) {
        hibloom *filter = backend_open(b, test_name(name), texts[t]), *other;
        bool found = true;
        assert_true(backend_add(b, filter, "x", 1));
        assert_ok(hibloom_expire(filter, 1000), b->store);
        assert_ok(hibloom_repair(b->store, name), b->store);
        assert_true(backend_contains(b, filter, "x", 1)); /* nothing was lost, nothing is changed */

        test_command(b->outside, "DEL %s %s:3", name, name);
        assert_status(hibloom_open(&other, b->store, name, NULL), HIBLOOM_ENOTFOUND, b->store);
        assert_status(hibloom_add(filter, "y", 1, NULL), HIBLOOM_ECORRUPT, b->store); /* it has begun it again */
        assert_status(hibloom_contains(filter, "y", 1, &found), HIBLOOM_ECORRUPT, b->store);
        assert_status(hibloom_open(&other, b->store, name, NULL), HIBLOOM_ECORRUPT, b->store);
        assert_ok(hibloom_repair(b->store, name), b->store);
        assert_false(backend_contains(b, filter, "x", 1));
        assert_true(backend_add(b, filter, "x", 1));
        assert_ok(hibloom_repair(b->store, name), b->store);
        assert_true(backend_contains(b, filter, "x", 1));
        assert_in_range(test_command(b->outside, "TTL {%s}:spec", name), 990, 1000);
        assert_in_range(test_command(b->outside, t == 0 ? "TTL %s" : "TTL %s:3", name), 990, 1000);
        backend_drop(b, filter);
        assert_status(hibloom_repair(b->store, name), HIBLOOM_ENOTFOUND, b->store);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_REDIS(the_bitmap_is_plain_and_sealed),
        ON_REDIS(a_stale_adder_harms_nothing_and_hides_nothing),
        ON_REDIS(info_counts_by_ranges_of_16_megabytes),
        ON_REDIS(another_bitmap_is_not_taken_back_with_late_bits),
        ON_REDIS(repair_makes_a_lost_bitmap_anew_and_only_that),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
