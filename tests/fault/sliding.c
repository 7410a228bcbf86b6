/* Sliding windows under attack: adders are killed, the server is killed, keys are deleted, renamed, copied and expire, and
 * the filter is cleared, while processes add and ask, and periods pass (the server's clock steps, or runs fast). What was
 * acknowledged within the window is found, or the call fails: there is no wrong "no". */
#include "support/redis_server.h"
#include "support/stepped.h"
#include "support/test.h"

#include <hiredis/hiredis.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define NAME "slides"
#define TEXT "capacity=20000 error=1e-9 window=1000 slices=2"

enum { WINDOW_S = 1000, PERIOD_S = 500, START = 4000000, WORKERS = 4, ITEMS = 1 << 16 };

static const uint64_t window_us = WINDOW_S * UINT64_C(1000000);

static struct stepped_clock *server_clock;
static struct redis_server *server;
static struct redisContext *redis;
static hibloom_store *store;

static void set_period(int period)
{
    const int64_t now = (int64_t)stepped_now_us(server_clock) - stepped_ahead(server_clock) * 1000;

    stepped_set(server_clock, ((int64_t)START + period) * PERIOD_S * 1000 + 10 - now / 1000);
}

static void start_server(const char *const *arguments)
{
    server_clock = stepped_begin();
    server = redis_server_start(arguments);
    redis = redis_server_connect(server);
    store = test_connect(redis_server_uri(server), NULL);
}

static void stop_server(void)
{
    hibloom_store_free(store);
    redisFree(redis);
    redis_server_stop(server);
    stepped_end();
    stepped_free(server_clock);
}

/* ---- Workers ------------------------------------------------------------------------------- */

struct worker {
    pid_t pid;
    atomic_uint next;                  /* its item that is added next */
    atomic_ullong acknowledged[ITEMS]; /* when that call began; 0: it was not, or it failed */
    atomic_uint asked, wrong, failed;
};

static struct shared {
    atomic_bool stop;
    atomic_uint begun, ended; /* clears */
    struct worker workers[WORKERS];
} * shared;

typedef void work(struct worker *, hibloom *, unsigned item);

static uint64_t item_of(const struct worker *w, unsigned i)
{
    return (uint64_t)(w - shared->workers) << 32 | i;
}

/* An item that it has added, or another one of its own from before, which may be still in: it is, or the call fails. */
static void ask_for(struct worker *w, hibloom *filter, unsigned i)
{
    const uint64_t item = item_of(w, i), since = w->acknowledged[i];
    bool found = true;

    const hibloom_status status = hibloom_contains(filter, &item, sizeof item, &found);
    w->asked++;
    w->failed += status != HIBLOOM_OK;
    w->wrong += status == HIBLOOM_OK && !found && since != 0 && stepped_now_us(server_clock) <= since + window_us;
}

static void add_and_ask(struct worker *w, hibloom *filter, unsigned i)
{
    const uint64_t item = item_of(w, i), began = stepped_now_us(server_clock);
    bool is_new = true;

    const hibloom_status status = hibloom_add(filter, &item, sizeof item, i % 3 == 0 ? NULL : &is_new);
    w->failed += status != HIBLOOM_OK;
    w->wrong += status == HIBLOOM_OK && !is_new;
    if (status == HIBLOOM_OK)
        w->acknowledged[i] = began;
    ask_for(w, filter, i);
    ask_for(w, filter, i - i % 100 * i / 100);
}

/* What was added with no clear under way is in as long as none begins. */
static void add_beside_clears(struct worker *w, hibloom *filter, unsigned i)
{
    const unsigned begun = shared->begun, ended = shared->ended;
    const uint64_t item = item_of(w, i);
    bool found = true;

    const hibloom_status status = hibloom_add(filter, &item, sizeof item, i % 2 == 0 ? NULL : &(bool){false});
    w->failed += status != HIBLOOM_OK || hibloom_contains(filter, &item, sizeof item, &found) != HIBLOOM_OK;
    w->asked++;
    w->wrong += !found && begun == ended && shared->begun == begun;
}

static void run_worker(struct worker *w, work *run)
{
    hibloom_store *own = NULL;
    hibloom *filter = NULL;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    alarm(100);
    if (hibloom_connect(&own, redis_server_uri(server), NULL) != HIBLOOM_OK ||
        hibloom_open(&filter, own, NAME, NULL) != HIBLOOM_OK)
        _exit(2);
    while (!shared->stop && w->next < ITEMS)
        run(w, filter, w->next++);
    hibloom_close(filter);
    hibloom_store_free(own);
    _exit(0);
}

static void start_worker(struct worker *w, work *run)
{
    const pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0)
        run_worker(w, run);
    w->pid = pid; /* shared: the child must not write it */
}

static void start_workers(work *run)
{
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(shared != MAP_FAILED);
    for (int i = 0; i < WORKERS; i++)
        start_worker(&shared->workers[i], run);
}

/* Until each has gone on by so many items. */
static void wait_for_workers(unsigned items)
{
    for (int i = 0; i < WORKERS; i++) {
        const unsigned from = shared->workers[i].next;
        for (int tries = 0; shared->workers[i].next < from + items && tries < 20000; tries++)
            test_sleep_ms(1);
    }
}

static unsigned stop_workers(const char *what)
{
    unsigned asked = 0, failed = 0;

    shared->stop = true;
    for (int i = 0; i < WORKERS; i++) {
        const struct worker *w = &shared->workers[i];
        int status = -1;
        assert_int_equal(waitpid(w->pid, &status, 0), w->pid);
        assert_int_equal(status, 0);
        if (w->wrong != 0)
            fail_msg("%s: %u wrong answers", what, w->wrong);
        asked += w->asked;
        failed += w->failed;
    }
    assert_true(asked > 0);
    munmap(shared, sizeof *shared);
    return failed;
}

/* ---- Adders that are killed --------------------------------------------------------------------- */

static void of_killed_adders_nothing_is_lost(void **state)
{
    struct test_random random = test_random_new();
    unsigned kills = 0;

    start_server(NULL);
    hibloom *filter = test_open(store, NAME, TEXT);
    stepped_run(server_clock, 1000); /* a period takes half a second */
    start_workers(add_and_ask);
    for (const uint64_t end = test_now_ms() + 2000; test_now_ms() < end; kills++) {
        struct worker *w = &shared->workers[test_random_below(&random, WORKERS)];
        test_sleep_ms((unsigned)test_random_below(&random, 60));
        assert_int_equal(kill(w->pid, SIGKILL), 0);
        assert_int_equal(waitpid(w->pid, NULL, 0), w->pid);
        start_worker(w, add_and_ask);
        for (unsigned k = 0; k < 5 && w->next > 0; k++) { /* of what it had added, by who was not killed */
            const unsigned i = (unsigned)test_random_below(&random, w->next);
            const uint64_t item = item_of(w, i), since = w->acknowledged[i];
            bool found;
            assert_ok(hibloom_contains(filter, &item, sizeof item, &found), store);
            assert_true(found || since == 0 || stepped_now_us(server_clock) > since + window_us);
        }
    }
    wait_for_workers(1);
    assert_int_equal(stop_workers("killed adders"), 0);
    assert_true(kills > 10);
    hibloom_close(filter);
    stop_server();
}

/* ---- A server that is killed ---------------------------------------------------------------------- */

static void fill_three_periods(hibloom *filter)
{
    for (int period = 0; period < 3; period++) {
        set_period(period);
        for (int i = 0; i < 10; i++) {
            const int item = period * 10 + i;
            assert_ok(hibloom_add(filter, &item, sizeof item, i % 2 == 0 ? NULL : &(bool){false}), store);
        }
    }
}

static unsigned count_in(hibloom *filter)
{
    unsigned in = 0;

    for (int item = 0; item < 30; item++) {
        bool found;
        assert_ok(hibloom_contains(filter, &item, sizeof item, &found), store);
        in += found;
    }
    return in;
}

static void kill_server(bool keeps)
{
    static const char *const aof[] = {"--appendonly", "yes", "--appendfsync", "no", NULL};
    bool found;
    hibloom *again;

    start_server(keeps ? aof : NULL);
    hibloom *filter = test_open(store, NAME, TEXT);
    fill_three_periods(filter);
    const int64_t ahead = stepped_ahead(server_clock);
    redis_server_restart(server);
    stepped_set(server_clock, ahead);
    stepped_assert(server_clock, server);
    hibloom_status status = hibloom_contains(filter, &(int){1}, sizeof(int), &found);
    assert_true(status == HIBLOOM_EIO || status == HIBLOOM_ELOST);
    if (status == HIBLOOM_EIO)
        assert_status(hibloom_contains(filter, &(int){1}, sizeof(int), &found), HIBLOOM_ELOST, store);
    if (keeps) {
        assert_int_equal(count_in(filter), 30);
        assert_ok(hibloom_open(&again, store, NAME, NULL), store);
        assert_int_equal(count_in(again), 30);
        set_period(3);
        assert_ok(hibloom_add(filter, "more", 4, NULL), store);
        assert_int_equal(count_in(again), 20);
        hibloom_close(again);
    } else {
        assert_status(hibloom_contains(filter, &(int){1}, sizeof(int), &found), HIBLOOM_ENOTFOUND, store);
        assert_status(hibloom_add(filter, "more", 4, NULL), HIBLOOM_ENOTFOUND, store);
        assert_status(hibloom_add(filter, "more", 4, &found), HIBLOOM_ENOTFOUND, store);
        hibloom *next = test_open(store, NAME, TEXT); /* another one, to the handle from before */
        assert_status(hibloom_contains(filter, &(int){1}, sizeof(int), &found), HIBLOOM_EMISMATCH, store);
        assert_status(hibloom_add(filter, "more", 4, NULL), HIBLOOM_EMISMATCH, store);
        hibloom_close(next);
    }
    hibloom_close(filter);
    stop_server();
}

static void a_server_that_is_killed_has_all_or_is_an_error(void **state)
{
    kill_server(true);
    kill_server(false);
}

/* ---- Keys that are damaged under load --------------------------------------------------------------- */

static const struct damage {
    const char *command;
    bool root; /* of the first slice is gone, so that no call is OK */
} damages[] = {
    {"DEL " NAME, true},
    {"DEL " NAME ":+1", false},
    {"UNLINK " NAME ":+2", false},
    {"PEXPIRE " NAME " 1", true},
    {"PEXPIRE " NAME ":+1 20", false},
    {"PEXPIRE " NAME ":+2 1", false},
    {"RENAME " NAME " elsewhere", true},
    {"RENAME " NAME ":+1 elsewhere", false},
    {"RENAME " NAME ":+1 " NAME ":+2", false},
    {"RENAME " NAME ":+2 " NAME, true},
    {"COPY " NAME ":+1 " NAME ":+2 REPLACE", false},
    {"COPY " NAME " " NAME ":+1 REPLACE", false},
    {"COPY " NAME ":+2 " NAME " REPLACE", true},
    {"FLUSHALL", true},
};

static void commit(const struct damage *damage)
{
    hibloom *filter = test_open(store, NAME, TEXT);
    bool found;

    fill_three_periods(filter);
    start_workers(add_and_ask);
    wait_for_workers(3);
    test_command(redis, damage->command);
    test_sleep_ms(120); /* longer than a handle goes on without the root's guard */
    wait_for_workers(10);
    assert_true(stop_workers(damage->command) > 0); /* they were told */
    for (int item = 0; item < 30; item++) {
        found = true;
        assert_true(hibloom_contains(filter, &item, sizeof item, &found) != HIBLOOM_OK || found);
    }
    test_sleep_ms(110);
    for (int period = 2; period < 5; period++) { /* whichever slice is the one that is added to */
        set_period(period);
        const bool told = hibloom_add(filter, "more", 4, NULL) != HIBLOOM_OK;
        assert_true(told || !damage->root);
        assert_int_not_equal(hibloom_add(filter, "more", 4, &found), HIBLOOM_OK);
    }
    hibloom_close(filter);
    test_command(redis, "FLUSHALL");
}

static void of_a_damaged_window_no_answer_is_wrong(void **state)
{
    start_server(NULL);
    for (size_t i = 0; i < sizeof damages / sizeof *damages; i += test_is_slow() ? 4 : 1)
        commit(&damages[i]);
    stop_server();
}

/* A copy of all of it goes on by itself; one put back is what it was. */
static void a_copy_of_all_slices_is_another_window(void **state)
{
    start_server(NULL);
    hibloom *filter = test_open(store, NAME, TEXT), *copy;
    fill_three_periods(filter);
    for (int i = 0; i < 3; i++)
        assert_int_equal(i == 0 ? test_command(redis, "COPY " NAME " copy")
                                : test_command(redis, "COPY " NAME ":+%d copy:+%d", i, i),
                         1);
    assert_ok(hibloom_open(&copy, store, "copy", NULL), store);
    assert_int_equal(count_in(copy), 30);
    set_period(3);
    assert_ok(hibloom_add(copy, "more", 4, NULL), store);
    assert_int_equal(count_in(copy), 20);
    assert_int_equal(count_in(filter), 20);
    assert_ok(hibloom_drop(filter), store);
    assert_int_equal(count_in(copy), 20);
    hibloom_close(copy);
    hibloom_close(filter);
    stop_server();
}

/* ---- Clear ------------------------------------------------------------------------------------------- */

static void a_clear_beside_adders_forgets_nothing_that_follows_it(void **state)
{
    start_server(NULL);
    hibloom *filter = test_open(store, NAME, "capacity=20000 error=1e-9 window=1000 slices=2 segments=2");
    const uint64_t old = UINT64_MAX; /* nobody else adds it */
    bool found;

    stepped_run(server_clock, 500);
    start_workers(add_beside_clears);
    for (int i = 0; i < (test_is_slow() ? 15 : 60); i++) {
        assert_ok(hibloom_add(filter, &old, sizeof old, NULL), store);
        shared->begun++;
        assert_ok(hibloom_clear(filter), store);
        shared->ended++;
        assert_ok(hibloom_contains(filter, &old, sizeof old, &found), store);
        assert_false(found);
        test_sleep_ms(10);
    }
    assert_int_equal(stop_workers("clear"), 0);
    hibloom_close(filter);
    stop_server();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_killed_adders_nothing_is_lost),
        cmocka_unit_test(a_server_that_is_killed_has_all_or_is_an_error),
        cmocka_unit_test(of_a_damaged_window_no_answer_is_wrong),
        cmocka_unit_test(a_copy_of_all_slices_is_another_window),
        cmocka_unit_test(a_clear_beside_adders_forgets_nothing_that_follows_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
