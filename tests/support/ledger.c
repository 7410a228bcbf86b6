/* Processes that add and remove while things break. See ledger.h. */
#include "ledger.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CALL = 40, PROGRESS_MS = 60000, TRIES = 50 };

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

/* ---- A process ---------------------------------------------------------------------- */

/* Some of its items, each once: those that are in so often. */
static void choose(struct few *few, const struct ledger *ledger, int i, unsigned least, unsigned most,
                   struct test_random *random)
{
    unsigned n = (unsigned)test_random_below(random, LEDGER_OWN);

    few->n = 0;
    for (unsigned tries = 0; few->n < CALL && tries < CALL; tries++, n = (n + 1 + tries % 3) % LEDGER_OWN)
        if (ledger->in[i][n] >= least && ledger->in[i][n] <= most) {
            few->which[few->n] = n;
            few->items[few->n] = own_item(i, n, few->text[few->n]);
            few->n++;
        }
}

static hibloom_status a_step(struct ledger *ledger, int i, hibloom *filter, struct test_random *random)
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
    return status;
}

static void step_on(struct ledger *ledger, int i, hibloom *filter, struct test_random *random)
{
    while (!ledger->stop) {
        const hibloom_status status = a_step(ledger, i, filter, random);
        ledger->steps[i] += status == HIBLOOM_OK;
        ledger->failed[i] += status != HIBLOOM_OK;
        ledger->told[i] += status == HIBLOOM_ELOST;
        if (status != HIBLOOM_OK && status != HIBLOOM_ELOST)
            test_sleep_ms(5); /* a server that is not there refuses at once */
    }
}

static void live(struct ledger *ledger, int i)
{
    hibloom_connect_options options = ledger->options;
    struct test_random random = {(uint64_t)getpid() * 2654435761u};
    hibloom_store *store;
    hibloom *filter;

    options.retry_ms = i % 2 == 0 ? options.retry_ms : 0;
    options.commands = (hibloom_commands)(i / 2 % 2);
    while (!ledger->stop) {
        if (hibloom_connect(&store, ledger->uri, &options) == HIBLOOM_OK &&
            hibloom_open(&filter, store, ledger->name, NULL) == HIBLOOM_OK) {
            step_on(ledger, i, filter, &random);
            hibloom_close(filter);
        }
        hibloom_store_free(store);
        test_sleep_ms(1);
    }
}

static void start(struct ledger *ledger, int i)
{
    const pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        alarm(120);
        live(ledger, i);
        _exit(0);
    }
    ledger->pids[i] = pid;
}

/* ---- The test -------------------------------------------------------------------------- */

struct ledger *ledger_start(const char *uri, const char *name, const hibloom_connect_options *options)
{
    struct ledger *ledger = mmap(NULL, sizeof *ledger, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    assert_true(ledger != MAP_FAILED);
    ledger->uri = uri;
    ledger->name = name;
    ledger->options = *options;
    for (int i = 0; i < LEDGER_WORKERS; i++)
        start(ledger, i);
    return ledger;
}

void ledger_kill(struct ledger *ledger, int i)
{
    kill(ledger->pids[i], SIGKILL);
    assert_int_equal(waitpid(ledger->pids[i], NULL, 0), ledger->pids[i]);
    start(ledger, i);
}

void ledger_wait(const struct ledger *ledger, unsigned long steps)
{
    const uint64_t since = test_now_ms();
    unsigned long until[LEDGER_WORKERS];

    for (int i = 0; i < LEDGER_WORKERS; i++)
        until[i] = ledger->steps[i] + steps;
    for (int i = 0; i < LEDGER_WORKERS; i++)
        while (ledger->steps[i] < until[i]) {
            if (test_now_ms() - since > PROGRESS_MS)
                fail_msg("process %d made %lu calls less than %lu", i, until[i] - ledger->steps[i], steps);
            test_sleep_ms(2);
        }
}

/* Its own connection may have been cut meanwhile, and its server may be another one now. */
static bool is_found(hibloom *filter, hibloom_store *store, const hibloom_item *item)
{
    hibloom_status status = HIBLOOM_EIO;
    bool found = false;

    for (int i = 0; status != HIBLOOM_OK && i < TRIES; i++) {
        if (i > 1)
            test_sleep_ms(100);
        status = hibloom_contains(filter, item->data, item->len, &found);
    }
    assert_ok(status, store);
    return found;
}

void ledger_stop(struct ledger *ledger, hibloom *filter, hibloom_store *store)
{
    unsigned long steps = 0, failed = 0, told = 0, in = 0, denied = 0;
    char buf[16];

    ledger->stop = true;
    for (int i = 0; i < LEDGER_WORKERS; i++) {
        int status = -1;
        assert_int_equal(waitpid(ledger->pids[i], &status, 0), ledger->pids[i]);
        assert_int_equal(status, 0);
    }
    for (int i = 0; i < LEDGER_WORKERS; i++) {
        steps += ledger->steps[i];
        failed += ledger->failed[i];
        told += ledger->told[i];
        for (unsigned n = 0; n < LEDGER_OWN; n++) {
            const hibloom_item item = own_item(i, n, buf);
            in += ledger->in[i][n] > 0;
            denied += ledger->in[i][n] > 0 && !is_found(filter, store, &item);
        }
    }
    print_message("%lu calls, %lu failed, %lu of them ELOST; %lu items in\n", steps, failed, told, in);
    assert_int_equal(denied, 0);
    assert_false(ledger->wrong);
    assert_true(steps > 0 && in > 0);
    munmap(ledger, sizeof *ledger);
}
