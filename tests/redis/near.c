/* The near cache: what is known to be in costs no command, and the answers are those
 * without it. */
#include "near.h"

#include <string.h>

/* ---- What it costs --------------------------------------------------------------------- */

static void what_is_known_costs_one_guard_a_call(void **state)
{
    hibloom_store *store = test_store(NULL);
    hibloom *filter = open_near(store, "cost", ONE_KEY, 0);
    hibloom_stats stats;

    set_items(0);
    assert_ok(hibloom_add_many(filter, items, BATCH, answers), store);
    assert_int_equal(count_true(), BATCH);
    const uint64_t before = commands_of(store);
    assert_ok(hibloom_contains_many(filter, items, BATCH, answers), store);
    assert_int_equal(count_true(), BATCH);
    assert_int_equal(commands_of(store), before + 1);
    assert_ok(hibloom_add_many(filter, items, BATCH, answers), store);
    assert_int_equal(count_true(), 0);
    assert_ok(hibloom_add_many(filter, items, BATCH, NULL), store);
    assert_int_equal(commands_of(store), before + 5); /* an add asks, too, whether it would have been taken */
    hibloom_get_stats(store, &stats);
    assert_int_equal(stats.items, 4 * BATCH);
    assert_int_equal(stats.items_near, 3 * BATCH);
    assert_ok(hibloom_drop(filter), store);
    hibloom_close(filter);
    hibloom_store_free(store);
}

/* However many there are. */
static void a_call_of_many_known_items_asks_one_guard_too(void **state)
{
    enum { MANY = 70000 }; /* more than two chunks */
    static uint32_t each[MANY];
    static hibloom_item many[MANY];
    static bool found[MANY];
    hibloom_store *store = test_store(NULL);
    hibloom *filter = open_near(store, "many", ONE_KEY, 0);

    for (uint32_t i = 0; i < MANY; i++)
        many[i] = (hibloom_item){memcpy(&each[i], &i, sizeof i), sizeof i};
    assert_ok(hibloom_add_many(filter, many, MANY, NULL), store);
    const uint64_t before = commands_of(store);
    assert_ok(hibloom_contains_many(filter, many, MANY, found), store);
    assert_null(memchr(found, false, MANY));
    assert_int_equal(commands_of(store), before + 1);
    assert_ok(hibloom_add_many(filter, many, MANY, found), store);
    assert_null(memchr(found, true, MANY));
    assert_int_equal(commands_of(store), before + 3);
    assert_ok(hibloom_drop(filter), store);
    hibloom_close(filter);
    hibloom_store_free(store);
}

/* A sample of so many is all new: then they are sent without a look at the others. */
static void a_few_known_among_many_new_are_answered_as_rightly(void **state)
{
    enum { FEW = 14 }; /* between two of the sample */
    hibloom_store *store = test_store(NULL);
    hibloom *filter = open_near(store, "few", ONE_KEY, 0);

    set_items(0);
    assert_ok(hibloom_add_many(filter, &items[1], FEW, NULL), store);
    assert_ok(hibloom_contains_many(filter, items, BATCH, answers), store);
    assert_int_equal(count_true(), FEW);
    const uint64_t before = commands_of(store);
    assert_ok(hibloom_add_many(filter, items, BATCH, answers), store);
    assert_int_equal(count_true(), BATCH - FEW);
    for (size_t i = 0; i < BATCH; i++)
        assert_int_equal(answers[i], i == 0 || i > FEW);
    assert_true(commands_of(store) - before >= BATCH); /* with is_new, one an item */
    assert_ok(hibloom_drop(filter), store);
    hibloom_close(filter);
    hibloom_store_free(store);
}

/* What others have added is learned from the answers. */
static void what_a_look_up_finds_is_known_then(void **state)
{
    hibloom_store *store = test_store(NULL), *other = test_store(NULL);
    hibloom *filter = open_near(store, "learn", ONE_KEY, 0), *theirs = test_open(other, "learn", ONE_KEY);
    const size_t k = hibloom_spec_of(filter)->hashes;

    set_items(0);
    assert_ok(hibloom_add_many(theirs, items, BATCH / 2, NULL), other);
    uint64_t before = commands_of(store);
    assert_ok(hibloom_contains_many(filter, items, BATCH, answers), store);
    assert_int_equal(count_true(), BATCH / 2);
    assert_true(commands_of(store) - before >= BATCH * k);
    before = commands_of(store);
    assert_ok(hibloom_contains_many(filter, items, BATCH / 2, answers), store);
    assert_int_equal(commands_of(store), before + 1);
    before = commands_of(store);
    assert_ok(hibloom_contains_many(filter, items, BATCH, answers), store); /* a "no" is asked for each time */
    assert_int_equal(count_true(), BATCH / 2);
    assert_true(commands_of(store) - before >= BATCH / 2 * k && commands_of(store) - before < BATCH / 2 * k + 20);
    assert_ok(hibloom_drop(filter), store);
    hibloom_close(filter);
    hibloom_close(theirs);
    hibloom_store_free(store);
    hibloom_store_free(other);
}

static void within_its_age_a_guard_is_asked_once(void **state)
{
    hibloom_store *store = test_store(NULL);
    hibloom *filter = open_near(store, "age", ONE_KEY, 600000);

    set_items(0);
    assert_ok(hibloom_add_many(filter, items, BATCH, NULL), store);
    const uint64_t before = commands_of(store);
    for (int i = 0; i < 100; i++)
        assert_ok(hibloom_contains_many(filter, items, BATCH, answers), store);
    assert_int_equal(commands_of(store), before);
    assert_int_equal(count_true(), BATCH);
    assert_ok(hibloom_near_cache(filter, 50), store); /* it begins anew */
    assert_ok(hibloom_add_many(filter, items, BATCH, NULL), store);
    const uint64_t learned = commands_of(store);
    assert_true(learned > before + BATCH);
    test_sleep_ms(60);
    assert_ok(hibloom_contains_many(filter, items, BATCH, answers), store);
    assert_int_equal(commands_of(store), learned + 1);
    assert_ok(hibloom_drop(filter), store);
    hibloom_close(filter);
    hibloom_store_free(store);
}

static void it_takes_no_more_memory_than_it_may(void **state)
{
    const char *const text = "bits=8000000 hashes=3 segments=8 seed=5eed"; /* 125,000 bytes a key */
    hibloom_connect_options options = HIBLOOM_CONNECT_OPTIONS_INIT;

    options.near_bytes = 3 * 125000 + 1;
    hibloom_store *store = test_connect(test_uri(), &options);
    hibloom *filter = open_near(store, "room", text, 600000), *second = open_near(store, "second", ONE_KEY, 600000);
    hibloom_stats stats;
    for (uint64_t i = 0; i < 10; i++) {
        set_items(i * BATCH);
        assert_ok(hibloom_add_many(filter, items, BATCH, answers), store);
    }
    set_items(0);
    assert_ok(hibloom_contains_many(filter, items, BATCH, answers), store);
    assert_int_equal(count_true(), BATCH);
    hibloom_get_stats(store, &stats);
    assert_true(stats.items_near > BATCH / 8 * 2 && stats.items_near < BATCH / 8 * 4); /* three of eight */
    for (int closed = 0; closed < 2; closed++) {
        assert_ok(hibloom_add_many(second, items, BATCH, answers), store);
        const uint64_t before = commands_of(store);
        assert_ok(hibloom_contains_many(second, items, BATCH, answers), store);
        assert_int_equal(count_true(), BATCH);
        assert_int_equal(commands_of(store) == before, closed); /* then there is room */
        if (!closed) {
            assert_ok(hibloom_drop(filter), store);
            hibloom_close(filter);
        }
    }
    assert_ok(hibloom_drop(second), store);
    hibloom_close(second);
    hibloom_store_free(store);
}

static void what_may_have_to_reach_a_replica_is_sent(void **state)
{
    hibloom_connect_options options = HIBLOOM_CONNECT_OPTIONS_INIT;

    options.read_from_replicas = true;
    hibloom_store *store = test_connect(test_uri(), &options);
    hibloom *filter = open_near(store, "sent", ONE_KEY, 600000);
    set_items(0);
    assert_ok(hibloom_add_many(filter, items, BATCH, answers), store);
    uint64_t before = commands_of(store);
    assert_ok(hibloom_contains_many(filter, items, BATCH, answers), store);
    assert_int_equal(commands_of(store), before);
    assert_ok(hibloom_add_many(filter, items, BATCH, answers), store);
    assert_int_equal(count_true(), 0);
    assert_true(commands_of(store) > before + BATCH);
    assert_ok(hibloom_drop(filter), store);
    hibloom_close(filter);
    hibloom_store_free(store);
}

static void a_bare_bitmap_has_none(void **state)
{
    hibloom_store *store = test_store(NULL), *memory;
    hibloom *filter = test_attach(store, "bare", "bits=9000 hashes=4 seed=1"), *near;

    assert_status(hibloom_near_cache(filter, 0), HIBLOOM_ENOTSUP, store);
    hibloom_close(filter);
    hibloom_store_free(store);
    assert_ok(hibloom_memory(&memory), NULL);
    near = open_near(memory, "memory", ONE_KEY, 0);
    assert_ok(hibloom_add(near, "a", 1, answers), memory);
    assert_true(answers[0]);
    hibloom_close(near);
    hibloom_store_free(memory);
}

/* ---- What it answers --------------------------------------------------------------------- */

/* A filter in memory, of the same spec and given the same items, answers the same. */
static void assert_same_answers(const char *text, hibloom_commands commands, size_t most, uint32_t max_age_ms)
{
    const hibloom_connect_options options = {.commands = commands};
    hibloom_store *store = test_connect(test_uri(), &options), *memory;
    char name[TEST_NAME_SIZE];
    hibloom *filter = open_near(store, test_name(name), text, max_age_ms);
    struct test_random random = test_random_new();
    static bool expected[BATCH];
    hibloom_stats stats;

    assert_ok(hibloom_memory(&memory), NULL);
    hibloom *twin = test_open(memory, "twin", text);
    for (int round = 0; round < (test_is_slow() ? 100 : 400); round++) {
        const size_t n = 1 + test_random_below(&random, most);
        for (size_t i = 0; i < n; i++) {
            const uint64_t number = test_random_below(&random, 1000);
            numbers[i] = number * number % 997; /* some come often */
            items[i] = (hibloom_item){&numbers[i], number == 0 ? 0 : sizeof numbers[i]};
        }
        const uint64_t what = test_random_below(&random, 5);
        if (what == 0) {
            assert_ok(hibloom_add_many(filter, items, n, NULL), store);
            assert_ok(hibloom_add_many(twin, items, n, NULL), memory);
            continue;
        }
        if (what == 1 && round % 50 == 0) {
            assert_ok(hibloom_clear(filter), store);
            assert_ok(hibloom_clear(twin), memory);
        }
        hibloom_status (*const call)(hibloom *, const hibloom_item *, size_t,
                                     bool *) = what < 3 ? hibloom_add_many : hibloom_contains_many;
        assert_ok(call(filter, items, n, answers), store);
        assert_ok(call(twin, items, n, expected), memory);
        assert_memory_equal(answers, expected, n);
    }
    hibloom_get_stats(store, &stats);
    assert_true(stats.items_near > (most < BATCH ? 0 : stats.items / 20)); /* of few items few come twice */
    assert_ok(hibloom_drop(filter), store);
    hibloom_close(filter);
    hibloom_close(twin);
    hibloom_store_free(store);
    hibloom_store_free(memory);
}

static void the_answers_are_those_without_it(void **state)
{
    static const char *const texts[] = {"capacity=4000 error=0.05 seed=5eed",
                                        "capacity=4000 error=0.05 layout=blocked seed=5eed",
                                        "bits=8001 hashes=4 layout=partitioned seed=5eed",
                                        "bits=32000 hashes=4 segments=7 seed=5eed",
                                        "bits=40960 hashes=4 segments=5 layout=blocked seed=5eed",
                                        "bits=32000 hashes=4 hash=poly seeds=7,11,13,17 empty=excluded"};

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        for (int commands = 0; commands < 2; commands++) {
            assert_same_answers(texts[i], (hibloom_commands)commands, BATCH, 0);
            assert_same_answers(texts[i], (hibloom_commands)commands, 3, commands == 0 ? 0 : 600000);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_known_costs_one_guard_a_call),
        cmocka_unit_test(a_call_of_many_known_items_asks_one_guard_too),
        cmocka_unit_test(a_few_known_among_many_new_are_answered_as_rightly),
        cmocka_unit_test(what_a_look_up_finds_is_known_then),
        cmocka_unit_test(within_its_age_a_guard_is_asked_once),
        cmocka_unit_test(it_takes_no_more_memory_than_it_may),
        cmocka_unit_test(what_may_have_to_reach_a_replica_is_sent),
        cmocka_unit_test(a_bare_bitmap_has_none),
        cmocka_unit_test(the_answers_are_those_without_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
