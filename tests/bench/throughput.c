/* Items a second by method and batch size, add and look-up, with the CPU time
 * that the client and the server spend on one.
 *
 * Each method has a filter of its own of the same capacity, half full of the
 * same items. It adds the items of the other half, and looks up items of which
 * every other one is in. Methods take turns: one slice of time each, and again. */
#include "bench.h"
#include "peers.h"
#include "base/store.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 5, LARGEST_BATCH = 10000 };

static const size_t batches[] = {1, 10, 100, 1000, LARGEST_BATCH};

static const struct method {
    const char *name;
    peer_call *peer;   /* NULL: hibloom */
    const char *words; /* of its spec, beside the capacity and the error rate */
    const char *commands;
    bool one_by_one; /* it knows no batches */
    bool memory;
} methods[] = {
    {"round trip a bit", peer_bits, "", "setbit", true, false},
    {"pipeline an item", peer_pipeline, "", "setbit", true, false},
    {"printf batches", peer_printf, "", "setbit", false, false},
    {"setbit", NULL, "", "setbit", false, false},
    {"bitfield", NULL, "", "bitfield", false, false},
    {"k=4 setbit", NULL, "hashes=4", "setbit", false, false},
    {"k=4 bitfield", NULL, "hashes=4", "bitfield", false, false},
    {"blocked setbit", NULL, "layout=blocked", "setbit", false, false},
    {"blocked bitfield", NULL, "layout=blocked", "bitfield", false, false},
    {"memory", NULL, "", "setbit", false, true},
};

enum { METHODS = sizeof methods / sizeof *methods };

/* The items of one operation, and how far a method has come in them. */
struct work {
    hibloom_item *items;
    size_t n;
};

struct subject {
    const struct method *method;
    hibloom_store *store;
    hibloom *filter;
    struct peer peer;
    char name[16];
    size_t next[2]; /* add, contains */
};

static bool found[LARGEST_BATCH];

static void subject_open(struct subject *subject, const struct method *method)
{
    char text[128];

    *subject = (struct subject){.method = method};
    snprintf(subject->name, sizeof subject->name, "filter%d", (int)(method - methods));
    snprintf(text, sizeof text, "capacity=%llu error=0.01 segments=1 seed=1 %s", (unsigned long long)bench_capacity(),
             method->words);
    subject->store = bench_store(method->memory ? "memory:" : NULL, method->commands);
    subject->filter = bench_open(subject->store, subject->name, text);
    subject->peer = (struct peer){bench_redis_tcp(), subject->name, &subject->filter->spec};
    bench_load(subject->filter, bench_capacity() / 2);
}

static void call(const struct subject *subject, const hibloom_item *items, size_t n, bool adds)
{
    hibloom_status status = HIBLOOM_OK;

    if (subject->method->peer != NULL)
        subject->method->peer(&subject->peer, items, n, adds ? NULL : found);
    else if (adds)
        status = n == 1 ? hibloom_add(subject->filter, items->data, items->len, NULL)
                        : hibloom_add_many(subject->filter, items, n, NULL);
    else
        status = n == 1 ? hibloom_contains(subject->filter, items->data, items->len, found)
                        : hibloom_contains_many(subject->filter, items, n, found);
    bench_must(status, subject->store);
}

/* Before anything is timed: each way gives the right answers. */
static void check(const struct subject *subject, const hibloom_item *questions)
{
    unsigned wrong = 0;

    call(subject, questions, 1000, false);
    for (size_t i = 0; i < 1000; i++) {
        if (i % 2 == 0 && !found[i])
            bench_fail("an item that was added is not found");
        wrong += i % 2 != 0 && found[i];
    }
    if (wrong > 20) /* half full, the error rate is 0.0003 */
        bench_fail("items are found that were not added");
}

static void measure(struct subject *subject, const struct work *work, bool adds, size_t batch, int round)
{
    const struct bench_clock begin = bench_clock_read(subject->peer.redis);
    const double until = begin.wall + bench_scaled_seconds(0.2);
    const size_t calls_a_look = 100 / batch + 1; /* at the clock */
    size_t *next = &subject->next[adds], done = 0;

    do {
        for (size_t i = 0; i < calls_a_look; i++, *next += batch, done += batch) {
            if (*next + batch > work->n)
                *next = 0;
            call(subject, work->items + *next, batch, adds);
        }
    } while (bench_now() < until);
    const double wall = bench_now() - begin.wall;
    const struct bench_clock end = bench_clock_read(subject->peer.redis);
    printf("%s\t%s\t%zu\t%d\t%.0f\t%.4f\t%.4f\n", subject->method->name, adds ? "add" : "look up", batch, round,
           (double)done / wall, (end.client - begin.client) / (double)done * 1e6,
           (end.server - begin.server) / (double)done * 1e6);
}

void bench_throughput(void)
{
    const uint64_t capacity = bench_capacity(), half = capacity / 2;
    hibloom_item *all = bench_uids(0, (size_t)capacity);
    const struct work adds = {all + half, (size_t)half};
    const struct work questions = {bench_questions(half, capacity, (size_t)capacity), (size_t)capacity};
    struct subject subjects[METHODS];

    for (size_t m = 0; m < METHODS; m++) {
        subject_open(&subjects[m], &methods[m]);
        check(&subjects[m], questions.items);
    }
    puts("method\toperation\tbatch\tround\titems_per_s\tclient_us\tserver_us");
    for (int round = 0; round < ROUNDS; round++) {
        for (size_t b = 0; b < sizeof batches / sizeof *batches; b++) {
            for (size_t m = 0; m < METHODS; m++) {
                if (methods[m].one_by_one && batches[b] != 1)
                    continue;
                measure(&subjects[m], &adds, true, batches[b], round);
                measure(&subjects[m], &questions, false, batches[b], round);
            }
        }
        bench_bulk(subjects[0].peer.redis, all, capacity, round);
    }
    for (size_t m = 0; m < METHODS; m++) {
        hibloom_close(subjects[m].filter);
        hibloom_store_free(subjects[m].store);
        redisFree(subjects[m].peer.redis);
    }
    free(all);
    free(questions.items);
}
