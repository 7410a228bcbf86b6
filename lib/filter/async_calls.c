/* async_calls.c: the calls on filters of async.h, each as a work. See filter/async.h. */
#include "filter/async.h"
#include "base/alloc.h"
#include "redis/life.h"
#include "redis/upkeep.h"

#include <string.h>

/* ---- How a filter comes to be and goes ------------------------------------------------------ */

struct life_work {
    struct work work;
    struct life life;
    hibloom_spec wanted;
};

static void finish_life(struct work *work, hibloom_status status)
{
    struct life_work *own = (struct life_work *)work;
    const struct callback callback = async_take_callback(work);
    struct hibloom_async_filter *filter = work->filter;

    life_end(&own->life);
    explicit_bzero(&own->wanted, sizeof own->wanted);
    if (callback.opened != NULL && status == HIBLOOM_OK)
        callback.opened(status, filter, callback.data);
    else
        async_call_back(&callback, status, 0);
    if (callback.opened != NULL && status != HIBLOOM_OK)
        async_release(filter);
}

static hibloom_status begin_life(hibloom *handle, enum life_goal goal, const hibloom_spec *wanted)
{
    struct hibloom_async *async = async_store_of(handle);
    struct life_work *own = async_new_work(async, sizeof *own, 0, finish_life);

    if (own == NULL)
        return HIBLOOM_ENOMEM;
    if (wanted != NULL)
        own->wanted = *wanted;
    life_begin(&own->life, goal, handle, wanted != NULL ? &own->wanted : NULL);
    return async_begin_work(async, &own->work, &own->life.talk.task);
}

static hibloom_status open_filter(hibloom *handle, const hibloom_spec *wanted)
{
    return begin_life(handle, LIFE_OPEN, wanted);
}

static hibloom_status drop(hibloom *handle)
{
    return begin_life(handle, LIFE_DROP, NULL);
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
    struct store_items run;
    bool *answers; /* NULL: not wanted */
    hibloom_item items[];
};

static void finish_items(struct work *work, hibloom_status status)
{
    struct items_work *own = (struct items_work *)work;
    const struct callback callback = async_take_callback(work);

    store_end_items(&own->run, own->answers);
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
    store_begin_add(&own->run, handle, own->items, n, is_new != NULL);
    return async_begin_work(async, &own->work, &own->run.task);
}

static hibloom_status contains(hibloom *handle, const hibloom_item *items, size_t n, bool *found)
{
    struct hibloom_async *async = async_store_of(handle);
    struct items_work *own = copy_items(async, items, n, true);

    if (own == NULL)
        return HIBLOOM_ENOMEM;
    store_begin_contains(&own->run, handle, own->items, n);
    return async_begin_work(async, &own->work, &own->run.task);
}

/* Where there are no items hibloom_add_many asks nobody; here somebody waits to be called. */
hibloom_status hibloom_async_add(hibloom_async_filter *filter, const hibloom_item *items, size_t n, bool want_new,
                                 hibloom_answered_fn *answered, void *data)
{
    bool wanted;
    hibloom_status status = async_submit(filter->async, filter, n,
                                         (struct callback){.answered = answered, .data = data});

    if (status != HIBLOOM_OK)
        return status;
    return n == 0 ? add(filter->handle, items, n, want_new ? &wanted : NULL)
                  : hibloom_add_many(filter->handle, items, n, want_new ? &wanted : NULL);
}

hibloom_status hibloom_async_contains(hibloom_async_filter *filter, const hibloom_item *items, size_t n,
                                      hibloom_answered_fn *answered, void *data)
{
    hibloom_status status = async_submit(filter->async, filter, n,
                                         (struct callback){.answered = answered, .data = data});

    if (status != HIBLOOM_OK)
        return status;
    return n == 0 ? contains(filter->handle, items, n, NULL) : hibloom_contains_many(filter->handle, items, n, NULL);
}

/* ---- The whole filter ----------------------------------------------------------------------------- */

struct upkeep_work {
    struct work work;
    struct upkeep upkeep;
};

/* hibloom_get_info asks the store to count, which was done. */
static void finish_upkeep(struct work *work, hibloom_status status)
{
    struct hibloom_async *async = work->filter->async;
    const struct callback callback = async_take_callback(work);
    hibloom_info info;

    if (status == HIBLOOM_OK && callback.counted != NULL) {
        async->count = &((struct upkeep_work *)work)->upkeep.count;
        status = hibloom_get_info(work->filter->handle, &info);
        async->count = NULL;
        callback.counted(status, &info, callback.data);
    } else {
        async_call_back(&callback, status, 0);
    }
}

static struct upkeep_work *new_upkeep(hibloom *handle)
{
    return async_new_work(async_store_of(handle), sizeof(struct upkeep_work), 0, finish_upkeep);
}

static hibloom_status begin_upkeep(hibloom *handle, struct upkeep_work *own)
{
    return async_begin_work(async_store_of(handle), &own->work, &own->upkeep.talk.task);
}

static hibloom_status count(hibloom *handle, struct store_count *out)
{
    struct hibloom_async *async = async_store_of(handle);

    if (async->count != NULL && out != NULL) {
        *out = *async->count;
        return HIBLOOM_OK;
    }
    struct upkeep_work *own = new_upkeep(handle);
    if (own == NULL)
        return HIBLOOM_ENOMEM;
    upkeep_begin_count(&own->upkeep, handle);
    return begin_upkeep(handle, own);
}

static hibloom_status clear(hibloom *handle)
{
    struct upkeep_work *own = new_upkeep(handle);

    if (own == NULL)
        return HIBLOOM_ENOMEM;
    upkeep_begin_clear(&own->upkeep, handle);
    return begin_upkeep(handle, own);
}

static hibloom_status expire(hibloom *handle, uint64_t seconds)
{
    struct upkeep_work *own = new_upkeep(handle);

    if (own == NULL)
        return HIBLOOM_ENOMEM;
    upkeep_begin_expire(&own->upkeep, handle, seconds);
    return begin_upkeep(handle, own);
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
    .near_cache = store_near_cache,
    .count = count,
    .clear = clear,
    .drop = drop,
    .expire = expire,
    .close = redis_filter_free,
    .stats = redis_stats,
};
