/* Calls of a few and of very many items: contains_many and add_many choose by the cost model (redis/cost.h) whether
 * they go by commands or by whole bitmaps. Each size of a call is held against the same items in batches of 1,000 that
 * go by commands, whatever the model says; calls of 1,000 and fewer so against the very same calls. The two take turns,
 * on one filter, as two in one server are not equally fast by a few percent: where they lie in memory differs. The time
 * of a call is the median of a trial's. Beside them stands what the model says, and from how many items on it takes
 * bitmaps: where that is wrong, a size is slower than its batches, or the bitmaps would have been worth while earlier. */
#include "bench.h"

#include "redis/cost.h"
#include "redis/sieve.h"
#include "redis/store.h"
#include "base/store.h"
#include "spec/spec.h"

#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 5, BATCH = 1000, STREAM = 12 * BATCH, MOST = 1000000, CALLS_MOST = 2 * STREAM / 100 };

static const size_t sizes[] = {100, 1000, 3000, 10000, 30000, 100000, MOST};
static const struct {
    const char *words;
    enum store_op op;
    bool fresh;
} operations[] = {{"look up", STORE_LOOK, false},
                  {"add", STORE_ADD, true},
                  {"add, is_new, fresh", STORE_ADD_NEW, true},
                  {"add, is_new, all in", STORE_ADD_NEW, false}};

enum { SIZES = sizeof sizes / sizeof *sizes, OPERATIONS = sizeof operations / sizeof *operations };

struct way {
    hibloom_store *store;
    hibloom *filter;
};

struct bed {
    struct way chosen, commands;
    uint64_t fresh;              /* the next number that is new */
    hibloom_item *asked, *known; /* to look up; that are in */
};

static struct way way_open(hibloom_store *store)
{
    struct way way = {store, NULL};
    char text[64];

    snprintf(text, sizeof text, "capacity=%llu error=0.01 segments=1 seed=1", (unsigned long long)bench_capacity());
    way.filter = bench_open(store, "calls", text);
    return way;
}

/* Seconds of n items in calls of `size`. */
static double take(const struct way *way, enum store_op op, const hibloom_item *items, size_t n, size_t size)
{
    static bool answers[MOST];
    const double since = bench_now();

    for (size_t at = 0; at < n; at += size) {
        const size_t some = n - at < size ? n - at : size;
        if (op == STORE_LOOK)
            bench_must(hibloom_contains_many(way->filter, items + at, some, answers), way->store);
        else
            bench_must(hibloom_add_many(way->filter, items + at, some, op == STORE_ADD_NEW ? answers : NULL),
                       way->store);
    }
    return bench_now() - since;
}

/* The least call that goes by bitmaps. */
static size_t crossing(const hibloom *filter, enum store_op op)
{
    size_t below = 0, from = (size_t)1 << 32;

    while (from - below > 1) {
        const size_t n = below + (from - below) / 2;
        if (plain_pays(&redis_filter_of(filter)->first, n, op))
            from = n;
        else
            below = n;
    }
    return from;
}

/* Microseconds by commands and by bitmaps, which of them is taken, and from where on. */
static void print_model(const struct way *way, enum store_op op, size_t n)
{
    const struct cost_server *to = &((struct redis_store *)way->store)->server.cost;
    const struct spec *spec = &way->filter->spec;

    printf("\t%.0f\t%.0f\t%d\t%zu\n", (double)n * cost_item(spec, to, op), cost_bitmaps(spec, to, op, n),
           plain_pays(&redis_filter_of(way->filter)->first, n, op), crossing(way->filter, op));
}

static hibloom_item *items_for(const struct bed *bed, size_t o, uint64_t first, size_t n)
{
    return operations[o].fresh ? bench_uids(first, n) : operations[o].op == STORE_LOOK ? bed->asked : bed->known;
}

/* Calls of n items, as many as make a stream, and the same items by commands, new ones
 * again new: of a call of more than a stream as many as that has. */
static void measure(struct bed *bed, size_t o, size_t s, int round)
{
    const size_t n = bench_scaled(sizes[s], 100), stream = bench_scaled(n > BATCH ? STREAM : 2 * STREAM, BATCH);
    const size_t some = n < stream ? n : stream, calls = stream / some, batch = n < BATCH ? n : BATCH;
    hibloom_item *mine = items_for(bed, o, bed->fresh, calls * n);
    hibloom_item *theirs = operations[o].fresh ? items_for(bed, o, bed->fresh + calls * n, calls * some) : mine;
    static double by_choice[CALLS_MOST], by_commands[CALLS_MOST];

    for (size_t i = 0; i < calls; i++) { /* each is the first as often as the other */
        if ((i + (size_t)round) % 2 == 0)
            by_choice[i] = take(&bed->chosen, operations[o].op, mine + i * n, n, n);
        by_commands[i] = take(&bed->commands, operations[o].op, theirs + i * some, some, batch);
        if ((i + (size_t)round) % 2 == 1)
            by_choice[i] = take(&bed->chosen, operations[o].op, mine + i * n, n, n);
    }
    printf("%s\t%zu\t%d\t%.0f\t%.0f", operations[o].words, sizes[s], round,
           (double)n / bench_percentile(by_choice, calls, 0.5),
           (double)some / bench_percentile(by_commands, calls, 0.5));
    print_model(&bed->chosen, operations[o].op, n);
    if (operations[o].fresh) {
        bed->fresh += calls * (n + some);
        free(mine);
        free(theirs);
    }
}

void bench_calls(void)
{
    const uint64_t present = bench_capacity() / 4;
    struct bed bed = {.chosen = way_open(bench_choosing_store(NULL, "setbit")),
                      .commands = way_open(bench_store(NULL, "setbit")),
                      .fresh = present,
                      .asked = bench_questions(present, 10 * bench_capacity(), MOST),
                      .known = bench_uids(0, MOST)};

    bench_load(bed.chosen.filter, present);
    puts("operation\titems\tround\titems_per_s\tcommands_items_per_s\tcommands_us\tbitmaps_us\tby_bitmaps\tcrossing");
    for (int round = 0; round < ROUNDS; round++)
        for (size_t s = 0; s < SIZES; s++)
            for (size_t o = 0; o < OPERATIONS; o++)
                measure(&bed, o, s, round);
    hibloom_close(bed.chosen.filter);
    hibloom_close(bed.commands.filter);
    hibloom_store_free(bed.chosen.store);
    hibloom_store_free(bed.commands.store);
    free(bed.asked);
    free(bed.known);
}
