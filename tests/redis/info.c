/* The use that hibloom_get_info tells, on every store: of plain, growing and sliding filters. */
#include "support/backend.h"
#include "support/items.h"

#include <math.h>

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

static void without_a_capacity_nothing_is_known(void **state)
{
    const hibloom_info info = info_of(*state, "bits=100000 hashes=3");

    assert_int_equal(info.links, 1);
    assert_int_equal(info.capacity, 0);
    assert_true(isnan(info.used));
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_ALL(a_plain_filter_is_used_by_what_is_in),  ON_ALL(the_error_rate_now_is_that_of_the_layout),
        ON_ALL(without_a_capacity_nothing_is_known),   ON_ALL(a_growing_filter_has_the_capacity_of_its_links),
        ON_ALL(a_window_is_used_as_its_fullest_slice),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
