/* How long one call for one item takes: its percentiles over TCP and over the
 * Unix socket, beside those of one GETBIT, below which no call can come. */
#include "bench.h"

#include "../support/redis_server.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 5 };

struct subject {
    const char *transport;
    hibloom_store *store;
    hibloom *filter;
    struct redisContext *redis;
};

static void getbit(const struct subject *subject, const hibloom_item *item)
{
    (void)item;
    bench_command(subject->redis, "GETBIT latency 12345");
}

static void add(const struct subject *subject, const hibloom_item *item)
{
    bench_must(hibloom_add(subject->filter, item->data, item->len, NULL), subject->store);
}

static void add_is_new(const struct subject *subject, const hibloom_item *item)
{
    bool is_new;

    bench_must(hibloom_add(subject->filter, item->data, item->len, &is_new), subject->store);
}

static void look_up(const struct subject *subject, const hibloom_item *item)
{
    bool found;

    bench_must(hibloom_contains(subject->filter, item->data, item->len, &found), subject->store);
}

static const struct operation {
    const char *name;
    void (*run)(const struct subject *, const hibloom_item *);
} operations[] = {
    {"one GETBIT", getbit},
    {"look up", look_up},
    {"add", add},
    {"add, is new?", add_is_new},
};

static void subject_open(struct subject *subject, const char *transport, const char *uri, struct redisContext *redis)
{
    char text[64];

    *subject = (struct subject){.transport = transport, .redis = redis};
    snprintf(text, sizeof text, "capacity=%llu error=0.01", (unsigned long long)bench_capacity());
    subject->store = bench_store(uri, "setbit");
    subject->filter = bench_open(subject->store, "latency", text);
}

static void measure(const struct subject *subject, const struct operation *operation, const hibloom_item *items,
                    size_t n, double *times, int round)
{
    double median;

    for (size_t i = 0; i < n; i++) {
        const double begin = bench_now();
        operation->run(subject, &items[i]);
        times[i] = (bench_now() - begin) * 1e6;
    }
    median = bench_percentile(times, n, 0.5);
    printf("%s\t%s\t%d\t%.1f\t%.1f\t%.1f\n", subject->transport, operation->name, round, median,
           bench_percentile(times, n, 0.99), bench_percentile(times, n, 0.999));
}

void bench_latency(void)
{
    const uint64_t n = bench_scaled(10000, 1000), capacity = bench_capacity();
    double *times = malloc(n * sizeof *times);
    hibloom_item *items = bench_questions(capacity / 2, capacity, (size_t)n);
    char uri[160];
    struct subject subjects[2];

    if (times == NULL)
        bench_fail("out of memory");
    snprintf(uri, sizeof uri, "unix://%s", redis_server_socket(bench_server()));
    subject_open(&subjects[0], "TCP", bench_uri(), bench_redis_tcp());
    subject_open(&subjects[1], "Unix socket", uri, bench_redis_unix());
    bench_load(subjects[0].filter, capacity / 2);
    puts("transport\toperation\tround\tp50_us\tp99_us\tp999_us");
    for (int round = 0; round < ROUNDS; round++)
        for (size_t s = 0; s < 2; s++)
            for (size_t o = 0; o < sizeof operations / sizeof *operations; o++)
                measure(&subjects[s], &operations[o], items, (size_t)n, times, round);
    for (size_t s = 0; s < 2; s++) {
        hibloom_close(subjects[s].filter);
        hibloom_store_free(subjects[s].store);
        redisFree(subjects[s].redis);
    }
    free(items);
    free(times);
}
