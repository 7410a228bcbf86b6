/* Bare bitmaps, which other programs own: never taken for a filter of ours, nothing
 * is stored beside them, and one that is gone or shorter is an error. */
#include "support/backend.h"
#include "support/record.h"
#include "spec/spec.h"

#include <hiredis/hiredis.h>
#include <string.h>

static void a_foreign_bitmap_is_not_taken_for_a_filter(void **state)
{
    struct backend *b = *state;
    const char *name = TEST_NAME;
    hibloom *filter;

    test_command(b->outside, "SETBIT %s 3 1", name);
    assert_status(hibloom_open(&filter, b->store, name, "capacity=1000 error=0.01"), HIBLOOM_EMISMATCH, b->store);
    assert_status(hibloom_open(&filter, b->store, name, NULL), HIBLOOM_EMISMATCH, b->store);
    assert_status(hibloom_drop_by_name(b->store, name), HIBLOOM_ENOTFOUND, b->store);
    assert_int_equal(test_command(b->outside, "BITCOUNT %s", name), 1);
    assert_int_equal(keys_with(b->outside, name), 1); /* nothing lies beside it */
    test_command(b->outside, "DEL %s", name);
}

static void a_bare_bitmap_may_begin_with_the_first_add(void **state)
{
    struct backend *b = *state;
    const char *name = TEST_NAME;
    struct spec spec = test_spec("php-uids");
    hibloom *filter;
    bool found = true;

    assert_ok(hibloom_attach(&filter, b->store, name, test_text(&spec)), b->store);
    assert_status(hibloom_contains(filter, "1", 1, &found), HIBLOOM_ENOTFOUND, b->store);
    assert_true(found);
    assert_true(backend_add(b, filter, "1234567890", 10));
    assert_true(backend_contains(b, filter, "1234567890", 10));
    assert_false(backend_contains(b, filter, "1234567891", 10));
    assert_int_equal(keys_with(b->outside, name), 1); /* nothing lies beside it */

    /* gone: an error, and one that stays although the add has begun it again */
    test_command(b->outside, "DEL %s", name);
    assert_status(hibloom_contains(filter, "1234567890", 10, &found), HIBLOOM_ENOTFOUND, b->store);
    assert_status(hibloom_add(filter, "1234567890", 10, NULL), HIBLOOM_ENOTFOUND, b->store);
    assert_status(hibloom_contains(filter, "7", 1, &found), HIBLOOM_ECORRUPT, b->store);
    assert_status(hibloom_add(filter, "7", 1, &found), HIBLOOM_ECORRUPT, b->store);
    test_command(b->outside, "SETBIT %s 67108863 0", name);
    assert_status(hibloom_contains(filter, "8", 1, &found), HIBLOOM_ECORRUPT, b->store);
    hibloom_close(filter);

    /* begun again by another: as long as it is shorter than it was */
    assert_ok(hibloom_attach(&filter, b->store, name, test_text(&spec)), b->store);
    assert_true(backend_contains(b, filter, "7", 1));
    test_command(b->outside, "DEL %s", name);
    test_command(b->outside, "SETBIT %s 0 1", name);
    assert_status(hibloom_contains(filter, "7", 1, &found), HIBLOOM_ECORRUPT, b->store);
    assert_true(found);

    /* emptied by its handle, it begins anew: as long as it was, and for as long */
    assert_ok(hibloom_clear(filter), b->store);
    assert_false(backend_contains(b, filter, "7", 1));
    assert_true(backend_add(b, filter, "1234567890", 10));
    const long long length = test_command(b->outside, "STRLEN %s", name);
    assert_ok(hibloom_expire(filter, 500000), b->store);
    assert_ok(hibloom_clear(filter), b->store);
    assert_int_equal(test_command(b->outside, "STRLEN %s", name), length);
    assert_int_equal(test_command(b->outside, "BITCOUNT %s", name), 0);
    assert_in_range(test_command(b->outside, "TTL %s", name), 490, 500);
    assert_false(backend_contains(b, filter, "1234567890", 10));
    backend_drop(b, filter);
    assert_int_equal(test_command(b->outside, "EXISTS %s", name), 0);
}

static void a_bare_bitmap_that_is_gone_or_shorter_is_an_error(void **state)
{
    struct backend *b = *state;
    hibloom_store *store = b->store;
    redisContext *redis = b->outside;
    const char *name = TEST_NAME;
    struct spec spec = test_spec("php-uids");
    hibloom *filter;
    bool found;

    test_command(redis, "SETBIT %s 67108863 1", name);
    assert_ok(hibloom_attach(&filter, store, name, test_text(&spec)), store);
    assert_ok(hibloom_contains(filter, "1234567890", 10, &found), store);
    test_command(redis, "DEL %s", name);
    assert_status(hibloom_contains(filter, "1234567890", 10, &found), HIBLOOM_ENOTFOUND, store);
    assert_status(hibloom_contains_many(filter, &(hibloom_item){"x", 1}, 1, &found), HIBLOOM_ENOTFOUND, store);
    test_command(redis, "SETBIT %s 7 1", name);
    assert_status(hibloom_contains(filter, "1234567890", 10, &found), HIBLOOM_ECORRUPT, store);
    assert_status(hibloom_contains_many(filter, &(hibloom_item){"x", 1}, 1, &found), HIBLOOM_ECORRUPT, store);
    hibloom_close(filter);
    test_command(redis, "DEL %s", name);
}

/* It was filled with other numbers, by which other bits are an item's. */
static void a_bitmap_that_is_longer_than_the_spec_says_is_not_joined(void **state)
{
    static const uint64_t last[] = {71, 79,
                                    80}; /* of 80 bits: bloomfilter-rb sets one more, so 80 is not yet too many */
    struct backend *b = *state;
    const char *name = TEST_NAME;
    struct spec spec = test_spec("bits=80 hashes=3 seed=1");
    hibloom *filter;

    for (size_t i = 0; i < 3; i++) {
        test_command(b->outside, "SETBIT %s %llu 1", name, (unsigned long long)last[i]);
        assert_ok(hibloom_attach(&filter, b->store, name, test_text(&spec)), b->store);
        hibloom_close(filter);
    }
    test_command(b->outside, "SETBIT %s 88 1", name);
    assert_status(hibloom_attach(&filter, b->store, name, test_text(&spec)), HIBLOOM_EMISMATCH, b->store);
    assert_non_null(strstr(hibloom_store_error(b->store), "has 12 bytes"));
    test_command(b->outside, "DEL %s", name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_REDIS(a_foreign_bitmap_is_not_taken_for_a_filter),
        ON_REDIS(a_bare_bitmap_may_begin_with_the_first_add),
        ON_REDIS(a_bare_bitmap_that_is_gone_or_shorter_is_an_error),
        ON_REDIS(a_bitmap_that_is_longer_than_the_spec_says_is_not_joined),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
