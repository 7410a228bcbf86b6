/* The longest command while a filter is created, loaded, counted, snapshotted,
 * emptied and removed: one of 4 GB in the segments that hibloom chooses, and
 * one of 512 MB in one key, the largest that Redis has. Then while calls add a million new items each, with is_new and
 * without: to a filter of one key, to one of keys of 2 MB, and to one key of 16 MB, the largest that hibloom chooses.
 * And while nothing is called.
 *
 * The server keeps the times itself: its latency statistics hold transactions
 * and scripts as a whole, which its slow log takes apart. Beside them another
 * client sends PING all the while, and its longest wait is what a neighbour
 * feels, the scheduler's share included. */
#include "bench.h"
#include "base/store.h"

#include <hiredis/hiredis.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

struct neighbour {
    pid_t pid;
    double *longest; /* seconds; in memory that is shared with it */
};

static void ping_for_ever(double *longest)
{
    struct redisContext *redis = bench_redis_tcp();

    for (;;) {
        const double begin = bench_now();
        bench_command(redis, "PING");
        const double took = bench_now() - begin;
        if (took > *longest)
            *longest = took;
        usleep(500);
    }
}

static struct neighbour neighbour_start(void)
{
    void *shared = mmap(NULL, sizeof(double), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct neighbour neighbour = {0, shared};

    if (shared == MAP_FAILED)
        bench_fail("no shared memory");
    bench_server(); /* this process', not the neighbour's */
    neighbour.pid = fork();
    if (neighbour.pid < 0)
        bench_fail("cannot fork");
    if (neighbour.pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        ping_for_ever(neighbour.longest);
    }
    return neighbour;
}

static void neighbour_stop(struct neighbour *neighbour)
{
    kill(neighbour->pid, SIGKILL);
    waitpid(neighbour->pid, NULL, 0);
    munmap(neighbour->longest, sizeof(double));
}

/* The longest of all commands but our own here, by name: a line of INFO
 * latencystats each,
 *   latency_percentiles_usec_setrange:p100=8192.511 */
static double longest_command(struct redisContext *redis, char name[32])
{
    redisReply *reply = redisCommand(redis, "INFO latencystats");
    double longest = 0.0, usec;
    char each[32];

    if (reply == NULL || reply->type != REDIS_REPLY_STRING)
        bench_fail("no INFO from the server");
    strcpy(name, "none");
    for (const char *line = strstr(reply->str, "latency_percentiles"); line != NULL;
         line = strstr(line + 1, "latency_percentiles")) {
        if (sscanf(line, "latency_percentiles_usec_%31[^:]:p100=%lf", each, &usec) == 2 && usec > longest &&
            strcmp(each, "config|resetstat") != 0 && strcmp(each, "info") != 0) {
            longest = usec;
            strcpy(name, each);
        }
    }
    freeReplyObject(reply);
    return longest * 1e-6;
}

struct stage {
    struct redisContext *redis;
    struct neighbour neighbour;
    const char *filter; /* in words */
    double begin;
};

static void phase_begin(struct stage *stage)
{
    bench_command(stage->redis, "CONFIG RESETSTAT");
    *stage->neighbour.longest = 0.0;
    stage->begin = bench_now();
}

static void phase_end(struct stage *stage, const char *phase)
{
    const double took = bench_now() - stage->begin;
    char name[32];

    usleep(2000); /* until the neighbour has had its last answer */
    const double longest = longest_command(stage->redis, name);
    printf("%s\t%s\t%.3f\t%.3f\t%s\t%.3f\n", stage->filter, phase, took, longest * 1e3, name,
           *stage->neighbour.longest * 1e3);
}

/* As many items as make sure that no step of 16 MB is empty. */
static hibloom *local_filter(hibloom_store *memory, const hibloom *like)
{
    const size_t n = 1000000;
    hibloom_item *items = bench_uids(0, n);
    hibloom *local;

    bench_must(hibloom_open_like(&local, memory, "local", like), memory);
    bench_must(hibloom_add_many(local, items, n, NULL), memory);
    free(items);
    return local;
}

static void run(struct stage *stage, const char *text)
{
    hibloom_store *store = bench_store(NULL, "setbit"), *memory;
    hibloom_info info;

    phase_begin(stage);
    hibloom *shared = bench_open(store, "stalls", text);
    phase_end(stage, "create");

    bench_must(hibloom_connect(&memory, "memory:", NULL), NULL);
    hibloom *local = local_filter(memory, shared);
    phase_begin(stage);
    bench_must(hibloom_merge(shared, local), store);
    phase_end(stage, "bulk load");

    phase_begin(stage);
    bench_must(hibloom_get_info(shared, &info, sizeof info), store);
    phase_end(stage, "count");

    phase_begin(stage);
    bench_must(hibloom_merge(local, shared), memory);
    phase_end(stage, "snapshot");
    hibloom_close(local);
    hibloom_store_free(memory);

    phase_begin(stage);
    bench_must(hibloom_clear(shared), store);
    phase_end(stage, "clear");

    phase_begin(stage);
    bench_must(hibloom_drop(shared), store);
    phase_end(stage, "drop");
    hibloom_close(shared);
    hibloom_store_free(store);
}

enum { CALLS = 5 };

static void run_calls(struct stage *stage, const char *text, bool asks)
{
    hibloom_store *store = bench_choosing_store(NULL, "setbit");
    const uint64_t filled = bench_capacity() / 4, n = bench_capacity() / 10;
    bool *is_new = asks ? calloc(n, sizeof *is_new) : NULL;
    hibloom *filter = bench_open(store, "calls", text);

    bench_load(filter, filled);
    hibloom_item *items = bench_uids(filled, CALLS * n);
    for (size_t i = 0; i < CALLS; i++) {
        phase_begin(stage);
        bench_must(hibloom_add_many(filter, items + i * n, n, is_new), store);
        phase_end(stage, asks ? "a call of a million adds with is_new" : "a call of a million adds");
    }
    bench_must(hibloom_drop(filter), store);
    hibloom_close(filter);
    hibloom_store_free(store);
    free(items);
    free(is_new);
}

/* What a PING takes beside nothing, as a measure of the machine. */
static void run_nothing(struct stage *stage)
{
    for (size_t i = 0; i < CALLS; i++) {
        phase_begin(stage);
        while (bench_now() - stage->begin < 0.1)
            ; /* as busy as a client is */
        phase_end(stage, "no call");
    }
}

void bench_stalls(void)
{
    const unsigned long long segments = bench_scaled(256, 4), one_key = bench_scaled(512, 16);
    char large[96], small[96], text[64];
    struct stage stage = {.redis = bench_redis_unix()};

    bench_command(stage.redis, "CONFIG SET latency-tracking-info-percentiles 100");
    stage.neighbour = neighbour_start();
    snprintf(large, sizeof large, "%llu MB in %llu segments", segments * 16, segments);
    snprintf(small, sizeof small, "%llu MB in one key", one_key);
    puts("filter\tphase\tseconds\tlongest_ms\tcommand\tping_ms");
    stage.filter = large;
    snprintf(text, sizeof text, "bits=%llu hashes=7", segments << 27);
    run(&stage, text);
    stage.filter = small;
    snprintf(text, sizeof text, "bits=%llu hashes=7 segments=1", (one_key << 23) - 8192); /* with room for the tail */
    run(&stage, text);
    stage.filter = "none";
    run_nothing(&stage);
    for (int asks = 1; asks >= 0; asks--) {
        stage.filter = "11.4 MB in one key";
        snprintf(text, sizeof text, "capacity=%llu error=0.01 segments=1", (unsigned long long)bench_capacity());
        run_calls(&stage, text, asks);
        stage.filter = "11.4 MB in keys of 2 MB";
        snprintf(text, sizeof text, "capacity=%llu error=0.01 segments=6", (unsigned long long)bench_capacity());
        run_calls(&stage, text, asks);
        stage.filter = "16 MB in one key";
        run_calls(&stage, "bits=134209536 hashes=7 segments=1", asks);
    }
    neighbour_stop(&stage.neighbour);
    redisFree(stage.redis);
}
