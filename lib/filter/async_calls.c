/* async_calls.c: calls on a loop's store, each as a work; and calls that may wait or not. See filter/async.h. */
#include "base/alloc.h"
#include "filter/async.h"
#include "filter/filter.h"
#include "redis/links.h"
#include "redis/list.h"
#include "redis/sieve.h"

#include <string.h>

/* ---- The whole filter ----------------------------------------------------------------------- */

struct links_work {
    struct work work;
    struct links links;
    struct links_call call;
    struct request wanted;
};

static hibloom_status hand_over(const struct links_call *call, hibloom_status status, const struct store_count *count,
                                bool wanted)
{
    const bool opened = call->goal == LINKS_OPEN && status == HIBLOOM_OK;

    if (opened && wanted && call->filter != NULL)
        return filter_take_over(call->filter, call->made);
    if (opened && wanted)
        *call->out = filter_opened(call->made);
    else if (opened)
        filter_close(call->made);
    else
        filter_free(call->made);
    if (call->info != NULL && status == HIBLOOM_OK && wanted)
        filter_say_count(count, call->info, call->size);
    return status;
}

static hibloom_status finish_links(struct work *work, hibloom_status status)
{
    struct links_work *own = (struct links_work *)work;
    hibloom *filter = work->filter;
    bool wanted = work->done != NULL;
    const bool busy = wanted && status == HIBLOOM_OK && own->call.made != NULL && filter != NULL && filter->uses > 1;

    task_release(&own->links.task);
    explicit_bzero(&own->wanted, sizeof own->wanted);
    status = hand_over(&own->call, status, &own->links.count, wanted && !busy);
    return !busy ? status
                 : error_set(&filter->store->error, HIBLOOM_EBUSY, "'%s': other calls on its handle are pending",
                             filter->name);
}

hibloom_status links_call(hibloom_store *store, const struct links_call *call, const struct how *how)
{
    hibloom *filter = call->made != NULL ? call->made : call->filter;
    struct store_count count;

    if (!how_is_task(store)) {
        const hibloom_status status = store->class->links(filter, call->goal, call->wanted, call->ms, &count);
        return how_end(store, call->filter, hand_over(call, status, &count, true), how);
    }
    struct links_work *own = async_new_work(store->async, how, sizeof *own, 0, finish_links);
    if (own == NULL) {
        filter_free(call->made);
        return HIBLOOM_ENOMEM;
    }
    own->work.filter = call->filter;
    own->call = *call;
    if (call->wanted != NULL)
        own->wanted = *call->wanted;
    links_begin(&own->links, call->goal, filter, call->wanted != NULL ? &own->wanted : NULL, call->ms);
    return async_begin(&own->work, &own->links.task);
}

/* ---- Items ------------------------------------------------------------------------------------ */

/* Behind it the items and their bytes. */
struct items_work {
    struct work work;
    struct item_call call;
    bool *answers; /* NULL: not wanted */
    hibloom_item items[];
};

static hibloom_status finish_items(struct work *work, hibloom_status status)
{
    struct items_work *own = (struct items_work *)work;

    item_call_end(&own->call, work->done != NULL && status == HIBLOOM_OK ? own->answers : NULL);
    return status;
}

/* NULL: out of memory. */
static struct items_work *copy_items(struct async *async, const struct how *how, const hibloom_item *items, size_t n)
{
    size_t size = sizeof(struct items_work);
    bool fits = !__builtin_mul_overflow(n, sizeof *items, &size) &&
                !__builtin_add_overflow(size, sizeof(struct items_work), &size);

    for (size_t i = 0; i < n; i++)
        fits = fits && !__builtin_add_overflow(size, items[i].len, &size);
    struct items_work *own = async_new_work(async, how, fits ? size : 0, n, finish_items);
    if (own == NULL)
        return NULL;
    char *at = (char *)(own->items + n);
    for (size_t i = 0; i < n; i++) {
        own->items[i] = (hibloom_item){at, items[i].len};
        if (items[i].len > 0)
            memcpy(at, items[i].data, items[i].len);
        at += items[i].len;
    }
    return own;
}

hibloom_status async_items(hibloom *filter, enum store_call call, const hibloom_item *items, size_t n, bool *answers,
                           const struct how *how)
{
    struct items_work *own = copy_items(filter->store->async, how, items, n);

    if (own == NULL)
        return HIBLOOM_ENOMEM;
    own->work.filter = filter;
    own->answers = answers;
    item_call_begin(&own->call, call, filter, own->items, n);
    return async_begin(&own->work, own->call.run);
}

/* ---- Names ------------------------------------------------------------------------------------ */

struct list_work {
    struct work work;
    struct listing *listing;
    hibloom_list_fn *each;
    void *each_data;
    char pattern[];
};

/* A task for each page. Between two names its owner's function may even free the store: then done is NULL. */
static hibloom_status finish_list(struct work *work, hibloom_status status)
{
    struct list_work *own = (struct list_work *)work;
    bool wanted = status == HIBLOOM_OK;

    for (const char *name; wanted && work->done != NULL && (name = listing_next(own->listing)) != NULL;)
        wanted = own->each(name, own->each_data);
    const bool goes_on = wanted && work->done != NULL && !listing_is_over(own->listing);
    if (goes_on && !work->async->looped.closing)
        work->next = listing_begin(own->listing);
    else
        alloc.free(own->listing);
    return goes_on && work->next == NULL ? HIBLOOM_ECANCELED : status;
}

hibloom_status async_list(hibloom_store *store, const char *pattern, hibloom_list_fn *each, void *each_data,
                          const struct how *how)
{
    const size_t len = strlen(pattern) + 1;
    struct list_work *own = async_new_work(store->async, how, sizeof *own + len, 0, finish_list);

    if (own == NULL)
        return HIBLOOM_ENOMEM;
    memcpy(own->pattern, pattern, len);
    own->each = each;
    own->each_data = each_data;
    own->listing = listing_make((struct redis_store *)store, own->pattern);
    if (own->listing == NULL) {
        alloc.free(own);
        return error_set(&store->error, HIBLOOM_ENOMEM, "out of memory");
    }
    return async_begin(&own->work, listing_begin(own->listing));
}
