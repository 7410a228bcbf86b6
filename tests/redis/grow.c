/* Filters of several links, on every store. A growing one keeps its error rate, and an item is new once. Its links are
 * found and made; their bits are read and merged. What a sliding window cannot do is refused. (What it finds is simulated
 * and, in memory, shown by unit/threads. cluster/filter saves and loads one that grows.) */
#include "base/store.h"
#include "spec/spec.h"
#include "support/backend.h"
#include "support/items.h"
#include "support/pieces.h"
#include "support/record.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SMALL "capacity=100 error=1e-9 growth=2"
#define WINDOW "capacity=1000 error=1e-9 window=2s slices=2"

/* ---- Growing -------------------------------------------------------------------- */

static void grow_to(struct backend *b, const char *text, size_t n, double error)
{
    char name[TEST_NAME_SIZE];
    hibloom *filter = backend_open(b, test_name(name), text);
    hibloom_info info;
    size_t is_new = 0;

    for (size_t done = 0, part = 1; done < n; done += part, part *= 3) {
        char prefix[24];
        snprintf(prefix, sizeof prefix, "in%zu,", done);
        is_new += items_add(filter, b->store, prefix, part);
        assert_int_equal(items_count(filter, b->store, prefix, part), part);
    }
    assert_int_equal(items_count(filter, b->store, "in0,", 1), 1);
    assert_ok(hibloom_get_info(filter, &info, sizeof info), b->store);
    assert_true(info.keys > (test_is_slow() ? 2 : 4));
    assert_true(info.estimated_items > (double)is_new * 0.9 && info.estimated_items < (double)is_new * 1.1);
    assert_true(info.estimated_error_rate > error / 8 && info.estimated_error_rate <= error * 1.1);
    const size_t others = 20000, wrong = items_count(filter, b->store, "other", others);
    print_message("%s: %zu new, %zu keys, %zu of %zu others found\n", text, is_new, (size_t)info.keys, wrong, others);
    assert_true((double)wrong <= (double)others * error * 1.2);
    assert_true((double)(n - is_new) <= (double)n * error + 4 * sqrt((double)n * error)); /* four standard deviations */
    backend_drop(b, filter);
    if (b->redis)
        assert_int_equal(keys_with(b->outside, name), 0);
}

/* By one seed: small links differ by more than a bound that shows anything allows. */
static void it_grows_and_keeps_its_error_rate(void **state)
{
    const size_t n = test_is_slow() ? 1093 : 9841; /* 1 + 3 + 9 ... */

    grow_to(*state, "capacity=300 error=0.01 growth=2 seed=5eed", n, 0.01);
    grow_to(*state,
            "capacity=100 error=0.02 growth=4 layout=blocked hash=siphash seed=000102030405060708090a0b0c0d0e0f", n,
            0.02);
    grow_to(*state, "capacity=300 error=0.01 growth=2 segments=3 seed=5eed", n, 0.01);
    grow_to(*state, "redisbloom capacity=300 error=0.01 growth=2", n, 0.01);
}

/* A thousand times the capacity, which is ten links: at most 2.2 times the memory of a filter that would have fitted. */
static void it_takes_little_more_memory_than_one_that_fits(void **state)
{
    struct backend *b = *state;
    hibloom *filter = backend_open(b, TEST_NAME, "capacity=100 error=0.001 growth=2 seed=5eed");
    const size_t n = test_is_slow() ? 12000 : 100000, others = 100000;
    char text[64];
    hibloom_info info;

    (void)items_add(filter, b->store, "in", n);
    assert_int_equal(items_count(filter, b->store, "in", n), n);
    assert_ok(hibloom_get_info(filter, &info, sizeof info), b->store);
    snprintf(text, sizeof text, "capacity=%zu error=0.001", n);
    const double ratio = (double)info.bytes * 8 / (double)test_spec(text).bits;
    const size_t wrong = items_count(filter, b->store, "other", others);
    print_message("%.2f times the memory, %zu of %zu others found\n", ratio, wrong, others);
    assert_true(ratio < 2.2);
    assert_true((double)wrong <= (double)others * 0.001 * 1.3); /* three standard deviations */
    backend_drop(b, filter);
}

/* ---- Links, their pieces, and what is refused --------------------------------------- */

/* What is merged into the newest link is counted before the next item is added there. */
static void a_piece_goes_to_its_link(void **state)
{
    struct backend *b = *state;
    char name[TEST_NAME_SIZE];
    hibloom *filter = backend_open(b, test_name(name), SMALL), *stale = test_open(b->store, name, NULL);
    struct spec last;
    hibloom_info info;

    assert_int_equal(links_reach(filter, 3), 3);
    assert_int_equal(items_add(filter, filter->store, "x", 1), 1);
    assert_int_equal(links_reach(stale, 1), 3);
    assert_ok(spec_link(&last, &filter->spec, 2, 1), NULL);
    const struct piece piece = {.link = 2, .len = spec_bitmap_bytes(&last)};
    unsigned char *bits = malloc(piece.len), *back = malloc(piece.len);
    memset(bits, 0xff, piece.len - 1); /* full */
    bits[piece.len - 1] = 0;
    piece_merge(filter, &piece, bits);
    piece_read(stale, &piece, back);
    for (size_t i = 0; i + 1 < piece.len; i++)
        assert_int_equal(back[i], 0xff);
    piece_read(stale, &(struct piece){.link = 1, .len = 1}, back);
    assert_int_equal(back[0], 0);
    (void)items_add(stale, stale->store, "y", 1);
    assert_int_equal(links_reach(filter, 1), 4);
    assert_false(hibloom_created(stale)); /* a link is no filter */
    assert_ok(hibloom_get_info(filter, &info, sizeof info), b->store);
    assert_int_equal(info.keys, 4);
    free(bits);
    free(back);
    hibloom_close(stale);
    backend_drop(b, filter);
}

static void what_a_growing_one_cannot_do_is_refused_in_words(void **state)
{
    struct backend *b = *state;
    char name[TEST_NAME_SIZE], other[TEST_NAME_SIZE];
    hibloom *filter = backend_open(b, test_name(name), SMALL),
            *same = test_open(b->store, test_name(other), hibloom_secret_spec_of(filter));
    hibloom *plain = backend_open(b, test_name(name), "capacity=100 error=1e-9");
    hibloom *bare;
    hibloom_comparison comparison;

    assert_fails(hibloom_attach(&bare, b->store, "bare", hibloom_secret_spec_of(filter)), HIBLOOM_ENOTSUP, b->store,
                 "does not grow");
    assert_fails(hibloom_compare(filter, same, &comparison, sizeof comparison), HIBLOOM_ENOTSUP, b->store,
                 "cannot be counted");
    assert_status(hibloom_merge(filter, plain), HIBLOOM_EMISMATCH, b->store);
    assert_status(hibloom_merge(plain, filter), HIBLOOM_EMISMATCH, b->store);
    backend_drop(b, plain);
    backend_drop(b, same);
    backend_drop(b, filter);
}

/* ---- Windows ------------------------------------------------------------------------ */

static void what_a_window_cannot_do_is_refused_in_words(void **state)
{
    struct backend *b = *state;
    char name[TEST_NAME_SIZE];
    hibloom *filter = backend_open(b, TEST_NAME, WINDOW), *other = backend_open(b, test_name(name), WINDOW), *bare;
    hibloom_comparison comparison;

    assert_fails(hibloom_merge(filter, other), HIBLOOM_ENOTSUP, b->store, "is a sliding window");
    assert_status(hibloom_compare(filter, other, &comparison, sizeof comparison), HIBLOOM_ENOTSUP, b->store);
    assert_status(hibloom_save(filter, "/nowhere"), HIBLOOM_ENOTSUP, b->store);
    assert_status(hibloom_restore(filter, "/nowhere"), HIBLOOM_ENOTSUP, b->store);
    assert_fails(hibloom_attach(&bare, b->store, "bare", hibloom_secret_spec_of(filter)), HIBLOOM_ENOTSUP, b->store,
                 "is no window");
    assert_status(hibloom_replace(filter, name), HIBLOOM_ENOTSUP, b->store);
    assert_status(hibloom_near_cache(filter, 0), b->redis ? HIBLOOM_ENOTSUP : HIBLOOM_OK, b->store);
    backend_drop(b, other);
    backend_drop(b, filter);
}

static void its_spec_has_bounds(void **state)
{
    struct spec spec = test_spec("capacity=1000 error=0.01 window=86400s");

    assert_int_equal(spec.slices, 4);
    assert_true(spec_error_at(&spec, 1000) <= 0.01 && spec_error_at(&spec, 1000) > 0.0099);
    assert_int_equal(spec_parse(&spec, "capacity=1000 error=0.01 window=3 slices=4"), HIBLOOM_ERANGE);
    assert_int_equal(spec_parse(&spec, "capacity=1000 error=0.01 slices=4"), HIBLOOM_EINVAL);
    assert_int_equal(spec_parse(&spec, "capacity=1000 error=0.01 window=99 slices=32"), HIBLOOM_ERANGE);
    assert_int_equal(spec_parse(&spec, "capacity=1000 error=0.01 window=9 growth=2"), HIBLOOM_EINVAL);
    assert_int_equal(spec_parse(&spec, "bits=1000 hashes=3 window=9"), HIBLOOM_EINVAL);
    assert_int_equal(spec_parse(&spec, "capacity=9 error=0.01 layout=partitioned window=9"), HIBLOOM_EINVAL);
    const uint64_t bits = test_spec("capacity=1000 error=0.01").bits;
    spec = test_spec("capacity=1000 error=0.01 window=1min");
    assert_true(spec.window == 60 && spec.slices == 4 && spec.bits > bits && spec.bits < bits * 3 / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON(it_takes_little_more_memory_than_one_that_fits, memory),
        ON_ALL(it_grows_and_keeps_its_error_rate),
        ON_ALL(a_piece_goes_to_its_link),
        ON_ALL(what_a_growing_one_cannot_do_is_refused_in_words),
        cmocka_unit_test(its_spec_has_bounds),
        ON_ALL(what_a_window_cannot_do_is_refused_in_words),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
