/* Growing filters on every store: they keep their error rate, and an item is new once. */
#include "support/backend.h"
#include "support/items.h"
#include "support/record.h"
#include "spec/spec.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SMALL "capacity=100 error=1e-9 growth=2"

/* ---- Growing -------------------------------------------------------------------- */

static void grow_to(struct backend *b, const char *text, size_t n, double error)
{
    char name[TEST_NAME_SIZE];
    hibloom *filter = backend_open(b, test_name(name), text);
    hibloom_info info;
    size_t is_new = 0;

    for (size_t done = 0, part = 1; done < n; done += part, part *= 3) {
        char prefix[16];
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

/* ---- What cannot be ---------------------------------------------------------------- */

static void what_it_cannot_do_is_refused_in_words(void **state)
{
    struct backend *b = *state;
    const struct spec spec = test_spec(SMALL);
    hibloom *filter = backend_open(b, TEST_NAME, SMALL), *bare;

    assert_status(hibloom_attach(&bare, b->store, "bare", test_text(&spec)), HIBLOOM_ENOTSUP, b->store);
    assert_non_null(strstr(hibloom_store_error(b->store), "does not grow"));
    backend_drop(b, filter);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_ALL(it_grows_and_keeps_its_error_rate),
        ON(it_takes_little_more_memory_than_one_that_fits, memory),
        ON_ALL(what_it_cannot_do_is_refused_in_words),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
