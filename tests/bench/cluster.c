/* One filter on a cluster of one, two and three primaries, and on one plain
 * server. The client and all servers share the machine's cores, so more
 * primaries do not mean more items a second here: what an item costs the client
 * and the servers is what other machines have, too. The places take turns. */
#include "bench.h"

#include "../support/redis_cluster.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 7, PRIMARIES_MOST = 3, PLACES = 1 + PRIMARIES_MOST, SEGMENTS = 30, BATCH = 1000, ITEMS = 20 * BATCH };

static const char *const operations[] = {[BENCH_ADD] = "add", [BENCH_ADD_NEW] = "is new?", [BENCH_LOOK_UP] = "look up"};

enum { OPERATIONS = sizeof operations / sizeof *operations };

struct place {
    int primaries; /* 0: a plain server */
    struct redis_cluster *cluster;
    struct redisContext *servers[PRIMARIES_MOST]; /* for their clocks */
    hibloom_store *store;
    hibloom *filter;
};

/* No replicas, and so no failover for which two primaries would be too few. */
static void place_open(struct place *place, int primaries)
{
    const struct redis_cluster_options options = {.primaries = primaries};
    char text[96];

    *place = (struct place){.primaries = primaries};
    if (primaries == 0)
        place->servers[0] = bench_redis_unix();
    else
        place->cluster = redis_cluster_start(&options);
    for (int i = 0; i < primaries; i++)
        place->servers[i] = redis_server_connect(redis_cluster_node(place->cluster, i));
    place->store = bench_store(primaries == 0 ? NULL : redis_cluster_uri(place->cluster), "setbit");
    snprintf(text, sizeof text, "capacity=%llu error=0.01 segments=%d seed=1", (unsigned long long)bench_capacity(),
             SEGMENTS);
    place->filter = bench_open(place->store, "spread", text);
    bench_load(place->filter, bench_capacity() / 2);
}

static void place_close(struct place *place)
{
    hibloom_close(place->filter);
    hibloom_store_free(place->store);
    for (int i = 0; i < PRIMARIES_MOST; i++)
        if (place->servers[i] != NULL)
            redisFree(place->servers[i]);
    redis_cluster_stop(place->cluster);
}

/* CPU seconds of all its servers. */
static double server_seconds(const struct place *place)
{
    double sum = 0.0;

    for (int i = 0; i < PRIMARIES_MOST && place->servers[i] != NULL; i++)
        sum += bench_clock_read(place->servers[i]).server;
    return sum;
}

static void measure(const struct place *place, enum bench_operation operation, const hibloom_item *items, int round)
{
    const struct bench_work work = {place->filter, place->store, items, ITEMS, BATCH, operation};
    const double servers = server_seconds(place);
    const struct bench_done done = bench_do(&work, bench_scaled_seconds(0.2));

    printf("%d\t%s\t%d\t%.0f\t%.4f\t%.4f\n", place->primaries, operations[operation], round, done.items / done.wall,
           done.client / done.items * 1e6, (server_seconds(place) - servers) / done.items * 1e6);
}

void bench_cluster(void)
{
    const uint64_t capacity = bench_capacity();
    hibloom_item *news = bench_uids(capacity / 2, ITEMS), *questions = bench_questions(capacity / 2, capacity, ITEMS);
    struct place places[PLACES];

    for (int i = 0; i < PLACES; i++)
        place_open(&places[i], i);
    puts("primaries\toperation\tround\titems_per_s\tclient_us\tserver_us");
    for (int round = 0; round < ROUNDS; round++)
        for (unsigned o = 0; o < OPERATIONS; o++)
            for (int i = 0; i < PLACES; i++)
                measure(&places[i], (enum bench_operation)o, o == BENCH_LOOK_UP ? questions : news, round);
    for (int i = 0; i < PLACES; i++)
        place_close(&places[i]);
    free(news);
    free(questions);
}
