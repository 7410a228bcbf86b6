/* What many segments cost small batches: the guard is one command for each segment that a batch touches, and a batch of
 * 100 touches nearly as many segments as it has items. Two filters of one size and spec, one of them in one key, take
 * turns. */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 9, SEGMENTS = 256, BATCH_MOST = 1000, ITEMS = 20 * BATCH_MOST };

static const size_t batches[] = {10, 100, BATCH_MOST};
static const struct {
    const char *words, *commands;
} ways[] = {{"setbit", "setbit"}, {"bitfield", "bitfield"}};

enum { WAYS = sizeof ways / sizeof *ways, BATCHES = sizeof batches / sizeof *batches };

struct subject {
    hibloom_store *store;
    hibloom *filter;
    const char *way;
    unsigned segments;
};

static void subject_open(struct subject *subject, size_t way, bool many)
{
    const uint64_t capacity = bench_capacity();
    char text[96], name[32];

    *subject = (struct subject){bench_store(NULL, ways[way].commands), NULL, ways[way].words, many ? SEGMENTS : 1};
    snprintf(text, sizeof text, "capacity=%llu error=0.01 segments=%u", (unsigned long long)capacity,
             subject->segments);
    snprintf(name, sizeof name, "%s %u", subject->way, subject->segments);
    subject->filter = bench_open(subject->store, name, text);
    bench_load(subject->filter, capacity / 2);
}

static void measure(const struct subject *subject, const hibloom_item *items, size_t batch, bool adds, int round)
{
    printf("%s\t%u\t%s\t%zu\t%d\t%.0f\n", subject->way, subject->segments, adds ? "add" : "look up", batch, round,
           bench_rate(subject->filter, subject->store, items, ITEMS, batch, adds));
}

void bench_segments(void)
{
    const uint64_t capacity = bench_capacity();
    hibloom_item *news = bench_uids(capacity / 2, ITEMS), *questions = bench_questions(capacity / 2, capacity, ITEMS);
    struct subject subjects[2 * WAYS];

    for (size_t i = 0; i < 2 * WAYS; i++)
        subject_open(&subjects[i], i / 2, i % 2);
    puts("way\tsegments\toperation\tbatch\tround\titems_per_s");
    for (int round = 0; round < ROUNDS; round++)
        for (size_t b = 0; b < BATCHES; b++)
            for (size_t i = 0; i < 2 * WAYS; i++) {
                measure(&subjects[i], questions, batches[b], false, round);
                measure(&subjects[i], news, batches[b], true, round);
            }
    for (size_t i = 0; i < 2 * WAYS; i++) {
        hibloom_close(subjects[i].filter);
        hibloom_store_free(subjects[i].store);
    }
    free(news);
    free(questions);
}
