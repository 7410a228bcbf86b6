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
 * one, or of the old: either way they were true during the call. */
#include "store_redis.h"

#include <string.h>

void guard_ask(hibloom *filter, struct commands *out)
{
    const struct redis_filter *own = redis_filter_of(filter);

    command_start(out, 2, "GET");
    command_argument(out, redis_key_argument(&own->spec));
    for (uint32_t i = 0; i < own->count; i++) {
        const struct redis_key *key = &own->bitmaps[i];
        command_start(out, 2, "STRLEN");
        command_argument(out, redis_key_argument(key));
        if (key->sealed) {
            command_start(out, 4, "GETRANGE");
            command_argument(out, redis_key_argument(key));
            command_number(out, key->whole - REDIS_SEAL_BYTES);
            command_number(out, key->whole - 1);
        }
    }
}

bool guard_receive_spec(struct connection *c, char text[REPLY_TEXT + 1])
{
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

static bool receive_seal(struct connection *c)
{
    const struct reply *reply = connection_receive(c);

    if (reply != NULL && reply->type != REDIS_REPLY_STRING)
        connection_unexpected(c);
    return reply != NULL && reply->text_len == REDIS_SEAL_BYTES &&
           memcmp(reply->text, REDIS_SEAL, REDIS_SEAL_BYTES) == 0;
}

static void receive_bitmap(hibloom *filter, struct redis_key *key, struct guard *guard)
{
    struct connection *c = &redis_store_of(filter)->connection;
    long long length = 0;

    if (connection_receive_integer(c, &length) && length < 0)
        connection_unexpected(c);
    const bool sealed = !key->sealed || receive_seal(c);
    if (c->status != HIBLOOM_OK)
        return;
    key->length = (uint64_t)length;
    guard->bytes += key->length;
    guard->gone = guard->gone || length == 0;
    guard->existing = guard->existing || length != 0;
    guard->changed = guard->changed || !sealed || key->length < key->whole;
    if (filter->bare) /* lost once is lost for good: an add may already have begun it again */
        key->whole = key->length < key->whole ? UINT64_MAX : key->length;
}

void guard_receive(hibloom *filter, struct guard *guard)
{
    struct redis_filter *own = redis_filter_of(filter);

    *guard = (struct guard){0};
    guard->has_spec = guard_receive_spec(&redis_store_of(filter)->connection, guard->spec);
    for (uint32_t i = 0; i < own->count; i++)
        receive_bitmap(filter, &own->bitmaps[i], guard);
}

/* Says how it differs, but no seed: of siphash, that is a secret. */
void guard_fail_spec(hibloom *filter, const char *stored)
{
    struct connection *c = &redis_store_of(filter)->connection;
    char text[HIBLOOM_SPEC_TEXT_SIZE];
    hibloom_spec spec;
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

void guard_judge_spec(hibloom *filter, const struct guard *guard)
{
    if (!guard->has_spec && !filter->bare)
        connection_fail(&redis_store_of(filter)->connection, HIBLOOM_ENOTFOUND,
                        "'%s' has no spec: dropped, expired or never created", filter->name);
    else if (guard->has_spec && filter->bare)
        connection_fail(&redis_store_of(filter)->connection, HIBLOOM_EMISMATCH,
                        "'%s' is no bare bitmap but a filter with a spec: open it", filter->name);
    else if (guard->has_spec && strcmp(guard->spec, filter->text) != 0)
        guard_fail_spec(filter, guard->spec);
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
    guard_judge_spec(filter, guard);
    guard_judge_bitmaps(filter, guard);
}

void guard_check(hibloom *filter, struct guard *guard)
{
    guard_receive(filter, guard);
    guard_judge(filter, guard);
}
