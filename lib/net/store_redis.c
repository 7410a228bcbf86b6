/* store_redis.c: the store whose bits lie in one Redis: made, connected or
 * borrowed, freed. What it does with a filter: see store_redis.h. */
#include "redis/store_redis.h"

#include <stdlib.h>

#define TIMEOUT_DEFAULT_MS 5000u

static void redis_free(hibloom_store *base)
{
    struct redis_store *store = (struct redis_store *)base;

    connection_close(&store->connection);
    commands_free(&store->out);
    free(store);
}

static const struct store_class redis_class = {
    .open = redis_open,
    .attach = redis_attach,
    .add = redis_add,
    .contains = redis_contains,
    .count = redis_count,
    .read = redis_read,
    .merge = redis_merge,
    .merge_within = redis_merge_within,
    .clear = redis_clear,
    .drop = redis_drop,
    .expire = redis_expire,
    .repair = redis_repair,
    .delete = redis_remove,
    .close = redis_forget,
    .free = redis_free,
};

hibloom_status store_redis_new(hibloom_store **out, struct redisContext *borrowed)
{
    struct redis_store *store = calloc(1, sizeof *store);

    if (store == NULL)
        return HIBLOOM_ENOMEM;
    store->base.class = &redis_class;
    store->connection.error = &store->base.error;
    store->connection.context = borrowed;
    store->connection.borrowed = borrowed != NULL;
    store->bitfield_ro = "BITFIELD_RO";
    *out = &store->base;
    return HIBLOOM_OK;
}

hibloom_status store_redis_connect(hibloom_store *base, struct uri *uri, const hibloom_connect_options *options)
{
    struct redis_store *store = (struct redis_store *)base;
    struct connection *c = &store->connection;

    c->uri = *uri;
    c->connect_timeout_ms = options->connect_timeout_ms != 0 ? options->connect_timeout_ms : TIMEOUT_DEFAULT_MS;
    c->command_timeout_ms = options->command_timeout_ms != 0 ? options->command_timeout_ms : TIMEOUT_DEFAULT_MS;
    store->bitfield = options->commands == HIBLOOM_COMMANDS_BITFIELD;
    if (connection_enter(c) != HIBLOOM_OK)
        return c->status;
    return connection_leave(c);
}
