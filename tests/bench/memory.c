/* Ten million ten-digit uids four ways: a Redis SET, an exact bitmap, Bloom
 * filters at 1 % and 0.1 %, and the filter of the PHP program that makes this
 * comparison in prose; what each takes of the server's memory, and how often it
 * takes a uid that is not in it for one that is.
 *
 * The bitmap has a bit for each of the 10^10 uids there can be. A Redis string
 * ends at 2^32 bits, so it takes three. */
#include "bench.h"
#include "base/store.h"
#include "spec/spec.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 1000, PIECE = 16 << 20 };

static uint64_t uids; /* that there can be; in a shortened run they are folded to fewer */
#define KEY_BITS (UINT64_C(1) << 32)
#define BITMAP_KEYS ((unsigned)((uids - 1) / KEY_BITS + 1))

/* Of all keys: MEMORY USAGE, every element of a SET counted. */
static uint64_t memory_used(struct redisContext *redis)
{
    redisReply *keys = redisCommand(redis, "KEYS *");
    uint64_t bytes = 0;

    if (keys == NULL || keys->type != REDIS_REPLY_ARRAY)
        bench_fail("no KEYS from the server");
    for (size_t i = 0; i < keys->elements; i++)
        bytes += (uint64_t)bench_command(redis, "MEMORY USAGE %b SAMPLES 0", keys->element[i]->str,
                                         (size_t)keys->element[i]->len);
    freeReplyObject(keys);
    return bytes;
}

static void print(const char *what, struct redisContext *redis, uint64_t n, uint64_t asked, uint64_t wrong,
                  double predicted)
{
    printf("%s\t%llu\t%llu\t%llu\t%llu\t%.4g\n", what, (unsigned long long)n, (unsigned long long)memory_used(redis),
           (unsigned long long)asked, (unsigned long long)wrong, predicted);
    bench_command(redis, "FLUSHALL");
}

/* A command with a batch of items behind its key; how many of them it counts, or answers 1 for. */
static uint64_t send_batch(struct redisContext *redis, const char *command, const hibloom_item *items)
{
    const char *arguments[BATCH + 2] = {command, "set"};
    size_t lengths[BATCH + 2] = {strlen(command), strlen("set")};
    uint64_t count = 0;

    for (size_t i = 0; i < BATCH; i++) {
        arguments[2 + i] = items[i].data;
        lengths[2 + i] = items[i].len;
    }
    redisReply *reply = redisCommandArgv(redis, BATCH + 2, arguments, lengths);
    if (reply == NULL || reply->type == REDIS_REPLY_ERROR)
        bench_fail(reply != NULL ? reply->str : redis->errstr);
    for (size_t i = 0; i < reply->elements; i++)
        count += reply->element[i]->integer != 0;
    count += (uint64_t)reply->integer;
    freeReplyObject(reply);
    return count;
}

static void measure_set(struct redisContext *redis, const hibloom_item *items, uint64_t n, uint64_t asked)
{
    uint64_t wrong = 0;

    for (uint64_t i = 0; i < n; i += BATCH)
        if (send_batch(redis, "SADD", items + i) != BATCH)
            bench_fail("the uids are not distinct");
    for (uint64_t i = n; i < n + asked; i += BATCH)
        wrong += send_batch(redis, "SMISMEMBER", items + i);
    print("Redis SET", redis, n, asked, wrong, 0.0);
}

static uint64_t number_of(const hibloom_item *item)
{
    char digits[BENCH_UID_LEN + 1] = "";

    memcpy(digits, item->data, BENCH_UID_LEN);
    return strtoull(digits, NULL, 10) % uids;
}

/* Made here and sent in pieces: ten million SETBITs would take their time. */
static void make_bitmap(struct redisContext *redis, const hibloom_item *items, uint64_t n)
{
    unsigned char *bits = calloc(uids / 8, 1);

    if (bits == NULL)
        bench_fail("out of memory");
    for (uint64_t i = 0; i < n; i++) {
        const uint64_t uid = number_of(&items[i]);
        bits[uid / 8] |= (unsigned char)(0x80u >> uid % 8);
    }
    for (unsigned key = 0; key < BITMAP_KEYS; key++) {
        const uint64_t first = key * (KEY_BITS / 8), left = uids / 8 - first;
        const uint64_t bytes = left < KEY_BITS / 8 ? left : KEY_BITS / 8;
        bench_command(redis, "SETBIT uids:%u %llu 0", key, (unsigned long long)(bytes * 8 - 1));
        for (uint64_t at = 0; at < bytes; at += PIECE)
            bench_command(redis, "SETRANGE uids:%u %llu %b", key, (unsigned long long)at, bits + first + at,
                          (size_t)(bytes - at < PIECE ? bytes - at : PIECE));
    }
    free(bits);
}

static uint64_t ask_bitmap(struct redisContext *redis, const hibloom_item *items)
{
    uint64_t found = 0;
    void *reply;

    for (size_t i = 0; i < BATCH; i++) {
        const uint64_t uid = number_of(&items[i]);
        redisAppendCommand(redis, "GETBIT uids:%u %llu", (unsigned)(uid / KEY_BITS),
                           (unsigned long long)(uid % KEY_BITS));
    }
    for (size_t i = 0; i < BATCH; i++) {
        if (redisGetReply(redis, &reply) != REDIS_OK)
            bench_fail(redis->errstr);
        found += ((redisReply *)reply)->integer != 0;
        freeReplyObject(reply);
    }
    return found;
}

static void measure_bitmap(struct redisContext *redis, const hibloom_item *items, uint64_t n, uint64_t asked)
{
    uint64_t wrong = 0;

    make_bitmap(redis, items, n);
    if (ask_bitmap(redis, items) != BATCH)
        bench_fail("a uid is not in the bitmap");
    for (uint64_t i = n; i < n + asked; i += BATCH)
        wrong += ask_bitmap(redis, items + i);
    print("exact bitmap", redis, n, asked, wrong, 0.0);
}

static void measure_filter(struct redisContext *redis, const char *what, const char *text, const hibloom_item *items,
                           uint64_t n, uint64_t asked)
{
    hibloom_store *store = bench_store(NULL, "bitfield");
    hibloom *filter;
    bool *found = calloc((size_t)asked, sizeof *found);
    uint64_t wrong = 0;

    if (found == NULL)
        bench_fail("out of memory");
    bench_must(hibloom_open(&filter, store, "filter", text), store);
    bench_load(filter, n);
    bench_must(hibloom_contains_many(filter, items + n, (size_t)asked, found), store);
    for (uint64_t i = 0; i < asked; i++)
        wrong += found[i];
    print(what, redis, n, asked, wrong, spec_error_at(&filter->spec, n));
    hibloom_close(filter);
    hibloom_store_free(store);
    free(found);
}

void bench_memory(void)
{
    const uint64_t n = bench_capacity() / BATCH * BATCH, asked = bench_scaled(1000, 50) * BATCH;
    struct redisContext *redis = bench_redis_tcp();
    hibloom_item *items = bench_uids(0, (size_t)(n + asked));
    char text[64];

    uids = bench_scaled(UINT64_C(10000000000), 1);
    puts("what\titems\tbytes\tasked\twrong\tpredicted");
    measure_set(redis, items, n, asked);
    measure_bitmap(redis, items, n, asked);
    snprintf(text, sizeof text, "capacity=%llu error=0.01", (unsigned long long)n);
    measure_filter(redis, "Bloom filter, 0.01", text, items, n, asked);
    snprintf(text, sizeof text, "capacity=%llu error=0.001", (unsigned long long)n);
    measure_filter(redis, "Bloom filter, 0.001", text, items, n, asked);
    measure_filter(redis, "Bloom filter, the program's own", "php-uids", items, n, asked);
    free(items);
    redisFree(redis);
}
