/* Processes that add to one counting filter and remove from it, at the same time: each step
 * is atomic, and no item that was added more often than removed is missed, also where
 * processes are killed and answers are lost. */
#include "support/children.h"

#include <hiredis/hiredis.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- Every step counts once -------------------------------------------------------- */

enum { TOGETHER = 2000 };

static void add_all(struct shared *shared, int i, hibloom_store *store)
{
    hibloom *filter = child_open(shared, store);
    hibloom_item *items = items_new("all", TOGETHER);
    bool is_new[TOGETHER];

    for (size_t at = 0; at < TOGETHER; at += TOGETHER / 10)
        if (hibloom_add_many(filter, items + at, TOGETHER / 10, is_new + at) != HIBLOOM_OK)
            child_note(shared, i, 1);
    for (size_t n = 0; n < TOGETHER; n++)
        shared->told[i][n] = is_new[n];
    items_free(items);
    hibloom_close(filter);
}

static void remove_all(struct shared *shared, int i, hibloom_store *store)
{
    hibloom *filter = child_open(shared, store);
    hibloom_item *items = items_new("all", TOGETHER);
    bool was_in[TOGETHER];

    for (size_t at = 0; at < TOGETHER; at += TOGETHER / 10)
        if (hibloom_remove_many(filter, items + at, TOGETHER / 10, was_in + at) != HIBLOOM_OK)
            child_note(shared, i, 1);
    for (size_t n = 0; n < TOGETHER; n++)
        if (!was_in[n])
            child_note(shared, i, 2);
    items_free(items);
    hibloom_close(filter);
}

static void steps_of_eight_processes_count_once_each(void **state)
{
    static const char *const texts[] = {"capacity=2000 error=1e-9 counters=8 seed=1",
                                        "capacity=2000 error=1e-9 counters=8 segments=3 seed=2"};
    hibloom_info info;

    (void)state;
    for (size_t t = 0; t < 2; t++) {
        struct shared *shared = children_share(texts[t]);
        hibloom *filter = segments_open(texts[t]);
        children_run(add_all, shared, CHILDREN);
        for (size_t n = 0; n < TOGETHER; n++) {
            unsigned told = 0;
            for (int i = 0; i < CHILDREN; i++)
                told += shared->told[i][n];
            assert_int_equal(told, 1);
        }
        children_run(remove_all, shared, CHILDREN);
        for (int i = 0; i < CHILDREN; i++)
            assert_int_equal(shared->failed[i], 0);
        assert_ok(hibloom_get_info(filter, &info), stores[0]);
        assert_int_equal(info.bits_set, 0);
        segments_drop(filter);
        munmap(shared, sizeof *shared);
    }
}

/* ---- Kills, and answers that are lost -------------------------------------------------- */

enum { OWN = 400, CALL = 40 };

/* How often each process' items are in at least: lowered before a remove is sent, and raised
 * once an add is acknowledged. So a process may die anywhere. */
struct ledger {
    uint64_t until_ms;
    volatile unsigned char in[CHILDREN][OWN];
    volatile unsigned long steps[CHILDREN], failed[CHILDREN];
    volatile int wrong;
};

static hibloom_item own_item(int i, unsigned n, char buf[16])
{
    return (hibloom_item){buf, (size_t)snprintf(buf, 16, "%d-%u", i, n)};
}

struct few {
    unsigned which[CALL];
    char text[CALL][16];
    hibloom_item items[CALL];
    bool answers[CALL];
    size_t n;
};

/* Some of a process' items, each once: those that are in at least so often. */
static void choose(struct few *few, const struct ledger *ledger, int i, unsigned least, unsigned most,
                   struct test_random *random)
{
    unsigned n = (unsigned)test_random_below(random, OWN);

    few->n = 0;
    for (unsigned tries = 0; few->n < CALL && tries < CALL; tries++, n = (n + 1 + tries % 3) % OWN)
        if (ledger->in[i][n] >= least && ledger->in[i][n] <= most) {
            few->which[few->n] = n;
            few->items[few->n] = own_item(i, n, few->text[few->n]);
            few->n++;
        }
}

static bool a_step(struct ledger *ledger, int i, hibloom *filter, struct test_random *random)
{
    struct few few;
    hibloom_status status;

    switch (test_random_below(random, 3)) {
    case 0:
        choose(&few, ledger, i, 0, 3, random);
        status = hibloom_add_many(filter, few.items, few.n, few.answers);
        for (size_t n = 0; status == HIBLOOM_OK && n < few.n; n++)
            ledger->in[i][few.which[n]]++;
        break;
    case 1:
        choose(&few, ledger, i, 1, 9, random);
        for (size_t n = 0; n < few.n; n++)
            ledger->in[i][few.which[n]]--;
        status = hibloom_remove_many(filter, few.items, few.n, few.answers);
        for (size_t n = 0; status == HIBLOOM_OK && n < few.n; n++)
            ledger->wrong |= !few.answers[n];
        break;
    default:
        choose(&few, ledger, i, 1, 9, random);
        status = hibloom_contains_many(filter, few.items, few.n, few.answers);
        for (size_t n = 0; status == HIBLOOM_OK && n < few.n; n++)
            ledger->wrong |= !few.answers[n];
    }
    return status == HIBLOOM_OK;
}

static void live(struct ledger *ledger, int i)
{
    const hibloom_connect_options options = {
        .size = sizeof options, .retry_ms = i % 2 == 0 ? 5000 : 0, .commands = (hibloom_commands)(i / 2 % 2)};
    struct test_random random = {(uint64_t)getpid() * 2654435761u};
    hibloom_store *store;
    hibloom *filter;

    while (test_now_ms() < ledger->until_ms) {
        if (hibloom_connect(&store, redis_server_uri(server), &options) == HIBLOOM_OK &&
            hibloom_open(&filter, store, NAME, NULL) == HIBLOOM_OK) {
            while (test_now_ms() < ledger->until_ms)
                if (a_step(ledger, i, filter, &random))
                    ledger->steps[i]++;
                else
                    ledger->failed[i]++;
            hibloom_close(filter);
        }
        hibloom_store_free(store);
    }
}

static pid_t start(struct ledger *ledger, int i)
{
    const pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        alarm(120);
        live(ledger, i);
        _exit(0);
    }
    return pid;
}

static void kill_one(struct ledger *ledger, pid_t pids[CHILDREN], struct test_random *random)
{
    const int i = (int)test_random_below(random, CHILDREN);

    kill(pids[i], SIGKILL);
    assert_int_equal(waitpid(pids[i], NULL, 0), pids[i]);
    pids[i] = start(ledger, i);
}

static void nothing_that_is_in_is_missed_whoever_dies(void **state)
{
    static const char *const texts[] = {"capacity=2000 error=0.01 counters=4 seed=3",
                                        "capacity=2000 error=0.01 counters=4 segments=3 seed=4"};
    struct test_random random = test_random_new();

    (void)state;
    for (size_t t = 0; t < 2; t++) {
        struct ledger *ledger = mmap(NULL, sizeof *ledger, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        hibloom *filter = segments_open(texts[t]);
        unsigned long steps = 0, failed = 0, in = 0;
        pid_t pids[CHILDREN];
        char buf[16];
        assert_true(ledger != MAP_FAILED);
        ledger->until_ms = test_now_ms() + 1000;
        for (int i = 0; i < CHILDREN; i++)
            pids[i] = start(ledger, i);
        while (test_now_ms() < ledger->until_ms - 100) {
            test_sleep_ms(20);
            kill_one(ledger, pids, &random);
            test_command(redis, "CLIENT KILL TYPE normal SKIPME yes"); /* and answers on their way are lost */
        }
        for (int i = 0; i < CHILDREN; i++)
            child_wait(pids[i]);
        assert_false(ledger->wrong);
        for (int i = 0; i < CHILDREN; i++, steps += ledger->steps[i - 1], failed += ledger->failed[i - 1])
            for (unsigned n = 0; n < OWN; n++) {
                const hibloom_item item = own_item(i, n, buf);
                bool found = true;
                hibloom_status status = HIBLOOM_OK;
                if (ledger->in[i][n] > 0) /* its own connection was killed, too: the first call may fail */
                    status = hibloom_contains(filter, item.data, item.len, &found);
                if (status == HIBLOOM_EIO)
                    status = hibloom_contains(filter, item.data, item.len, &found);
                assert_ok(status, stores[0]);
                assert_true(found);
                in += ledger->in[i][n] > 0;
            }
        print_message("%lu calls, %lu failed; %lu items in\n", steps, failed, in);
        assert_true(steps > 0 && failed > 0 && in > 0);
        segments_drop(filter);
        munmap(ledger, sizeof *ledger);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SEGMENTS_TEST(steps_of_eight_processes_count_once_each),
        SEGMENTS_TEST(nothing_that_is_in_is_missed_whoever_dies),
    };

    return cmocka_run_group_tests(tests, segments_set_up, segments_tear_down);
}
