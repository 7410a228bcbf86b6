/* Whether the cost model (redis/cost.h) is right. It is held against calls of every kind
 * that it has a constant for, twice:
 *
 *   rate      microseconds of an item in batches of 1,000, by layout, hashes and commands
 *   constant  what the model has for a command, a bit, 10^6 bytes or a key. It is worked out
 *             of such times; out of those that the model gives comes the one in use
 *
 * The time of a call is the lower quartile of those that one trial makes, and of the rounds the least:
 * what else goes on in the machine only adds to what the work takes.
 * What loopback costs is in the measured constants; so the model has no link beside them. */
#include "bench.h"

#include "redis/cost.h"
#include "redis/store.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 12, BATCH = 1000, BATCHES = 15, BITS = 100000000 };
enum { SMALL = 5000, FEW = 30000, MANY = 500000, SEGMENTS = 24, SEGMENT_BITS = 64 << 10, REPEATS = 3 };
enum { SETBIT, BITFIELD, COMMANDS };

/* ---- An item by commands ------------------------------------------------------------ */

#define LAYOUTS 3
static const char *const layouts[LAYOUTS] = {"classic", "partitioned", "blocked"};
static const struct {
    hibloom_layout layout;
    unsigned hashes;
} filters[] = {
    {HIBLOOM_LAYOUT_CLASSIC, 4},     {HIBLOOM_LAYOUT_CLASSIC, 7},     {HIBLOOM_LAYOUT_CLASSIC, 13},
    {HIBLOOM_LAYOUT_PARTITIONED, 4}, {HIBLOOM_LAYOUT_PARTITIONED, 7}, {HIBLOOM_LAYOUT_BLOCKED, 7},
    {HIBLOOM_LAYOUT_BLOCKED, 13},
};

enum { CLASSIC, PARTITIONED = 3, BLOCKED = 5, FILTERS = sizeof filters / sizeof *filters, CALLS = 3 };

/* Calls by bitmaps: of few items, of many; and of few on small filters, in one key and in many. */
enum { WHOLE_FEW, WHOLE_MANY, WHOLE_KEY, WHOLE_KEYS, WHOLE };

/* Microseconds. */
struct times {
    double item[FILTERS][COMMANDS][CALLS];
    double read[WHOLE], merge[WHOLE]; /* of a call by bitmaps */
};

struct bed {
    hibloom_store *stores[COMMANDS], *bitmaps; /* where all goes by commands, and where what is less work */
    hibloom *filters[FILTERS][COMMANDS];
    hibloom *whole[WHOLE];
    hibloom_item *asked, *added;
};

static bool is_measured(size_t f, int commands, int call)
{
    if (commands == SETBIT)
        return true;
    return filters[f].layout == HIBLOOM_LAYOUT_CLASSIC
               ? call != COST_ADD_NEW
               : filters[f].layout == HIBLOOM_LAYOUT_BLOCKED && call == COST_ADD;
}

static const struct cost_server *no_link(int commands)
{
    static const struct cost_server servers[COMMANDS] = {{false, INFINITY}, {true, INFINITY}};

    return &servers[commands];
}

static double measure_item(const struct bed *bed, size_t f, int commands, int call)
{
    static const enum bench_operation operations[CALLS] = {
        [COST_ADD] = BENCH_ADD, [COST_ADD_NEW] = BENCH_ADD_NEW, [COST_LOOK_UP] = BENCH_LOOK_UP};
    struct bench_work work = {bed->filters[f][commands], bed->stores[commands], NULL, BATCH, BATCH, operations[call]};
    const size_t batches = bench_scaled(BATCHES, 3);
    double seconds[BATCHES];

    for (size_t i = 0; i < batches; i++) {
        work.items = (call == COST_LOOK_UP ? bed->asked : bed->added) + i * BATCH;
        seconds[i] = bench_do(&work, 0).wall;
    }
    return 1e6 * bench_percentile(seconds, batches, 0.25) / BATCH;
}

static void print_rate(size_t f, int commands, int call, double measured, double model)
{
    const bool reads = call == COST_LOOK_UP;
    const char *words = filters[f].layout == HIBLOOM_LAYOUT_BLOCKED && reads ? "GETRANGE"
                        : commands == BITFIELD                               ? "BITFIELD"
                        : call != COST_ADD_NEW                               ? (reads ? "GETBIT" : "SETBIT")
                        : filters[f].layout == HIBLOOM_LAYOUT_PARTITIONED    ? "script"
                                                                             : "BITFIELD";

    printf("rate\t%s, k = %u, %s, %s\tleast\t%.4f\t%.4f\n", layouts[filters[f].layout], filters[f].hashes,
           reads              ? "look up"
           : call == COST_ADD ? "add"
                              : "add with is_new",
           words, measured, model);
}

/* ---- Whole bitmaps ------------------------------------------------------------------- */

static double take(hibloom *filter, const hibloom_item *items, size_t n, bool adds)
{
    static bool found[MANY];
    double seconds[REPEATS];

    if (!many_pays(filter, n, adds, !adds))
        bench_fail("costs: a call that should go by bitmaps does not");
    for (int i = 0; i < REPEATS; i++) {
        const double since = bench_now();
        bench_must(adds ? hibloom_add_many(filter, items, n, NULL) : hibloom_contains_many(filter, items, n, found),
                   NULL);
        seconds[i] = bench_now() - since;
    }
    return 1e6 * bench_percentile(seconds, REPEATS, 0.5);
}

static size_t items_of(int whole)
{
    return whole == WHOLE_FEW ? bench_scaled(FEW, SMALL) : whole == WHOLE_MANY ? bench_scaled(MANY, 2 * SMALL) : SMALL;
}

static void measure_whole(const struct bed *bed, struct times *times)
{
    for (int i = 0; i < WHOLE; i++) {
        times->read[i] = take(bed->whole[i], bed->asked, items_of(i), false);
        times->merge[i] = take(bed->whole[i], bed->added, items_of(i), true);
    }
}

/* ---- Constants ------------------------------------------------------------------------- */

static const char *const constants[] = {"SETBIT",
                                        "GETBIT",
                                        "BITFIELD",
                                        "BITFIELD, a bit set",
                                        "BITFIELD, a bit read",
                                        "SETBIT in the block of the one before",
                                        "GETRANGE of a block",
                                        "script, a bit",
                                        "10^6 bytes read",
                                        "10^6 bytes merged",
                                        "an item looked up here",
                                        "an item set here",
                                        "a key read",
                                        "a key merged"};

enum { CONSTANTS = sizeof constants / sizeof *constants };

/* Of items with 4, 7 and 13 bits; what is the same for each item counts with its bits. */
static double each_bit(const struct times *times, int call)
{
    double sum = 0;

    for (int i = 0; i < 3; i++)
        sum += times->item[CLASSIC + i][SETBIT][call];
    return sum / (4 + 7 + 13);
}

/* Of a call by bitmaps: bytes, items and keys. */
static void derive_whole(const struct times *times, const struct bed *bed, double constant[CONSTANTS])
{
    const double few = (double)items_of(WHOLE_FEW), many = (double)items_of(WHOLE_MANY);
    const double mb = (double)hibloom_spec_of(bed->whole[WHOLE_FEW])->bits / 8e6;

    for (int i = 0; i < 2; i++) {
        const double *t = i == 0 ? times->read : times->merge;
        const double here = (t[WHOLE_MANY] - t[WHOLE_FEW]) / (many - few);
        const double key = (t[WHOLE_KEYS] - t[WHOLE_KEY]) / (SEGMENTS - 1);
        constant[8 + i] = (t[WHOLE_FEW] - few * here - key) / mb;
        constant[10 + i] = here;
        constant[12 + i] = key;
    }
}

static void derive(const struct times *times, const struct bed *bed, double constant[CONSTANTS])
{
    const double set4 = times->item[CLASSIC][BITFIELD][COST_ADD], set13 = times->item[CLASSIC + 2][BITFIELD][COST_ADD];
    const double get4 = times->item[CLASSIC][BITFIELD][COST_LOOK_UP],
                 get13 = times->item[CLASSIC + 2][BITFIELD][COST_LOOK_UP];

    constant[0] = each_bit(times, COST_ADD);
    constant[1] = each_bit(times, COST_LOOK_UP);
    constant[3] = (set13 - set4) / 9;
    constant[4] = (get13 - get4) / 9;
    constant[2] = (set4 - 4 * constant[3] + get4 - 4 * constant[4]) / 2;
    constant[5] = (times->item[BLOCKED + 1][SETBIT][COST_ADD] - times->item[BLOCKED][SETBIT][COST_ADD]) / (13 - 7);
    constant[6] = (times->item[BLOCKED][SETBIT][COST_LOOK_UP] + times->item[BLOCKED + 1][SETBIT][COST_LOOK_UP]) / 2;
    constant[7] = (times->item[PARTITIONED][SETBIT][COST_ADD_NEW] +
                   times->item[PARTITIONED + 1][SETBIT][COST_ADD_NEW]) /
                  (4 + 7);
    derive_whole(times, bed, constant);
}

static void ask_model(const struct bed *bed, struct times *times)
{
    for (size_t f = 0; f < FILTERS; f++)
        for (int commands = 0; commands < COMMANDS; commands++)
            for (int call = 0; call < CALLS; call++)
                times->item[f][commands][call] = cost_item(hibloom_spec_of(bed->filters[f][commands]),
                                                           no_link(commands), (enum cost_call)call);
    for (int i = 0; i < WHOLE; i++) {
        const hibloom_spec *spec = hibloom_spec_of(bed->whole[i]);
        times->read[i] = cost_read(spec, no_link(SETBIT), items_of(i));
        times->merge[i] = cost_merge(spec, no_link(SETBIT), items_of(i));
    }
}

/* ---- All of it -------------------------------------------------------------------------- */

/* A spec of so many bits in all keys together, and of whole blocks. */
static hibloom *open_one(hibloom_store *store, const char *name, hibloom_layout layout, unsigned hashes, uint64_t bits,
                         unsigned segments)
{
    const uint64_t each = layout == HIBLOOM_LAYOUT_PARTITIONED ? bits / hashes : bits;
    char text[128];

    snprintf(text, sizeof text, "layout=%s bits=%llu hashes=%u segments=%u seed=1", layouts[layout],
             (unsigned long long)(each / HIBLOOM_BLOCK_BITS * HIBLOOM_BLOCK_BITS), hashes, segments);
    return bench_open(store, name, text);
}

static void open_all(struct bed *bed)
{
    const uint64_t bits = bench_scaled(BITS, BITS / 100);
    char name[32];

    for (int commands = 0; commands < COMMANDS; commands++) {
        bed->stores[commands] = bench_store(NULL,
                                            commands == SETBIT ? HIBLOOM_COMMANDS_SETBIT : HIBLOOM_COMMANDS_BITFIELD);
        for (size_t f = 0; f < FILTERS; f++) {
            snprintf(name, sizeof name, "%s %u", layouts[filters[f].layout], filters[f].hashes);
            bed->filters[f][commands] = open_one(bed->stores[commands], name, filters[f].layout, filters[f].hashes,
                                                 bits, 1);
        }
    }
    bed->bitmaps = bench_store(NULL, HIBLOOM_COMMANDS_SETBIT);
    ((struct redis_store *)bed->bitmaps)->server.link_mb_s = INFINITY;
    for (int i = 0; i < WHOLE; i++) {
        snprintf(name, sizeof name, "whole %d", i);
        bed->whole[i] = open_one(bed->bitmaps, name, HIBLOOM_LAYOUT_CLASSIC, 7,
                                 i >= WHOLE_KEY ? SEGMENTS * SEGMENT_BITS : bits, i == WHOLE_KEYS ? SEGMENTS : 1);
    }
    bed->added = bench_uids(0, MANY);
    bed->asked = bench_questions(MANY, 10 * bench_capacity(), MANY);
}

static void close_all(struct bed *bed)
{
    for (int i = 0; i < WHOLE; i++)
        hibloom_close(bed->whole[i]);
    hibloom_store_free(bed->bitmaps);
    for (int commands = 0; commands < COMMANDS; commands++) {
        for (size_t f = 0; f < FILTERS; f++)
            hibloom_close(bed->filters[f][commands]);
        hibloom_store_free(bed->stores[commands]);
    }
    free(bed->added);
    free(bed->asked);
}

static double less(double a, double b)
{
    return a == 0 || b < a ? b : a;
}

/* The least of this round and those before. */
static void measure(const struct bed *bed, struct times *least)
{
    struct times times;

    for (size_t f = 0; f < FILTERS; f++)
        for (int commands = 0; commands < COMMANDS; commands++)
            for (int call = 0; call < CALLS; call++)
                if (is_measured(f, commands, call))
                    least->item[f][commands][call] = less(least->item[f][commands][call],
                                                          measure_item(bed, f, commands, call));
    measure_whole(bed, &times);
    for (int i = 0; i < WHOLE; i++) {
        least->read[i] = less(least->read[i], times.read[i]);
        least->merge[i] = less(least->merge[i], times.merge[i]);
    }
}

static void print(const struct bed *bed, const struct times *measured, const struct times *model)
{
    double constant[CONSTANTS], in_use[CONSTANTS];

    puts("kind\twhat\tround\tmeasured_us\tmodel_us");
    for (size_t f = 0; f < FILTERS; f++)
        for (int commands = 0; commands < COMMANDS; commands++)
            for (int call = 0; call < CALLS; call++)
                if (is_measured(f, commands, call))
                    print_rate(f, commands, call, measured->item[f][commands][call], model->item[f][commands][call]);
    derive(measured, bed, constant);
    derive(model, bed, in_use);
    for (size_t i = 0; i < CONSTANTS; i++)
        printf("constant\t%s\tleast\t%.4f\t%.4f\n", constants[i], constant[i], in_use[i]);
}

void bench_costs(void)
{
    struct times model, measured = {.item = {{{0}}}};
    struct bed bed;

    open_all(&bed);
    ask_model(&bed, &model);
    for (int round = 0; round < ROUNDS; round++)
        measure(&bed, &measured);
    print(&bed, &measured, &model);
    close_all(&bed);
}
