/* One call over many filters against calls one after the other. Filters are made and opened again; one item is added to
 * all, and asked of all. */
#include "bench.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST = 10000, ROUNDS = 5 };

#define TEXT "capacity=1000 error=0.01 seed=1"

static char rooms[MOST][16];
static const char *names[MOST];
static hibloom *filters[MOST];
static hibloom_pair pairs[MOST];
static bool answers[MOST];
static hibloom_store *store;

static void open_all(size_t n, bool many)
{
    if (many)
        bench_must(hibloom_open_many(filters, store, names, n, TEXT, NULL), store);
    for (size_t i = 0; i < n && !many; i++)
        bench_must(hibloom_open(&filters[i], store, names[i], TEXT), store);
    for (size_t i = 0; i < n; i++)
        pairs[i].filter = filters[i];
}

static void close_all(size_t n)
{
    for (size_t i = 0; i < n; i++)
        hibloom_close(filters[i]);
}

static void look_up(size_t n, bool many)
{
    if (many)
        bench_must(hibloom_contains_pairs(pairs, n, answers, NULL), store);
    for (size_t i = 0; i < n && !many; i++)
        bench_must(hibloom_contains(filters[i], pairs[i].item.data, pairs[i].item.len, &answers[i]), store);
}

static void add(size_t n, bool many)
{
    if (many)
        bench_must(hibloom_add_pairs(pairs, n, answers, NULL), store);
    for (size_t i = 0; i < n && !many; i++)
        bench_must(hibloom_add(filters[i], pairs[i].item.data, pairs[i].item.len, &answers[i]), store);
}

static void tell(const char *operation, size_t n, bool many, int round, double since)
{
    printf("%s\t%zu\t%s\t%d\t%.3f\n", operation, n, many ? "one call" : "call by call", round,
           (bench_now() - since) * 1e3);
}

static void measure(struct redisContext *redis, size_t n, bool many, int round)
{
    double since;

    bench_command(redis, "FLUSHALL");
    since = bench_now();
    open_all(n, many);
    tell("make", n, many, round, since);
    close_all(n);
    since = bench_now();
    open_all(n, many);
    tell("open", n, many, round, since);
    since = bench_now();
    add(n, many);
    tell("add, is_new", n, many, round, since);
    since = bench_now();
    look_up(n, many);
    tell("look up", n, many, round, since);
    close_all(n);
}

void bench_many(void)
{
    struct redisContext *redis = bench_redis_tcp();

    for (size_t i = 0; i < MOST; i++) {
        snprintf(rooms[i], sizeof rooms[i], "user:%zu", i);
        names[i] = rooms[i];
        pairs[i].item = (hibloom_item){"an item", 7};
    }
    store = bench_choosing_store(NULL, "setbit");
    puts("operation\tfilters\tway\tround\tms");
    for (int round = 0; round < ROUNDS; round++)
        for (int way = 0; way < 2; way++) { /* each is the first as often as the other, nearly */
            measure(redis, 500, (round + way) % 2 == 0, round);
            measure(redis, bench_scaled(MOST, 600), (round + way) % 2 == 0, round);
        }
    hibloom_store_free(store);
    redisFree(redis);
}
