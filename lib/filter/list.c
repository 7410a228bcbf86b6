/* list.c: the caller's function gets the name of each filter of a store. See redis/list.h. */
#include "base/alloc.h"
#include "filter/async.h"
#include "redis/list.h"

#include <string.h>

struct list_work {
    struct work work;
    struct listing *listing;
    hibloom_list_fn *each;
    void *each_data;
    char pattern[];
};

/* A task for each page. Between two names its owner's function may even free the store: then it is not wanted. */
static hibloom_status finish_list(struct work *work, hibloom_status status)
{
    struct list_work *own = (struct list_work *)work;
    bool wanted = status == HIBLOOM_OK;

    for (const char *name; wanted && work_is_wanted(work) && (name = listing_next(own->listing)) != NULL;)
        wanted = own->each(name, own->each_data);
    if (wanted && work_is_wanted(work) && !listing_is_over(own->listing))
        work->next = listing_begin(own->listing);
    else
        alloc.free(own->listing);
    return status;
}

static bool list_one(const char *name, void *data)
{
    const struct list_work *own = data;

    return own->each(name, own->each_data) && (own->work.async == NULL || !own->work.async->looped.closing);
}

/* In memory. Its owner's function may make calls in the middle of it, and free the store. */
static hibloom_status list_at_once(struct list_work *own, const char *pattern)
{
    hibloom_store *store = own->work.store;
    struct async *async = own->work.async;

    if (async != NULL)
        looped_enter(&async->looped);
    hibloom_status status = store->class->list(store, pattern, list_one, own);
    if (async != NULL && async->looped.closing)
        status = HIBLOOM_ECANCELED;
    status = work_end(&own->work, status);
    if (async != NULL)
        looped_leave(&async->looped);
    return status;
}

static hibloom_status list(hibloom_store *store, const char *pattern, hibloom_list_fn *each, void *each_data,
                           const struct how *how)
{
    const hibloom_status status = how_check(store, NULL, how, 0);

    if (status != HIBLOOM_OK)
        return status;
    if (pattern == NULL)
        pattern = "*";
    const size_t len = strlen(pattern) + 1;
    struct list_work here, *own = work_make(store, how, &here, sizeof *own + len, 0, finish_list);
    if (own == NULL)
        return HIBLOOM_ENOMEM;
    own->each = each;
    own->each_data = each_data;
    if (store_is_in_memory(store))
        return list_at_once(own, pattern);
    own->listing = listing_make((struct redis_store *)store,
                                store->async != NULL ? memcpy(own->pattern, pattern, len) : pattern);
    if (own->listing == NULL)
        return work_end(&own->work, error_set(&store->error, HIBLOOM_ENOMEM, "out of memory"));
    return work_go(&own->work, listing_begin(own->listing));
}

hibloom_status hibloom_list(hibloom_store *store, const char *pattern, hibloom_list_fn *each, void *data)
{
    return list(store, pattern, each, data, WAITS(list));
}

hibloom_status hibloom_async_list(hibloom_store *store, const char *pattern, hibloom_list_fn *each, void *each_data,
                                  hibloom_done_fn *done, void *data)
{
    return list(store, pattern, each, each_data, LATER(list));
}
