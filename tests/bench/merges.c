/* A whole bitmap goes into a key that has bits. In one step by SET and BITOP, or by parts through a script: keys of
 * 12 MB and more take that. Both go by the library's inner functions (redis/transfer.h), in turns.
 *
 * A second server keeps an append-only file and has a replica. What a merge writes is the growth of that file, and of what
 * the replica gets. That server never waits for the disk: else it would write late, and the bytes would count for the
 * next merge. */
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

static double bytes_of(struct redisContext *redis, const char *name)
{
    redisReply *info = redisCommand(redis, "INFO");
    const char *field = info != NULL && info->str != NULL ? strstr(info->str, name) : NULL;

    if (field == NULL)
        bench_fail("the server does not count what it writes");
    const double bytes = strtod(field + strlen(name), NULL);
    freeReplyObject(info);
    return bytes;
}

/* Until the replica is idle. WAIT is for the writes of its own connection. */
static void wait_for_replica(struct redisContext *redis)
{
    bench_command(redis, "SET last 1");
    if (bench_command(redis, "WAIT 1 60000") != 1)
        bench_fail("the replica does not follow");
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
    static const char in_file[] = "aof_current_size:", to_replica[] = "master_repl_offset:";
    struct redis_server *primary = redis_server_start_tcp(durable);
    struct side plain = side_open(bench_server()), kept = side_open(primary);
    const size_t len = (size_t)spec_bitmap_bytes(&plain.filter->spec);
    unsigned char *bits = make_bits(len);
    char port[8];

    snprintf(port, sizeof port, "%d", redis_server_port(primary));
    redis_server_start_tcp((const char *const[]){"--replicaof", "127.0.0.1", port, NULL});
    wait_for_replica(kept.redis);
    puts("way\tround\tbytes\tms\taof_bytes\treplica_bytes");
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < 2; i++) {
            const int way = (i + round) % 2;
            const double file = bytes_of(kept.redis, in_file), sent = bytes_of(kept.redis, to_replica);
            ways[way].merge(&kept, bits);
            const double file_grew = bytes_of(kept.redis, in_file) - file;
            const double sent_more = bytes_of(kept.redis, to_replica) - sent;
            wait_for_replica(kept.redis);
            const double since = bench_now();
            ways[way].merge(&plain, bits);
            printf("%s\t%d\t%zu\t%.3f\t%.0f\t%.0f\n", ways[way].name, round, len, (bench_now() - since) * 1e3,
                   file_grew, sent_more);
        }
    free(bits);
    side_close(&plain);
    side_close(&kept);
}
