/* The near cache: what is known to be in costs no command. */
#include "support/test.h"

#include <string.h>

enum { BATCH = 1000 };

static uint64_t numbers[BATCH];
static hibloom_item items[BATCH];
static bool answers[BATCH];

static void set_items(uint64_t first)
{
    for (size_t i = 0; i < BATCH; i++) {
        numbers[i] = first + i;
        items[i] = (hibloom_item){&numbers[i], sizeof numbers[i]};
    }
}

static hibloom *open_near(hibloom_store *store, const char *name, const char *text, uint64_t max_age_ms)
{
    hibloom *filter = test_open(store, name, text);

    assert_ok(hibloom_near_cache(filter, max_age_ms), store);
    return filter;
}

#define ONE_KEY "capacity=100000 error=0.000001 seed=5eed"
/* With the seed the filter has the same links in each run. */
#define GROWS "capacity=100 error=0.01 growth=2 seed=5eed"

static void what_is_known_costs_one_guard_a_call(void **state)
{
    hibloom_store *store = test_store(NULL);
    hibloom *filter = open_near(store, "cost", ONE_KEY, 0);
    hibloom_stats stats;

    set_items(0);
    assert_ok(hibloom_add_many(filter, items, BATCH, answers), store);
    assert_int_equal(test_count_true(answers, BATCH), BATCH);
    const uint64_t before = test_stats(store).commands;
    assert_ok(hibloom_contains_many(filter, items, BATCH, answers), store);
    assert_int_equal(test_count_true(answers, BATCH), BATCH);
    assert_int_equal(test_stats(store).commands, before + 1);
    assert_ok(hibloom_add_many(filter, items, BATCH, answers), store);
    assert_int_equal(test_count_true(answers, BATCH), 0);
    assert_ok(hibloom_add_many(filter, items, BATCH, NULL), store);
    assert_int_equal(test_stats(store).commands, before + 5); /* an add asks, too, whether it would have been taken */
    hibloom_get_stats(store, &stats, sizeof stats);
    assert_int_equal(stats.items, 4 * BATCH);
    assert_int_equal(stats.items_near, 3 * BATCH);
    assert_dropped_last(filter, store);
}

/* Each link has its own; of what an older one has, the first link's guard is asked, too. */
static void of_a_growing_filter_each_link_has_one(void **state)
{
    hibloom_store *store = test_store(NULL);
    hibloom *filter = open_near(store, "grows", GROWS, 0);
    hibloom_stats stats;

    set_items(0);
    for (size_t i = 0; i < BATCH; i += 10) /* into three links, at least */
        assert_ok(hibloom_add_many(filter, items + i, 10, NULL), store);
    const uint64_t before = test_stats(store).commands;
    assert_ok(hibloom_contains_many(filter, items, BATCH, answers), store);
    assert_int_equal(test_count_true(answers, BATCH), BATCH);
    assert_ok(hibloom_add_many(filter, items, 10, answers), store);
    /* A guard for each of at most four links. The add proves itself with two commands a chunk, and
     * near the end of the newest link a chunk is one item. */
    assert_true(test_stats(store).commands <= before + 4 + 2 * 10);
    hibloom_get_stats(store, &stats, sizeof stats);
    assert_true(stats.items_near >= BATCH);
    assert_dropped_last(filter, store);
}

/* However many there are. On a slow machine a guard grows old, and each chunk asks anew. */
static void a_call_of_many_known_items_asks_one_guard_too(void **state)
{
    enum { CHUNKS = 3, MANY = 70000 };
    static uint32_t each[MANY];
    static hibloom_item many[MANY];
    static bool found[MANY];
    hibloom_store *store = test_store(NULL);
    hibloom *filter = open_near(store, "many", ONE_KEY, 0);

    for (uint32_t i = 0; i < MANY; i++)
        many[i] = (hibloom_item){memcpy(&each[i], &i, sizeof i), sizeof i};
    assert_ok(hibloom_add_many(filter, many, MANY, NULL), store);
    const uint64_t before = test_stats(store).commands;
    assert_ok(hibloom_contains_many(filter, many, MANY, found), store);
    assert_null(memchr(found, false, MANY));
    const uint64_t between = test_stats(store).commands;
    assert_in_range(between - before, 1, CHUNKS);
    assert_ok(hibloom_add_many(filter, many, MANY, found), store);
    assert_null(memchr(found, true, MANY));
    assert_in_range(test_stats(store).commands - between, 2, 2 * CHUNKS);
    assert_dropped_last(filter, store);
}

static void within_its_age_a_guard_is_asked_once(void **state)
{
    hibloom_store *store = test_store(NULL);
    hibloom *filter = open_near(store, "age", ONE_KEY, UINT64_MAX); /* for ever */

    set_items(0);
    assert_ok(hibloom_add_many(filter, items, BATCH, NULL), store);
    const uint64_t before = test_stats(store).commands;
    for (int i = 0; i < 100; i++)
        assert_ok(hibloom_contains_many(filter, items, BATCH, answers), store);
    assert_int_equal(test_stats(store).commands, before);
    assert_int_equal(test_count_true(answers, BATCH), BATCH);
    assert_dropped_last(filter, store);
}

static void it_takes_no_more_memory_than_it_may(void **state)
{
    const char *const text = "bits=8000000 hashes=3 segments=8 seed=5eed";              /* 125,000 bytes a key */
    hibloom_store *store = test_connect(with_options(test_uri(), "near=375001"), NULL); /* three keys and 1 */
    hibloom *filter = open_near(store, "room", text, 600000), *second = open_near(store, "second", ONE_KEY, 600000);
    hibloom_stats stats;
    for (uint64_t i = 0; i < 10; i++) {
        set_items(i * BATCH);
        assert_ok(hibloom_add_many(filter, items, BATCH, answers), store);
    }
    set_items(0);
    assert_ok(hibloom_contains_many(filter, items, BATCH, answers), store);
    assert_int_equal(test_count_true(answers, BATCH), BATCH);
    hibloom_get_stats(store, &stats, sizeof stats);
    assert_true(stats.items_near > BATCH / 8 * 2 && stats.items_near < BATCH / 8 * 4); /* three of eight */
    for (int closed = 0; closed < 2; closed++) {
        assert_ok(hibloom_add_many(second, items, BATCH, answers), store);
        const uint64_t before = test_stats(store).commands;
        assert_ok(hibloom_contains_many(second, items, BATCH, answers), store);
        assert_int_equal(test_count_true(answers, BATCH), BATCH);
        assert_int_equal(test_stats(store).commands == before, closed); /* then there is room */
        if (!closed)
            assert_dropped(filter, store);
    }
    assert_dropped_last(second, store);
}

static void a_bare_bitmap_has_none(void **state)
{
    hibloom_store *store = test_store(NULL), *memory;
    hibloom *filter = test_attach(store, "bare", "bits=9000 hashes=4 seed=1"), *near;

    assert_status(hibloom_near_cache(filter, 0), HIBLOOM_ENOTSUP, store);
    test_close(filter, store);
    assert_ok(hibloom_connect(&memory, "memory:", NULL), NULL);
    near = open_near(memory, "memory", ONE_KEY, 0);
    assert_ok(hibloom_add(near, "a", 1, answers), memory);
    assert_true(answers[0]);
    test_close(near, memory);
}

static void it_is_back_once_a_filter_is_opened_that_can_have_one(void **state)
{
    static const char *const texts[] = {"capacity=1000 error=0.01 window=3600s", "capacity=1000 error=0.01"};
    hibloom_store *store = test_store(NULL);
    hibloom *filter = test_open(store, "back", texts[1]), *own = open_near(store, "back", NULL, 0);

    for (size_t i = 0; i < 2; i++) {
        assert_ok(hibloom_drop(filter), store);
        hibloom_close(filter);
        filter = test_open(store, "back", texts[i]);
        assert_ok(hibloom_reopen(own), store);
        assert_ok(hibloom_add(own, "a", 1, NULL), store);
        assert_ok(hibloom_add(own, "a", 1, NULL), store);
        assert_int_equal(test_stats(store).items_near, i);
    }
    hibloom_close(own);
    assert_dropped_last(filter, store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_back_once_a_filter_is_opened_that_can_have_one),
        cmocka_unit_test(of_a_growing_filter_each_link_has_one),
        cmocka_unit_test(what_is_known_costs_one_guard_a_call),
        cmocka_unit_test(a_call_of_many_known_items_asks_one_guard_too),
        cmocka_unit_test(within_its_age_a_guard_is_asked_once),
        cmocka_unit_test(it_takes_no_more_memory_than_it_may),
        cmocka_unit_test(a_bare_bitmap_has_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
