/* async_calls.c: the calls on filters of async.h, each as a work. See filter/async.h. */
#include "filter/async.h"
#include "base/alloc.h"
#include "filter/filter.h"
#include "redis/links.h"
#include "redis/sieve.h"

#include <string.h>

/* ---- The whole filter ----------------------------------------------------------------------- */

struct links_work {
    struct work work;
    struct links links;
    struct request wanted;
};

static void finish_links(struct work *work, hibloom_status status, const struct callback *callback)
{
    struct links_work *own = (struct links_work *)work;
    hibloom_info info;
    void *result = NULL;

    task_release(&own->links.task);
    explicit_bzero(&own->wanted, sizeof own->wanted);
    if (status == HIBLOOM_OK && callback->opened != NULL) {
        work->filter->handle = filter_settle(work->filter->handle);
        result = work->filter;
    } else if (status == HIBLOOM_OK && callback->counted != NULL) {
        filter_say_count(&own->links.count, &info, sizeof info);
        result = &info;
    }
    async_call_back(callback, status, result, 0);
    if (status != HIBLOOM_OK && callback->opened != NULL)
        async_release(work->filter);
}

static hibloom_status begin_links(hibloom_async_filter *filter, const struct callback *callback, enum links_goal goal,
                                  const struct request *wanted, uint64_t ms)
{
    struct links_work *own = async_new_work(filter, callback, sizeof *own, 0, finish_links);

    if (own == NULL)
        return HIBLOOM_ENOMEM;
    if (wanted != NULL)
        own->wanted = *wanted;
    links_begin(&own->links, goal, filter->handle, wanted != NULL ? &own->wanted : NULL, ms);
    return async_begin_work(&own->work, &own->links.task);
}

/* It has a handle. */
static hibloom_status begin_open(hibloom_async_filter *filter, const char *text, const struct callback *callback)
{
    struct hibloom_async *async = filter->async;
    struct request wanted;
    hibloom_status status = filter_want(filter->handle, &wanted, text, false);

    if (status != HIBLOOM_OK)
        return status;
    TAILQ_INSERT_TAIL(&async->filters, filter, in_filters);
    status = begin_links(filter, callback, LINKS_OPEN, &wanted, 0);
    explicit_bzero(&wanted, sizeof wanted);
    if (status != HIBLOOM_OK)
        TAILQ_REMOVE(&async->filters, filter, in_filters);
    return status;
}

hibloom_status hibloom_async_open(hibloom_async *async, const char *name, const char *spec, hibloom_opened_fn *opened,
                                  void *data)
{
    const struct callback callback = {.opened = opened, .data = data};
    struct hibloom_async_filter *filter = alloc.calloc(1, sizeof *filter);

    if (filter == NULL)
        return error_set(async_error(async), HIBLOOM_ENOMEM, "out of memory");
    filter->async = async;
    filter->uses = 1;
    TAILQ_INIT(&filter->works);
    hibloom_status status = async_may_call(async, 0, &callback);
    if (status == HIBLOOM_OK)
        filter->handle = filter_new(&async->driver.carrier.store.base, name, &status);
    if (status == HIBLOOM_OK)
        status = begin_open(filter, spec, &callback);
    if (status != HIBLOOM_OK) {
        filter_free(filter->handle);
        alloc.free(filter);
    }
    return status;
}

static hibloom_status call_links(hibloom_async_filter *filter, const struct callback *callback, enum links_goal goal,
                                 uint64_t ms)
{
    const hibloom_status status = async_may_call(filter->async, 0, callback);

    return status == HIBLOOM_OK ? begin_links(filter, callback, goal, NULL, ms) : status;
}

hibloom_status hibloom_async_get_info(hibloom_async_filter *filter, hibloom_counted_fn *counted, void *data)
{
    return call_links(filter, &(struct callback){.counted = counted, .data = data}, LINKS_COUNT, 0);
}

hibloom_status hibloom_async_clear(hibloom_async_filter *filter, hibloom_done_fn *done, void *data)
{
    return call_links(filter, &(struct callback){.done = done, .data = data}, LINKS_CLEAR, 0);
}

hibloom_status hibloom_async_drop(hibloom_async_filter *filter, hibloom_done_fn *done, void *data)
{
    return call_links(filter, &(struct callback){.done = done, .data = data}, LINKS_DROP, 0);
}

hibloom_status hibloom_async_expire(hibloom_async_filter *filter, uint64_t ms, hibloom_done_fn *done, void *data)
{
    const hibloom_status status = filter_check_expiry(filter->handle, ms);

    if (status != HIBLOOM_OK)
        return status;
    return call_links(filter, &(struct callback){.done = done, .data = data}, LINKS_EXPIRE, ms);
}

const char *hibloom_async_spec_of(const hibloom_async_filter *filter)
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
    struct sieve sieve;
    bool *answers; /* NULL: not wanted */
    hibloom_item items[];
};

static void finish_items(struct work *work, hibloom_status status, const struct callback *callback)
{
    struct items_work *own = (struct items_work *)work;

    sieve_end(&own->sieve, own->answers);
    async_call_back(callback, status, status == HIBLOOM_OK ? own->answers : NULL, work->n);
}

/* NULL: out of memory. */
static struct items_work *copy_items(hibloom_async_filter *filter, const struct callback *callback,
                                     const hibloom_item *items, size_t n, bool wants)
{
    const size_t answers = wants ? n : 0;
    size_t size = sizeof(struct items_work);
    bool fits = !__builtin_mul_overflow(n, sizeof *items, &size) &&
                !__builtin_add_overflow(size, sizeof(struct items_work) + answers, &size);

    for (size_t i = 0; i < n; i++)
        fits = fits && !__builtin_add_overflow(size, items[i].len, &size);
    struct items_work *own = async_new_work(filter, callback, fits ? size : 0, n, finish_items);
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

static hibloom_status call_items(hibloom_async_filter *filter, enum store_call call, const hibloom_item *items,
                                 size_t n, hibloom_answered_fn *answered, void *data)
{
    const struct callback callback = {.answered = answered, .data = data};
    hibloom_status status = async_may_call(filter->async, n, &callback);

    if (status == HIBLOOM_OK)
        status = filter_check_items(filter->handle, call, items, n);
    if (status != HIBLOOM_OK)
        return status;
    struct items_work *own = copy_items(filter, &callback, items, n, call != STORE_ADD);
    if (own == NULL)
        return HIBLOOM_ENOMEM;
    sieve_begin(&own->sieve, call, filter->handle, own->items, n);
    return async_begin_work(&own->work, own->sieve.run);
}

hibloom_status hibloom_async_add(hibloom_async_filter *filter, const hibloom_item *items, size_t n, bool want_new,
                                 hibloom_answered_fn *answered, void *data)
{
    return call_items(filter, want_new ? STORE_ADD_NEW : STORE_ADD, items, n, answered, data);
}

hibloom_status hibloom_async_contains(hibloom_async_filter *filter, const hibloom_item *items, size_t n,
                                      hibloom_answered_fn *answered, void *data)
{
    return call_items(filter, STORE_LOOK, items, n, answered, data);
}

hibloom_status hibloom_async_remove(hibloom_async_filter *filter, const hibloom_item *items, size_t n,
                                    hibloom_answered_fn *answered, void *data)
{
    return call_items(filter, STORE_REMOVE, items, n, answered, data);
}
