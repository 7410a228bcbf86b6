/* Plain filters, growing ones and windows beside one another, by public calls alone. So this can
 * hold builds of the library against one another: $BENCH_LIBRARIES names two shared objects, with a
 * blank between. They take turns on the same keys, each the first as often as the other. Without it,
 * the library that the bench is linked with is measured, in fewer rounds. $BENCH_KINDS: only kinds whose names begin so.
 *
 * The filters are filled once, in database 0. Each turn begins with copies of their keys in
 * database 1. So no row fills a filter for the next one, and no filter grows meanwhile. */
#include "bench.h"

#include "../support/redis_server.h"
#include "base/store.h"

#include <hiredis/hiredis.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ONE_CALL = 200000, LEAST_ROUNDS = 2 };

static const size_t batches[] = {1, 10, 100, 1000, ONE_CALL};
static const char *const operations[] = {
    [BENCH_ADD] = "add", [BENCH_ADD_NEW] = "add, is_new", [BENCH_LOOK_UP] = "look up"};

/* Capacities and items are in parts of a quarter of a million. */
static const struct kind {
    const char *name, *text;
    uint64_t capacity, filled;
    long long keys;
    size_t least_batch;
} kinds[] = {
    {"plain, ten times as large", "segments=1", 40, 20, 1, 1},
    {"plain", "segments=1", 4, 2, 1, 1000},
    {"blocked, k = 3, ten times as large", "segments=1 layout=blocked hashes=3", 40, 20, 1, 1000},
    {"growing, 2 links", "growth=4", 4, 6, 2, 1000},
    {"growing, 5 links", "growth=2", 1, 16, 5, 1000},
    {"window, 3 slices", "window=100000000s slices=3", 4, 2, 4, 1000},
    {"window, 24 slices", "window=100000000s slices=24", 4, 2, 25, 1000},
};

enum {
    KINDS = sizeof kinds / sizeof *kinds,
    BATCHES = sizeof batches / sizeof *batches,
    OPERATIONS = sizeof operations / sizeof *operations,
};

#define CALLS(X) X(connect) X(store_free) X(open) X(close) X(add) X(add_many) X(contains) X(contains_many)
#define FIELD(name) __typeof__(&hibloom_##name) name;
#define LINKED(name) .name = hibloom_##name,
#define LOADED(name) \
    if ((*(void **)&library->name = dlsym(object, "hibloom_" #name)) == NULL) \
        bench_fail(dlerror());

struct library {
    CALLS(FIELD)
    hibloom_store *store;
    hibloom *filters[KINDS];
};

static struct library libraries[2] = {{CALLS(LINKED)}};
static size_t count = 1; /* of libraries */
static uint64_t fresh = (uint64_t)1 << 30;
static bool answers[ONE_CALL];

static uint64_t parts(uint64_t n)
{
    return n * bench_scaled(250000, 25000);
}

static void libraries_load(void)
{
    char *names = getenv("BENCH_LIBRARIES");

    if (names == NULL)
        return;
    names = strdup(names);
    count = 0;
    for (char *name = strtok(names, " "); name != NULL && count < 2; name = strtok(NULL, " ")) {
        struct library *library = &libraries[count++];
        void *object = dlopen(name, RTLD_NOW | RTLD_LOCAL);
        if (object == NULL)
            bench_fail(dlerror());
        CALLS(LOADED)
    }
    free(names);
}

static long long copy(struct redisContext *redis, size_t k)
{
    char name[16];

    snprintf(name, sizeof name, "kind%zu", k);
    return bench_copy(redis, name);
}

static void fill(struct redisContext *redis, size_t k)
{
    hibloom_store *store = bench_store(NULL, "setbit");
    char name[16], text[128];

    snprintf(name, sizeof name, "kind%zu", k);
    snprintf(text, sizeof text, "capacity=%llu error=0.01 seed=1 %s", (unsigned long long)parts(kinds[k].capacity),
             kinds[k].text);
    hibloom *filter = bench_open(store, name, text);
    if (filter->spec.window == 0) {
        bench_load(filter, parts(kinds[k].filled));
    } else { /* into which nothing is merged */
        hibloom_item *items = bench_uids(0, parts(kinds[k].filled));
        bench_must(hibloom_add_many(filter, items, parts(kinds[k].filled), NULL), store);
        free(items);
    }
    hibloom_close(filter);
    hibloom_store_free(store);
    if (copy(redis, k) != kinds[k].keys)
        bench_fail("a filter has other keys than its row says");
}

static void library_open(struct library *library)
{
    char uri[128], name[16];

    snprintf(uri, sizeof uri, "%s/1?command_timeout=10min", bench_uri());
    bench_must(library->connect(&library->store, uri, NULL), NULL);
    for (size_t k = 0; k < KINDS; k++) {
        snprintf(name, sizeof name, "kind%zu", k);
        bench_must(library->open(&library->filters[k], library->store, name, NULL), NULL);
    }
}

static hibloom_status call(struct library *library, hibloom *filter, enum bench_operation operation,
                           const hibloom_item *items, size_t n)
{
    bool *is_new = operation == BENCH_ADD_NEW ? answers : NULL;

    if (operation == BENCH_LOOK_UP)
        return n == 1 ? library->contains(filter, items->data, items->len, answers)
                      : library->contains_many(filter, items, n, answers);
    return n == 1 ? library->add(filter, items->data, items->len, is_new) : library->add_many(filter, items, n, is_new);
}

/* A library's turn at a row, and its line. Adds are of items that are new. */
static void take_turn(struct redisContext *redis, size_t l, size_t k, enum bench_operation operation, size_t b,
                      int round)
{
    const size_t batch = b == BATCHES - 1 ? bench_scaled(ONE_CALL, 1000) : batches[b];
    const size_t n = batch > 50000 ? batch : 50000;
    hibloom_item *items = operation == BENCH_LOOK_UP ? bench_questions(parts(kinds[k].filled), fresh, n)
                                                     : bench_uids(fresh, n);
    size_t done = 0;

    fresh += n;
    copy(redis, k);
    const struct bench_clock begin = bench_clock_read(redis);
    const double until = begin.wall + bench_scaled_seconds(count == 1 ? 0.15 : 0.05);
    do {
        bench_must(call(&libraries[l], libraries[l].filters[k], operation, items + done, batch), NULL);
        done += batch;
    } while (bench_now() < until && done + batch <= n);
    const double wall = bench_now() - begin.wall;
    const struct bench_clock end = bench_clock_read(redis);
    free(items);
    printf("%s\t%s\t%zu\t%zu\t%d\t%.0f\t%.4f\t%.4f\n", kinds[k].name, operations[operation], batches[b], l, round,
           (double)done / wall, (end.client - begin.client) / (double)done * 1e6,
           (end.server - begin.server) / (double)done * 1e6);
}

void bench_kinds(void)
{
    struct redisContext *redis = bench_redis_unix();
    double spent[KINDS][OPERATIONS][BATCHES] = {0}; /* seconds; a slow row has fewer rounds */

    libraries_load();
    const char *const only = getenv("BENCH_KINDS") != NULL ? getenv("BENCH_KINDS") : "";
    const int rounds = count == 1 ? 5 : (int)bench_scaled(60, LEAST_ROUNDS);
    for (size_t k = 0; k < KINDS; k++)
        fill(redis, k);
    for (size_t l = 0; l < count; l++)
        library_open(&libraries[l]);
    puts("filter\toperation\tbatch\tlibrary\tround\titems_per_s\tclient_us\tserver_us");
    for (int round = 0; round < rounds; round++)
        for (size_t k = 0; k < KINDS; k++)
            for (size_t o = 0; o < OPERATIONS; o++)
                for (size_t b = 0; b < BATCHES; b++) {
                    if (batches[b] < (count == 1 ? 1000 : kinds[k].least_batch) ||
                        strncmp(kinds[k].name, only, strlen(only)) != 0 ||
                        (round >= LEAST_ROUNDS && spent[k][o][b] > 10))
                        continue;
                    const double since = bench_now();
                    for (size_t turn = 0; turn < count; turn++)
                        take_turn(redis, (turn + (size_t)round) % count, k, (enum bench_operation)o, b, round);
                    spent[k][o][b] += bench_now() - since;
                }
    for (size_t l = 0; l < count; l++) {
        for (size_t k = 0; k < KINDS; k++)
            libraries[l].close(libraries[l].filters[k]);
        libraries[l].store_free(libraries[l].store);
    }
    redisFree(redis);
}
