/* Sliding windows in memory: what was added within the window is found, what is older is not. (Those on servers are
 * simulated.) Times are compared with this machine's clock; so what a busy machine delays makes nothing wrong. On every
 * store: what a window cannot do. */
#include "support/backend.h"
#include "spec/spec.h"

#define SMALL "capacity=1000 error=1e-9 window=2s slices=2"

enum { WINDOW_MS = 2000, LONGEST_MS = 3000 };

static void an_item_stays_for_the_window_and_no_longer(void **state)
{
    struct backend *b = *state;
    hibloom *filter = backend_open(b, TEST_NAME, SMALL);
    const uint64_t before = test_now_ms();

    assert_true(backend_add(b, filter, "item", 4));
    for (const uint64_t added = test_now_ms();; test_sleep_ms(20)) {
        const uint64_t now = test_now_ms();
        if (!backend_contains(b, filter, "item", 4))
            break;
        assert_true(now <= added + LONGEST_MS);
    }
    assert_true(test_now_ms() >= before + WINDOW_MS);
    assert_true(backend_add(b, filter, "item", 4)); /* new again */
    backend_drop(b, filter);
}

/* ---- Refused --------------------------------------------------------------------------- */

static void what_it_cannot_do_is_refused_in_words(void **state)
{
    backend_refuses_links(*state, SMALL, "is a sliding window", "is no window");
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
        cmocka_unit_test(its_spec_has_bounds),
        ON(an_item_stays_for_the_window_and_no_longer, memory),
        ON_ALL(what_it_cannot_do_is_refused_in_words),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
