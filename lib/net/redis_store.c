/* redis_store.c: a Redis store whose calls block: the connection of one, made
 * from a URI or borrowed. */
#include "net/blocking.h"
#include "redis/store.h"

#include <stdlib.h>

#define TIMEOUT_DEFAULT_MS 5000u

struct blocking_store {
    struct redis_store store;
    struct blocking driver;
};

static hibloom_status run(struct redis_store *store, struct task *task)
{
    return blocking_run(&((struct blocking_store *)store)->driver, task, &store->base.error);
}

static void close_connection(struct redis_store *store)
{
    blocking_close(&((struct blocking_store *)store)->driver);
}

hibloom_status store_redis_new(hibloom_store **out, struct redisContext *borrowed)
{
    struct blocking_store *made = calloc(1, sizeof *made);

    if (made == NULL)
        return HIBLOOM_ENOMEM;
    made->store = (struct redis_store){.base.class = &redis_store_class, .run = run, .close = close_connection};
    made->driver.connection.context = borrowed;
    made->driver.connection.borrowed = borrowed != NULL;
    *out = &made->store.base;
    return HIBLOOM_OK;
}

hibloom_status store_redis_connect(hibloom_store *base, struct uri *uri, const hibloom_connect_options *options)
{
    struct blocking_store *made = (struct blocking_store *)base;
    struct connection *c = &made->driver.connection;

    c->uri = *uri;
    c->connect_timeout_ms = options->connect_timeout_ms != 0 ? options->connect_timeout_ms : TIMEOUT_DEFAULT_MS;
    c->command_timeout_ms = options->command_timeout_ms != 0 ? options->command_timeout_ms : TIMEOUT_DEFAULT_MS;
    made->store.server.bitfield = options->commands == HIBLOOM_COMMANDS_BITFIELD;
    hibloom_status status = blocking_connect(&made->driver, &base->error);
    if (status == HIBLOOM_OK)
        connection_leave(c, false);
    return status;
}
