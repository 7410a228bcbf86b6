/* redis_change.c: one change to whole keys, made at once or not at all.
 *
 * Optimistic locking, so that what belongs together is there together or not
 * at all, whoever else is at it:
 *
 *     WATCH {seen}:spec        and look: the guard's commands
 *     MULTI ... EXEC           or UNWATCH, if what was seen forbids the change
 *
 * EXEC does nothing if a watched key has changed since; then it begins anew.
 * What the changes are: redis_open.c, redis_life.c, redis_transfer.c. */
#include "base/clock.h"
#include "redis/store_redis.h"

#include <string.h>

static void ask_watch(hibloom *filter, struct commands *out, struct redis_range range, bool bitmaps)
{
    const struct redis_filter *own = redis_filter_of(filter);

    command_start(out, 2 + (own->segmented ? range.count : 0) + (bitmaps ? range.count : 0), "WATCH");
    command_argument(out, own->spec);
    for (uint32_t i = range.first; i < range.first + range.count; i++) {
        if (own->segmented)
            command_argument(out, own->bitmaps[i].spec);
        if (bitmaps)
            command_argument(out, own->bitmaps[i].key);
    }
}

static void ask_look(hibloom *filter, struct commands *out, struct redis_range range)
{
    guard_ask_own(filter, out);
    guard_ask(filter, out, range);
    guard_ask_spec(filter, out);
    (void)redis_ask_one(out, "PTTL", redis_filter_of(filter)->spec, NULL);
    (void)redis_ask_one(out, "PTTL", redis_filter_of(filter)->bitmaps[range.first + range.count - 1].key, NULL);
}

/* Whether it is a look at one state. A server may serve others in the middle
 * of a long pipeline, so the spec is asked for at either end of it. */
static bool receive_look(hibloom *filter, struct redis_range range, struct redis_look *look)
{
    struct connection *c = &redis_store_of(filter)->connection;
    const bool segmented = redis_filter_of(filter)->segmented;
    char first[REPLY_TEXT + 1];
    const bool had_spec = segmented && guard_receive_spec(filter, first);

    guard_receive(filter, range, &look->guard);
    look->has_spec = guard_receive_spec(filter, look->spec);
    look->spec_ttl_ms = look->bitmap_ttl_ms = -1;
    (void)connection_receive_integer(c, &look->spec_ttl_ms);
    (void)connection_receive_integer(c, &look->bitmap_ttl_ms);
    look->seen_ms = clock_now_ms();
    if (c->status != HIBLOOM_OK)
        return true;
    return look->has_spec == (segmented ? had_spec : look->guard.has_spec) &&
           (!look->has_spec || strcmp(look->spec, segmented ? first : look->guard.spec) == 0);
}

bool redis_spec_is(const struct redis_look *look, const char *text)
{
    return look->has_spec && strcmp(look->spec, text) == 0;
}

bool redis_bitmaps_stand(const hibloom *filter, const struct redis_look *look)
{
    const bool copies = look->guard.has_spec && strcmp(look->guard.spec, filter->text) == 0;

    return !look->guard.changed && (!redis_filter_of(filter)->segmented || copies);
}

bool redis_look_at(hibloom *filter, struct redis_range range, struct redis_look *look)
{
    struct redis_store *store = redis_store_of(filter);

    commands_empty(&store->out);
    ask_look(filter, &store->out, range);
    connection_send(&store->connection, &store->out);
    return receive_look(filter, range, look);
}

static bool watch_and_look(hibloom *filter, const struct redis_change *change, struct redis_range range,
                           struct redis_look *look)
{
    struct redis_store *store = redis_store_of(filter);

    commands_empty(&store->out);
    ask_watch(filter, &store->out, range, change->watch_bitmaps);
    ask_look(filter, &store->out, range);
    connection_send(&store->connection, &store->out);
    (void)connection_receive_status(&store->connection);
    return receive_look(filter, range, look);
}

static void unwatch(struct redis_store *store)
{
    commands_empty(&store->out);
    command_start(&store->out, 1, "UNWATCH");
    connection_send(&store->connection, &store->out);
    (void)connection_receive_status(&store->connection);
}

/* Was it one state that was seen and found wanting? An empty transaction tells:
 * it is not carried out if a watched key has changed since. If it was not, or
 * nobody can tell any more, the failure that the judge has noted is taken back. */
static bool is_confirmed(hibloom *filter)
{
    struct redis_store *store = redis_store_of(filter);
    struct connection *c = &store->connection;
    const hibloom_status status = c->status;
    const struct error words = *c->error;

    connection_retract(c);
    commands_empty(&store->out);
    command_start(&store->out, 1, "MULTI");
    command_start(&store->out, 1, "EXEC");
    connection_send(c, &store->out);
    (void)connection_receive_status(c);
    const struct reply *reply = connection_receive(c);
    const bool one_state = reply != NULL && reply->type == REDIS_REPLY_ARRAY;
    if (one_state)
        connection_fail(c, status, "%s", words.words);
    return one_state;
}

/* What a change sends may hold the seed, which an error must not repeat. */
static struct argument seed_of(const hibloom *filter)
{
    const char *seed = strstr(filter->text, " seed=");

    return seed != NULL ? (struct argument){seed + 6, strcspn(seed + 6, " ")} : (struct argument){NULL, 0};
}

/* MULTI, the change, EXEC; whether it was carried out. */
static bool execute(hibloom *filter, const struct redis_change *change, struct redis_range range,
                    const struct redis_look *look)
{
    struct redis_store *store = redis_store_of(filter);
    struct connection *c = &store->connection;

    commands_empty(&store->out);
    command_start(&store->out, 1, "MULTI");
    const unsigned queued = change->ask(filter, range, &store->out, look);
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

enum verdict { LEAVE, MAKE, LOOK_AGAIN };

static enum verdict look_and_judge(hibloom *filter, const struct redis_change *change, struct redis_range range,
                                   struct redis_look *look)
{
    struct connection *c = &redis_store_of(filter)->connection;
    const bool settled = watch_and_look(filter, change, range, look);

    if (c->status != HIBLOOM_OK)
        return LEAVE;
    if (!settled)
        return LOOK_AGAIN;
    const bool wanted = change->judge(filter, range, look);
    if (c->status >= HIBLOOM_ENOTFOUND && !is_confirmed(filter))
        return c->status == HIBLOOM_OK ? LOOK_AGAIN : LEAVE;
    return wanted && c->status == HIBLOOM_OK ? MAKE : LEAVE;
}

static bool attempt_change(hibloom *filter, const struct redis_change *change, struct redis_range range,
                           void *argument)
{
    struct redis_store *store = redis_store_of(filter);
    struct redis_look look = {.argument = argument};

    for (int i = 0; i < REDIS_ATTEMPTS && store->connection.status == HIBLOOM_OK; i++) {
        const enum verdict verdict = look_and_judge(filter, change, range, &look);
        if (verdict == MAKE && execute(filter, change, range, &look))
            return true;
        if (verdict != MAKE || store->connection.status != HIBLOOM_OK)
            unwatch(store);
        if (verdict == LEAVE)
            return false;
    }
    connection_fail(&store->connection, HIBLOOM_ESERVER, "gave up on '%s': other clients keep changing it",
                    filter->name);
    return false;
}

bool redis_make_change(hibloom *filter, const struct redis_change *change, struct redis_range range,
                       void *argument)
{
    struct connection *c = &redis_store_of(filter)->connection;

    c->secret = seed_of(filter);
    const bool made = attempt_change(filter, change, range, argument);
    c->secret = (struct argument){NULL, 0};
    return made;
}

void redis_make_each_step(hibloom *filter, const struct redis_change *change, void *argument)
{
    const struct connection *c = &redis_store_of(filter)->connection;
    struct redis_range range = {0, 0};

    while (c->status == HIBLOOM_OK && redis_next_step(filter, &range))
        (void)redis_make_change(filter, change, range, argument);
}
