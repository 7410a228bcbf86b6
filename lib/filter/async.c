/* async.c: a store on an event loop: how it comes to be and goes, and whom it calls back. See async.h. */
#include "filter/async.h"
#include "base/alloc.h"

#include <hiredis/async.h>

/* The weight of a call of n items. */
static size_t weight(size_t n)
{
    return n > 0 ? n : 1;
}

/* ---- Calling back ---------------------------------------------------------------------- */

void async_release(struct hibloom_async_filter *filter)
{
    if (--filter->uses > 0)
        return;
    hibloom_close(filter->handle);
    TAILQ_REMOVE(&filter->async->filters, filter, in_filters);
    alloc.free(filter);
}

static bool is_somebody(const struct callback *callback)
{
    return callback->opened != NULL || callback->answered != NULL || callback->counted != NULL ||
           callback->done != NULL;
}

/* Its owner gets no further call for the work. */
static struct callback take_callback(struct work *work)
{
    const struct callback callback = work->callback;

    if (is_somebody(&callback))
        TAILQ_REMOVE(&work->filter->works, work, in_works);
    work->callback = (struct callback){0};
    return callback;
}

void async_call_back(const struct callback *callback, hibloom_status status, void *result, size_t n)
{
    if (callback->opened != NULL)
        callback->opened(status, result, callback->data);
    else if (callback->answered != NULL)
        callback->answered(status, result, n, callback->data);
    else if (callback->counted != NULL)
        callback->counted(status, result, callback->data);
    else if (callback->done != NULL)
        callback->done(status, callback->data);
}

static void finish(struct work *work, hibloom_status status)
{
    struct hibloom_async_filter *filter = work->filter;
    const struct callback callback = take_callback(work);

    filter->async->items -= weight(work->n);
    outbox_free(&work->call.outbox);
    work->finish(work, status, &callback);
    alloc.free(work);
    async_release(filter);
}

static void deliver(struct async *driver)
{
    struct carrier *c = &driver->carrier;

    for (struct call *call; (call = TAILQ_FIRST(&c->ended)) != NULL;) {
        const bool canceled = call->task->status == HIBLOOM_ECANCELED; /* its owner knows that */
        const hibloom_status status = canceled ? HIBLOOM_ECANCELED : carrier_error(c, call);
        carrier_end(c, call);
        finish((struct work *)call, status);
    }
}

/* ---- Beginning --------------------------------------------------------------------------- */

hibloom_status async_may_call(struct hibloom_async *async, size_t n, const struct callback *callback)
{
    if (async->driver.carrier.store.base.class == NULL)
        return HIBLOOM_EINVAL; /* its error says why there is no store */
    if (!is_somebody(callback))
        return error_set(async_error(async), HIBLOOM_EINVAL, "there is no function to be called back");
    if (async->driver.closing)
        return error_set(async_error(async), HIBLOOM_ECANCELED, "the store is being freed");
    if (async->items > 0 && (weight(n) > async->limit || async->items > async->limit - weight(n)))
        return error_set(async_error(async), HIBLOOM_EBUSY,
                         "%zu items are on their way: wait until a function is called", async->items);
    return async_check(&async->driver);
}

void *async_new_work(struct hibloom_async_filter *filter, const struct callback *callback, size_t size, size_t n,
                     work_finish *fn)
{
    struct work *work = size > 0 ? alloc.malloc(size) : NULL; /* 0: more than memory can have */

    if (work == NULL) {
        (void)error_set(async_error(filter->async), HIBLOOM_ENOMEM, "out of memory");
        return NULL;
    }
    *work = (struct work){.filter = filter, .callback = *callback, .n = n, .finish = fn};
    return work;
}

hibloom_status async_begin_work(struct work *work, struct task *task)
{
    struct hibloom_async *async = work->filter->async;

    TAILQ_INSERT_TAIL(&work->filter->works, work, in_works);
    work->filter->uses++;
    async->items += weight(work->n);
    work->call.outbox = async->spare;
    async->spare = (struct outbox){0};
    async_begin(&async->driver, &work->call, task);
    if (work->call.outbox.commands.len == 0) {
        async->spare = work->call.outbox;
        work->call.outbox = (struct outbox){0};
    }
    if (!work->call.done)
        return HIBLOOM_OK;
    const hibloom_status status = carrier_error(&async->driver.carrier, &work->call);
    carrier_end(&async->driver.carrier, &work->call);
    (void)take_callback(work);
    finish(work, status);
    return status;
}

/* ---- Ends ------------------------------------------------------------------------------------ */

void hibloom_async_close(hibloom_async_filter *filter)
{
    if (filter == NULL)
        return;
    struct hibloom_async *async = filter->async;
    if (async->driver.closing)
        return;
    async_enter(&async->driver);
    filter->closed = true; /* its use is released behind the last function, which may free the store */
    carrier_cancel(&async->driver.carrier, filter->handle);
    for (struct work *work; (work = TAILQ_FIRST(&filter->works)) != NULL;) {
        const struct callback callback = take_callback(work);
        async_call_back(&callback, HIBLOOM_ECANCELED, NULL, work->n);
    }
    async_release(filter);
    deliver(&async->driver);
    async_leave(&async->driver);
}

/* ---- The store ----------------------------------------------------------------------------------------- */

static void unmake(struct async *driver)
{
    struct hibloom_async *async = (struct hibloom_async *)driver;

    settings_free(driver->carrier.store.base.settings);
    outbox_free(&async->spare);
    alloc.free(async);
}

/* Takes the settings over. */
static hibloom_status make(hibloom_async **out, struct store_settings *settings)
{
    struct hibloom_async *async = alloc.calloc(1, sizeof *async);

    *out = async;
    if (async == NULL) {
        settings_free(settings);
        return HIBLOOM_ENOMEM;
    }
    async->limit = settings->options.in_flight;
    TAILQ_INIT(&async->filters);
    async->driver.settled = deliver;
    async->driver.unmade = unmake;
    async->driver.carrier.store.base.class = &redis_store_class;
    if (async_make(&async->driver, settings))
        return HIBLOOM_OK;
    hibloom_async_free(async);
    *out = NULL;
    return HIBLOOM_ENOMEM;
}

/* A store that never came about: for its error's sake. */
static hibloom_status fail_unmade(hibloom_async **out, hibloom_status status, const struct error *error)
{
    struct hibloom_async *async = status != HIBLOOM_ENOMEM ? alloc.calloc(1, sizeof *async) : NULL;

    if (async != NULL)
        *async_error(async) = *error;
    *out = async;
    return async != NULL ? status : HIBLOOM_ENOMEM;
}

hibloom_status hibloom_async_connect(hibloom_async **out, const char *uri, const hibloom_setup *setup,
                                     hibloom_attach_fn *attach, void *loop)
{
    struct store_settings *settings = NULL;
    struct error error;
    hibloom_status status = settings_make(&settings, uri, setup, &error);

    if (status == HIBLOOM_OK && settings->uri.kind == URI_MEMORY)
        status = error_set(&error, HIBLOOM_ENOTSUP, "a store in memory needs no event loop: use hibloom_connect");
    if (status == HIBLOOM_OK && attach == NULL)
        status = error_set(&error, HIBLOOM_EINVAL, "there is no function that attaches a connection to the loop");
    if (status != HIBLOOM_OK) {
        settings_free(settings);
        return fail_unmade(out, status, &error);
    }
    status = make(out, settings);
    if (status == HIBLOOM_OK) {
        (*out)->driver.attach = attach;
        (*out)->driver.loop = loop;
    }
    return status;
}

hibloom_status hibloom_async_borrow(hibloom_async **out, struct redisAsyncContext *context, const hibloom_setup *setup)
{
    struct store_settings *settings = NULL;
    struct error error;
    hibloom_status status = HIBLOOM_OK;

    if (context == NULL || context->err != 0 || (context->c.flags & REDIS_BLOCK) != 0)
        status = error_set(&error, HIBLOOM_EINVAL, "not an asynchronous hiredis context that is alive");
    if (status == HIBLOOM_OK)
        status = settings_make(&settings, NULL, setup, &error);
    if (status != HIBLOOM_OK)
        return fail_unmade(out, status, &error);
    status = make(out, settings);
    if (status == HIBLOOM_OK) {
        (*out)->driver.theirs = context;
        (*out)->driver.carrier.borrowed = true;
    }
    return status;
}

void hibloom_async_tick(hibloom_async *async)
{
    if (async != NULL && async->driver.carrier.store.base.class != NULL)
        async_tick(&async->driver);
}

const char *hibloom_async_error(const hibloom_async *async)
{
    return async != NULL ? async->driver.carrier.store.base.error.words : "";
}

void hibloom_async_get_stats(const hibloom_async *async, hibloom_stats *out, size_t size)
{
    hibloom_get_stats(async != NULL ? &async->driver.carrier.store.base : NULL, out, size);
}

/* The calls are no longer the carrier's. */
static void cancel_all(struct hibloom_async *async)
{
    struct calls *calls = &async->driver.carrier.calls;

    for (struct call *call; (call = TAILQ_FIRST(calls)) != NULL;) {
        TAILQ_REMOVE(calls, call, in_calls);
        task_fail(call->task, HIBLOOM_ECANCELED, "canceled before it was answered");
        task_end(call->task);
        finish((struct work *)call, HIBLOOM_ECANCELED);
    }
}

void hibloom_async_free(hibloom_async *async)
{
    if (async == NULL || async->driver.carrier.store.base.class == NULL) {
        alloc.free(async);
        return;
    }
    if (async->driver.closing)
        return;
    async_enter(&async->driver);
    async->driver.closing = true;
    deliver(&async->driver);
    async_close(&async->driver);
    cancel_all(async);
    struct hibloom_async_filter *next;
    for (struct hibloom_async_filter *filter = TAILQ_FIRST(&async->filters); filter != NULL; filter = next) {
        next = TAILQ_NEXT(filter, in_filters);
        if (!filter->closed)
            async_release(filter);
    }
    async_leave(&async->driver);
}
