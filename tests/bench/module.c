/* Beside RedisBloom's module, where it is installed: batches and single calls of fresh items that say which are new, and
 * look-ups. Each way has a filter of the same capacity on the same server; they take turns. The error rate is 1 %. Two
 * hashes are for 3 %, so BF.ADD is measured at that, too.
 *
 * The module is no part of this project: $REDISBLOOM names it, or it lies where Redis' own packages put it. Without it
 * the table has no rows. */
#include "bench.h"

#include "../support/redis_server.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROUNDS = 5, MOST = 1000000, STREAM = 20000 };

static const size_t sizes[] = {100, 1000, 10000, 100000, MOST};
static const struct {
    const char *name; /* of its filter, too */
    const char *error, *words;
} ways[] = {
    {"classic", "0.01", ""},
    {"blocked, k = 3", "0.01", "layout=blocked hashes=3"},
    {"blocked, k = 2, 3 %", "0.03", "layout=blocked hashes=2"},
    {"BF.ADD, pipelined", "0.01", NULL},
    {"BF.ADD, pipelined, 3 %", "0.03", NULL},
    {"BF.MADD", "0.01", NULL},
};

enum { SIZES = sizeof sizes / sizeof *sizes, WAYS = sizeof ways / sizeof *ways, OURS = 3 };

struct bed {
    struct redisContext *redis;
    hibloom_store *store;
    hibloom *filters[OURS];
    uint64_t fresh;
};

static const char *find_module(void)
{
    const char *const places[] = {getenv("REDISBLOOM"), "/usr/lib/redis/modules/redisbloom.so",
                                  "/usr/local/lib/redis/modules/redisbloom.so", "/opt/redis-stack/lib/redisbloom.so"};

    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (places[i] != NULL && access(places[i], R_OK) == 0)
            return places[i];
    return NULL;
}

static void take_reply(struct redisContext *redis, int type, size_t elements)
{
    void *object = NULL;

    if (redisGetReply(redis, &object) != REDIS_OK)
        bench_fail(redis->errstr);
    const redisReply *reply = object;
    if (reply->type != type || reply->elements != elements)
        bench_fail(reply->type == REDIS_REPLY_ERROR ? reply->str : "the module answers with something else");
    freeReplyObject(object);
}

static void command_of_many(struct redisContext *redis, const char *name, const char *key, const hibloom_item *items,
                            size_t n)
{
    const char **words = malloc((n + 2) * sizeof *words);
    size_t *lens = malloc((n + 2) * sizeof *lens);

    if (words == NULL || lens == NULL)
        bench_fail("out of memory");
    words[0] = name;
    lens[0] = strlen(name);
    words[1] = key;
    lens[1] = strlen(key);
    for (size_t i = 0; i < n; i++) {
        words[i + 2] = items[i].data;
        lens[i + 2] = items[i].len;
    }
    redisAppendCommandArgv(redis, (int)(n + 2), words, lens);
    free(words);
    free(lens);
    take_reply(redis, REDIS_REPLY_ARRAY, n);
}

static void pipelined(struct redisContext *redis, const char *name, const char *key, const hibloom_item *items,
                      size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char *const words[] = {name, key, items[i].data};
        const size_t lens[] = {strlen(name), strlen(key), items[i].len};
        redisAppendCommandArgv(redis, 3, (const char **)words, lens);
    }
    for (size_t i = 0; i < n; i++)
        take_reply(redis, REDIS_REPLY_INTEGER, 0);
}

static void call(const struct bed *bed, size_t way, bool looks, const hibloom_item *items, size_t n)
{
    static bool answers[MOST];

    if (way < OURS)
        bench_must(looks ? hibloom_contains_many(bed->filters[way], items, n, answers)
                         : hibloom_add_many(bed->filters[way], items, n, answers),
                   bed->store);
    else if (way < WAYS - 1)
        pipelined(bed->redis, looks ? "BF.EXISTS" : "BF.ADD", ways[way].name, items, n);
    else
        command_of_many(bed->redis, looks ? "BF.MEXISTS" : "BF.MADD", ways[way].name, items, n);
}

/* All ways get the same items, so they are new to each. */
static void measure(struct bed *bed, bool looks, size_t s, int round)
{
    const size_t n = bench_scaled(sizes[s], 100), stream = n > STREAM ? n : STREAM / n * n;
    hibloom_item *items = looks ? bench_questions(bench_capacity() / 4, bed->fresh, stream)
                                : bench_uids(bed->fresh, stream);

    for (size_t i = 0; i < WAYS; i++) {
        const size_t way = (i + (size_t)round) % WAYS;
        const double since = bench_now();
        for (size_t at = 0; at < stream; at += n)
            call(bed, way, looks, items + at, n);
        printf("%s\t%s\t%zu\t%d\t%.0f\n", ways[way].name, looks ? "look up" : "add, is_new", sizes[s], round,
               (double)stream / (bench_now() - since));
    }
    bed->fresh += stream;
    free(items);
}

static void bed_open(struct bed *bed, const char *module)
{
    const char *const arguments[] = {"--loadmodule", module, NULL};
    struct redis_server *server = redis_server_start_tcp(arguments);
    const unsigned long long capacity = bench_capacity();
    const uint64_t present = capacity / 4;
    char text[96];

    *bed = (struct bed){.redis = redis_server_connect(server),
                        .store = bench_choosing_store(redis_server_uri(server), "setbit"),
                        .fresh = present};
    for (size_t i = OURS; i < WAYS; i++)
        bench_command(bed->redis, "BF.RESERVE %s %s %llu", ways[i].name, ways[i].error, capacity);
    for (size_t i = 0; i < OURS; i++) {
        snprintf(text, sizeof text, "capacity=%llu error=%s %s", capacity, ways[i].error, ways[i].words);
        bed->filters[i] = bench_open(bed->store, ways[i].name, text);
    }
    for (uint64_t first = 0, n; first < present; first += n) {
        n = present - first < MOST ? present - first : MOST;
        hibloom_item *items = bench_uids(first, n);
        for (size_t way = 0; way < WAYS; way++)
            call(bed, way, false, items, n);
        free(items);
    }
}

void bench_module(void)
{
    const char *module = find_module();
    struct bed bed;

    puts("way\toperation\titems\tround\titems_per_s");
    if (module == NULL)
        return;
    bed_open(&bed, module);
    for (int round = 0; round < ROUNDS; round++)
        for (size_t s = 0; s < SIZES; s++)
            for (int looks = 0; looks < 2; looks++)
                measure(&bed, looks, s, round);
    for (size_t i = 0; i < OURS; i++)
        hibloom_close(bed.filters[i]);
    hibloom_store_free(bed.store);
    redisFree(bed.redis);
}
