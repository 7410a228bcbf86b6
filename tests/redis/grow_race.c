/* Many processes at one growing filter: of those that add an item one is told that it is new,
 * however often it grows meanwhile, and whoever is killed over it. */
#include "support/items.h"
#include "support/race.h"

#include <hiredis/hiredis.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ITEMS = 6000, STALE = 3 };

static const char *text;
static size_t items_of_test;

/* What the processes have been told. */
static struct told {
    unsigned char new[PROCESSES][ITEMS];
    unsigned char added[ITEMS]; /* acknowledged to somebody */
} * told;

static int set_up(void **state)
{
    told = mmap(NULL, sizeof *told, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(told != MAP_FAILED);
    items_of_test = test_is_slow() ? ITEMS / 10 : ITEMS;
    return 0;
}

static int tear_down(void **state)
{
    return munmap(told, sizeof *told);
}

/* ---- One is told ------------------------------------------------------------------ */

/* From where it likes, in batches of its own size; what it has added is in for itself. */
static void add_all(struct race *race, int i)
{
    hibloom_store *store = store_in_child(race);
    const hibloom_spec spec = test_spec(text);
    hibloom_item *items = items_new("x", items_of_test);
    const size_t sizes[] = {1, 7, 50, 400, 3000}, from = (size_t)i % 4 * (items_of_test / 50);
    bool answers[3000];

    if (hibloom_open(&own_filter, store, race->name, &spec) != HIBLOOM_OK)
        _exit(4);
    wait_for_start(race);
    for (size_t done = 0, n; done < items_of_test && race->results[i].status == HIBLOOM_OK; done += n) {
        const size_t at = (from + done) % items_of_test;
        n = sizes[(done / 100 + (size_t)i) % 5];
        n = n < items_of_test - done ? n : items_of_test - done;
        n = n < items_of_test - at ? n : items_of_test - at;
        note_status(race, i, hibloom_add_many(own_filter, items + at, n, answers));
        for (size_t k = 0; k < n && race->results[i].status == HIBLOOM_OK; k++)
            told->new[i][at + k] += answers[k];
        note_status(race, i, hibloom_contains_many(own_filter, items + at, n, answers));
        for (size_t k = 0; k < n && race->results[i].status == HIBLOOM_OK; k++)
            race->results[i].count += answers[k];
    }
    items_free(items);
}

static void assert_told_once(void)
{
    for (size_t k = 0; k < items_of_test; k++) {
        unsigned count = 0;
        for (int i = 0; i < PROCESSES; i++)
            count += told->new[i][k];
        if (count != 1)
            fail_msg("item %zu was new to %u", k, count);
    }
}

static void of_all_who_add_an_item_one_is_told(void **state)
{
    static const char *const texts[] = {"capacity=50 error=1e-9 growth=2", "capacity=20 error=1e-9 growth=3 segments=3",
                                        "capacity=50 error=1e-9 growth=2 layout=blocked"};
    hibloom_store *store = test_store(NULL);
    redisContext *outside = test_redis();

    for (int round = 0; round < 4; round++) {
        char name[TEST_NAME_SIZE];
        struct race *race = new_race(round % 2 == 0 ? HIBLOOM_COMMANDS_SETBIT : HIBLOOM_COMMANDS_BITFIELD, name);
        hibloom *filter;
        hibloom_info info;
        memset(told, 0, sizeof *told);
        text = texts[round % 3];
        run_race(race, add_all);
        assert_int_equal(assert_no_failure(race, "added all"), PROCESSES * items_of_test);
        assert_told_once();
        assert_ok(hibloom_open(&filter, store, name, NULL), store);
        assert_ok(hibloom_get_info(filter, &info), store);
        print_message("%s: %u keys, about %.0f items, error rate %.2g\n", text, info.keys, info.estimated_items,
                      info.estimated_error_rate);
        assert_ok(hibloom_drop(filter), store);
        assert_int_equal(keys_with(outside, name), 0);
        hibloom_close(filter);
        munmap(race, sizeof *race);
    }
    redisFree(outside);
    hibloom_store_free(store);
}

/* ---- And the error rate is kept --------------------------------------------------- */

static void add_own(struct race *race, int i)
{
    hibloom_store *store = store_in_child(race);
    const hibloom_spec spec = test_spec(text);
    char prefix[16];
    snprintf(prefix, sizeof prefix, "of %d,", i);
    hibloom_item *items = items_new(prefix, items_of_test);

    if (hibloom_open(&own_filter, store, race->name, &spec) != HIBLOOM_OK)
        _exit(4);
    wait_for_start(race);
    note_status(race, i, hibloom_add_many(own_filter, items, items_of_test, NULL));
    items_free(items);
}

static void the_error_rate_is_kept_with_eight_adders(void **state)
{
    enum { OTHERS = 40000 };
    const double error = 0.01;
    hibloom_store *store = test_store(NULL);
    hibloom_item *others = items_new("other", OTHERS);
    bool *found = calloc(OTHERS, sizeof *found);
    char name[TEST_NAME_SIZE];
    struct race *race = new_race(HIBLOOM_COMMANDS_BITFIELD, name);
    hibloom *filter;
    hibloom_info info;
    size_t wrong = 0;

    text = "capacity=1000 error=0.01 growth=2";
    run_race(race, add_own);
    (void)assert_no_failure(race, "added their own");
    assert_ok(hibloom_open(&filter, store, name, NULL), store);
    assert_ok(hibloom_get_info(filter, &info), store);
    assert_ok(hibloom_contains_many(filter, others, OTHERS, found), store);
    for (size_t i = 0; i < OTHERS; i++)
        wrong += found[i];
    print_message("%u keys, %.0f items, error rate %.5f, measured %.5f\n", info.keys, info.estimated_items,
                  info.estimated_error_rate, (double)wrong / OTHERS);
    assert_true(info.estimated_error_rate <= error);
    assert_true((double)wrong <= OTHERS * error * 1.15); /* three standard deviations */
    assert_ok(hibloom_drop(filter), store);
    hibloom_close(filter);
    munmap(race, sizeof *race);
    free(found);
    items_free(others);
    hibloom_store_free(store);
}

/* ---- Whoever is killed ------------------------------------------------------------- */

static const char *killed_name;

static pid_t start_adder(size_t from)
{
    const pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid > 0)
        return pid;
    hibloom_store *store = test_connect_any_way(test_uri(), NULL);
    hibloom_item *items = items_new("x", items_of_test);
    hibloom *filter;
    bool is_new;
    alarm(60);
    if (hibloom_open(&filter, store, killed_name, NULL) != HIBLOOM_OK)
        _exit(4);
    for (size_t i = from; i < items_of_test; i++) {
        if (hibloom_add(filter, items[i].data, items[i].len, &is_new) != HIBLOOM_OK)
            _exit(5);
        told->added[i] = 1;
    }
    _exit(0);
}

static void what_was_acknowledged_is_in_whoever_was_killed(void **state)
{
    hibloom_store *store = test_store(NULL);
    hibloom_item *items = items_new("x", items_of_test);
    char name[TEST_NAME_SIZE];
    hibloom *filter = test_open(store, test_name(name), "capacity=10 error=1e-9 growth=2"), *old[STALE];
    bool found[ITEMS];
    struct test_random random = test_random_new();
    size_t added = 0;

    killed_name = name;
    memset(told, 0, sizeof *told);
    for (int i = 0; i < STALE; i++)
        assert_ok(hibloom_open(&old[i], store, name, NULL), store);
    for (int round = 0; round < (test_is_slow() ? 5 : 60); round++) {
        const pid_t pid = start_adder(added);
        usleep((useconds_t)test_random_below(&random, 8000));
        kill(pid, SIGKILL);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        while (added < items_of_test && told->added[added])
            added++;
        hibloom *asks = round < STALE ? old[round] : filter;
        if (added == 0)
            continue;
        assert_ok(hibloom_contains_many(asks, items, added, found), store);
        for (size_t i = 0; i < added; i++)
            if (!found[i])
                fail_msg("round %d: item %zu of %zu is denied", round, i, added);
    }
    print_message("%zu items were acknowledged\n", added);
    for (int i = 0; i < STALE; i++)
        hibloom_close(old[i]);
    assert_ok(hibloom_drop(filter), store);
    hibloom_close(filter);
    items_free(items);
    hibloom_store_free(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_all_who_add_an_item_one_is_told),
        cmocka_unit_test(the_error_rate_is_kept_with_eight_adders),
        cmocka_unit_test(what_was_acknowledged_is_in_whoever_was_killed),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
