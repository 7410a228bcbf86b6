/* filter.c: the filter's functions of hibloom.h. They check the caller's arguments, and the rest is the store's. */
#include "base/error.h"
#include "base/alloc.h"
#include "filter/async.h"
#include "filter/filter.h"
#include "redis/keys.h"
#include "spec/positions.h"
#include "spec/spec.h"

#include <math.h>
#include <string.h>

#define EXPIRE_MAX (UINT64_C(1) << 40) /* seconds; Redis counts milliseconds in 63 bits */

/* Overwritten first: some filters' seed is a secret. */
void filter_free(hibloom *filter)
{
    if (filter == NULL)
        return;
    explicit_bzero(filter, sizeof *filter);
    alloc.free(filter);
}

hibloom *filter_opened(hibloom *filter)
{
    LIST_INSERT_HEAD(&filter->store->filters, filter, in_store);
    return filter;
}

void filter_close(hibloom *filter)
{
    if (filter == NULL)
        return;
    if (filter->store != NULL)
        filter->store->class->close(filter);
    if (filter->in_store.le_prev != NULL)
        LIST_REMOVE(filter, in_store);
    filter_free(filter);
}

void filter_hold(hibloom *filter)
{
    if (filter != NULL)
        filter->uses++;
}

void filter_release(hibloom *filter)
{
    if (filter != NULL && filter->uses-- == 0)
        filter_close(filter);
}

void filters_leave(hibloom_store *store)
{
    for (hibloom *filter; (filter = LIST_FIRST(&store->filters)) != NULL;) {
        store->class->close(filter);
        LIST_REMOVE(filter, in_store);
        filter->in_store.le_prev = NULL;
        filter->store = NULL;
    }
}

hibloom_status filter_check_name(hibloom_store *store, const char *name)
{
    const hibloom_status status = keys_check(name);

    if (status != HIBLOOM_OK)
        (void)error_set(&store->error, status,
                        "a filter's name has 1 to %u bytes, and braces only if they make a {tag} with more beside it",
                        HIBLOOM_NAME_MAX);
    return status;
}

hibloom *filter_new(hibloom_store *store, const char *name, hibloom_status *status)
{
    *status = HIBLOOM_EINVAL;
    if (store->class == NULL)
        return NULL; /* its error already says why there is no store */
    *status = filter_check_name(store, name);
    if (*status != HIBLOOM_OK)
        return NULL;
    hibloom *filter = alloc.calloc(1, sizeof *filter);
    if (filter == NULL) {
        *status = error_set(&store->error, HIBLOOM_ENOMEM, "out of memory");
        return NULL;
    }
    filter->store = store;
    strcpy(filter->name, name);
    return filter;
}

hibloom_status filter_check(hibloom *filter, const hibloom_spec *spec, bool bare)
{
    struct error *error = &filter->store->error;

    filter->bare = bare;
    if (spec == NULL)
        return HIBLOOM_OK;
    const hibloom_status status = spec_check_words(spec, error);
    if (status != HIBLOOM_OK)
        return status;
    if (bare && spec->counters != 0)
        return error_set(error, HIBLOOM_ENOTSUP,
                         "'%s': a bare bitmap cannot count: it has nothing by which a step could tell, before it "
                         "changes a counter, whose that is",
                         filter->name);
    if (!bare && spec->keys != HIBLOOM_KEYS_OWN)
        return error_set(error, HIBLOOM_EINVAL,
                         "keys=: these are another library's keys, which has to make the filter: join it with "
                         "hibloom_attach (--bare)");
    if (spec->link != 0)
        return error_set(error, HIBLOOM_EINVAL, "link=: a further link is not opened by itself");
    if (bare && spec->window != 0)
        return error_set(error, HIBLOOM_ENOTSUP,
                         "window=: a bare bitmap is no window: nothing beside it could tell when it was emptied");
    if (bare && spec->growth != 0)
        return error_set(error, HIBLOOM_ENOTSUP,
                         "growth=: a bare bitmap does not grow: nothing beside it could tell others that it has%s",
                         spec->hash == HIBLOOM_HASH_REDISBLOOM
                             ? " (the first link of a filter of RedisBloom has half of its error=, and no growth=)"
                             : "");
    if (bare)
        filter->spec = *spec;
    return HIBLOOM_OK;
}

static hibloom_status open_filter(hibloom **out, hibloom_store *store, const char *name, const hibloom_spec *spec,
                                  bool bare, const struct how *how)
{
    hibloom_status status = call_check(store, how, 0);
    hibloom *filter = status == HIBLOOM_OK ? filter_new(store, name, &status) : NULL;

    if (filter == NULL)
        return status;
    status = filter_check(filter, spec, bare);
    if (status == HIBLOOM_OK && call_is_task(store))
        return async_links(filter, LINKS_OPEN, spec, 0, out, how);
    if (status == HIBLOOM_OK)
        status = store->class->links(filter, LINKS_OPEN, spec, 0, NULL);
    if (status == HIBLOOM_OK)
        *out = filter_opened(filter);
    else
        filter_free(filter);
    return call_end(store, NULL, status, how);
}

hibloom_status hibloom_open(hibloom **out, hibloom_store *store, const char *name, const hibloom_spec *spec)
{
    return open_filter(out, store, name, spec, false, WAITS(open));
}

hibloom_status hibloom_async_open(hibloom **out, hibloom_store *store, const char *name, const hibloom_spec *spec,
                                  hibloom_done_fn *done, void *data)
{
    return open_filter(out, store, name, spec, false, LATER(open));
}

hibloom_status hibloom_attach(hibloom **out, hibloom_store *store, const char *name, const hibloom_spec *spec)
{
    return open_filter(out, store, name, spec, true, WAITS(attach));
}

hibloom_status hibloom_async_attach(hibloom **out, hibloom_store *store, const char *name, const hibloom_spec *spec,
                                    hibloom_done_fn *done, void *data)
{
    return open_filter(out, store, name, spec, true, LATER(attach));
}

/* A call on a filter that need not be open. */
static hibloom_status call_by_name(hibloom_store *store, const char *name, enum links_goal goal, const struct how *how)
{
    hibloom_status status = call_check(store, how, 0);
    hibloom *filter = status == HIBLOOM_OK ? filter_new(store, name, &status) : NULL;

    if (filter == NULL)
        return status;
    if (call_is_task(store))
        return async_links(filter, goal, NULL, 0, NULL, how);
    status = store->class->links(filter, goal, NULL, 0, NULL);
    filter_free(filter);
    return call_end(store, NULL, status, how);
}

hibloom_status hibloom_repair(hibloom_store *store, const char *name)
{
    return call_by_name(store, name, LINKS_REPAIR, WAITS(repair));
}

hibloom_status hibloom_async_repair(hibloom_store *store, const char *name, hibloom_done_fn *done, void *data)
{
    return call_by_name(store, name, LINKS_REPAIR, LATER(repair));
}

hibloom_status hibloom_delete(hibloom_store *store, const char *name)
{
    return call_by_name(store, name, LINKS_DELETE, WAITS(delete));
}

hibloom_status hibloom_async_delete(hibloom_store *store, const char *name, hibloom_done_fn *done, void *data)
{
    return call_by_name(store, name, LINKS_DELETE, LATER(delete));
}

/* ---- Items ---------------------------------------------------------------- */

static hibloom_status check_items(hibloom *filter, enum store_call call, const hibloom_item *items, size_t n)
{
    struct error *error = &filter->store->error;

    if (call == STORE_REMOVE && filter->spec.counters == 0)
        return error_set(error, HIBLOOM_ENOTSUP,
                         "'%s' has bits, which several items share, and no counters: only a filter that was made with "
                         "counters= can remove",
                         filter->name);
    for (size_t i = 0; i < n; i++) {
        const char *wrong = positions_refuse(&filter->spec, items[i].data, items[i].len);
        if (wrong != NULL)
            return error_set(error, HIBLOOM_EINVAL, "an item of %zu bytes: %s", items[i].len, wrong);
    }
    return HIBLOOM_OK;
}

static hibloom_status call_items(hibloom *filter, enum store_call call, const hibloom_item *items, size_t n,
                                 bool *answers, const struct how *how)
{
    hibloom_status status = call_check(filter->store, how, n);

    if (status == HIBLOOM_OK)
        status = check_items(filter, call, items, n);
    if (status != HIBLOOM_OK)
        return status;
    if (call_is_task(filter->store))
        return async_items(filter, call, items, n, answers, how);
    if (n > 0)
        status = filter->store->class->items(filter, call, items, n, answers);
    return call_end(filter->store, filter, status, how);
}

static enum store_call add_call(const bool *is_new)
{
    return is_new != NULL ? STORE_ADD_NEW : STORE_ADD;
}

hibloom_status hibloom_add_many(hibloom *filter, const hibloom_item *items, size_t n, bool *is_new)
{
    return call_items(filter, add_call(is_new), items, n, is_new, WAITS(add_many));
}

hibloom_status hibloom_async_add_many(hibloom *filter, const hibloom_item *items, size_t n, bool *is_new,
                                      hibloom_done_fn *done, void *data)
{
    return call_items(filter, add_call(is_new), items, n, is_new, LATER(add_many));
}

hibloom_status hibloom_contains_many(hibloom *filter, const hibloom_item *items, size_t n, bool *found)
{
    return call_items(filter, STORE_LOOK, items, n, found, WAITS(contains_many));
}

hibloom_status hibloom_async_contains_many(hibloom *filter, const hibloom_item *items, size_t n, bool *found,
                                           hibloom_done_fn *done, void *data)
{
    return call_items(filter, STORE_LOOK, items, n, found, LATER(contains_many));
}

hibloom_status hibloom_remove_many(hibloom *filter, const hibloom_item *items, size_t n, bool *was_in)
{
    return call_items(filter, STORE_REMOVE, items, n, was_in, WAITS(remove_many));
}

hibloom_status hibloom_async_remove_many(hibloom *filter, const hibloom_item *items, size_t n, bool *was_in,
                                         hibloom_done_fn *done, void *data)
{
    return call_items(filter, STORE_REMOVE, items, n, was_in, LATER(remove_many));
}

hibloom_status hibloom_add(hibloom *filter, const void *item, size_t len, bool *is_new)
{
    return call_items(filter, add_call(is_new), &(hibloom_item){item, len}, 1, is_new, WAITS(add));
}

hibloom_status hibloom_async_add(hibloom *filter, const void *item, size_t len, bool *is_new, hibloom_done_fn *done,
                                 void *data)
{
    return call_items(filter, add_call(is_new), &(hibloom_item){item, len}, 1, is_new, LATER(add));
}

hibloom_status hibloom_contains(hibloom *filter, const void *item, size_t len, bool *found)
{
    return call_items(filter, STORE_LOOK, &(hibloom_item){item, len}, 1, found, WAITS(contains));
}

hibloom_status hibloom_async_contains(hibloom *filter, const void *item, size_t len, bool *found, hibloom_done_fn *done,
                                      void *data)
{
    return call_items(filter, STORE_LOOK, &(hibloom_item){item, len}, 1, found, LATER(contains));
}

hibloom_status hibloom_remove(hibloom *filter, const void *item, size_t len, bool *was_in)
{
    return call_items(filter, STORE_REMOVE, &(hibloom_item){item, len}, 1, was_in, WAITS(remove));
}

hibloom_status hibloom_async_remove(hibloom *filter, const void *item, size_t len, bool *was_in, hibloom_done_fn *done,
                                    void *data)
{
    return call_items(filter, STORE_REMOVE, &(hibloom_item){item, len}, 1, was_in, LATER(remove));
}

hibloom_status hibloom_near_cache(hibloom *filter, uint32_t max_age_ms)
{
    const struct store_class *class = filter->store->class;

    return class->near_cache != NULL ? class->near_cache(filter, max_age_ms) : HIBLOOM_OK;
}

/* ---- The whole filter ----------------------------------------------------- */

void filter_say_count(const struct store_count *count, hibloom_info *out)
{
    const hibloom_info info = {.size = out->size,
                               .bits_set = count->bits_set,
                               .bytes = count->bytes,
                               .ttl_ms = count->ttl_ms,
                               .keys = count->keys,
                               .fill = fmin((double)count->bits_set / (double)count->bits, 1.0),
                               .estimated_items = count->items,
                               .estimated_error_rate = count->error_rate};

    memcpy(out, &info, out->size < sizeof info ? out->size : sizeof info);
}

static hibloom_status call_links(hibloom *filter, enum links_goal goal, uint64_t ms, hibloom_info *out,
                                 const struct how *how)
{
    hibloom_store *store = filter->store;
    struct store_count count;
    hibloom_status status = call_check(store, how, 0);

    if (status == HIBLOOM_OK && ms > EXPIRE_MAX * 1000)
        status = error_set(&store->error, HIBLOOM_ERANGE, "more seconds than a time to live can have");
    if (status != HIBLOOM_OK)
        return status;
    if (call_is_task(store))
        return async_links(filter, goal, NULL, ms, out, how);
    status = store->class->links(filter, goal, NULL, ms, &count);
    if (status == HIBLOOM_OK && out != NULL)
        filter_say_count(&count, out);
    return call_end(store, filter, status, how);
}

hibloom_status(hibloom_get_info)(hibloom *filter, hibloom_info *out)
{
    return call_links(filter, LINKS_COUNT, 0, out, WAITS(get_info));
}

hibloom_status hibloom_async_get_info(hibloom *filter, hibloom_info *out, size_t size, hibloom_done_fn *done,
                                      void *data)
{
    out->size = (uint32_t)size;
    return call_links(filter, LINKS_COUNT, 0, out, LATER(get_info));
}

hibloom_status hibloom_clear(hibloom *filter)
{
    return call_links(filter, LINKS_CLEAR, 0, NULL, WAITS(clear));
}

hibloom_status hibloom_async_clear(hibloom *filter, hibloom_done_fn *done, void *data)
{
    return call_links(filter, LINKS_CLEAR, 0, NULL, LATER(clear));
}

hibloom_status hibloom_drop(hibloom *filter)
{
    return call_links(filter, LINKS_DROP, 0, NULL, WAITS(drop));
}

hibloom_status hibloom_async_drop(hibloom *filter, hibloom_done_fn *done, void *data)
{
    return call_links(filter, LINKS_DROP, 0, NULL, LATER(drop));
}

/* Too many stay too many. */
static uint64_t ms_of(uint64_t seconds)
{
    return seconds > EXPIRE_MAX ? UINT64_MAX : seconds * 1000;
}

hibloom_status hibloom_expire(hibloom *filter, uint64_t seconds)
{
    return call_links(filter, LINKS_EXPIRE, ms_of(seconds), NULL, WAITS(expire));
}

hibloom_status hibloom_async_expire(hibloom *filter, uint64_t seconds, hibloom_done_fn *done, void *data)
{
    return call_links(filter, LINKS_EXPIRE, ms_of(seconds), NULL, LATER(expire));
}

const hibloom_spec *hibloom_spec_of(const hibloom *filter)
{
    return &filter->spec;
}

void hibloom_close(hibloom *filter)
{
    if (filter != NULL && filter->store != NULL && filter->store->async != NULL)
        async_close_filter(filter->store->async, filter);
    else
        filter_release(filter);
}
