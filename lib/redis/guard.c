/* redis_guard.c: is what is stored still this handle's filter?
 *
 * Redis answers GETBIT on a key that is not there with 0, and SETBIT makes one;
 * so without a look at what is stored, a filter that was dropped, evicted,
 * expired or made anew would answer "no". Every pipeline therefore ends in
 *
 *     GET {seen}:spec        is it the text that this handle was opened on?
 *     STRLEN seen            is there a bitmap?
 *     GETRANGE seen -> seal  is it the one that was created?
 *
 * At the end, because then whatever happened before it shows. If the filter was
 * removed and made again just so in between, the answers are those of the new
 * one, or of the old: either way they were true during the call. A pipeline
 * that sets bits begins with it, too: else bits could go into what an earlier
 * loss has left, and with that, unseen, when somebody repairs it.
 *
 * Of a filter of several segments the same is asked of those that were touched:
 * each has a copy of the spec beside it, {seen:3}:spec. */
#include "redis/store_redis.h"

#include <string.h>

void guard_ask(hibloom *filter, struct commands *out, struct redis_range range)
{
    const struct redis_filter *own = redis_filter_of(filter);

    for (uint32_t i = range.first; i < range.first + range.count; i++) {
        const struct redis_bitmap *bitmap = &own->bitmaps[i];
        if (own->segmented || i == range.first)
            (void)redis_ask_one(out, "GET", bitmap->spec, NULL);
        (void)redis_ask_one(out, "STRLEN", bitmap->key, NULL);
        if (own->sealed) {
            command_start(out, 4, "GETRANGE");
            command_argument(out, bitmap->key);
            command_number(out, bitmap->whole - REDIS_SEAL_BYTES);
            command_number(out, bitmap->whole - 1);
        }
    }
}

void guard_ask_spec(hibloom *filter, struct commands *out)
{
    (void)redis_ask_one(out, "GET", redis_filter_of(filter)->spec, NULL);
}

bool guard_receive_spec(hibloom *filter, char text[REPLY_TEXT + 1])
{
    struct connection *c = &redis_store_of(filter)->connection;
    const struct reply *reply = connection_receive(c);

    if (reply != NULL && reply->type == REDIS_REPLY_STRING) {
        const bool whole = strlen(reply->text) == reply->text_len; /* not cut, and no zero byte in it */
        strcpy(text, whole ? reply->text : "");
        return true;
    }
    if (reply != NULL && reply->type != REDIS_REPLY_NIL)
        connection_unexpected(c);
    return false;
}

/* Whether it is there. A bitmap that was long enough for it a moment ago and
 * now has nothing there is gone: it has just expired. */
static bool receive_seal(struct connection *c, uint64_t whole, long long *length)
{
    const struct reply *reply = connection_receive(c);

    if (reply == NULL)
        return false;
    if (reply->type != REDIS_REPLY_STRING)
        connection_unexpected(c);
    if (reply->text_len == 0 && *length >= (long long)whole)
        *length = 0;
    return reply->text_len == REDIS_SEAL_BYTES && memcmp(reply->text, REDIS_SEAL, REDIS_SEAL_BYTES) == 0;
}

static void receive_bitmap(hibloom *filter, struct redis_bitmap *bitmap, struct guard *guard)
{
    struct connection *c = &redis_store_of(filter)->connection;
    long long length = 0;

    if (connection_receive_integer(c, &length) && length < 0)
        connection_unexpected(c);
    const bool sealed = !redis_filter_of(filter)->sealed || receive_seal(c, bitmap->whole, &length);
    if (c->status != HIBLOOM_OK)
        return;
    bitmap->length = (uint64_t)length;
    guard->bytes += bitmap->length;
    guard->gone = guard->gone || length == 0;
    guard->existing = guard->existing || length != 0;
    guard->changed = guard->changed || !sealed || bitmap->length < bitmap->whole;
    if (filter->bare) /* lost once is lost for good: an add may already have begun it again */
        bitmap->whole = bitmap->length < bitmap->whole ? UINT64_MAX : bitmap->length;
}

/* Of several copies the first that is not this filter's is the one to judge. */
static void receive_spec(hibloom *filter, struct guard *guard, bool first)
{
    char other[REPLY_TEXT + 1];

    if (first || (guard->has_spec && strcmp(guard->spec, filter->text) == 0))
        guard->has_spec = guard_receive_spec(filter, guard->spec);
    else
        (void)guard_receive_spec(filter, other);
}

void guard_receive(hibloom *filter, struct redis_range range, struct guard *guard)
{
    struct redis_filter *own = redis_filter_of(filter);

    memset(guard, 0, sizeof *guard);
    for (uint32_t i = range.first; i < range.first + range.count; i++) {
        if (own->segmented || i == range.first)
            receive_spec(filter, guard, i == range.first);
        receive_bitmap(filter, &own->bitmaps[i], guard);
    }
}

void guard_look(hibloom *filter, struct redis_range range, struct guard *guard)
{
    struct redis_store *store = redis_store_of(filter);

    commands_empty(&store->out);
    guard_ask(filter, &store->out, range);
    connection_send(&store->connection, &store->out);
    guard_receive(filter, range, guard);
}

/* Says how it differs, but no seed: of siphash, that is a secret. */
void guard_fail_spec(hibloom *filter, const char *stored)
{
    struct connection *c = &redis_store_of(filter)->connection;
    char text[HIBLOOM_SPEC_TEXT_SIZE];
    const char *stored_text;
    const enum redis_state state = redis_state_of(stored, &stored_text);
    hibloom_spec spec;

    if (state != REDIS_STANDS) {
        connection_fail(c, HIBLOOM_ENOTFOUND, "'%s' is being %s", filter->name,
                        state == REDIS_CREATING ? "created" : "removed");
        return;
    }
    hibloom_status status = hibloom_spec_parse(&spec, stored);
    if (status == HIBLOOM_OK) {
        if (spec.seeded)
            memset(spec.seeds, 0, sizeof spec.seeds);
        spec.seeded = false;
        status = hibloom_spec_format(&spec, text, sizeof text);
    }
    if (status == HIBLOOM_OK)
        connection_fail(c, HIBLOOM_EMISMATCH, "'%s' is stored with another spec or seed: %s", filter->name, text);
    else
        connection_fail(c, HIBLOOM_ECORRUPT, "what is stored as the spec of '%s' is none", filter->name);
}

void guard_judge_spec(hibloom *filter, bool has_spec, const char *spec)
{
    if (!has_spec && !filter->bare)
        connection_fail(&redis_store_of(filter)->connection, HIBLOOM_ENOTFOUND,
                        "'%s' has no spec: dropped, expired or never created", filter->name);
    else if (has_spec && filter->bare)
        connection_fail(&redis_store_of(filter)->connection, HIBLOOM_EMISMATCH,
                        "'%s' is no bare bitmap but a filter with a spec: open it", filter->name);
    else if (has_spec && strcmp(spec, filter->text) != 0)
        guard_fail_spec(filter, spec);
}

void guard_judge_bitmaps(hibloom *filter, const struct guard *guard)
{
    struct connection *c = &redis_store_of(filter)->connection;

    if (guard->gone)
        connection_fail(c, HIBLOOM_ENOTFOUND, "the bitmap of '%s' is not there: deleted, evicted or expired",
                        filter->name);
    else if (guard->changed)
        connection_fail(c, HIBLOOM_ECORRUPT,
                        "the bitmap of '%s' is not the one that was created: it was lost, and this was added since",
                        filter->name);
}

void guard_judge(hibloom *filter, const struct guard *guard)
{
    guard_judge_spec(filter, guard->has_spec, guard->spec);
    guard_judge_bitmaps(filter, guard);
}

void guard_check(hibloom *filter, struct redis_range range, struct guard *guard)
{
    guard_receive(filter, range, guard);
    guard_judge(filter, guard);
}

void guard_ask_own(hibloom *filter, struct commands *out)
{
    if (redis_filter_of(filter)->segmented)
        guard_ask_spec(filter, out);
}

void guard_check_own(hibloom *filter)
{
    char spec[REPLY_TEXT + 1];

    if (!redis_filter_of(filter)->segmented)
        return;
    const bool has_spec = guard_receive_spec(filter, spec);
    guard_judge_spec(filter, has_spec, spec);
}

void guard_look_own(hibloom *filter)
{
    struct redis_store *store = redis_store_of(filter);

    if (!redis_filter_of(filter)->segmented)
        return;
    commands_empty(&store->out);
    guard_ask_own(filter, &store->out);
    connection_send(&store->connection, &store->out);
    guard_check_own(filter);
}
