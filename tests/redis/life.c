/* The life of a filter, on every store: counted, expired and removed without a handle. (That it is cleared, dropped
 * and made anew fuzz.c shows.) */
#include "support/backend.h"
#include "support/record.h"
#include "support/redis_server.h"
#include "base/store.h"
#include "spec/positions.h"

#include <math.h>

static void info_counts_what_is_there(void **state)
{
    struct backend *b = *state;
    char name[TEST_NAME_SIZE];
    hibloom_info info;
    hibloom *filter = backend_open(b, test_name(name), "bits=100 hashes=3 seed=5 layout=partitioned");
    struct position positions[3];

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

static void a_filter_expires_as_a_whole(void **state)
{
    static const char *const texts[] = {"capacity=1000 error=0.001", "php-poly8 bits=65536"};
    struct backend *b = *state;
    char names[2][TEST_NAME_SIZE];
    hibloom *filters[2];
    bool answer = true;

    for (size_t t = 0; t < 2; t++) {
        filters[t] = backend_open(b, test_name(names[t]), texts[t]);
        assert_ok(hibloom_add(filters[t], "x", 1, NULL), b->store);
        assert_ok(hibloom_expire(filters[t], 1000), b->store);
        assert_ok(hibloom_expire(filters[t], 0), b->store); /* taken back */
    }
    test_sleep_ms(1200);
    for (size_t t = 0; t < 2; t++) {
        assert_true(backend_contains(b, filters[t], "x", 1));
        assert_ok(hibloom_expire(filters[t], 1000), b->store);
        for (int key = 0; key < 8 && t == 1 && b->redis; key++)
            assert_in_range(test_command(b->outside, "PTTL %s:%d", names[t], key), 1, 2000);
        assert_ok(hibloom_clear(filters[t]), b->store); /* keeps the time to live */
    }
    test_sleep_ms(1200);
    for (size_t t = 0; t < 2; t++) {
        const char *name = names[t];
        assert_status(hibloom_contains(filters[t], "x", 1, &answer), HIBLOOM_ENOTFOUND, b->store);
        assert_status(hibloom_add(filters[t], "x", 1, NULL), HIBLOOM_ENOTFOUND, b->store);
        assert_true(answer);
        hibloom_close(filters[t]);
        if (b->redis) /* of several, the others have a second more than the first */
            assert_int_equal(test_command(b->outside, "EXISTS %s %s:0", name, name), 0);
        /* what the failed add had set was taken back: the name is free */
        backend_drop(b, backend_open(b, name, texts[t]));
        if (b->redis)
            assert_int_equal(keys_with(b->outside, name), 0);
    }
}

static void remove_needs_no_handle(void **state)
{
    static const char *const texts[] = {"capacity=1000 error=0.001", "php-poly8 bits=65536"};
    struct backend *b = *state;
    char name[TEST_NAME_SIZE];

    for (size_t t = 0; t < 2; t++) {
        hibloom *filter = backend_open(b, test_name(name), texts[t]);
        assert_ok(hibloom_repair(b->store, name), b->store);
        assert_ok(hibloom_drop_by_name(b->store, name), b->store);
        assert_status(hibloom_drop_by_name(b->store, name), HIBLOOM_ENOTFOUND, b->store);
        assert_status(hibloom_repair(b->store, name), HIBLOOM_ENOTFOUND, b->store);
        assert_status(hibloom_drop(filter), HIBLOOM_ENOTFOUND, b->store);
        hibloom_close(filter);
        assert_status(hibloom_open(&filter, b->store, name, NULL), HIBLOOM_ENOTFOUND, b->store);
        if (b->redis)
            assert_int_equal(keys_with(b->outside, name), 0);
    }
}

static void info_counts_by_ranges_of_16_megabytes(void **state)
{
    struct backend *b = *state;
    hibloom_info info;
    hibloom *filter = backend_open(b, TEST_NAME, "bits=268435457 hashes=7 seed=1 segments=1"); /* 32 MB and a bit */
    const long long before = redis_server_calls_of(b->outside, "bitcount");

    assert_true(backend_add(b, filter, "x", 1));
    assert_ok(hibloom_get_info(filter, &info, sizeof info), b->store);
    assert_int_equal(info.bits_set, 7);
    assert_int_equal(redis_server_calls_of(b->outside, "bitcount") - before, 3);
    backend_drop(b, filter);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_REDIS(info_counts_by_ranges_of_16_megabytes),
        ON_ALL(info_counts_what_is_there),
        ON_ALL(a_filter_expires_as_a_whole),
        ON_ALL(remove_needs_no_handle),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
