/* filter.c: calls on open filters, and on filters by their name. They check the caller's arguments, and the rest is the
 * store's. */
#include "filter/handle.h"
#include "filter/how.h"
#include "spec/positions.h"

#include <string.h>

/* A call on a filter that need not be open. */
static hibloom_status call_by_name(hibloom_store *store, const char *name, enum links_goal goal, const struct how *how)
{
    hibloom_status status = how_check(store, NULL, how, 0);
    hibloom *filter = status == HIBLOOM_OK ? filter_new(store, name, &status) : NULL;

    return filter != NULL ? how_links(store, &(struct links_args){.goal = goal, .made = filter}, how) : status;
}

hibloom_status hibloom_repair(hibloom_store *store, const char *name)
{
    return call_by_name(store, name, LINKS_REPAIR, WAITS(repair));
}

hibloom_status hibloom_async_repair(hibloom_store *store, const char *name, hibloom_done_fn *done, void *data)
{
    return call_by_name(store, name, LINKS_REPAIR, LATER(repair));
}

hibloom_status hibloom_drop_by_name(hibloom_store *store, const char *name)
{
    return call_by_name(store, name, LINKS_DELETE, WAITS(drop_by_name));
}

hibloom_status hibloom_async_drop_by_name(hibloom_store *store, const char *name, hibloom_done_fn *done, void *data)
{
    return call_by_name(store, name, LINKS_DELETE, LATER(drop_by_name));
}

/* ---- Items ---------------------------------------------------------------- */

hibloom_status filter_check_items(hibloom *filter, enum store_op op, const hibloom_item *items, size_t n)
{
    struct error *error = &filter->store->error;

    if (op == STORE_REMOVE && filter->spec.counters == 0)
        return error_set(error, HIBLOOM_ENOTSUP,
                         "'%s' has bits, which several items share, and no counters: only a filter that was made with "
                         "counters= can remove",
                         filter->name);
    for (size_t i = 0; i < n; i++) {
        const char *wrong = positions_refuse(&filter->spec, items[i].data, items[i].len);
        if (wrong != NULL && store_is_silent(filter->store, op))
            return HIBLOOM_EINVAL;
        if (wrong != NULL)
            return error_set(error, HIBLOOM_EINVAL, "an item of %zu bytes: %s", items[i].len, wrong);
    }
    return HIBLOOM_OK;
}

hibloom_status hibloom_add_many(hibloom *filter, const hibloom_item *items, size_t n, bool *is_new)
{
    return how_items(filter, store_add(is_new), items, n, is_new, WAITS(add_many));
}

hibloom_status hibloom_async_add_many(hibloom *filter, const hibloom_item *items, size_t n, bool *is_new,
                                      hibloom_done_fn *done, void *data)
{
    return how_items(filter, store_add(is_new), items, n, is_new, LATER(add_many));
}

hibloom_status hibloom_contains_many(hibloom *filter, const hibloom_item *items, size_t n, bool *found)
{
    return how_items(filter, STORE_LOOK, items, n, found, WAITS(contains_many));
}

hibloom_status hibloom_async_contains_many(hibloom *filter, const hibloom_item *items, size_t n, bool *found,
                                           hibloom_done_fn *done, void *data)
{
    return how_items(filter, STORE_LOOK, items, n, found, LATER(contains_many));
}

hibloom_status hibloom_remove_many(hibloom *filter, const hibloom_item *items, size_t n, bool *was_in)
{
    return how_items(filter, STORE_REMOVE, items, n, was_in, WAITS(remove_many));
}

hibloom_status hibloom_async_remove_many(hibloom *filter, const hibloom_item *items, size_t n, bool *was_in,
                                         hibloom_done_fn *done, void *data)
{
    return how_items(filter, STORE_REMOVE, items, n, was_in, LATER(remove_many));
}

hibloom_status hibloom_add(hibloom *filter, const void *item, size_t len, bool *is_new)
{
    return how_items(filter, store_add(is_new), &(hibloom_item){item, len}, 1, is_new, WAITS(add));
}

hibloom_status hibloom_async_add(hibloom *filter, const void *item, size_t len, bool *is_new, hibloom_done_fn *done,
                                 void *data)
{
    return how_items(filter, store_add(is_new), &(hibloom_item){item, len}, 1, is_new, LATER(add));
}

hibloom_status hibloom_contains(hibloom *filter, const void *item, size_t len, bool *found)
{
    return how_items(filter, STORE_LOOK, &(hibloom_item){item, len}, 1, found, WAITS(contains));
}

hibloom_status hibloom_async_contains(hibloom *filter, const void *item, size_t len, bool *found, hibloom_done_fn *done,
                                      void *data)
{
    return how_items(filter, STORE_LOOK, &(hibloom_item){item, len}, 1, found, LATER(contains));
}

hibloom_status hibloom_remove(hibloom *filter, const void *item, size_t len, bool *was_in)
{
    return how_items(filter, STORE_REMOVE, &(hibloom_item){item, len}, 1, was_in, WAITS(remove));
}

hibloom_status hibloom_async_remove(hibloom *filter, const void *item, size_t len, bool *was_in, hibloom_done_fn *done,
                                    void *data)
{
    return how_items(filter, STORE_REMOVE, &(hibloom_item){item, len}, 1, was_in, LATER(remove));
}

hibloom_status hibloom_near_cache(hibloom *filter, uint64_t max_age_ms)
{
    const struct store_class *class = filter->store->class;
    const hibloom_status status = class->near_cache != NULL ? class->near_cache(filter, max_age_ms) : HIBLOOM_OK;

    if (status == HIBLOOM_OK) {
        filter->near = true;
        filter->near_ms = max_age_ms;
    }
    return status;
}

/* ---- The whole filter ----------------------------------------------------- */

void filter_fill(void *out, size_t size, const void *from, size_t from_size)
{
    memset(out, 0, size);
    memcpy(out, from, size < from_size ? size : from_size);
}

static hibloom_status call_links(hibloom *filter, enum links_goal goal, uint64_t ms, hibloom_info *out, size_t size,
                                 const struct how *how)
{
    hibloom_store *store = filter->store;
    hibloom_status status = how_check(store, filter, how, 0);

    if (status == HIBLOOM_OK && ms > WORDS_TTL_MAX)
        status = error_set(&store->error, HIBLOOM_ERANGE, "a time to live is 2^50 ms at most");
    if (status != HIBLOOM_OK)
        return status;
    const struct links_args args = {.goal = goal, .filter = filter, .ms = ms, .info = out, .size = size};
    return how_links(store, &args, how);
}

hibloom_status hibloom_get_info(hibloom *filter, hibloom_info *out, size_t size)
{
    return call_links(filter, LINKS_COUNT, 0, out, size, WAITS(get_info));
}

hibloom_status hibloom_async_get_info(hibloom *filter, hibloom_info *out, size_t size, hibloom_done_fn *done,
                                      void *data)
{
    return call_links(filter, LINKS_COUNT, 0, out, size, LATER(get_info));
}

hibloom_status hibloom_clear(hibloom *filter)
{
    return call_links(filter, LINKS_CLEAR, 0, NULL, 0, WAITS(clear));
}

hibloom_status hibloom_async_clear(hibloom *filter, hibloom_done_fn *done, void *data)
{
    return call_links(filter, LINKS_CLEAR, 0, NULL, 0, LATER(clear));
}

hibloom_status hibloom_drop(hibloom *filter)
{
    return call_links(filter, LINKS_DROP, 0, NULL, 0, WAITS(drop));
}

hibloom_status hibloom_async_drop(hibloom *filter, hibloom_done_fn *done, void *data)
{
    return call_links(filter, LINKS_DROP, 0, NULL, 0, LATER(drop));
}

hibloom_status hibloom_expire(hibloom *filter, uint64_t ms)
{
    return call_links(filter, LINKS_EXPIRE, ms, NULL, 0, WAITS(expire));
}

hibloom_status hibloom_async_expire(hibloom *filter, uint64_t ms, hibloom_done_fn *done, void *data)
{
    return call_links(filter, LINKS_EXPIRE, ms, NULL, 0, LATER(expire));
}
