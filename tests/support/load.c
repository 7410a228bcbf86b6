/* Processes that add and look up while servers break. See load.h. */
#include "load.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <signal.h>
#include <unistd.h>

enum { ITEM_SIZE = 16, PROGRESS_MS = 30000 };

struct batch {
    char text[LOAD_BATCH][ITEM_SIZE];
    hibloom_item items[LOAD_BATCH];
    bool answers[LOAD_BATCH];
};

static void set_item(struct batch *batch, size_t i, unsigned number)
{
    batch->items[i] = (hibloom_item){batch->text[i], (size_t)snprintf(batch->text[i], ITEM_SIZE, "item-%u", number)};
}

/* ---- A worker --------------------------------------------------------------------- */

struct self {
    struct load *load;
    struct load_worker *told;
    hibloom_store *store;
    hibloom *filter;
    struct test_random random;
};

/* Whether the call is to be made again; ends the process where it must not have failed. */
static bool failed(struct self *self, hibloom_status status, uint64_t since)
{
    const uint64_t took = test_now_ms() - since;

    if (took > self->told->longest_ms)
        self->told->longest_ms = took;
    if (status == HIBLOOM_OK)
        return false;
    self->told->told += status == HIBLOOM_ELOST;
    self->told->unavailable += status != HIBLOOM_ELOST;
    if (self->load->may_fail && (status == HIBLOOM_ELOST || hibloom_is_retryable(status))) {
        snprintf(self->told->words, sizeof self->told->words, "%s", hibloom_store_error(self->store));
        return true;
    }
    self->told->status = status;
    snprintf(self->told->words, sizeof self->told->words, "%s", hibloom_store_error(self->store));
    _exit(1);
}

static void add(struct self *self, struct batch *batch, const unsigned *numbers)
{
    struct load *load = self->load;
    uint64_t since;
    hibloom_status status;

    for (size_t i = 0; i < LOAD_BATCH; i++)
        set_item(batch, i, numbers[i]);
    do {
        since = test_now_ms();
        status = hibloom_add_many(self->filter, batch->items, LOAD_BATCH, batch->answers);
    } while (failed(self, status, since));
    for (size_t i = 0; i < LOAD_BATCH; i++) {
        atomic_fetch_add(&load->winners[numbers[i]], batch->answers[i]);
        load->added[numbers[i]] = true;
    }
    atomic_fetch_add(&load->batches, 1);
}

/* Items that anybody has added: chosen before the call, so that they are in by then. */
static void look_up(struct self *self, struct batch *batch)
{
    uint64_t since;
    hibloom_status status;
    size_t n = 0;

    for (unsigned tries = 0; tries < 2 * LOAD_BATCH && n < LOAD_BATCH; tries++) {
        const unsigned number = (unsigned)test_random_below(&self->random, self->load->blocks * (uint64_t)LOAD_BLOCK);
        if (self->load->added[number])
            set_item(batch, n++, number);
    }
    do {
        since = test_now_ms();
        status = hibloom_contains_many(self->filter, batch->items, n, batch->answers);
    } while (failed(self, status, since));
    for (size_t i = 0; i < n && !self->load->may_lose; i++)
        if (!batch->answers[i]) {
            self->told->wrong++;
            snprintf(self->told->words, sizeof self->told->words, "%s", batch->text[i]);
        }
}

static void shuffle(struct self *self, unsigned *numbers, unsigned first)
{
    for (unsigned i = 0; i < LOAD_BLOCK; i++)
        numbers[i] = first + i;
    for (unsigned i = LOAD_BLOCK - 1; i > 0; i--) {
        const unsigned j = (unsigned)test_random_below(&self->random, i + 1), swapped = numbers[i];
        numbers[i] = numbers[j];
        numbers[j] = swapped;
    }
}

static void work(struct self *self)
{
    struct load *load = self->load;
    static unsigned numbers[LOAD_BLOCK];
    static struct batch batch;

    for (unsigned block = 0; block < LOAD_BLOCKS && !load->stop; block++) {
        if (block >= load->blocks)
            load->blocks = block + 1;
        shuffle(self, numbers, block * LOAD_BLOCK);
        for (unsigned at = 0; at < LOAD_BLOCK && !load->stop; at += LOAD_BATCH) {
            add(self, &batch, numbers + at);
            look_up(self, &batch);
        }
    }
}

static void run_worker(struct load *load, int i, struct test_random random)
{
    struct self self = {.load = load, .told = &load->workers[i], .random = random};
    hibloom_spec spec;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    alarm(120);
    hibloom_status status = hibloom_connect(&self.store, load->uri, &load->options);
    if (status == HIBLOOM_OK)
        status = hibloom_spec_parse(&spec, load->text);
    if (status == HIBLOOM_OK)
        status = hibloom_open(&self.filter, self.store, load->name, &spec);
    if (status == HIBLOOM_OK && i % 2 == 1) /* every other one remembers what is in */
        status = hibloom_near_cache(self.filter, 0);
    if (status != HIBLOOM_OK) {
        self.told->status = status;
        snprintf(self.told->words, sizeof self.told->words, "%s", hibloom_store_error(self.store));
        _exit(1);
    }
    work(&self);
    hibloom_get_stats(self.store, &self.told->stats);
    hibloom_close(self.filter);
    hibloom_store_free(self.store);
    _exit(0);
}

/* ---- The test ------------------------------------------------------------------------ */

struct load *load_start(const char *uri, const char *name, const char *text, const hibloom_connect_options *options,
                        bool may_fail, bool may_lose)
{
    struct test_random random = test_random_new();
    struct load *load = mmap(NULL, sizeof *load, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    assert_true(load != MAP_FAILED);
    load->uri = uri;
    load->name = name;
    load->text = text;
    load->options = *options;
    load->may_fail = may_fail;
    load->may_lose = may_lose;
    for (int i = 0; i < LOAD_WORKERS; i++) {
        (void)test_random_u64(&random);
        const pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0)
            run_worker(load, i, (struct test_random){test_random_u64(&random) + (unsigned)i});
        load->workers[i].pid = pid; /* shared: not the child's to write */
    }
    load_wait(load, LOAD_WORKERS);
    return load;
}

static void assert_fine(const struct load *load)
{
    for (int i = 0; i < LOAD_WORKERS; i++) {
        const struct load_worker *worker = &load->workers[i];

        if (worker->status != HIBLOOM_OK)
            fail_msg("worker %d: %s: %s", i, hibloom_strerror(worker->status), worker->words);
        if (worker->wrong != 0)
            fail_msg("worker %d: %u items were denied that were in, such as %s", i, worker->wrong, worker->words);
    }
}

void load_wait(struct load *load, unsigned batches)
{
    const unsigned until = load->batches + batches;
    const uint64_t since = test_now_ms();

    while (load->batches < until && load->blocks < LOAD_BLOCKS) {
        assert_fine(load);
        if (test_now_ms() - since > PROGRESS_MS)
            fail_msg("only %u of %u batches were added within %d s", load->batches + batches - until, batches,
                     PROGRESS_MS / 1000);
        test_sleep_ms(5);
    }
}

void load_stop(struct load *load)
{
    load->stop = true;
    for (int i = 0; i < LOAD_WORKERS; i++) {
        int status = -1;
        assert_int_equal(waitpid(load->workers[i].pid, &status, 0), load->workers[i].pid);
        assert_fine(load);
        assert_int_equal(status, 0);
    }
}

void load_free(struct load *load)
{
    munmap(load, sizeof *load);
}

size_t load_added(const struct load *load)
{
    return load_winners(load, 0, 255);
}

size_t load_winners(const struct load *load, unsigned least, unsigned most)
{
    size_t n = 0;

    for (size_t i = 0; i < LOAD_ITEMS; i++)
        n += load->added[i] && load->winners[i] >= least && load->winners[i] <= most;
    return n;
}

size_t load_missing(const struct load *load, hibloom *filter, hibloom_store *store)
{
    static struct batch batch;
    size_t missing = 0, n = 0;

    for (unsigned number = 0; number <= LOAD_ITEMS; number++) {
        if (number < LOAD_ITEMS && load->added[number])
            set_item(&batch, n++, number);
        if (n == 0 || (n < LOAD_BATCH && number < LOAD_ITEMS))
            continue;
        assert_ok(hibloom_contains_many(filter, batch.items, n, batch.answers), store);
        for (; n > 0; n--)
            missing += !batch.answers[n - 1];
    }
    return missing;
}

hibloom_stats load_stats(const struct load *load)
{
    hibloom_stats sum = {0};

    for (int i = 0; i < LOAD_WORKERS; i++) {
        const hibloom_stats *of = &load->workers[i].stats;
        sum.calls += of->calls;
        sum.items += of->items;
        sum.commands += of->commands;
        sum.round_trips += of->round_trips;
        sum.connections += of->connections;
        sum.retries += of->retries;
        sum.redirects += of->redirects;
        sum.in_doubt += of->in_doubt;
        sum.restarts += of->restarts;
    }
    return sum;
}

unsigned load_told(const struct load *load)
{
    unsigned n = 0;

    for (int i = 0; i < LOAD_WORKERS; i++)
        n += load->workers[i].told;
    return n;
}
