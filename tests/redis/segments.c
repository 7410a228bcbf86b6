/* Filters of several segments: what lies where, and that they are refused as a whole. */
#include "support/record.h"
#include "support/segments.h"
#include "base/store.h"
#include "spec/positions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- What lies where --------------------------------------------------------------- */

static int compare_positions(const void *a, const void *b)
{
    const struct position *x = a, *y = b;

    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return (x->bit > y->bit) - (x->bit < y->bit);
}

static size_t count_different(struct position *positions, size_t n)
{
    size_t different = n > 0;

    qsort(positions, n, sizeof *positions, compare_positions);
    for (size_t i = 1; i < n; i++)
        different += compare_positions(&positions[i - 1], &positions[i]) != 0;
    return different;
}

static void the_bits_lie_where_positions_says_and_nowhere_else(void **state)
{
    enum { N = 300 };
    static struct position positions[N * 7];
    hibloom_item *items = items_new("", N);

    for (int s = 0; s < SEGMENT_SPECS; s++) {
        hibloom *filter = test_open(stores[s % 2], NAME, segment_specs[s]);
        const uint32_t k = filter->spec.hashes, segments = filter->spec.segments;
        hibloom_info info;
        uint64_t bytes = 0;
        assert_int_equal(k, 7);
        assert_ok(hibloom_add_many(filter, items, N, NULL), stores[s % 2]);
        for (size_t i = 0; i < N; i++)
            assert_ok(positions_of(&filter->spec, items[i].data, items[i].len, positions + i * k), NULL);
        for (size_t i = 0; i < N * k; i++)
            assert_int_equal(
                test_command(redis, "GETBIT " NAME ":%u %llu", positions[i].key, (unsigned long long)positions[i].bit),
                1);
        const size_t different = count_different(positions, N * k);
        assert_int_equal(segments_count(&filter->spec), different);
        assert_ok(hibloom_get_info(filter, &info, sizeof info), stores[s % 2]);
        assert_int_equal(info.bits_set, different);
        assert_int_equal(info.keys, segments);
        for (uint32_t i = 0; i < segments; i++)
            bytes += record_length(&filter->spec, i);
        assert_int_equal(info.bytes, bytes);
        segments_drop(filter);
    }
    items_free(items);
}

/* ---- Batches ----------------------------------------------------------------------- */

static void a_batch_may_be_of_no_item_or_one_or_the_empty_one(void **state)
{
    for (int s = 0; s < SEGMENT_SPECS; s++) {
        hibloom *filter = segments_open(segment_specs[s]);
        bool answer = true;
        assert_ok(hibloom_add_many(filter, NULL, 0, NULL), stores[0]);
        assert_ok(hibloom_contains_many(filter, NULL, 0, &answer), stores[0]);
        assert_ok(hibloom_contains_many(filter, &(hibloom_item){NULL, 0}, 1, &answer), stores[0]);
        assert_false(answer);
        assert_ok(hibloom_add_many(filter, &(hibloom_item){NULL, 0}, 1, &answer), stores[0]);
        assert_true(answer);
        assert_ok(hibloom_add(filter, "", 0, &answer), stores[0]);
        assert_false(answer);
        assert_ok(hibloom_contains(filter, "", 0, &answer), stores[0]);
        assert_true(answer);
        segments_drop(filter);
    }
}

/* ---- Life ----------------------------------------------------------------------------- */

static void a_server_that_takes_no_such_string_says_so_and_is_left_clean(void **state)
{
    /* with a seed: a drawn one may have four letters of the words, which then are not said */
    static const char *const texts[] = {"bits=67108864 hashes=7 seed=1",
                                        "bits=67108864 hashes=7 layout=partitioned seed=1",
                                        "bits=20000000 hashes=7 segments=2 seed=1", LARGE};

    test_command(redis, "CONFIG SET proto-max-bulk-len 1mb");
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const struct spec spec = test_spec(texts[i]);
        hibloom *filter;
        assert_status(hibloom_open(&filter, stores[0], NAME, test_text(&spec)), HIBLOOM_ESERVER, stores[0]);
        if (strstr(hibloom_store_error(stores[0]), "maximum allowed size") == NULL)
            fail_msg("%s: %s", texts[i], hibloom_store_error(stores[0]));
        assert_int_equal(keys_stored(), 0); /* the root is the first and the largest */
    }
    test_command(redis, "CONFIG SET proto-max-bulk-len 512mb");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SEGMENTS_TEST(the_bits_lie_where_positions_says_and_nowhere_else),
        SEGMENTS_TEST(a_batch_may_be_of_no_item_or_one_or_the_empty_one),
        SEGMENTS_TEST(a_server_that_takes_no_such_string_says_so_and_is_left_clean),
    };

    return cmocka_run_group_tests(tests, segments_set_up, segments_tear_down);
}
