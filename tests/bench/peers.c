/* The ways of others, by hiredis' own means. See peers.h. */
#include "peers.h"

#include "bench.h"
#include "base/store.h"
#include "spec/positions.h"

#include <hiredis/hiredis.h>

static void append(const struct peer *peer, uint64_t bit, bool sets)
{
    if (sets)
        redisAppendCommand(peer->redis, "SETBIT %s %llu 1", peer->key, (unsigned long long)bit);
    else
        redisAppendCommand(peer->redis, "GETBIT %s %llu", peer->key, (unsigned long long)bit);
}

static void append_item(const struct peer *peer, const hibloom_item *item, bool sets)
{
    hibloom_position positions[HIBLOOM_HASHES_MAX];

    bench_must(positions_of(peer->spec, item->data, item->len, positions), NULL);
    for (uint32_t i = 0; i < peer->spec->hashes; i++)
        append(peer, positions[i].bit, sets);
}

static redisReply *receive(const struct peer *peer)
{
    void *reply;

    if (redisGetReply(peer->redis, &reply) != REDIS_OK)
        bench_fail(peer->redis->errstr);
    return reply;
}

static bool receive_bit(const struct peer *peer)
{
    redisReply *reply = receive(peer);
    const bool bit = reply->integer != 0;

    if (reply->type != REDIS_REPLY_INTEGER)
        bench_fail("no integer from the server");
    freeReplyObject(reply);
    return bit;
}

void peer_bits(const struct peer *peer, const hibloom_item *items, size_t n, bool *found)
{
    hibloom_position positions[HIBLOOM_HASHES_MAX];

    for (size_t item = 0; item < n; item++) {
        bool all = true;
        bench_must(positions_of(peer->spec, items[item].data, items[item].len, positions), NULL);
        for (uint32_t i = 0; i < peer->spec->hashes && (all || found == NULL); i++) {
            append(peer, positions[i].bit, found == NULL);
            all = receive_bit(peer) && all;
        }
        if (found != NULL)
            found[item] = all;
    }
}

/* The answers to MULTI and to each command are but OK and QUEUED. */
static bool receive_transaction(const struct peer *peer)
{
    bool all = true;

    for (uint32_t i = 0; i < 1 + peer->spec->hashes; i++)
        freeReplyObject(receive(peer));
    redisReply *reply = receive(peer);
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != peer->spec->hashes)
        bench_fail("no array from the server");
    for (size_t i = 0; i < reply->elements; i++)
        all = all && reply->element[i]->integer != 0;
    freeReplyObject(reply);
    return all;
}

void peer_pipeline(const struct peer *peer, const hibloom_item *items, size_t n, bool *found)
{
    for (size_t item = 0; item < n; item++) {
        redisAppendCommand(peer->redis, "MULTI");
        append_item(peer, &items[item], found == NULL);
        redisAppendCommand(peer->redis, "EXEC");
        const bool all = receive_transaction(peer);
        if (found != NULL)
            found[item] = all;
    }
}

void peer_printf(const struct peer *peer, const hibloom_item *items, size_t n, bool *found)
{
    for (size_t item = 0; item < n; item++)
        append_item(peer, &items[item], found == NULL);
    for (size_t item = 0; item < n; item++) {
        bool all = true;
        for (uint32_t i = 0; i < peer->spec->hashes; i++)
            all = receive_bit(peer) && all;
        if (found != NULL)
            found[item] = all;
    }
}
