/* Growing filters are saved, merged and replaced while others make them grow: what was acknowledged before the call
 * began is in what comes of it, nothing that others add is lost, and nobody sees some links of one filter and some of
 * another. */
#include "support/items.h"
#include "support/race.h"
#include "support/temp_dir.h"

#include <hiredis/hiredis.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define TEXT "capacity=20 error=0.001 growth=2"

enum { ADDERS = 4, MOST = 900, BATCH = 10, COMMON = 60 };

/* What the processes share. */
static struct told {
    atomic_bool stop;
    atomic_size_t added[ADDERS]; /* items of each that were acknowledged */
    atomic_size_t rounds[ADDERS];
} * told;

/* With own_store and own_filter what the test itself has open. Children free it, so that valgrind finds no leak. */
static redisContext *outside;

static hibloom_item *items_of[ADDERS];
static bool answers[MOST];
static pid_t pids[ADDERS];
static char *dir, *path;

static int set_up(void **state)
{
    (void)state;
    told = mmap(NULL, sizeof *told, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(told != MAP_FAILED);
    for (int i = 0; i < ADDERS; i++) {
        char prefix[16];
        snprintf(prefix, sizeof prefix, "of %d,", i);
        items_of[i] = items_new(prefix, MOST);
    }
    dir = temp_dir_make();
    path = temp_dir_path(dir, "file");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    for (int i = 0; i < ADDERS; i++)
        items_free(items_of[i]);
    free(path);
    temp_dir_remove(dir);
    munmap(told, sizeof *told);
    return 0;
}

/* ---- Who does something else meanwhile -------------------------------------------------- */

static void start(const char *name, void (*run)(hibloom_store *, const char *, int))
{
    memset(told, 0, sizeof *told);
    const char *const uri = test_uri();
    for (int i = 0; i < ADDERS; i++) {
        pids[i] = fork();
        assert_true(pids[i] >= 0);
        if (pids[i] > 0)
            continue;
        alarm(120);
        hibloom_close(own_filter);
        hibloom_store_free(own_store);
        if (outside != NULL)
            redisFree(outside);
        hibloom_store *store = test_connect_any_way(uri, NULL);
        run(store, name, i);
        hibloom_store_free(store);
        _exit(0);
    }
}

/* Each must end by itself with status 0. */
static void stop(void)
{
    atomic_store(&told->stop, true);
    for (int i = 0; i < ADDERS; i++) {
        int status = -1;
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_int_equal(status, 0);
    }
}

static void add_until_stopped(hibloom_store *store, const char *name, int i)
{
    hibloom *filter;

    if (hibloom_open(&filter, store, name, NULL) != HIBLOOM_OK)
        _exit(4);
    for (size_t at = 0; at < MOST && !atomic_load(&told->stop); at += BATCH) {
        if (hibloom_add_many(filter, items_of[i] + at, BATCH, i % 2 == 0 ? answers : NULL) != HIBLOOM_OK)
            _exit(5);
        atomic_store(&told->added[i], at + BATCH);
        usleep(200);
    }
    hibloom_close(filter);
}

/* ---- Saved and merged ----------------------------------------------------------------------- */

static void note_added(size_t added[ADDERS])
{
    for (int i = 0; i < ADDERS; i++)
        added[i] = atomic_load(&told->added[i]);
}

static void wait_for_growth(size_t more)
{
    size_t before[ADDERS];
    const uint64_t since = test_now_ms();

    note_added(before);
    for (int i = 0; i < ADDERS; i++)
        while (atomic_load(&told->added[i]) < before[i] + more && before[i] + more <= MOST &&
               test_now_ms() - since < 20000)
            test_sleep_ms(1);
}

static void assert_has(hibloom *filter, hibloom_store *store, const size_t added[ADDERS], const char *what)
{
    for (int i = 0; i < ADDERS; i++) {
        assert_ok(hibloom_contains_many(filter, items_of[i], added[i], answers), store);
        for (size_t k = 0; k < added[i]; k++)
            if (!answers[k])
                fail_msg("%s: item %zu of adder %d, which has added %zu, is denied", what, k, i, added[i]);
    }
}

static hibloom *same(hibloom_store *store, const char *name, const hibloom *as)
{
    hibloom *filter;

    assert_ok(hibloom_open(&filter, store, name, hibloom_spec_of(as)), store);
    return filter;
}

static void move_all_ways(hibloom_store *store, hibloom *asks, const char *name)
{
    char other_name[TEST_NAME_SIZE], own[TEST_NAME_SIZE + 16];
    hibloom_store *memory;
    hibloom *stale, *here, *loaded, *other;
    size_t added[ADDERS];

    assert_ok(hibloom_memory(&memory), NULL);
    assert_ok(hibloom_open(&stale, store, name, NULL), store);
    wait_for_growth(50);
    note_added(added);
    assert_ok(hibloom_save(stale, path), store);
    loaded = same(memory, "loaded", stale);
    assert_ok(hibloom_load(loaded, path), memory);
    assert_has(loaded, memory, added, "saved and loaded");
    here = same(memory, "here", stale);
    note_added(added);
    assert_ok(hibloom_merge(here, stale), memory);
    assert_has(here, memory, added, "merged into memory");
    other = same(store, test_name(other_name), stale);
    note_added(added);
    assert_ok(hibloom_merge(other, asks), store);
    assert_has(other, store, added, "merged within the store");
    assert_ok(hibloom_clear(here), memory);
    for (int k = 0; k < COMMON; k++)
        assert_ok(hibloom_add(here, own, (size_t)snprintf(own, sizeof own, "%s %d", other_name, k), NULL), memory);
    assert_ok(hibloom_merge(stale, here), store);
    for (int k = 0; k < COMMON; k++) {
        bool found;
        assert_ok(hibloom_contains(asks, own, (size_t)snprintf(own, sizeof own, "%s %d", other_name, k), &found),
                  store);
        assert_true(found);
    }
    assert_ok(hibloom_drop(other), store);
    hibloom_close(other);
    hibloom_close(loaded);
    hibloom_close(here);
    hibloom_close(stale);
    hibloom_store_free(memory);
}

static void what_was_acknowledged_before_is_in_what_is_saved_or_merged(void **state)
{
    static const char *const texts[] = {TEXT, TEXT " segments=3"};

    (void)state;
    own_store = test_store(NULL);
    for (int round = 0; round < 2; round++) {
        char name[TEST_NAME_SIZE];
        own_filter = test_open(own_store, test_name(name), texts[round]);
        size_t added[ADDERS], all = 0;
        hibloom_info info;
        start(name, add_until_stopped);
        for (int i = 0; i < (test_is_slow() ? 2 : 4); i++)
            move_all_ways(own_store, own_filter, name);
        stop();
        note_added(added);
        assert_has(own_filter, own_store, added, "at the end");
        assert_ok(hibloom_get_info(own_filter, &info), own_store);
        for (int i = 0; i < ADDERS; i++)
            all += added[i];
        print_message("%s: %zu were added, %u keys\n", texts[round], all, info.keys);
        assert_ok(hibloom_drop(own_filter), own_store);
        hibloom_close(own_filter);
        own_filter = NULL;
    }
    hibloom_store_free(own_store);
}

/* ---- Replaced --------------------------------------------------------------------------------- */

/* Whoever holds one that was replaced opens the next. An item that is in all of them is always found. */
static void look_until_stopped(hibloom_store *store, const char *name, int i)
{
    hibloom_item *common = items_new("common", COMMON);
    hibloom *filter = NULL;

    while (!atomic_load(&told->stop)) {
        hibloom_status status = filter == NULL ? hibloom_open(&filter, store, name, NULL) : HIBLOOM_OK;
        if (status == HIBLOOM_OK)
            status = hibloom_contains_many(filter, common, COMMON, answers);
        if (status == HIBLOOM_OK && test_count_true(answers, COMMON) != COMMON)
            _exit(7);                           /* a wrong "no" */
        if (status == HIBLOOM_OK && i % 2 == 1) /* and makes it grow */
            status = hibloom_add_many(filter, items_of[i] + atomic_load(&told->rounds[i]) * 3 % MOST / 3, 3, NULL);
        atomic_fetch_add(&told->rounds[i], status == HIBLOOM_OK);
        if (status == HIBLOOM_EMISMATCH || status == HIBLOOM_ENOTFOUND) {
            hibloom_close(filter);
            filter = NULL;
        } else if (status != HIBLOOM_OK) {
            fprintf(stderr, "%s\n", hibloom_store_error(store));
            _exit(8);
        }
    }
    hibloom_close(filter);
    items_free(common);
}

/* The common items come behind so many others: so they lie in other links each time. */
static void put_new_one(hibloom_store *store, const char *name, int round)
{
    char aside[TEST_NAME_SIZE];
    hibloom_item *common = items_new("common", COMMON);
    hibloom *filter = test_open(store, test_name(aside), TEXT);

    assert_ok(hibloom_add_many(filter, items_of[0], (size_t)(round % 3) * 50, NULL), store);
    assert_ok(hibloom_add_many(filter, common, COMMON, NULL), store);
    assert_ok(hibloom_replace(filter, name), store);
    hibloom_close(filter);
    items_free(common);
}

static void nobody_sees_some_links_of_the_one_and_some_of_the_other(void **state)
{
    char name[TEST_NAME_SIZE];
    size_t rounds = 0;

    (void)state;
    own_store = test_store(NULL);
    outside = test_redis();
    put_new_one(own_store, test_name(name), 0);
    start(name, look_until_stopped);
    for (int round = 0; round < (test_is_slow() ? 8 : 30); round++)
        put_new_one(own_store, name, round);
    stop();
    for (int i = 0; i < ADDERS; i++)
        rounds += atomic_load(&told->rounds[i]);
    print_message("%zu look-ups\n", rounds);
    assert_true(rounds > ADDERS);
    hibloom_info info;
    assert_ok(hibloom_open(&own_filter, own_store, name, NULL), own_store);
    assert_ok(hibloom_get_info(own_filter, &info), own_store);
    assert_ok(hibloom_drop(own_filter), own_store);
    assert_int_equal(keys_with(outside, name), 0);
    hibloom_close(own_filter);
    redisFree(outside);
    hibloom_store_free(own_store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_acknowledged_before_is_in_what_is_saved_or_merged),
        cmocka_unit_test(nobody_sees_some_links_of_the_one_and_some_of_the_other),
    };

    return cmocka_run_group_tests_name("redis: growing filters on the move", tests, set_up, tear_down);
}
