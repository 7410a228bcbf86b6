/* async_calls.c: the calls on filters of async.h, each as a work. See filter/async.h. */
#include "filter/async.h"
#include "base/alloc.h"
#include "redis/sieve.h"

#include <string.h>

/* ---- How a filter comes to be and goes ------------------------------------------------------ */

struct links_work {
    struct work work;
    struct links links;
    hibloom_spec wanted;
};

/* hibloom_get_info asks the store to count, which was done. */
static hibloom_status read_info(struct links_work *own, hibloom_info *info)
{
    struct hibloom_async *async = own->work.filter->async;

    async->count = &own->links.count;
    const hibloom_status status = hibloom_get_info(own->work.filter->handle, info);
    async->count = NULL;
    return status;
}

static void finish_links(struct work *work, hibloom_status status)
{
    struct links_work *own = (struct links_work *)work;
    const struct callback callback = async_take_callback(work);
    struct hibloom_async_filter *filter = work->filter;
    hibloom_info info;

    links_end(&own->links);
    explicit_bzero(&own->wanted, sizeof own->wanted);
    if (callback.opened != NULL && status == HIBLOOM_OK) {
        callback.opened(status, filter, callback.data);
    } else if (callback.counted != NULL && status == HIBLOOM_OK) {
        status = read_info(own, &info);
        callback.counted(status, &info, callback.data);
    } else {
        async_call_back(&callback, status, 0);
    }
    if (callback.opened != NULL && status != HIBLOOM_OK)
        async_release(filter);
}

static hibloom_status begin_links(hibloom *handle, enum links_goal goal, const hibloom_spec *wanted, uint64_t ms)
{
    struct hibloom_async *async = async_store_of(handle);
    struct links_work *own = async_new_work(async, sizeof *own, 0, finish_links);

    if (own == NULL)
        return HIBLOOM_ENOMEM;
    if (wanted != NULL)
        own->wanted = *wanted;
    links_begin(&own->links, goal, handle, wanted != NULL ? &own->wanted : NULL, ms);
    return async_begin_work(async, &own->work, &own->links.task);
}

static hibloom_status open_filter(hibloom *handle, const hibloom_spec *wanted)
{
    return begin_links(handle, LINKS_OPEN, wanted, 0);
}

static hibloom_status drop(hibloom *handle)
{
    return begin_links(handle, LINKS_DROP, NULL, 0);
}

hibloom_status hibloom_async_open(hibloom_async *async, const char *name, const hibloom_spec *spec,
                                  hibloom_opened_fn *opened, void *data)
{
    struct hibloom_async_filter *filter = alloc.calloc(1, sizeof *filter);

    if (filter == NULL)
        return error_set(async_error(async), HIBLOOM_ENOMEM, "out of memory");
    filter->async = async;
    filter->uses = 1;
    TAILQ_INIT(&filter->works);
    hibloom_status status = async_submit(async, filter, 0, (struct callback){.opened = opened, .data = data});
    if (status == HIBLOOM_OK) {
        TAILQ_INSERT_TAIL(&async->filters, filter, in_filters);
        status = hibloom_open(&filter->handle, &async->driver.carrier.store.base, name, spec);
        if (status != HIBLOOM_OK)
            TAILQ_REMOVE(&async->filters, filter, in_filters);
    }
    if (status != HIBLOOM_OK)
        alloc.free(filter);
    return status;
}

const hibloom_spec *hibloom_async_spec_of(const hibloom_async_filter *filter)
{
    return hibloom_spec_of(filter->handle);
}

hibloom_status hibloom_async_near_cache(hibloom_async_filter *filter)
{
    return hibloom_near_cache(filter->handle, 0);
}

/* ---- Items ------------------------------------------------------------------------------------ */

/* Behind it the items, their answers and their bytes. */
struct items_work {
    struct work work;
    struct sieve run;
    bool *answers; /* NULL: not wanted */
    hibloom_item items[];
};

static void finish_items(struct work *work, hibloom_status status)
{
    struct items_work *own = (struct items_work *)work;
    const struct callback callback = async_take_callback(work);

    sieve_end(&own->run, own->answers);
    if (status == HIBLOOM_OK && callback.answered != NULL)
        callback.answered(status, own->answers, work->n, callback.data);
    else
        async_call_back(&callback, status, work->n);
}

/* NULL: out of memory. */
static struct items_work *copy_items(struct hibloom_async *async, const hibloom_item *items, size_t n, bool wants)
{
    const size_t answers = wants ? n : 0;
    size_t size = sizeof(struct items_work);
    bool fits = !__builtin_mul_overflow(n, sizeof *items, &size) &&
                !__builtin_add_overflow(size, sizeof(struct items_work) + answers, &size);

    for (size_t i = 0; i < n; i++)
        fits = fits && !__builtin_add_overflow(size, items[i].len, &size);
    struct items_work *own = async_new_work(async, fits ? size : 0, n, finish_items);
    if (own == NULL)
        return NULL;
    own->answers = wants ? (bool *)(own->items + n) : NULL;
    char *at = (char *)(own->items + n) + answers;
    for (size_t i = 0; i < n; i++) {
        own->items[i] = (hibloom_item){at, items[i].len};
        if (items[i].len > 0)
            memcpy(at, items[i].data, items[i].len);
        at += items[i].len;
    }
    return own;
}

static hibloom_status add(hibloom *handle, const hibloom_item *items, size_t n, bool *is_new)
{
    struct hibloom_async *async = async_store_of(handle);
    struct items_work *own = copy_items(async, items, n, is_new != NULL);

    if (own == NULL)
        return HIBLOOM_ENOMEM;
    sieve_begin_add(&own->run, handle, own->items, n, is_new != NULL);
    return async_begin_work(async, &own->work, own->run.run);
}

/* What has an answer for each item. */
static hibloom_status ask(hibloom *handle, const hibloom_item *items, size_t n,
                          void (*begin)(struct sieve *, hibloom *, const hibloom_item *, size_t n))
{
    struct hibloom_async *async = async_store_of(handle);
    struct items_work *own = copy_items(async, items, n, true);

    if (own == NULL)
        return HIBLOOM_ENOMEM;
    begin(&own->run, handle, own->items, n);
    return async_begin_work(async, &own->work, own->run.run);
}

static hibloom_status contains(hibloom *handle, const hibloom_item *items, size_t n, bool *found)
{
    return ask(handle, items, n, sieve_begin_contains);
}

static hibloom_status remove_items(hibloom *handle, const hibloom_item *items, size_t n, bool *was_in)
{
    return ask(handle, items, n, sieve_begin_remove);
}

/* The blocking call checks the items, and begins with them what this store does of it; of none
 * it begins nothing, and then only the filter is asked for. */
typedef hibloom_status items_call(hibloom *, const hibloom_item *, size_t n, bool *answers);

static hibloom_status submit_items(hibloom_async_filter *filter, const hibloom_item *items, size_t n, bool *wanted,
                                   struct callback callback, items_call *checked, items_call *begin)
{
    hibloom_status status = async_submit(filter->async, filter, n, callback);

    if (status == HIBLOOM_OK)
        status = checked(filter->handle, items, n, wanted);
    return status == HIBLOOM_OK && n == 0 ? begin(filter->handle, items, n, wanted) : status;
}

hibloom_status hibloom_async_add(hibloom_async_filter *filter, const hibloom_item *items, size_t n, bool want_new,
                                 hibloom_answered_fn *answered, void *data)
{
    bool wanted;

    return submit_items(filter, items, n, want_new ? &wanted : NULL,
                        (struct callback){.answered = answered, .data = data}, hibloom_add_many, add);
}

hibloom_status hibloom_async_contains(hibloom_async_filter *filter, const hibloom_item *items, size_t n,
                                      hibloom_answered_fn *answered, void *data)
{
    return submit_items(filter, items, n, NULL, (struct callback){.answered = answered, .data = data},
                        hibloom_contains_many, contains);
}

hibloom_status hibloom_async_remove(hibloom_async_filter *filter, const hibloom_item *items, size_t n,
                                    hibloom_answered_fn *answered, void *data)
{
    return submit_items(filter, items, n, NULL, (struct callback){.answered = answered, .data = data},
                        hibloom_remove_many, remove_items);
}

/* ---- The whole filter ----------------------------------------------------------------------------- */

static hibloom_status count(hibloom *handle, struct store_count *out)
{
    const struct hibloom_async *async = async_store_of(handle);

    if (async->count == NULL || out == NULL)
        return begin_links(handle, LINKS_COUNT, NULL, 0);
    *out = *async->count;
    return HIBLOOM_OK;
}

static hibloom_status clear(hibloom *handle)
{
    return begin_links(handle, LINKS_CLEAR, NULL, 0);
}

static hibloom_status expire(hibloom *handle, uint64_t seconds)
{
    return begin_links(handle, LINKS_EXPIRE, NULL, seconds * 1000);
}

hibloom_status hibloom_async_get_info(hibloom_async_filter *filter, hibloom_counted_fn *counted, void *data)
{
    hibloom_status status = async_submit(filter->async, filter, 0, (struct callback){.counted = counted, .data = data});

    return status == HIBLOOM_OK ? count(filter->handle, NULL) : status;
}

static hibloom_status submit_done(hibloom_async_filter *filter, hibloom_done_fn *done, void *data)
{
    return async_submit(filter->async, filter, 0, (struct callback){.done = done, .data = data});
}

hibloom_status hibloom_async_clear(hibloom_async_filter *filter, hibloom_done_fn *done, void *data)
{
    hibloom_status status = submit_done(filter, done, data);

    return status == HIBLOOM_OK ? hibloom_clear(filter->handle) : status;
}

hibloom_status hibloom_async_drop(hibloom_async_filter *filter, hibloom_done_fn *done, void *data)
{
    hibloom_status status = submit_done(filter, done, data);

    return status == HIBLOOM_OK ? hibloom_drop(filter->handle) : status;
}

hibloom_status hibloom_async_expire(hibloom_async_filter *filter, uint64_t seconds, hibloom_done_fn *done, void *data)
{
    hibloom_status status = submit_done(filter, done, data);

    return status == HIBLOOM_OK ? hibloom_expire(filter->handle, seconds) : status;
}

const struct store_class async_store_class = {
    .open = open_filter,
    .add = add,
    .contains = contains,
    .remove = remove_items,
    .near_cache = store_near_cache,
    .count = count,
    .clear = clear,
    .drop = drop,
    .expire = expire,
    .close = redis_filter_free,
    .stats = redis_stats,
};
