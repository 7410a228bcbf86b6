/* What the near cache saves: a stream of adds with is_new of which a share are repeats, by a handle with it and by one
 * without, on one filter: two in one server are not equally fast by a few percent. The repeats are drawn from items
 * that all handles have added before, the others none of them; that another one has added them first costs them
 * nothing. The cache is measured with a guard in each call, and with guards of up to a second, so without a round trip
 * in most calls of repeats only; and for these a filter in memory, too, which nothing here can outrun. The time of a
 * batch is the median of a trial's, which does not hang on what else runs. */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 9, BATCH = 1000, KNOWN = 100000, WAYS = 4 };

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

enum way_id { WITHOUT, NEAR, NEAR_SECOND, MEMORY };

static const char *const names[WAYS] = {"without", "near cache", "near cache, a second", "memory"};

struct way {
    hibloom_store *store;
    hibloom *filter;
};

static struct way open_way(enum way_id id)
{
    struct way way = {NULL, NULL};
    char text[64];

    snprintf(text, sizeof text, "capacity=%llu error=0.01 segments=1 seed=1", (unsigned long long)bench_capacity());
    if (id == MEMORY)
        bench_must(hibloom_connect(&way.store, "memory:", NULL), NULL);
    else
        way.store = bench_store(NULL, "setbit");
    way.filter = bench_open(way.store, "near", text);
    if (id == NEAR || id == NEAR_SECOND)
        bench_must(hibloom_near_cache(way.filter, id == NEAR ? 0 : 1000), way.store);
    hibloom_item *known = bench_uids(0, KNOWN);
    bench_must(hibloom_add_many(way.filter, known, KNOWN, NULL), way.store);
    free(known);
    return way;
}

/* Repeats cost little, so there are many of them in a trial. */
static size_t length_of(double share)
{
    const uint64_t n = share == 1 ? 4000 : share > 0.95 ? 400 : share > 0.8 ? 80 : 20;

    return bench_scaled(n, 2) * BATCH;
}

static void measure(const struct way *way, enum way_id id, const struct stream *stream, double share, int round)
{
    static bool is_new[BATCH];
    const size_t n = id == WITHOUT && stream->n > 20 * BATCH ? 20 * BATCH : stream->n;
    double *seconds = malloc(n / BATCH * sizeof *seconds);

    if (seconds == NULL)
        bench_fail("out of memory");
    for (size_t at = 0; at < n; at += BATCH) {
        const double since = bench_now();
        bench_must(hibloom_add_many(way->filter, stream->items + at, BATCH, is_new), way->store);
        seconds[at / BATCH] = bench_now() - since;
    }
    printf("%g\t%s\t%d\t%.0f\n", share * 100, names[id], round, BATCH / bench_percentile(seconds, n / BATCH, 0.5));
    free(seconds);
}

void bench_near(void)
{
    struct stream stream = {malloc(length_of(1) * sizeof *stream.items), 0, 88172645463325252u, KNOWN};
    char(*uids)[BENCH_UID_LEN] = malloc(length_of(1) * BENCH_UID_LEN);
    struct way ways[WAYS];

    if (stream.items == NULL || uids == NULL)
        bench_fail("out of memory");
    for (int id = 0; id < WAYS; id++)
        ways[id] = open_way((enum way_id)id);
    puts("repeats\tway\tround\titems_per_s");
    for (int round = 0; round < ROUNDS; round++)
        for (size_t s = 0; s < SHARES; s++) {
            const int last = shares[s] == 1 ? WAYS : MEMORY;
            stream.n = length_of(shares[s]);
            fill(&stream, uids, shares[s]);
            for (int w = 0; w < last; w++) { /* each is the first as often as the others */
                const int id = (w + round) % last;
                measure(&ways[id], (enum way_id)id, &stream, shares[s], round);
            }
        }
    for (int id = 0; id < WAYS; id++) {
        hibloom_close(ways[id].filter);
        hibloom_store_free(ways[id].store);
    }
    free(stream.items);
    free(uids);
}
