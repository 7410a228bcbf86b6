/* redis_count.c: how many bits are set. BITCOUNT looks at 16 MB at a time, and
 * one is sent when the last is answered: of a pipeline of them the server would
 * make one long stall. */
#include "redis/store_redis.h"

static uint64_t count_range(struct redis_store *store, struct argument key, uint64_t from, uint64_t end)
{
    long long count = 0;

    commands_empty(&store->out);
    command_start(&store->out, 4, "BITCOUNT");
    command_argument(&store->out, key);
    command_number(&store->out, from);
    command_number(&store->out, end - 1);
    connection_send(&store->connection, &store->out);
    if (connection_receive_integer(&store->connection, &count) && count < 0)
        connection_unexpected(&store->connection);
    return (uint64_t)count;
}

uint64_t redis_count_bits(hibloom *filter, uint32_t i, struct guard *guard)
{
    struct redis_store *store = redis_store_of(filter);
    const uint64_t end = spec_bitmap_bytes(&filter->spec);
    uint64_t bits_set = 0;

    for (uint64_t from = 0; from < end && store->connection.status == HIBLOOM_OK; from += STORE_PIECE)
        bits_set += count_range(store, redis_filter_of(filter)->bitmaps[i].key, from,
                                from + STORE_PIECE < end ? from + STORE_PIECE : end);
    guard_look(filter, (struct redis_range){i, 1}, guard);
    return bits_set;
}

hibloom_status redis_count(hibloom *filter, struct store_count *out)
{
    struct connection *c = &redis_store_of(filter)->connection;
    struct guard guard;

    *out = (struct store_count){0, 0, -1};
    if (connection_enter(c) != HIBLOOM_OK)
        return c->status;
    guard_look_own(filter);
    for (uint32_t i = 0; i < redis_filter_of(filter)->count && c->status == HIBLOOM_OK; i++) {
        out->bits_set += redis_count_bits(filter, i, &guard);
        guard_judge(filter, &guard);
        out->bytes += guard.bytes;
    }
    guard_look_own(filter);
    return connection_leave(c);
}
