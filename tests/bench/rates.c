/* False positives, predicted and measured, of each hash and layout, in memory.
 * The row of the published table that the PHP programs go by, ten hashes and
 * twenty bits an item, is among them. */
#include "bench.h"
#include "base/store.h"
#include "spec/spec.h"

#include <stdio.h>
#include <stdlib.h>

enum { BATCH = 10000 };

static const struct row {
    const char *hash, *layout;
    const char *text; /* of the spec, all of it if items is set */
    uint64_t items;   /* 0: a million, less in a trial; the text is completed by them */
    uint64_t asked;
} rows[] = {
    {"xxh3", "classic", "error=0.1", 0, 2000000},
    {"xxh3", "classic", "error=0.01", 0, 2000000},
    {"xxh3", "classic", "error=0.001", 0, 4000000},
    {"xxh3", "classic, k = 4", "error=0.01 hashes=4", 0, 2000000},
    {"xxh3", "classic, 8 segments", "error=0.01 segments=8", 0, 2000000},
    {"xxh3", "partitioned", "error=0.01 layout=partitioned", 0, 2000000},
    {"xxh3", "blocked", "error=0.01 layout=blocked", 0, 2000000},
    {"xxh3", "blocked", "error=0.001 layout=blocked", 0, 4000000},
    {"xxh3", "blocked, 8 segments", "error=0.01 layout=blocked segments=8", 0, 2000000},
    {"siphash", "classic", "error=0.01 hash=siphash", 0, 2000000},
    {"siphash", "blocked", "error=0.01 hash=siphash layout=blocked", 0, 2000000},
    {"murmur3", "classic", "error=0.01 hash=murmur3 seeds=17,18,19,20,21,22,23", 0, 2000000},
    {"murmur3", "classic (preset py-mmh3)", "py-mmh3 capacity=100000 error=0.01", 100000, 2000000},
    {"murmur3", "classic (preset py-mmh3-redis)", "py-mmh3-redis capacity=100000 error=0.001", 100000, 2000000},
    {"php-mt", "classic", "hash=php-mt hashes=7 capacity=10000 error=0.01", 10000, 500000},
    {"php-mt-legacy", "classic", "hash=php-mt-legacy hashes=7 capacity=10000 error=0.01", 10000, 500000},
    {"poly", "classic (preset php-uids)", "php-uids", 5000000, 2000000},
    {"poly", "partitioned (preset php-poly8)", "php-poly8 bits=1048576", 1000000, 2000000},
    {"xxh3", "k = 10, m = 20 n", "bits=2000000 hashes=10", 100000, 10000000},
    {"siphash", "k = 10, m = 20 n", "bits=2000000 hashes=10 hash=siphash", 100000, 10000000},
    {"murmur3", "k = 10, m = 20 n", "bits=2000000 hash=murmur3 seeds=101,103,107,109,113,127,131,137,139,149", 100000,
     10000000},
    {"php-mt", "k = 10, m = 20 n", "bits=200000 hashes=10 hash=php-mt", 10000, 2000000},
    {"php-mt", "k = 14, m = 20 n (as the program chooses k)", "php-mt bits=200000 capacity=10000", 10000, 2000000},
};

static uint64_t pass(hibloom *filter, uint64_t first, uint64_t n, bool adds)
{
    static bool found[BATCH];
    uint64_t count = 0;

    for (uint64_t i = 0; i < n; i += BATCH) {
        const size_t batch = n - i < BATCH ? (size_t)(n - i) : BATCH;
        hibloom_item *items = bench_uids(first + i, batch);
        bench_must(adds ? hibloom_add_many(filter, items, batch, found)
                        : hibloom_contains_many(filter, items, batch, found),
                   NULL);
        for (size_t j = 0; j < batch; j++)
            count += found[j];
        free(items);
    }
    return count;
}

static void measure(const struct row *row)
{
    const uint64_t n = row->items != 0 ? row->items : bench_scaled(1000000, 50000);
    const uint64_t asked = bench_scaled(row->asked, 200000);
    hibloom_store *memory;
    char text[256];

    snprintf(text, sizeof text, row->items != 0 ? "%s" : "%s capacity=%llu", row->text, (unsigned long long)n);
    bench_must(hibloom_connect(&memory, "memory:", NULL), NULL);
    hibloom *filter = bench_open(memory, "rates", text);
    pass(filter, 0, n, true);
    const uint64_t wrong = pass(filter, n, asked, false);
    printf("%s\t%s\t%llu\t%llu\t%llu\t%.6g\n", row->hash, row->layout, (unsigned long long)n, (unsigned long long)asked,
           (unsigned long long)wrong, spec_error_at(&filter->spec, n));
    hibloom_close(filter);
    hibloom_store_free(memory);
}

void bench_rates(void)
{
    puts("hash\tlayout\titems\tasked\twrong\tpredicted");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        measure(&rows[i]);
}
