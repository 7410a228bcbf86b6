/* Processes that make growing filters grow, one after the other. See growers.h. */
#include "growers.h"
#include "items.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BATCH = 40, PROGRESS_MS = 30000, MORE = 2 * GROWERS_ITEMS };

struct batch {
    char text[BATCH][16];
    hibloom_item items[BATCH];
    unsigned which[BATCH];
    bool answers[BATCH];
    size_t n;
};

static void put(struct batch *batch, unsigned number)
{
    char *text = batch->text[batch->n];

    batch->which[batch->n] = number;
    batch->items[batch->n++] = (hibloom_item){text, (size_t)snprintf(text, sizeof batch->text[0], "item %u", number)};
}

const char *growers_name(const struct growers *growers, unsigned n, char buf[TEST_NAME_SIZE])
{
    snprintf(buf, TEST_NAME_SIZE, "%s%u", growers->prefix, n);
    return buf;
}

/* Of some filters nobody asks what is new. */
static bool is_exact(unsigned number)
{
    return number % 4 != 3;
}

/* ---- A process ------------------------------------------------------------------------ */

struct self {
    struct growers *growers;
    struct grower *told;
    hibloom_store *store;
    hibloom *filter, *before; /* of the number `at`, and the one before */
    unsigned at;
    struct test_random random;
};

/* Whether the call is to be made again; ends the process where it must not have failed. */
static bool failed(struct self *self, hibloom_status status)
{
    struct grower *told = self->told;

    if (status == HIBLOOM_OK)
        return false;
    told->status = status;
    snprintf(told->words, sizeof told->words, "%s", hibloom_store_error(self->store));
    told->told += status == HIBLOOM_ELOST;
    told->failed += hibloom_is_retryable(status);
    told->denied += status == HIBLOOM_EDENIED;
    told->fails = status != HIBLOOM_ELOST && !hibloom_is_retryable(status) &&
                  !(status == HIBLOOM_EDENIED && self->growers->may_be_denied);
    if (told->fails)
        _exit(1);
    if (self->growers->stop)
        _exit(0);
    test_sleep_ms(2); /* a server that is not there refuses at once */
    return true;
}

static void add(struct self *self, struct batch *batch)
{
    struct growers *growers = self->growers;
    const bool exact = is_exact(self->at);
    hibloom_status status;

    do
        status = hibloom_add_many(self->filter, batch->items, batch->n, exact ? batch->answers : NULL);
    while (failed(self, status));
    for (size_t i = 0; i < batch->n; i++) {
        atomic_fetch_add(&growers->news[self->at][batch->which[i]], exact ? batch->answers[i] : 0);
        growers->in[self->at][batch->which[i]] = true;
    }
    atomic_fetch_add(&growers->calls, 1);
}

/* Items that anybody has added: chosen before the call, so that they are in by then. */
static void ask(struct self *self, hibloom *filter, unsigned number)
{
    struct batch batch = {.n = 0};
    hibloom_status status;

    for (unsigned tries = 0; tries < BATCH; tries++) {
        const unsigned item = (unsigned)test_random_below(&self->random, GROWERS_ITEMS);
        if (self->growers->in[number][item])
            put(&batch, item);
    }
    do
        status = hibloom_contains_many(filter, batch.items, batch.n, batch.answers);
    while (failed(self, status));
    for (size_t i = 0; i < batch.n; i++)
        if (!batch.answers[i]) {
            self->told->wrong++;
            snprintf(self->told->words, sizeof self->told->words, "filter %u, %s", number, batch.text[i]);
        }
}

static void open_next(struct self *self)
{
    const hibloom_spec spec = test_spec(self->growers->text);
    char name[TEST_NAME_SIZE];

    hibloom_close(self->before);
    self->before = self->filter;
    self->filter = NULL;
    if (self->growers->begun <= self->at)
        self->growers->begun = self->at + 1;
    growers_name(self->growers, self->at, name);
    while (failed(self, hibloom_open(&self->filter, self->store, name, &spec)))
        ;
}

static void work(struct self *self)
{
    for (; self->at < GROWERS_FILTERS && !self->growers->stop; self->at++) {
        const unsigned from = (unsigned)test_random_below(&self->random, GROWERS_ITEMS);
        struct batch batch;
        open_next(self);
        for (unsigned done = 0; done < GROWERS_ITEMS && !self->growers->stop; done += (unsigned)batch.n) {
            const size_t n = 1 + (size_t)test_random_below(&self->random, BATCH);
            for (batch.n = 0; batch.n < n && done + batch.n < GROWERS_ITEMS;)
                put(&batch, (from + done + (unsigned)batch.n) % GROWERS_ITEMS);
            add(self, &batch);
            ask(self, self->filter, self->at);
            if (self->before != NULL)
                ask(self, self->before, self->at - 1);
        }
    }
}

static void run(struct growers *growers, int i, struct test_random random)
{
    struct self self = {.growers = growers, .told = &growers->each[i], .random = random};
    hibloom_connect_options options = growers->options;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    alarm(120);
    options.commands = (hibloom_commands)(i % 2);
    while (failed(&self, hibloom_connect(&self.store, growers->uri, &options)))
        hibloom_store_free(self.store);
    work(&self);
    hibloom_get_stats(self.store, &self.told->stats);
    hibloom_close(self.before);
    hibloom_close(self.filter);
    hibloom_store_free(self.store);
    _exit(0);
}

/* ---- The test --------------------------------------------------------------------------- */

struct growers *growers_new(void)
{
    struct growers *growers = mmap(NULL, sizeof *growers, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    assert_true(growers != MAP_FAILED);
    return growers;
}

void growers_start(struct growers *growers)
{
    struct test_random random = test_random_new();

    for (int i = 0; i < GROWERS; i++) {
        const uint64_t seed = test_random_u64(&random);
        const pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0)
            run(growers, i, (struct test_random){seed});
        growers->each[i].pid = pid; /* shared: not the child's to write */
    }
}

static void assert_fine(const struct growers *growers)
{
    for (int i = 0; i < GROWERS; i++) {
        const struct grower *one = &growers->each[i];
        if (one->fails)
            fail_msg("process %d: %s: %s", i, hibloom_strerror(one->status), one->words);
        if (one->wrong != 0)
            fail_msg("process %d: %u items were denied that were in, such as %s", i, one->wrong, one->words);
    }
}

static void wait_for(const struct growers *growers, const atomic_uint *counter, unsigned until)
{
    const uint64_t since = test_now_ms();

    while (*counter < until && growers->begun < GROWERS_FILTERS) {
        assert_fine(growers);
        if (test_now_ms() - since > PROGRESS_MS)
            fail_msg("%u are still to be waited for; process 0 was told last: %s", until - *counter,
                     growers->each[0].words);
        test_sleep_ms(1);
    }
}

void growers_wait_calls(const struct growers *growers, unsigned more)
{
    wait_for(growers, &growers->calls, growers->calls + more);
}

void growers_wait_filters(const struct growers *growers, unsigned filters)
{
    wait_for(growers, &growers->begun, filters);
}

void growers_stop(struct growers *growers)
{
    growers->stop = true;
    for (int i = 0; i < GROWERS; i++) {
        int status = -1;
        assert_int_equal(waitpid(growers->each[i].pid, &status, 0), growers->each[i].pid);
        assert_fine(growers);
        assert_int_equal(status, 0);
    }
}

static void check_items(const struct growers *growers, unsigned number, hibloom *filter, hibloom_store *store)
{
    struct batch batch;

    for (unsigned item = 0; item < GROWERS_ITEMS; item += BATCH) {
        batch.n = 0;
        for (unsigned i = item; i < item + BATCH; i++)
            if (growers->in[number][i])
                put(&batch, i);
        assert_ok(hibloom_contains_many(filter, batch.items, batch.n, batch.answers), store);
        for (size_t i = 0; i < batch.n; i++)
            if (!batch.answers[i])
                fail_msg("filter %u: %s was acknowledged, and is denied", number, batch.text[i]);
    }
}

/* More than it has links for. */
static void grow_on(hibloom *filter, hibloom_store *store)
{
    hibloom_item *items = items_new("more", MORE);
    hibloom_info before, after;
    bool is_new[MORE];

    assert_ok(hibloom_get_info(filter, &before), store);
    assert_ok(hibloom_add_many(filter, items, MORE, is_new), store);
    assert_int_equal(test_count_true(is_new, MORE), MORE);
    assert_ok(hibloom_get_info(filter, &after), store);
    assert_true(after.keys > before.keys);
    items_free(items);
}

void growers_check(const struct growers *growers, hibloom_store *store, unsigned least_news, unsigned most_news)
{
    unsigned in = 0, links = 0, filters = growers->begun;
    char name[TEST_NAME_SIZE];

    for (unsigned n = 0; n < filters; n++) {
        const hibloom_spec spec = test_spec(growers->text);
        hibloom *filter;
        hibloom_info info;
        assert_ok(hibloom_open(&filter, store, growers_name(growers, n, name), &spec), store);
        check_items(growers, n, filter, store);
        for (unsigned i = 0; i < GROWERS_ITEMS; i++) {
            const unsigned news = growers->news[n][i];
            in += growers->in[n][i];
            if (growers->in[n][i] && is_exact(n) && (news < least_news || news > most_news))
                fail_msg("filter %u: item %u was new to %u", n, i, news);
        }
        assert_ok(hibloom_get_info(filter, &info), store);
        links += info.keys;
        if (n + 2 > filters) /* those that were under way */
            grow_on(filter, store);
        assert_ok(hibloom_drop(filter), store);
        hibloom_close(filter);
    }
    unsigned told = 0, failed = 0, denied = 0;
    for (int i = 0; i < GROWERS; i++) {
        told += growers->each[i].told;
        failed += growers->each[i].failed;
        denied += growers->each[i].denied;
    }
    print_message("%u filters, %u keys, %u items in, %u calls; made again: %u ELOST, %u retryable, %u EDENIED\n",
                  filters, links, in, growers->calls, told, failed, denied);
    assert_true(in > 0);
}

hibloom_stats growers_stats(const struct growers *growers)
{
    hibloom_stats sum = {0};

    for (int i = 0; i < GROWERS; i++) {
        const hibloom_stats *of = &growers->each[i].stats;
        sum.retries += of->retries;
        sum.redirects += of->redirects;
        sum.in_doubt += of->in_doubt;
        sum.restarts += of->restarts;
    }
    return sum;
}

void growers_free(struct growers *growers)
{
    munmap(growers, sizeof *growers);
}
