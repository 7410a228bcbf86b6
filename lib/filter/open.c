/* open.c: a filter is opened, attached or opened again, by what its caller's text says. */
#include "base/alloc.h"
#include "filter/handle.h"
#include "filter/how.h"
#include "redis/link.h"
#include "redis/prefer.h"
#include "redis/store.h"
#include "spec/spec.h"

#include <stddef.h>
#include <string.h>

/* May it be opened with that, or attached? */
static hibloom_status check(hibloom_store *store, const char *name, const struct request *wanted, bool bare)
{
    struct error *error = &store->error;
    const struct spec *spec = &wanted->spec;

    if (!bare && (wanted->said & GIVEN_KEYS) != 0 && spec->keys != KEYS_OWN)
        return error_set(error, HIBLOOM_EINVAL,
                         "keys=: these are another library's keys, which has to make the filter: join it with "
                         "hibloom_attach (--bare)");
    if (!bare)
        return HIBLOOM_OK;
    const hibloom_status status = request_check_bare(wanted, error);
    if (status != HIBLOOM_OK)
        return status;
    if (spec->counters != 0)
        return error_set(error, HIBLOOM_ENOTSUP,
                         "'%s': a bare bitmap cannot count: it has nothing by which a step could tell, before it "
                         "changes a counter, whose that is",
                         name);
    if (spec->window != 0)
        return error_set(error, HIBLOOM_ENOTSUP,
                         "window=: a bare bitmap is no window: nothing beside it could tell when it was emptied");
    if (spec->growth != 0)
        return error_set(error, HIBLOOM_ENOTSUP,
                         "growth=: a bare bitmap does not grow: nothing beside it could tell others that it has%s",
                         spec->hash == HASH_REDISBLOOM
                             ? " (the first link of a filter of RedisBloom has half of its error=, and no growth=)"
                             : "");
    return HIBLOOM_OK;
}

#define SPREAD_BITS (UINT64_C(1) << 23) /* up to 1 MB, one server does as well */

/* Over all servers, unless the text says segments or bits. One that has bits= may be of another filter, which is equal
 * only if it has as many keys. */
static hibloom_status spread(hibloom_store *store, struct request *wanted, bool bare)
{
    hibloom_status status = HIBLOOM_OK;

    if (!store_is_in_memory(store) && wanted->makes && !bare && wanted->spec.bits > SPREAD_BITS &&
        (wanted->given & (GIVEN_BITS | GIVEN_SEGMENTS | GIVEN_NEW_SEGMENTS)) == 0)
        status = spec_spread(&wanted->spec, ((const struct redis_store *)store)->server.count);
    return status == HIBLOOM_OK ? status : error_set(&store->error, status, "too large for a key on each server");
}

hibloom_status filter_want(hibloom_store *store, const char *name, struct request *wanted, const char *text, bool bare)
{
    struct error error; /* words that are written on the way to an OK are not the store's */
    hibloom_status status = request_read(wanted, text, &error);

    if (status != HIBLOOM_OK)
        return error_set(&store->error, status, "%s", error.words);
    status = check(store, name, wanted, bare);
    if (status == HIBLOOM_OK)
        status = prefer_pick(wanted, &store->error);
    if (status == HIBLOOM_OK)
        status = spread(store, wanted, bare);
    return status;
}

hibloom_status filter_say(hibloom *filter, const struct request *wanted, const char *text, bool bare)
{
    filter->bare = bare;
    if (bare)
        filter->spec = wanted->spec;
    filter->text = text != NULL ? alloc_text(text) : NULL;
    return text == NULL || filter->text != NULL ? HIBLOOM_OK
                                                : error_set(&filter->store->error, HIBLOOM_ENOMEM, "out of memory");
}

/* LIKE: it has what the text says, and nothing else. */
enum meant { FILTER, BARE, LIKE };

/* A handle that is not open, and what its text says. It opens `again`, whose text that is, or goes to *out. */
static hibloom_status open_filter(hibloom **out, hibloom *again, hibloom_store *store, const char *name,
                                  const char *text, enum meant meant, const struct how *how)
{
    const bool bare = meant == BARE;
    struct request wanted AT_END(request_wipe) = {.said = 0};
    hibloom_status status = how_check(store, again, how, 0);
    hibloom *filter = status == HIBLOOM_OK ? filter_new(store, name, &status) : NULL;

    if (filter == NULL)
        return status;
    status = filter_want(store, name, &wanted, text, bare);
    if (again != NULL && wanted.create == CREATE_ONLY) /* the first call has made it */
        wanted.create = CREATE_YES;
    if (meant == LIKE)
        request_say_all(&wanted);
    if (status == HIBLOOM_OK)
        status = filter_say(filter, &wanted, text, bare);
    if (status != HIBLOOM_OK) {
        filter_free(filter);
        return status;
    }
    return how_links(
        store, &(struct links_args){.goal = LINKS_OPEN, .filter = again, .made = filter, .wanted = &wanted, .out = out},
        how);
}

hibloom_status hibloom_open(hibloom **out, hibloom_store *store, const char *name, const char *spec)
{
    return open_filter(out, NULL, store, name, spec, FILTER, WAITS(open));
}

hibloom_status hibloom_async_open(hibloom **out, hibloom_store *store, const char *name, const char *spec,
                                  hibloom_done_fn *done, void *data)
{
    return open_filter(out, NULL, store, name, spec, FILTER, LATER(open));
}

hibloom_status hibloom_attach(hibloom **out, hibloom_store *store, const char *name, const char *spec)
{
    return open_filter(out, NULL, store, name, spec, BARE, WAITS(attach));
}

hibloom_status hibloom_async_attach(hibloom **out, hibloom_store *store, const char *name, const char *spec,
                                    hibloom_done_fn *done, void *data)
{
    return open_filter(out, NULL, store, name, spec, BARE, LATER(attach));
}

static hibloom_status open_like(hibloom **out, hibloom_store *store, const char *name, const hibloom *like,
                                const struct how *how)
{
    const char *text = hibloom_secret_spec_of(like);

    if (*text == '\0')
        return error_set(&store->error, HIBLOOM_ENOMEM, "out of memory");
    return open_filter(out, NULL, store, name, text, LIKE, how);
}

hibloom_status hibloom_open_like(hibloom **out, hibloom_store *store, const char *name, const hibloom *like)
{
    return open_like(out, store, name, like, WAITS(open_like));
}

hibloom_status hibloom_async_open_like(hibloom **out, hibloom_store *store, const char *name, const hibloom *like,
                                       hibloom_done_fn *done, void *data)
{
    return open_like(out, store, name, like, LATER(open_like));
}

/* ---- Again ---- */

/* The new handle's filter becomes this one's, and the other way round. Each keeps its name, its room, and its calls. A
 * restart that the handle has not reported is still to be reported, unless all is lost anyway. */
static void exchange(hibloom *filter, hibloom *fresh)
{
    const size_t fields = offsetof(hibloom, in_store);
    char old[sizeof(hibloom)];

    memcpy(old, filter, fields);
    memcpy(filter, fresh, fields);
    memcpy(fresh, old, fields);
    memcpy(&filter->spec, &fresh->spec, spec_bytes(&fresh->spec));
    if (store_is_in_memory(filter->store))
        return;
    redis_filter_moved(filter);
    redis_filter_moved(fresh);
    if (!filter->created)
        redis_filter_of(filter)->restarts = redis_filter_of(fresh)->restarts;
}

hibloom_status filter_take_over(hibloom *filter, hibloom *fresh)
{
    hibloom_status status = HIBLOOM_OK;

    if (filter->near)
        status = hibloom_near_cache(fresh, filter->near_ms);
    if (status == HIBLOOM_ENOTSUP) { /* the one that is there now has none; the next one may have */
        fresh->near = true;
        fresh->near_ms = filter->near_ms;
        status = HIBLOOM_OK;
    }
    if (status == HIBLOOM_OK && spec_bytes(&fresh->spec) > filter->room)
        status = error_set(&filter->store->error, HIBLOOM_EMISMATCH,
                           "'%s' has a hash with many seeds now: open it with a new handle", filter->name);
    if (status == HIBLOOM_OK)
        exchange(filter, fresh);
    filter_close(fresh);
    return status;
}

static hibloom_status reopen(hibloom *filter, const struct how *how)
{
    const enum meant meant = filter->bare ? BARE : FILTER;

    return open_filter(NULL, filter, filter->store, filter->name, filter->text, meant, how);
}

hibloom_status hibloom_reopen(hibloom *filter)
{
    return reopen(filter, WAITS(reopen));
}

hibloom_status hibloom_async_reopen(hibloom *filter, hibloom_done_fn *done, void *data)
{
    return reopen(filter, LATER(reopen));
}
