/* What the near cache saves: a stream of adds with is_new of which a share are repeats,
 * by a handle with it and by one without. Each share of repeats has its own items: the
 * repeats are drawn from items that both have added before, the others are new to both. */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 9, BATCH = 1000, KNOWN = 100000, WAYS = 2 };

static const double shares[] = {0, 0.5, 0.9, 0.99, 1};

enum { SHARES = sizeof shares / sizeof *shares };

struct stream {
    hibloom_item *items;
    size_t n;
    uint64_t random, fresh; /* the next number that is new */
};

/* xorshift64* (Vigna 2016) */
static uint64_t draw(struct stream *stream)
{
    uint64_t x = stream->random;

    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    stream->random = x;
    return x * 2685821657736338717u;
}

static void fill(struct stream *stream, char (*uids)[BENCH_UID_LEN], double share)
{
    for (size_t i = 0; i < stream->n; i++) {
        const bool repeat = (double)(draw(stream) >> 11) * 0x1p-53 < share;
        bench_uid(repeat ? draw(stream) % KNOWN : stream->fresh++, uids[i]);
        stream->items[i] = (hibloom_item){uids[i], BENCH_UID_LEN};
    }
}

static hibloom *open_way(hibloom_store *store, const char *name, bool near)
{
    char text[64];

    snprintf(text, sizeof text, "capacity=%llu error=0.01 segments=1 seed=1", (unsigned long long)bench_capacity());
    hibloom *filter = bench_open(store, name, text);
    if (near)
        bench_must(hibloom_near_cache(filter, 0), store);
    hibloom_item *known = bench_uids(0, KNOWN);
    bench_must(hibloom_add_many(filter, known, KNOWN, NULL), store);
    free(known);
    return filter;
}

/* Repeats cost little, so there are many of them in a trial. */
static size_t length_of(double share)
{
    const uint64_t n = share == 1 ? 4000 : share > 0.95 ? 400 : share > 0.8 ? 80 : 20;

    return bench_scaled(n, 2) * BATCH;
}

void bench_near(void)
{
    hibloom_store *store = bench_store(NULL, HIBLOOM_COMMANDS_SETBIT);
    hibloom *const filters[WAYS] = {open_way(store, "plain", false), open_way(store, "near", true)};
    static const char *const names[WAYS] = {"without", "near cache"};
    struct stream stream = {malloc(length_of(1) * sizeof *stream.items), 0, 88172645463325252u, KNOWN};
    char(*uids)[BENCH_UID_LEN] = malloc(length_of(1) * BENCH_UID_LEN);
    static bool is_new[BATCH];

    if (stream.items == NULL || uids == NULL)
        bench_fail("out of memory");
    puts("repeats\tway\tround\titems_per_s");
    for (int round = 0; round < ROUNDS; round++)
        for (size_t s = 0; s < SHARES; s++) {
            stream.n = length_of(shares[s]);
            fill(&stream, uids, shares[s]);
            for (int w = 0; w < WAYS; w++) {
                const int way = (w + round) % WAYS; /* each is the first as often as the other */
                const size_t n = way == 0 && stream.n > 20 * BATCH ? 20 * BATCH : stream.n;
                const double since = bench_now();
                for (size_t at = 0; at < n; at += BATCH)
                    bench_must(hibloom_add_many(filters[way], stream.items + at, BATCH, is_new), store);
                printf("%g %%\t%s\t%d\t%.0f\n", shares[s] * 100, names[way], round, (double)n / (bench_now() - since));
            }
        }
    for (int w = 0; w < WAYS; w++)
        hibloom_close(filters[w]);
    hibloom_store_free(store);
    free(stream.items);
    free(uids);
}
