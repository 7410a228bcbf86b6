/* How many items share a BITFIELD, for k = 1 to 16: one, or as many as have half the library's bits, its own number
 * (redis/encoding.h), or twice that. The library's code sends them all; only its number of bits changes (encoding.c).
 *
 * Adds with is_new go to a blocked filter, and their items are always new. Look-ups go to a classic filter, as blocked
 * ones are looked up by GETRANGE. The numbers of bits take turns on one filter. */
#include "bench.h"

#include "redis/encoding.h"

#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 5, HASHES = 16, BATCH = 1000, ITEMS = 300 * BATCH };

static const uint32_t bits[] = {1, BITFIELD_BITS / 2, BITFIELD_BITS, 2 * BITFIELD_BITS};

enum { WAYS = sizeof bits / sizeof *bits };

struct bed {
    hibloom_store *store;
    hibloom *blocked, *classic; /* of k hashes */
    uint32_t k;
    hibloom_item *asked;
    uint64_t fresh; /* the next number that is new */
};

static hibloom *filter_open(const struct bed *bed, const char *layout)
{
    const uint64_t capacity = bench_capacity();
    char text[96];

    snprintf(text, sizeof text, "bits=%llu hashes=%u segments=1 layout=%s", 8 * (unsigned long long)capacity, bed->k,
             layout);
    hibloom *filter = bench_open(bed->store, layout, text);
    bench_load(filter, capacity / 10);
    return filter;
}

static void filter_drop(const struct bed *bed, hibloom *filter)
{
    bench_must(hibloom_drop(filter), bed->store);
    hibloom_close(filter);
}

static void measure(struct bed *bed, bool looks, size_t way, int round)
{
    hibloom_item *items = looks ? bed->asked : bench_uids(bed->fresh, ITEMS);
    hibloom *filter = looks ? bed->classic : bed->blocked;
    const struct bench_work work = {filter, bed->store, items, ITEMS, BATCH, looks ? BENCH_LOOK_UP : BENCH_ADD_NEW};

    bench_bitfield_bits = bits[way];
    const struct bench_done done = bench_do(&work, bench_scaled_seconds(0.1));
    printf("%s\t%u\t%u\t%d\t%u\t%.0f\n", looks ? "look up" : "add, is_new", bed->k, bits[way], round,
           encoding_bitfield_items(bed->k), done.items / done.wall);
    if (looks)
        return;
    bed->fresh += ITEMS;
    free(items);
}

void bench_bitfield(void)
{
    const uint64_t present = bench_capacity() / 10;
    struct bed bed = {.store = bench_store(NULL, "bitfield"),
                      .asked = bench_questions(present, UINT64_C(1) << 31, ITEMS),
                      .fresh = present};

    puts("operation\thashes\tbits\tround\titems\titems_per_s");
    for (bed.k = 1; bed.k <= HASHES; bed.k++) {
        bed.blocked = filter_open(&bed, "blocked");
        bed.classic = filter_open(&bed, "classic");
        for (int round = 0; round < ROUNDS; round++)
            for (int looks = 0; looks < 2; looks++)
                for (size_t i = 0; i < WAYS; i++)
                    measure(&bed, looks, (i + (size_t)round) % WAYS, round);
        filter_drop(&bed, bed.blocked);
        filter_drop(&bed, bed.classic);
    }
    hibloom_store_free(bed.store);
    free(bed.asked);
}
