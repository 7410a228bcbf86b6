/* redis_count.c: how many bits are set. BITCOUNT looks at 16 MB at a time, so
 * that it stalls nobody. */
#include "store_redis.h"

uint64_t redis_count_bits(hibloom *filter, uint32_t i, struct guard *guard)
{
    struct redis_store *store = redis_store_of(filter);
    const struct redis_range range = {i, 1};
    const uint64_t end = spec_bitmap_bytes(&filter->spec);
    uint64_t bits_set = 0;

    commands_empty(&store->out);
    for (uint64_t from = 0; from < end; from += STORE_PIECE) {
        command_start(&store->out, 4, "BITCOUNT");
        command_argument(&store->out, redis_filter_of(filter)->bitmaps[i].key);
        command_number(&store->out, from);
        command_number(&store->out, (from + STORE_PIECE < end ? from + STORE_PIECE : end) - 1);
    }
    guard_ask(filter, &store->out, range);
    connection_send(&store->connection, &store->out);
    for (uint64_t from = 0; from < end; from += STORE_PIECE) {
        long long count = 0;
        if (connection_receive_integer(&store->connection, &count) && count < 0)
            connection_unexpected(&store->connection);
        bits_set += (uint64_t)count;
    }
    guard_receive(filter, range, guard);
    return bits_set;
}

hibloom_status redis_count(hibloom *filter, uint64_t *bits_set, uint64_t *bytes)
{
    struct connection *c = &redis_store_of(filter)->connection;
    struct guard guard;

    *bits_set = *bytes = 0;
    if (connection_enter(c) != HIBLOOM_OK)
        return c->status;
    guard_look_own(filter);
    for (uint32_t i = 0; i < redis_filter_of(filter)->count && c->status == HIBLOOM_OK; i++) {
        *bits_set += redis_count_bits(filter, i, &guard);
        guard_judge(filter, &guard);
        *bytes += guard.bytes;
    }
    guard_look_own(filter);
    return connection_leave(c);
}
