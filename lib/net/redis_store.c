/* redis_store.c: the store whose bits lie in one Redis, and whose calls block:
 * each is a task of lib/redis, run by the blocking driver. */
#include "base/store.h"
#include "net/blocking.h"
#include "redis/change.h"
#include "redis/life.h"
#include "redis/look.h"
#include "redis/transfer.h"

#include <stdlib.h>

#define TIMEOUT_DEFAULT_MS 5000u

struct redis_store {
    hibloom_store base;
    struct blocking driver;
    struct redis_server_traits server;
};

static struct redis_store *store_of(const hibloom *filter)
{
    return (struct redis_store *)filter->store;
}

static hibloom_status run(hibloom *filter, struct task *task)
{
    return blocking_run(&store_of(filter)->driver, task, &filter->store->error);
}

/* ---- How a filter comes to be and goes ------------------------------------------- */

static hibloom_status live(hibloom *filter, enum life_goal goal, const hibloom_spec *wanted)
{
    struct life life;

    life_begin(&life, goal, filter, &store_of(filter)->server, wanted);
    hibloom_status status = run(filter, &life.talk.task);
    life_end(&life);
    return status;
}

/* One that does not come to be leaves nothing in the handle. */
static hibloom_status come_to_be(hibloom *filter, enum life_goal goal, const hibloom_spec *wanted)
{
    hibloom_status status = live(filter, goal, wanted);

    if (status != HIBLOOM_OK)
        redis_filter_free(filter);
    return status;
}

static hibloom_status redis_open(hibloom *filter, const hibloom_spec *wanted)
{
    return come_to_be(filter, LIFE_OPEN, wanted);
}

static hibloom_status redis_attach(hibloom *filter)
{
    const hibloom_spec spec = filter->spec;

    return come_to_be(filter, LIFE_ATTACH, &spec);
}

static hibloom_status by_name(hibloom *filter, enum life_goal goal)
{
    hibloom_status status = live(filter, goal, NULL);

    redis_filter_free(filter);
    return status;
}

static hibloom_status redis_repair(hibloom *filter)
{
    return by_name(filter, LIFE_REPAIR);
}

static hibloom_status redis_delete(hibloom *filter)
{
    return by_name(filter, LIFE_DELETE);
}

static hibloom_status redis_drop(hibloom *filter)
{
    return live(filter, LIFE_DROP, NULL);
}

/* ---- Items -------------------------------------------------------------------------- */

static hibloom_status run_items(hibloom *filter, struct items *items, bool *answers)
{
    hibloom_status status = run(filter, &items->talk.task);

    items_end(items, answers);
    return status;
}

static hibloom_status look_and_add(hibloom *filter, const hibloom_item *items, size_t n)
{
    struct look look;

    look_begin(&look, filter, items, n);
    hibloom_status status = run(filter, &look.task);
    look_end(&look);
    return status;
}

static hibloom_status redis_add(hibloom *filter, const hibloom_item *items, size_t n, bool *is_new)
{
    struct items task;

    if (is_new == NULL && look_pays(filter, n))
        return look_and_add(filter, items, n);
    items_begin_add(&task, filter, items, n, is_new != NULL);
    return run_items(filter, &task, is_new);
}

static hibloom_status redis_contains(hibloom *filter, const hibloom_item *items, size_t n, bool *found)
{
    struct items task;

    items_begin_contains(&task, filter, items, n);
    return run_items(filter, &task, found);
}

/* ---- All keys ------------------------------------------------------------------------- */

static hibloom_status redis_count(hibloom *filter, struct store_count *out)
{
    struct change change;

    change_begin_count(&change, filter);
    hibloom_status status = run(filter, &change.talk.task);
    *out = change.count;
    return status;
}

static hibloom_status redis_clear(hibloom *filter)
{
    struct change change;

    change_begin_clear(&change, filter);
    return run(filter, &change.talk.task);
}

static hibloom_status redis_expire(hibloom *filter, uint64_t seconds)
{
    struct change change;

    change_begin_expire(&change, filter, seconds);
    return run(filter, &change.talk.task);
}

/* ---- Pieces ------------------------------------------------------------------------------ */

static hibloom_status redis_read(hibloom *filter, const struct piece *piece, unsigned char *out)
{
    struct transfer transfer;

    transfer_begin_read(&transfer, filter, piece, out);
    return run(filter, &transfer.talk.task);
}

static hibloom_status redis_merge(hibloom *into, const struct piece *piece, const unsigned char *bits)
{
    struct transfer transfer;

    transfer_begin_merge(&transfer, into, piece, bits);
    return run(into, &transfer.talk.task);
}

static hibloom_status redis_merge_within(hibloom *into, hibloom *from, const struct piece *piece)
{
    struct transfer transfer;

    transfer_begin_merge_within(&transfer, into, from, piece);
    return run(into, &transfer.talk.task);
}

/* ---- The store ------------------------------------------------------------------------------ */

static void redis_free(hibloom_store *base)
{
    struct redis_store *store = (struct redis_store *)base;

    blocking_close(&store->driver);
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
    .delete = redis_delete,
    .close = redis_filter_free,
    .free = redis_free,
};

hibloom_status store_redis_new(hibloom_store **out, struct redisContext *borrowed)
{
    struct redis_store *store = calloc(1, sizeof *store);

    if (store == NULL)
        return HIBLOOM_ENOMEM;
    store->base.class = &redis_class;
    store->driver.connection.context = borrowed;
    store->driver.connection.borrowed = borrowed != NULL;
    *out = &store->base;
    return HIBLOOM_OK;
}

hibloom_status store_redis_connect(hibloom_store *base, struct uri *uri, const hibloom_connect_options *options)
{
    struct redis_store *store = (struct redis_store *)base;
    struct connection *c = &store->driver.connection;

    c->uri = *uri;
    c->connect_timeout_ms = options->connect_timeout_ms != 0 ? options->connect_timeout_ms : TIMEOUT_DEFAULT_MS;
    c->command_timeout_ms = options->command_timeout_ms != 0 ? options->command_timeout_ms : TIMEOUT_DEFAULT_MS;
    store->server.bitfield = options->commands == HIBLOOM_COMMANDS_BITFIELD;
    hibloom_status status = blocking_connect(&store->driver, &base->error);
    if (status == HIBLOOM_OK)
        connection_leave(c, false);
    return status;
}
