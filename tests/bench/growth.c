/* What an add and a look-up cost as the filter grows: full ones of more and more items, and empty ones of more and more
 * bytes, in the segments that hibloom chooses and, to tell what those cost, in one key. The server's time hardly
 * depends on which bits are set, so the large ones need not be filled to be measured. All are there at once, and take
 * turns. */
#include "bench.h"
#include "base/store.h"
#include "spec/spec.h"

#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 5, BATCH = 1000, ITEMS = 100 * BATCH, ONE_KEY_MB = 256, MOST = 32 };

struct subject {
    const char *series;
    uint64_t x; /* items or megabytes */
    hibloom *filter;
    hibloom_item *news, *questions;
};

struct field {
    hibloom_store *store;
    unsigned n;
    struct subject subjects[MOST];
};

/* A filter of a spec text, with `items` items in it. */
static void enter(struct field *field, const char *series, uint64_t x, const char *text, uint64_t items)
{
    struct subject *subject = &field->subjects[field->n++];
    const uint64_t present = items > 0 ? items : 1;
    char name[48];

    if (field->n > MOST)
        bench_fail("too many filters");
    snprintf(name, sizeof name, "%s %llu", series, (unsigned long long)x);
    *subject = (struct subject){series, x, bench_open(field->store, name, text), bench_uids(present, ITEMS),
                                bench_questions(present, present, ITEMS)};
    if (items > 0)
        bench_load(subject->filter, items);
}

static void enter_empty(struct field *field, const char *series, uint64_t mb, const char *words)
{
    char text[64];

    snprintf(text, sizeof text, "bits=%llu hashes=7 %s", (unsigned long long)mb << 23, words);
    enter(field, series, mb, text, 0);
}

static void enter_all(struct field *field)
{
    const uint64_t most_items = bench_scaled(100000000, 100000), most_mb = bench_scaled(4096, 64);
    char text[64];

    for (uint64_t n = 10000; n <= most_items; n *= 10) {
        snprintf(text, sizeof text, "capacity=%llu error=0.01", (unsigned long long)n);
        enter(field, "items", n, text, n);
    }
    for (uint64_t mb = 1; mb <= most_mb; mb *= 4)
        enter_empty(field, "empty", mb, "");
    for (uint64_t mb = 16; mb <= most_mb && mb <= ONE_KEY_MB; mb *= 4)
        enter_empty(field, "empty, one key", mb, "segments=1");
}

static void measure(const struct subject *subject, hibloom_store *store, bool adds, int round)
{
    const struct spec *spec = &subject->filter->spec;
    const double rate = bench_rate(subject->filter, store, adds ? subject->news : subject->questions, ITEMS, BATCH,
                                   adds);

    printf("%s\t%llu\t%.4g\t%u\t%s\t%d\t%.0f\n", subject->series, (unsigned long long)subject->x,
           (double)spec->bits / 8 / (1 << 20), spec->segments > 1 ? spec->segments : 1, adds ? "add" : "look up", round,
           rate);
}

void bench_growth(void)
{
    struct field field = {.store = bench_store(NULL, "setbit")};

    enter_all(&field);
    puts("series\tx\tmegabytes\tsegments\toperation\tround\titems_per_s");
    for (int round = 0; round < ROUNDS; round++) {
        for (unsigned i = 0; i < field.n; i++) {
            measure(&field.subjects[i], field.store, false, round);
            measure(&field.subjects[i], field.store, true, round);
        }
    }
    for (unsigned i = 0; i < field.n; i++) {
        hibloom_close(field.subjects[i].filter);
        free(field.subjects[i].news);
        free(field.subjects[i].questions);
    }
    hibloom_store_free(field.store);
}
