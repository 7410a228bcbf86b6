/* Whole filters: built in memory, merged into Redis (together the bulk load), and merged back out of it (the snapshot).
 * Of the same size as the filters that the items of throughput.c go into, and in turns with them. */
#include "bench.h"

#include <stdio.h>

enum { BATCH = 10000 };

/* A line of the throughput's table. */
static void print(const char *what, int round, uint64_t n, struct bench_clock begin, struct bench_clock end)
{
    const double items = (double)n;

    printf("whole filter\t%s\t%llu\t%d\t%.0f\t%.4f\t%.4f\n", what, (unsigned long long)n, round,
           items / (end.wall - begin.wall), (end.client - begin.client) / items * 1e6,
           (end.server - begin.server) / items * 1e6);
}

void bench_bulk(struct redisContext *redis, const hibloom_item *items, uint64_t n, int round)
{
    hibloom_store *store = bench_store(NULL, "setbit");
    struct bench_clock at[4];
    hibloom_store *memory;
    hibloom *shared, *local, *copy;
    char text[96];

    snprintf(text, sizeof text, "capacity=%llu error=0.01 segments=1 seed=1", (unsigned long long)n);
    shared = bench_open(store, "bulk", text);
    bench_must(hibloom_connect(&memory, "memory:", NULL), NULL);
    copy = bench_open(memory, "copy", text);

    at[0] = bench_clock_read(redis);
    local = bench_open(memory, "local", text);
    for (uint64_t i = 0; i < n; i += BATCH)
        bench_must(hibloom_add_many(local, items + i, n - i < BATCH ? n - i : BATCH, NULL), memory);
    at[1] = bench_clock_read(redis);
    bench_must(hibloom_merge(shared, local), store);
    at[2] = bench_clock_read(redis);
    bench_must(hibloom_merge(copy, shared), memory);
    at[3] = bench_clock_read(redis);

    print("build", round, n, at[0], at[1]);
    print("merge", round, n, at[1], at[2]);
    print("bulk load", round, n, at[0], at[2]);
    print("snapshot", round, n, at[2], at[3]);
    bench_must(hibloom_drop(shared), store);
    hibloom_close(shared);
    hibloom_close(local);
    hibloom_close(copy);
    hibloom_store_free(memory);
    hibloom_store_free(store);
}
