/* The life of a filter, on every store: it is opened, counted and expired. (fuzz.c clears, drops and makes filters again;
 * damage.c removes them without a handle.) Other programs own bare bitmaps. No key is stored beside them, and one that is
 * gone or shorter is an error. */
#include "base/store.h"
#include "spec/positions.h"
#include "spec/spec.h"
#include "support/backend.h"
#include "support/items.h"
#include "support/record.h"
#include "support/redis_server.h"

#include <hiredis/hiredis.h>
#include <math.h>
#include <string.h>

static void another_spec_is_a_mismatch(void **state)
{
    static const char *const others[] = {
        "capacity=1001 error=0.01",
        "capacity=1000 error=0.02",
        "capacity=1000 error=0.01 hashes=4",
        "capacity=1000 error=0.01 hash=siphash",
        "capacity=1000 error=0.01 layout=partitioned",
        "capacity=1000 error=0.01 empty=excluded",
        "bits=9592 hashes=7",
        "capacity=1000 error=0.01 seed=1",
        "php-uids",
    };
    struct backend *b = *state;
    hibloom *filter, *untouched = (hibloom *)b, *other = untouched;
    char name[TEST_NAME_SIZE];

    filter = backend_open(b, test_name(name), "capacity=1000 error=0.01 seed=0011223344556677");
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_status(hibloom_open(&other, b->store, name, others[i]), HIBLOOM_EMISMATCH, b->store);
        assert_ptr_equal(other, untouched);
        assert_string_not_equal(hibloom_store_error(b->store), "");
        assert_null(strstr(hibloom_store_error(b->store), "00112233"));
    }
    /* nor is it a bare bitmap, with another spec or with its own */
    assert_status(hibloom_attach(&other, b->store, name, "hash=xxh3 bits=96 hashes=7 segments=2"), HIBLOOM_EMISMATCH,
                  b->store);
    assert_status(hibloom_attach(&other, b->store, name, hibloom_secret_spec_of(filter)), HIBLOOM_EMISMATCH, b->store);
    backend_drop(b, filter);
    filter = backend_open(b, name, "bits=96 hashes=7 segments=2"); /* whose keys have other names */
    assert_status(hibloom_attach(&other, b->store, name, "php-uids"), HIBLOOM_EMISMATCH, b->store);
    backend_drop(b, filter);
}

static void seeds_differ_from_filter_to_filter(void **state)
{
    struct backend *b = *state;
    char name[TEST_NAME_SIZE], other_name[TEST_NAME_SIZE];
    hibloom *one = backend_open(b, test_name(name), "capacity=1000 error=0.01 hash=siphash");
    hibloom *other = backend_open(b, test_name(other_name), "capacity=1000 error=0.01 hash=siphash");

    assert_memory_not_equal(one->spec.seeds, other->spec.seeds, 16);
    backend_drop(b, one);
    backend_drop(b, other);
}

/* A handle has room for the seeds of its spec. */
static void a_handle_is_not_opened_again_with_more_seeds(void **state)
{
    struct backend *b = *state;
    const char *name = TEST_NAME;
    hibloom *few = backend_open(b, name, "bits=80 hashes=3"), *again;

    assert_ok(hibloom_open(&again, b->store, name, NULL), b->store);
    backend_drop(b, few);
    hibloom *many = backend_open(b, name, "bits=80 hashes=2 hash=poly seeds=7,11");
    assert_fails(hibloom_reopen(again), HIBLOOM_EMISMATCH, b->store, "many seeds");
    backend_drop(b, many);
    hibloom_close(again);
}

static void bad_arguments_are_refused(void **state)
{
    struct backend *b = *state;
    char name[TEST_NAME_SIZE], longest[HIBLOOM_NAME_MAX + 2];
    hibloom *filter;
    bool found;

    test_name(name);
    memset(longest, 'n', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    assert_status(hibloom_open(&filter, b->store, "", NULL), HIBLOOM_EINVAL, b->store);
    assert_status(hibloom_open(&filter, b->store, "{x", NULL), HIBLOOM_EINVAL, b->store);
    assert_status(hibloom_open(&filter, b->store, "a{}x", NULL), HIBLOOM_EINVAL, b->store);
    assert_status(hibloom_open(&filter, b->store, longest, NULL), HIBLOOM_ERANGE, b->store);
    assert_status(hibloom_drop_by_name(b->store, ""), HIBLOOM_EINVAL, b->store);
    assert_status(hibloom_open(&filter, b->store, name, "bits=0 hashes=1"), HIBLOOM_ERANGE, b->store);
    assert_status(hibloom_attach(&filter, b->store, name, "hash=xxh3 bits=0 hashes=1"), HIBLOOM_ERANGE, b->store);
    filter = backend_open(b, name, "capacity=1000 error=0.01");
    assert_status(hibloom_add(filter, NULL, 1, NULL), HIBLOOM_EINVAL, b->store);
    assert_status(hibloom_contains(filter, NULL, 1, &found), HIBLOOM_EINVAL, b->store);
    assert_false(backend_contains(b, filter, NULL, 0)); /* the empty item */
    assert_status(hibloom_expire(filter, UINT64_MAX), HIBLOOM_ERANGE, b->store);
    assert_ok(hibloom_add_many(filter, NULL, 0, NULL), b->store);
    assert_ok(hibloom_contains_many(filter, NULL, 0, NULL), b->store);
    backend_drop(b, filter);
    test_close(NULL, NULL);
    assert_string_equal(hibloom_store_error(NULL), "");
}

/* What follows the bits is in the same string, which has 2^32 bits at most; of a bare bitmap nothing follows. */
static void a_filters_tail_has_to_fit_its_key_too(void **state)
{
    static const char text[] = "hash=xxh3 bits=4294967296 hashes=1 segments=1";
    struct backend *b = *state;
    const char *name = TEST_NAME;
    hibloom *filter;

    assert_fails(hibloom_open(&filter, b->store, name, text), HIBLOOM_ERANGE, b->store, "does not fit one Redis key");
    assert_ok(hibloom_attach(&filter, b->store, name, text), b->store);
    hibloom_close(filter);
    assert_int_equal(keys_with(b->outside, name), 0);
}

static void info_counts_what_is_there(void **state)
{
    struct backend *b = *state;
    char name[TEST_NAME_SIZE];
    hibloom_info info;
    hibloom *filter = backend_open(b, test_name(name), "bits=100 hashes=3 seed=5 layout=partitioned");
    hibloom_position positions[3];

    assert_ok(hibloom_get_info(filter, &info, sizeof info), b->store);
    assert_int_equal(info.bits_set, 0);
    assert_true(info.fill == 0.0 && info.estimated_items == 0.0 && info.estimated_error_rate == 0.0);
    assert_int_equal(info.keys, 3);
    uint64_t bytes = 0; /* 100 bits, and in Redis the record behind them */
    for (uint32_t i = 0; i < 3; i++)
        bytes += b->redis ? record_length(&filter->spec, i) : 13;
    assert_int_equal(info.bytes, bytes);
    assert_ok(positions_of(&filter->spec, "x", 1, positions), NULL);
    assert_true(backend_add(b, filter, "x", 1));
    assert_ok(hibloom_get_info(filter, &info, sizeof info), b->store);
    assert_int_equal(info.bits_set, 3);
    assert_true(fabs(info.fill - 0.01) < 1e-12);
    assert_true(fabs(info.estimated_items - -100.0 * log1p(-0.01)) < 1e-9);
    assert_true(fabs(info.estimated_error_rate - 1e-6) < 1e-15);
    backend_drop(b, filter);

    filter = backend_open(b, name, "bits=1 hashes=1");
    assert_true(backend_add(b, filter, "x", 1));
    assert_ok(hibloom_get_info(filter, &info, sizeof info), b->store);
    assert_true(info.fill == 1.0 && isinf(info.estimated_items) && info.estimated_error_rate == 1.0);
    backend_drop(b, filter);
}

static void a_filter_expires(void **state)
{
    struct backend *b = *state;
    hibloom *filter = backend_open(b, TEST_NAME, "php-poly8 bits=65536");
    hibloom_status status = HIBLOOM_OK;
    bool answer = true;

    assert_ok(hibloom_add(filter, "x", 1, NULL), b->store);
    assert_ok(hibloom_expire(filter, 1), b->store);
    for (unsigned i = 0; i < 1000000 && status == HIBLOOM_OK; i++)
        status = hibloom_contains(filter, "x", 1, &answer);
    assert_status(status, HIBLOOM_ENOTFOUND, b->store);
    assert_status(hibloom_add(filter, "x", 1, NULL), HIBLOOM_ENOTFOUND, b->store);
    hibloom_close(filter);
    backend_drop(b, backend_open(b, TEST_NAME, "php-poly8 bits=65536")); /* the name is free */
}

static void info_counts_by_ranges_of_16_megabytes(void **state)
{
    struct backend *b = *state;
    hibloom_info info;
    hibloom *filter = backend_open(b, TEST_NAME, "bits=268435457 hashes=7 seed=1 segments=1"); /* 32 MB and a bit */

    assert_true(backend_add(b, filter, "x", 1));
    const uint64_t before = test_stats(b->store).commands;
    assert_ok(hibloom_get_info(filter, &info, sizeof info), b->store);
    assert_int_equal(info.bits_set, 7);
    assert_int_equal(test_stats(b->store).commands - before, 3 * 3); /* each with a guard and the time to live */
    backend_drop(b, filter);
}

/* 300 items are in; their number is an estimate, which is a few percent off. */
static hibloom_info info_of(struct backend *b, const char *text)
{
    hibloom *filter = backend_open(b, TEST_NAME, text);
    hibloom_info info;

    items_add(filter, b->store, "in", 300);
    assert_ok(hibloom_get_info(filter, &info, sizeof info), b->store);
    backend_drop(b, filter);
    return info;
}

static void a_plain_filter_is_used_by_what_is_in(void **state)
{
    const hibloom_info info = info_of(*state, "capacity=1000 error=0.0001");
    const hibloom_info segments = info_of(*state, "capacity=100 error=0.0001 segments=3");

    assert_int_equal(info.links, 1);
    assert_int_equal(info.capacity, 1000);
    assert_true(info.used > 0.28 && info.used < 0.32);
    assert_int_equal(segments.links, 1);
    assert_true(segments.used > 2.7 && segments.used < 3.3);
}

/* As many items as it is meant for: the rate now is the one that is predicted. Blocks are not equally full. */
static void the_error_rate_now_is_that_of_the_layout(void **state)
{
    static const char *const texts[] = {"capacity=300 error=0.01", "capacity=300 error=0.01 layout=blocked"};
    hibloom_plan plan;

    for (size_t i = 0; i < COUNT(texts); i++) {
        const hibloom_info info = info_of(*state, texts[i]);
        const uint64_t items = (uint64_t)llround(info.estimated_items);
        assert_ok(hibloom_get_plan(texts[i], items, &plan, sizeof plan), NULL);
        assert_true(info.estimated_error_rate > plan.error_at_items * 0.99);
        assert_true(info.estimated_error_rate < plan.error_at_items * 1.01);
    }
}

/* Links for 100, 200 and 400 items: the first one is full. */
static void a_growing_filter_has_the_capacity_of_its_links(void **state)
{
    const hibloom_info info = info_of(*state, "capacity=100 error=0.0001 growth=2");

    assert_int_equal(info.links, info.keys);
    assert_true(info.links == 2 || info.links == 3);
    assert_int_equal(info.capacity, info.links == 2 ? 300 : 700);
    assert_true(info.used > 0.8 && info.used < 1.2);
}

/* All items are in one slice, or in two if a period ended meanwhile; so the fullest has half of them. */
static void a_window_is_used_as_its_fullest_slice(void **state)
{
    const hibloom_info info = info_of(*state, "capacity=100 error=0.0001 window=4000s slices=4");

    assert_int_equal(info.links, 5);
    assert_int_equal(info.capacity, 100);
    assert_true(info.used > 1.4 && info.used < 3.3);
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
    hibloom *other = backend_open(b, name, "bits=64 hashes=1"); /* another began first, with a filter */
    assert_status(hibloom_add(filter, "1", 1, NULL), HIBLOOM_EMISMATCH, b->store);
    backend_drop(b, other);
    assert_ok(hibloom_clear(filter), b->store);
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
    assert_fails(hibloom_attach(&filter, b->store, name, test_text(&spec)), HIBLOOM_EMISMATCH, b->store,
                 "has 12 bytes");
    test_command(b->outside, "DEL %s", name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_ALL(another_spec_is_a_mismatch),
        ON_ALL(seeds_differ_from_filter_to_filter),
        ON_ALL(a_handle_is_not_opened_again_with_more_seeds),
        ON_ALL(bad_arguments_are_refused),
        ON_REDIS(a_filters_tail_has_to_fit_its_key_too),
        ON_REDIS(info_counts_by_ranges_of_16_megabytes),
        ON_ALL(info_counts_what_is_there),
        ON_ALL(a_filter_expires),
        ON_ALL(a_plain_filter_is_used_by_what_is_in),
        ON_ALL(the_error_rate_now_is_that_of_the_layout),
        ON_ALL(a_growing_filter_has_the_capacity_of_its_links),
        ON_ALL(a_window_is_used_as_its_fullest_slice),
        ON_REDIS(a_bare_bitmap_may_begin_with_the_first_add),
        ON_REDIS(a_bitmap_that_is_longer_than_the_spec_says_is_not_joined),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
