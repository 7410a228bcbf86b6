/* redis_count.c: how many bits are set. */
#include "store_redis.h"

/* BITCOUNT looks at so many bytes at a time, so that it stalls nobody. */
#define COUNT_BYTES (UINT64_C(16) << 20)

uint64_t redis_count_bits(hibloom *filter, uint32_t i, struct guard *guard)
{
    struct redis_store *store = redis_store_of(filter);
    const struct redis_key *key = &redis_filter_of(filter)->bitmaps[i];
    const uint64_t end = spec_bitmap_bytes(&filter->spec);
    uint64_t bits_set = 0;

    commands_empty(&store->out);
    for (uint64_t from = 0; from < end; from += COUNT_BYTES) {
        command_start(&store->out, 4, "BITCOUNT");
        command_argument(&store->out, redis_key_argument(key));
        command_number(&store->out, from);
        command_number(&store->out, (from + COUNT_BYTES < end ? from + COUNT_BYTES : end) - 1);
    }
    guard_ask(filter, &store->out);
    connection_send(&store->connection, &store->out);
    for (uint64_t from = 0; from < end; from += COUNT_BYTES) {
        long long count = 0;
        if (connection_receive_integer(&store->connection, &count) && count < 0)
            connection_unexpected(&store->connection);
        bits_set += (uint64_t)count;
    }
    guard_receive(filter, guard);
    return bits_set;
}

hibloom_status redis_count(hibloom *filter, uint64_t *bits_set, uint64_t *bytes)
{
    struct connection *c = &redis_store_of(filter)->connection;
    struct guard guard;

    *bits_set = 0;
    if (connection_enter(c) != HIBLOOM_OK)
        return c->status;
    for (uint32_t i = 0; i < redis_filter_of(filter)->count && c->status == HIBLOOM_OK; i++) {
        *bits_set += redis_count_bits(filter, i, &guard);
        guard_judge(filter, &guard);
    }
    *bytes = guard.bytes;
    return connection_leave(c);
}
