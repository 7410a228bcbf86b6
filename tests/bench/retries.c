/* What it costs to be ready for faults while there are none: retries, and, where
 * the library has it, TLS. The same items on the same filter by each way, which
 * take turns; TLS has a server of its own, as a port speaks one of the two. */
#include "bench.h"

#include "../support/certificates.h"
#include "../support/redis_server.h"

#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 15, BATCH_MOST = 1000, ITEMS = 20 * BATCH_MOST };

static const size_t batches[] = {BATCH_MOST, 1};

enum { BATCHES = sizeof batches / sizeof *batches };

struct way {
    const char *name;
    hibloom_store *store;
    hibloom *filter;
};

struct tls {
    struct certificates *certificates;
    struct redis_server *server;
};

static struct way way_open(const char *name, const char *uri, const char *options)
{
    struct way way = {.name = name};
    char text[64];
    const hibloom_status status = hibloom_connect(&way.store, with_options(uri, "command_timeout=10min&%s", options),
                                                  NULL);

    bench_must(status, way.store);
    bench_by_commands(way.store);
    snprintf(text, sizeof text, "capacity=%llu error=0.01 segments=1 seed=1", (unsigned long long)bench_capacity());
    way.filter = bench_open(way.store, "retries", text);
    bench_load(way.filter, bench_capacity() / 2);
    return way;
}

/* ENOTSUP comes before any connection is made. */
static bool has_tls(void)
{
    hibloom_store *store;
    const hibloom_status status = hibloom_connect(&store, "rediss://127.0.0.1:1", NULL);

    hibloom_store_free(store);
    return status != HIBLOOM_ENOTSUP;
}

static struct way way_open_tls(struct tls *tls)
{
    char options[512];

    tls->certificates = certificates_make();
    tls->server = redis_server_start_tls(&tls->certificates->server, NULL);
    snprintf(options, sizeof options, "cacert=%s", tls->certificates->ca);
    return way_open("TLS", redis_server_uri(tls->server), options);
}

static void measure(const struct way *way, const hibloom_item *items, size_t batch, enum bench_operation operation,
                    int round)
{
    const struct bench_work work = {way->filter, way->store, items, ITEMS, batch, operation};
    const struct bench_done done = bench_do(&work, bench_scaled_seconds(0.08));

    printf("%s\t%s\t%zu\t%d\t%.0f\t%.4f\n", way->name, operation == BENCH_ADD ? "add" : "look up", batch, round,
           done.items / done.wall, done.client / done.items * 1e6);
}

void bench_retries(void)
{
    const uint64_t capacity = bench_capacity();
    hibloom_item *news = bench_uids(capacity / 2, ITEMS), *questions = bench_questions(capacity / 2, capacity, ITEMS);
    struct way ways[3] = {way_open("no retries", bench_uri(), "retry=0s"),
                          way_open("retries", bench_uri(), "retry=10s")};
    struct tls tls = {NULL, NULL};
    size_t n = 2;

    if (has_tls())
        ways[n++] = way_open_tls(&tls);
    puts("way\toperation\tbatch\tround\titems_per_s\tclient_us");
    for (int round = 0; round < ROUNDS; round++)
        for (size_t b = 0; b < BATCHES; b++)
            for (size_t i = 0; i < n; i++) { /* each is the first as often as the others */
                const struct way *way = &ways[(i + (size_t)round) % n];
                measure(way, questions, batches[b], BENCH_LOOK_UP, round);
                measure(way, news, batches[b], BENCH_ADD, round);
            }
    for (size_t i = 0; i < n; i++) {
        hibloom_close(ways[i].filter);
        hibloom_store_free(ways[i].store);
    }
    redis_server_stop(tls.server);
    certificates_remove(tls.certificates);
    free(news);
    free(questions);
}
