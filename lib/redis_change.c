/* redis_change.c: one change to whole keys, made at once or not at all.
 *
 * Optimistic locking, so that a filter is there with its spec and its bitmaps
 * or not at all, whoever else is at it:
 *
 *     WATCH {seen}:spec        and look: the guard's commands
 *     MULTI ... EXEC           or UNWATCH, if what was seen forbids the change
 *
 * EXEC does nothing if a watched key has changed since; then it begins anew.
 * What the changes are: redis_life.c. */
#include "store_redis.h"

static void watch_and_look(hibloom *filter, const struct redis_change *change, struct redis_look *look)
{
    struct redis_store *store = redis_store_of(filter);
    const struct redis_filter *own = redis_filter_of(filter);

    commands_empty(&store->out);
    command_start(&store->out, 2 + (change->watch_bitmaps ? own->count : 0), "WATCH");
    command_argument(&store->out, redis_key_argument(&own->spec));
    for (uint32_t i = 0; change->watch_bitmaps && i < own->count; i++)
        command_argument(&store->out, redis_key_argument(&own->bitmaps[i]));
    guard_ask(filter, &store->out);
    command_start(&store->out, 2, "PTTL");
    command_argument(&store->out, redis_key_argument(&own->spec));
    command_start(&store->out, 2, "PTTL");
    command_argument(&store->out, redis_key_argument(&own->bitmaps[0]));
    connection_send(&store->connection, &store->out);
    (void)connection_receive_status(&store->connection);
    guard_receive(filter, &look->guard);
    look->spec_ttl_ms = look->bitmap_ttl_ms = -1;
    (void)connection_receive_integer(&store->connection, &look->spec_ttl_ms);
    (void)connection_receive_integer(&store->connection, &look->bitmap_ttl_ms);
}

static void unwatch(struct redis_store *store)
{
    commands_empty(&store->out);
    command_start(&store->out, 1, "UNWATCH");
    connection_send(&store->connection, &store->out);
    (void)connection_receive_status(&store->connection);
}

/* MULTI, the change, EXEC; whether it was carried out. */
static bool execute(hibloom *filter, const struct redis_change *change, const struct redis_look *look)
{
    struct redis_store *store = redis_store_of(filter);
    struct connection *c = &store->connection;

    commands_empty(&store->out);
    command_start(&store->out, 1, "MULTI");
    unsigned queued = change->ask(filter, &store->out, look);
    command_start(&store->out, 1, "EXEC");
    connection_send(c, &store->out);
    for (unsigned i = 0; i < 1 + queued; i++) /* OK, QUEUED, ... */
        (void)connection_receive_status(c);
    const struct reply *reply = connection_receive(c);
    if (reply == NULL || reply->type == REDIS_REPLY_NIL)
        return false;
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != queued)
        connection_unexpected(c);
    return reply->type == REDIS_REPLY_ARRAY;
}

bool redis_make_change(hibloom *filter, const struct redis_change *change, uint64_t argument)
{
    struct redis_store *store = redis_store_of(filter);
    struct redis_look look = {.argument = argument};

    for (int i = 0; i < REDIS_ATTEMPTS && store->connection.status == HIBLOOM_OK; i++) {
        watch_and_look(filter, change, &look);
        if (!change->judge(filter, &look) || store->connection.status != HIBLOOM_OK) {
            unwatch(store);
            return false;
        }
        if (execute(filter, change, &look))
            return true;
    }
    connection_fail(&store->connection, HIBLOOM_ESERVER, "gave up on '%s': other clients keep changing it",
                    filter->name);
    return false;
}
