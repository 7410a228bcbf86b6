/* A whole bitmap goes into a key that has bits. In one step by SET and BITOP, or by parts through a script: keys above
 * 16 MB still take that. Both go by the library's inner functions (redis/transfer.h), in turns.
 *
 * A second server keeps an append-only file. Its growth is what a merge writes. That server never waits for the disk:
 * else it would write late, and the bytes would count for the next merge. */
#include "bench.h"

#include "../support/redis_server.h"
#include "redis/store.h"
#include "redis/transfer.h"
#include "spec/spec.h"
#include "base/store.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 9 };

struct side {
    hibloom_store *store;
    hibloom *filter;
    struct redisContext *redis;
};

static struct side side_open(struct redis_server *server)
{
    struct side side = {bench_store(redis_server_uri(server), "setbit"), NULL, redis_server_connect(server)};
    char text[64];

    snprintf(text, sizeof text, "capacity=%llu error=0.01 segments=1", (unsigned long long)bench_capacity());
    side.filter = bench_open(side.store, "merges", text);
    bench_load(side.filter, bench_capacity() / 4);
    return side;
}

static void side_close(struct side *side)
{
    hibloom_close(side->filter);
    hibloom_store_free(side->store);
    redisFree(side->redis);
}

static void merge(const struct side *side, const unsigned char *bits, uint64_t len)
{
    struct redis_store *store = (struct redis_store *)side->store;
    const struct piece piece = {.len = len};
    struct transfer transfer;

    transfer_begin_merge(&transfer, &redis_filter_of(side->filter)->first, &piece, bits, NULL);
    bench_must(store->run(store, &transfer.talk.task), side->store);
}

static void merge_whole(const struct side *side, const unsigned char *bits)
{
    merge(side, bits, spec_bitmap_bytes(&side->filter->spec));
}

/* A piece that is not the whole key goes so. */
static void merge_by_parts(const struct side *side, const unsigned char *bits)
{
    merge(side, bits, spec_bitmap_bytes(&side->filter->spec) - 1);
}

static const struct {
    const char *name;
    void (*merge)(const struct side *, const unsigned char *bits);
} ways[] = {{"whole", merge_whole}, {"parts", merge_by_parts}};

static double aof_bytes(struct redisContext *redis)
{
    redisReply *info = redisCommand(redis, "INFO persistence");
    const char *field = info != NULL && info->str != NULL ? strstr(info->str, "aof_current_size:") : NULL;

    if (field == NULL)
        bench_fail("the server has no append-only file");
    const double bytes = strtod(strchr(field, ':') + 1, NULL);
    freeReplyObject(info);
    return bytes;
}

/* Half of the bits are set, as in a full filter. */
static unsigned char *make_bits(size_t len)
{
    unsigned char *bits = malloc(len);

    if (bits == NULL)
        bench_fail("out of memory");
    srand(1);
    for (size_t i = 0; i < len - 1; i++)
        bits[i] = (unsigned char)(rand() >> 8);
    bits[len - 1] = 0;
    return bits;
}

void bench_merges(void)
{
    static const char *const durable[] = {
        "--appendonly", "yes", "--appendfsync", "no", "--auto-aof-rewrite-percentage", "0", NULL};
    struct side plain = side_open(bench_server()), kept = side_open(redis_server_start_tcp(durable));
    const size_t len = (size_t)spec_bitmap_bytes(&plain.filter->spec);
    unsigned char *bits = make_bits(len);

    puts("way\tround\tbytes\tms\taof_bytes");
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < 2; i++) {
            const int way = (i + round) % 2;
            const double before = aof_bytes(kept.redis);
            ways[way].merge(&kept, bits);
            const double kept_bytes = aof_bytes(kept.redis) - before, since = bench_now();
            ways[way].merge(&plain, bits);
            printf("%s\t%d\t%zu\t%.3f\t%.0f\n", ways[way].name, round, len, (bench_now() - since) * 1e3, kept_bytes);
        }
    free(bits);
    side_close(&plain);
    side_close(&kept);
}
