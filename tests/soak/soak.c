/* The soak: eight processes add to one filter on a cluster of three primaries and three replicas and ask it, while a
 * primary is killed every minute, its replica takes over, and it comes back. What was added is kept beside it, exactly,
 * in shared memory. An acknowledged add is never missing, no call hangs, and of what all of them add, somebody is told
 * of each item that it is new. No part of the normal tests: an hour by `make soak`; SOAK_SECONDS sets another time.
 * What it has shown stands in tests/README.md. */
#include "support/redis_cluster.h"
#include "support/test.h"

#include <errno.h>
#include <hiredis/hiredis.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORKERS = 8, BATCH = 200, PAUSE_MS = 250, PERIOD_S = 60, STATUSES = 50, COMMON = 1 << 24, CHECKED = 4000000 };
enum { DOUBTED = 128 }; /* an add of it failed and was repeated: who is told that it is new is not promised then */

/* Nothing is in by chance: so whatever is new to nobody was lost. */
static const char name[] = "soak", text[] = "capacity=30000000 error=1e-9 segments=24";

struct worker {
    pid_t pid;
    atomic_ullong own, common; /* items that were acknowledged: number 0, 1, ... of its own, and of the common ones */
    atomic_ullong asked, wrong_no, absent_asked, wrong_maybe;
    atomic_ullong failed[STATUSES];
    atomic_ullong longest_ms;
    hibloom_stats stats;
};

struct soak {
    atomic_bool stop;
    struct worker workers[WORKERS];
    atomic_uchar winners[COMMON];
};

static struct soak *soak;

/* ---- A worker ------------------------------------------------------------------------- */

struct self {
    unsigned number;
    struct worker *worker;
    hibloom_store *store;
    hibloom *filter;
    struct test_random random;
    char texts[BATCH][32];
    hibloom_item items[BATCH];
    bool answers[BATCH];
};

/* Item `first` and those behind it of worker `of`; WORKERS: the common ones; more: never added. */
static void set_items(struct self *self, unsigned of, unsigned long long first)
{
    for (unsigned i = 0; i < BATCH; i++)
        self->items[i] = (hibloom_item){
            self->texts[i], (size_t)snprintf(self->texts[i], sizeof self->texts[i], "%u:%llu", of, first + i)};
}

/* Until it is OK; how often it failed. */
static unsigned call(struct self *self, hibloom_status (*run)(struct self *))
{
    unsigned failures = 0;
    bool again = true;

    while (again) {
        const uint64_t since = test_now_ms();
        const hibloom_status status = run(self);
        const uint64_t took = test_now_ms() - since;
        if (took > self->worker->longest_ms)
            self->worker->longest_ms = took;
        again = status != HIBLOOM_OK && !soak->stop;
        if (status == HIBLOOM_OK)
            break;
        failures++;
        self->worker->failed[status]++;
        if (status != HIBLOOM_ELOST && !hibloom_is_retryable(status)) {
            fprintf(stderr, "worker %u: %s: %s\n", self->number, hibloom_strerror(status),
                    hibloom_store_error(self->store));
            _exit(1);
        }
    }
    return again || soak->stop ? failures + 1 : failures;
}

static hibloom_status add(struct self *self)
{
    return hibloom_add_many(self->filter, self->items, BATCH, self->answers);
}

static hibloom_status ask(struct self *self)
{
    memset(self->answers, 0, sizeof self->answers);
    return hibloom_contains_many(self->filter, self->items, BATCH, self->answers);
}

static void add_own(struct self *self)
{
    set_items(self, self->number, self->worker->own);
    (void)call(self, add);
    if (!soak->stop)
        self->worker->own += BATCH;
}

static void add_common(struct self *self)
{
    const unsigned long long first = self->worker->common;

    if (first + BATCH > COMMON)
        return;
    set_items(self, WORKERS, first);
    const unsigned failures = call(self, add);
    for (unsigned i = 0; i < BATCH; i++)
        if (failures > 0)
            soak->winners[first + i] |= DOUBTED;
        else if (self->answers[i])
            soak->winners[first + i]++;
    if (!soak->stop)
        self->worker->common += BATCH;
}

static void ask_around(struct self *self)
{
    const unsigned of = (unsigned)test_random_below(&self->random, WORKERS);
    const unsigned long long known = soak->workers[of].own;

    if (known < BATCH)
        return;
    set_items(self, of, test_random_below(&self->random, known - BATCH + 1));
    if (call(self, ask) > 0 && soak->stop)
        return;
    self->worker->asked += BATCH;
    for (unsigned i = 0; i < BATCH; i++)
        if (!self->answers[i]) {
            self->worker->wrong_no++;
            fprintf(stderr, "worker %u: %s is in, and denied\n", self->number, self->texts[i]);
        }
    set_items(self, WORKERS + 1 + self->number, self->worker->absent_asked);
    if (call(self, ask) > 0 && soak->stop)
        return;
    self->worker->absent_asked += BATCH;
    for (unsigned i = 0; i < BATCH; i++)
        self->worker->wrong_maybe += self->answers[i];
}

static _Noreturn void work(const char *uri, unsigned number)
{
    static struct self self;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    self = (struct self){.number = number, .worker = &soak->workers[number], .random = {.state = 977 + number}};
    if (hibloom_connect(&self.store, with_options(uri, "retry=30s&min_replicas=1"), NULL) != HIBLOOM_OK ||
        hibloom_open(&self.filter, self.store, name, NULL) != HIBLOOM_OK) {
        fprintf(stderr, "worker %u: %s\n", number, hibloom_store_error(self.store));
        _exit(1);
    }
    while (!soak->stop) {
        add_own(&self);
        ask_around(&self);
        add_common(&self);
        test_sleep_ms(PAUSE_MS);
    }
    hibloom_get_stats(self.store, &self.worker->stats, sizeof self.worker->stats);
    hibloom_close(self.filter);
    hibloom_store_free(self.store);
    _exit(0);
}

/* ---- What is killed -------------------------------------------------------------------- */

/* One of the three, by turns of slots, whoever owns them now. */
static void fail_over(const struct redis_cluster *cluster, unsigned turn)
{
    const int primary = redis_cluster_owner(cluster, (int)(turn % 3) * (REDIS_CLUSTER_SLOTS / 3) + 10);

    redis_server_kill(redis_cluster_node(cluster, primary));
    (void)redis_cluster_wait_failover(cluster, primary);
    redis_server_restart(redis_cluster_node(cluster, primary));
    redis_cluster_wait_settled(cluster);
}

static void assert_all_run(void)
{
    for (unsigned i = 0; i < WORKERS; i++)
        if (waitpid(soak->workers[i].pid, NULL, WNOHANG) != 0) {
            fprintf(stderr, "worker %u has ended\n", i);
            exit(EXIT_FAILURE);
        }
}

static unsigned run_for(const struct redis_cluster *cluster, uint64_t seconds)
{
    const uint64_t begin = test_now_ms(), end = begin + seconds * 1000;
    unsigned failovers = 0;

    while (test_now_ms() < end) {
        test_sleep_ms(200);
        assert_all_run();
        if (test_now_ms() >= begin + (failovers * PERIOD_S + PERIOD_S / 2) * UINT64_C(1000))
            fail_over(cluster, failovers++);
    }
    return failovers;
}

/* ---- What came of it ------------------------------------------------------------------- */

/* All items, or as many as evenly spread; how many are denied. */
static unsigned long long deny(const char *uri, unsigned long long *checked)
{
    static struct self self;
    unsigned long long denied = 0, all = 0;

    if (hibloom_connect(&self.store, with_options(uri, "retry=30s&min_replicas=1"), NULL) != HIBLOOM_OK ||
        hibloom_open(&self.filter, self.store, name, NULL) != HIBLOOM_OK)
        return 1;
    for (unsigned of = 0; of < WORKERS; of++)
        all += soak->workers[of].own;
    const unsigned long long stride = all / CHECKED + 1;
    for (unsigned of = 0; of < WORKERS; of++)
        for (unsigned long long first = 0; first < soak->workers[of].own; first += BATCH * stride) {
            set_items(&self, of, first);
            const hibloom_status status = ask(&self);
            for (unsigned i = 0; i < BATCH; i++)
                denied += status != HIBLOOM_OK || !self.answers[i];
            *checked += BATCH;
        }
    hibloom_close(self.filter);
    hibloom_store_free(self.store);
    return denied;
}

/* Common items that all have added, and of which nobody was told that they are new, nor was in doubt. */
static unsigned long long count_unclaimed(unsigned long long *common)
{
    unsigned long long unclaimed = 0;

    *common = COMMON;
    for (unsigned i = 0; i < WORKERS; i++)
        *common = soak->workers[i].common < *common ? soak->workers[i].common : *common;
    for (unsigned long long i = 0; i < *common; i++)
        unclaimed += soak->winners[i] == 0;
    return unclaimed;
}

static bool report(const char *uri, uint64_t seconds, unsigned failovers)
{
    unsigned long long added = 0, asked = 0, wrong_no = 0, absent = 0, wrong_maybe = 0, longest = 0, checked = 0,
                       common;
    hibloom_stats sum = {0};

    for (unsigned i = 0; i < WORKERS; i++) {
        const struct worker *w = &soak->workers[i];
        added += w->own + w->common;
        asked += w->asked;
        wrong_no += w->wrong_no;
        absent += w->absent_asked;
        wrong_maybe += w->wrong_maybe;
        longest = w->longest_ms > longest ? w->longest_ms : longest;
        sum.retries += w->stats.retries;
        sum.redirects += w->stats.redirects;
        sum.in_doubt += w->stats.in_doubt;
        sum.connections += w->stats.connections;
    }
    printf("seconds %llu, failovers %u\n", (unsigned long long)seconds, failovers);
    printf("items added %llu, asked for %llu, wrong \"no\" %llu\n", added, asked, wrong_no);
    printf("never added, asked for %llu, \"maybe\" %llu\n", absent, wrong_maybe);
    for (unsigned status = 0; status < STATUSES; status++) {
        unsigned long long n = 0;
        for (unsigned i = 0; i < WORKERS; i++)
            n += soak->workers[i].failed[status];
        if (n > 0)
            printf("calls that failed: %llu, %s\n", n, hibloom_strerror((hibloom_status)status));
    }
    printf("connections %llu, retries %llu, redirects %llu, in doubt %llu, longest call %llu ms\n",
           (unsigned long long)sum.connections, (unsigned long long)sum.retries, (unsigned long long)sum.redirects,
           (unsigned long long)sum.in_doubt, longest);
    const unsigned long long denied = deny(uri, &checked), unclaimed = count_unclaimed(&common);
    printf("at the end: asked for %llu, denied %llu; of %llu that all added, new to nobody %llu\n", checked, denied,
           common, unclaimed);
    return wrong_no == 0 && denied == 0 && unclaimed == 0 && added > 0 && asked > 0;
}

int main(void)
{
    const char *given = getenv("SOAK_SECONDS");
    const uint64_t seconds = given != NULL ? strtoull(given, NULL, 10) : 3600;
    struct redis_cluster *cluster = redis_cluster_start(&(struct redis_cluster_options){.primaries = 3, .replicas = 1});
    const char *uri = redis_cluster_uri(cluster);
    hibloom_store *store = test_connect(uri, NULL);
    bool good = true;

    soak = mmap(NULL, sizeof *soak, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    hibloom_close(test_open(store, name, text));
    hibloom_store_free(store);
    for (unsigned i = 0; i < WORKERS; i++) {
        const pid_t pid = fork(); /* not into shared memory at once: the child has it, too, and there it is 0 */
        if (pid == 0)
            work(uri, i);
        soak->workers[i].pid = pid;
    }
    const unsigned failovers = run_for(cluster, seconds);
    soak->stop = true;
    for (unsigned i = 0; i < WORKERS; i++) {
        int how = 0;
        const pid_t pid = waitpid(soak->workers[i].pid, &how, 0);
        if (pid > 0 && how == 0)
            continue;
        fprintf(stderr, "worker %u ended badly: %s, status %x\n", i, pid > 0 ? "waited for" : strerror(errno),
                (unsigned)how);
        good = false;
    }
    good = report(uri, seconds, failovers) && good;
    redis_cluster_stop(cluster);
    puts(good ? "passed" : "FAILED");
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
