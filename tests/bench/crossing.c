/* Does the cost model (redis/cost.h) choose the best way? Calls have a hundred to a million items, and filters 0.1 to
 * 64 MB, classic and blocked. Calls look up, add, or add with is_new. In each cell both ways are measured, and the
 * public call, which chooses. Beside them stands what the model says of both.
 *
 * The filters lie half full in database 0. Each trial of an add begins with a copy in database 1, so none fills up. By
 * commands a large call is measured by 12,000 of its items. */
#include "bench.h"

#include "base/alloc.h"
#include "base/flags.h"
#include "redis/bulk.h"
#include "redis/store.h"
#include "base/store.h"
#include "spec/spec.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 3, MOST = 1000000, BY_COMMANDS = 12000, TRIED = 45 };

static const uint64_t capacities[] = {100000, 1000000, 3000000, 10000000, 55000000};
static const size_t sizes[] = {100, 1000, 3000, 10000, 30000, 100000, MOST};
static const char *const layouts[] = {"classic", "blocked"};
static const struct {
    const char *words;
    enum store_op op;
} operations[] = {{"look up", STORE_LOOK}, {"add", STORE_ADD}, {"add, is_new", STORE_ADD_NEW}};

enum {
    CAPACITIES = sizeof capacities / sizeof *capacities,
    SIZES = sizeof sizes / sizeof *sizes,
    LAYOUTS = sizeof layouts / sizeof *layouts,
    OPERATIONS = sizeof operations / sizeof *operations,
    FILTERS = CAPACITIES * LAYOUTS,
    WAYS = 3
};

enum way { WAY_COMMANDS, WAY_BITMAPS, WAY_CALL };

struct bed {
    struct redisContext *redis;
    hibloom_store *stores[WAYS]; /* the first one goes by commands alone; the other two are one store */
    hibloom *filters[WAYS][FILTERS];
    hibloom_item *asked;
    uint64_t fresh; /* the next number that is new */
};

static void bed_make(struct bed *bed)
{
    hibloom_store *maker = bench_store(NULL, "setbit");
    const uint64_t present = bench_scaled(capacities[0], 10000) / 2;
    char name[16], text[96], uri[128];

    *bed = (struct bed){.redis = bench_redis_unix(),
                        .asked = bench_questions(present, UINT64_C(1) << 31, MOST),
                        .fresh = UINT64_C(1) << 30};
    snprintf(uri, sizeof uri, "%s/1", bench_uri());
    bed->stores[WAY_COMMANDS] = bench_store(uri, "setbit");
    bed->stores[WAY_BITMAPS] = bed->stores[WAY_CALL] = bench_choosing_store(uri, "setbit");
    for (size_t f = 0; f < FILTERS; f++) {
        const uint64_t capacity = bench_scaled(capacities[f % CAPACITIES], 10000);
        snprintf(name, sizeof name, "cross%zu.", f);
        snprintf(text, sizeof text, "capacity=%llu error=0.01 seed=1 layout=%s", (unsigned long long)capacity,
                 layouts[f / CAPACITIES]);
        hibloom *made = bench_open(maker, name, text);
        bench_load(made, capacity / 2);
        hibloom_close(made);
        bench_copy(bed->redis, name);
        for (int way = 0; way < WAYS; way++)
            bench_must(hibloom_open(&bed->filters[way][f], bed->stores[way], name, NULL), bed->stores[way]);
    }
    hibloom_store_free(maker);
}

static void bed_free(struct bed *bed)
{
    for (size_t f = 0; f < FILTERS; f++)
        for (int way = 0; way < WAYS; way++)
            hibloom_close(bed->filters[way][f]);
    hibloom_store_free(bed->stores[WAY_COMMANDS]);
    hibloom_store_free(bed->stores[WAY_CALL]);
    redisFree(bed->redis);
    free(bed->asked);
}

static hibloom_status by_bitmaps(hibloom_store *store, hibloom *filter, enum store_op op, const hibloom_item *items,
                                 size_t n)
{
    static unsigned char yes[FLAGS_BYTES(MOST)];
    struct redis_store *redis = (struct redis_store *)store;
    struct bulk bulk;

    bulk_begin(&bulk, op, &redis_filter_of(filter)->first, items, n, yes);
    const hibloom_status status = redis->run(redis, &bulk.task);
    task_release(&bulk.task);
    return status;
}

/* Microseconds. */
static double take(struct bed *bed, enum way way, size_t f, size_t o, const hibloom_item *items, size_t n)
{
    static bool answers[MOST];
    hibloom *filter = bed->filters[way][f];
    const double since = bench_now();

    if (way == WAY_BITMAPS)
        bench_must(by_bitmaps(bed->stores[way], filter, operations[o].op, items, n), bed->stores[way]);
    else if (operations[o].op == STORE_LOOK)
        bench_must(hibloom_contains_many(filter, items, n, answers), bed->stores[way]);
    else
        bench_must(hibloom_add_many(filter, items, n, operations[o].op == STORE_ADD_NEW ? answers : NULL),
                   bed->stores[way]);
    return (bench_now() - since) * 1e6;
}

/* The median of some trials of a call. Short ones are many: else one that the scheduler interrupts decides. */
static double measure(struct bed *bed, enum way way, size_t f, size_t o, size_t n)
{
    const size_t some = way == WAY_COMMANDS && n > BY_COMMANDS ? BY_COMMANDS : n;
    const size_t least = n <= 1000 ? 5 : n <= 10000 ? 3 : 1;
    const double until = bench_now() + bench_scaled_seconds(0.02);
    size_t tries = 0;
    const bool looks = operations[o].op == STORE_LOOK;
    double took[TRIED];
    char name[16];

    snprintf(name, sizeof name, "cross%zu.", f);
    if (!looks)
        bench_copy(bed->redis, name);
    for (; tries < least || (tries < TRIED && bench_now() < until); tries++) {
        hibloom_item *items = looks ? bed->asked : bench_uids(bed->fresh, some);
        took[tries] = take(bed, way, f, o, items, some) * (double)n / (double)some;
        if (!looks)
            free(items);
        bed->fresh += some;
    }
    return bench_percentile(took, tries, 0.5);
}

/* Each way is the first as often as the others. */
static void measure_cell(struct bed *bed, size_t f, size_t o, size_t s, int round)
{
    const struct link *link = &redis_filter_of(bed->filters[WAY_CALL][f])->first;
    const struct cost_server *server = &link->server->cost;
    const size_t n = bench_scaled(sizes[s], 100);
    double took[WAYS];

    for (int i = 0; i < WAYS; i++)
        took[(i + round) % WAYS] = measure(bed, (enum way)((i + round) % WAYS), f, o, n);
    printf("%s\t%llu\t%s\t%zu\t%d\t%.3g\t%.0f\t%.0f\t%.0f\t%d\t%.0f\t%.0f\n", layouts[f / CAPACITIES],
           (unsigned long long)capacities[f % CAPACITIES], operations[o].words, sizes[s], round,
           (double)spec_bitmap_bytes(link->spec) * spec_keys(link->spec) / 1e6, took[WAY_COMMANDS], took[WAY_BITMAPS],
           took[WAY_CALL], bulk_pays(operations[o].op, link, n, (double)n),
           (double)n * cost_item(link->spec, server, operations[o].op),
           cost_bitmaps(link->spec, server, operations[o].op, n));
}

void bench_crossing(void)
{
    struct bed bed;

    bed_make(&bed);
    puts("layout\tcapacity\toperation\titems\tround\tmegabytes\tcommands_us\tbitmaps_us\tcall_us\tby_bitmaps\t"
         "model_commands_us\tmodel_bitmaps_us");
    for (int round = 0; round < ROUNDS; round++)
        for (size_t f = 0; f < FILTERS; f++)
            for (size_t o = 0; o < OPERATIONS; o++)
                for (size_t s = 0; s < SIZES; s++)
                    measure_cell(&bed, f, o, s, round);
    bed_free(&bed);
}
