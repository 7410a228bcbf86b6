/* store.c: the functions of a store, each as a task. See store.h. */
#include "redis/store.h"
#include "base/alloc.h"
#include "redis/sieve.h"
#include "redis/links.h"
#include "redis/list.h"
#include "redis/near.h"

/* ---- How a filter comes to be and goes ------------------------------------------- */

static hibloom_status redis_on_links(hibloom *filter, enum links_goal goal, const struct request *wanted,
                                     uint64_t number, struct store_count *count)
{
    struct redis_store *store = (struct redis_store *)filter->store;
    struct links links;

    links_begin(&links, goal, filter, wanted, number);
    const hibloom_status status = store->run(store, &links.task);
    *count = links.count;
    task_release(&links.task);
    return status;
}

/* ---- Items -------------------------------------------------------------------------- */

static hibloom_status redis_items(hibloom *filter, enum store_call call, const hibloom_item *items, size_t n,
                                  bool *answers)
{
    struct redis_store *store = (struct redis_store *)filter->store;
    struct item_call here;

    item_call_begin(&here, call, filter, items, n);
    const hibloom_status status = store->run(store, here.run);
    item_call_end(&here, answers);
    return status;
}

static hibloom_status redis_near_cache(hibloom *filter, uint64_t max_age_ms)
{
    struct redis_filter *own = redis_filter_of(filter);
    const uint64_t age_ns = max_age_ms < UINT64_MAX / 1000000 ? max_age_ms * 1000000 : UINT64_MAX;

    if (filter->bare)
        return error_set(&filter->store->error, HIBLOOM_ENOTSUP,
                         "'%s': a bare bitmap says nothing by which to see that it was emptied", filter->name);
    if (filter->spec.counters != 0)
        return error_set(&filter->store->error, HIBLOOM_ENOTSUP,
                         "'%s' is a counting filter: what is in may be removed by others, and nothing would tell",
                         filter->name);
    if (filter->spec.window != 0)
        return error_set(
            &filter->store->error, HIBLOOM_ENOTSUP,
            "'%s' is a sliding window: what is in is forgotten after a time, so all of it must be asked for",
            filter->name);
    for (uint32_t i = 0; i < redis_links(own); i++)
        if (!near_begin(redis_link(own, i), age_ns))
            return error_set(&filter->store->error, HIBLOOM_ENOMEM, "out of memory");
    return HIBLOOM_OK;
}

/* ---- The store ------------------------------------------------------------------------------ */

static hibloom_status redis_list(hibloom_store *base, const char *pattern, hibloom_list_fn *each, void *data)
{
    struct redis_store *store = (struct redis_store *)base;
    struct listing *listing = listing_make(store, pattern);
    hibloom_status status = listing != NULL ? HIBLOOM_OK : error_set(&base->error, HIBLOOM_ENOMEM, "out of memory");
    bool wanted = true;

    while (status == HIBLOOM_OK && wanted && !listing_is_over(listing)) {
        status = store->run(store, listing_begin(listing));
        for (const char *name; status == HIBLOOM_OK && wanted && (name = listing_next(listing)) != NULL;)
            wanted = each(name, data);
    }
    alloc.free(listing);
    return status;
}

static void redis_free(hibloom_store *base)
{
    struct redis_store *store = (struct redis_store *)base;

    store->close(store);
    alloc.free(store);
}

const struct store_class redis_store_class = {
    .links = redis_on_links,
    .items = redis_items,
    .near_cache = redis_near_cache,
    .close = redis_filter_free,
    .list = redis_list,
    .free = redis_free,
};
