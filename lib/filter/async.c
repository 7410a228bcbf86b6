/* async.c: calls from their begin to their end; how a store on an event loop comes to be and goes. See async.h. */
#include "filter/async.h"
#include "base/alloc.h"
#include "filter/handle.h"
#include "memory/memory.h"

#include <hiredis/async.h>

/* The weight of a call of n items. */
static size_t weight(size_t n)
{
    return n > 0 ? n : 1;
}

/* ---- Calling back ---------------------------------------------------------------------- */

static struct carrier *carrier_of(const struct work *work)
{
    return (struct carrier *)work->store;
}

/* From here on nothing is called for the work. */
static struct how take_done(struct work *work)
{
    const struct how how = {.done = work->done, .data = work->data};

    if (work->done != NULL && work->async != NULL) {
        TAILQ_REMOVE(&work->async->works, work, in_works);
        work->async->calls--;
    }
    work->done = NULL;
    work->told = NULL;
    return how;
}

static void end_task(struct work *work)
{
    if (work->told != NULL)
        *work->told = task_take_told(work->call.task);
    events_end(carrier_of(work), &work->call);
}

static void tell(const struct how *how, hibloom_status status)
{
    if (how->done != NULL)
        how->done(status, how->data);
}

static void end_work(struct work *work, hibloom_status status)
{
    const struct how how = take_done(work);

    if (work->async != NULL)
        work->async->items -= weight(work->n);
    filter_release(work->filter);
    filter_release(work->other);
    alloc.free(work);
    tell(&how, status);
}

/* Its finish may call its owner, which may free the store. A call that was made at once, in memory, may have none. */
static hibloom_status finish(struct work *work, hibloom_status status)
{
    work->next = NULL;
    if (work->finish != NULL)
        status = work->finish(work, status);
    if (work->next == NULL)
        end_work(work, status);
    else
        events_begin(carrier_of(work), &work->call, work->next);
    return status;
}

/* Once the store is being freed, what has ended is canceled, too: nobody has been told. */
static void deliver_one(struct work *work, hibloom_status status)
{
    const bool closing = work->async != NULL && work->async->looped.closing;
    const struct how how = closing ? take_done(work) : (struct how){0};

    (void)finish(work, status);
    tell(&how, HIBLOOM_ECANCELED);
}

void works_deliver(struct redis_store *store)
{
    struct carrier *c = (struct carrier *)store;

    for (struct call *call; (call = TAILQ_FIRST(&c->ended)) != NULL;) {
        const bool canceled = call->task->status == HIBLOOM_ECANCELED; /* its owner knows that */
        const hibloom_status status = canceled ? HIBLOOM_ECANCELED : events_error(c, call);
        end_task((struct work *)call);
        deliver_one((struct work *)call, status);
    }
}

static void deliver(struct looped *looped)
{
    struct async *async = (struct async *)looped;

    works_deliver(&looped->carrier.store);
    for (struct work *work; (work = TAILQ_FIRST(&async->ended)) != NULL;) {
        TAILQ_REMOVE(&async->ended, work, in_ended);
        deliver_one(work, HIBLOOM_OK);
    }
}

/* ---- Beginning --------------------------------------------------------------------------- */

static struct error *error_of(struct async *async)
{
    return &async->looped.store->error;
}

hibloom_status async_may_call(struct async *async, const struct how *how, size_t n)
{
    if (how->done == NULL)
        return error_set(error_of(async), HIBLOOM_EINVAL, "done is NULL");
    if (async->looped.closing)
        return error_set(error_of(async), HIBLOOM_ECANCELED, "the store is being freed");
    if (async->items > 0 && (weight(n) > async->limit || async->items > async->limit - weight(n)))
        return error_set(error_of(async), HIBLOOM_EBUSY,
                         "%zu items are in flight, and in_flight= allows %zu: call again after a done", async->items,
                         async->limit);
    return lent_check(&async->looped);
}

void work_accept(struct work *work)
{
    filter_hold(work->filter);
    filter_hold(work->other);
    if (work->async == NULL)
        return;
    TAILQ_INSERT_TAIL(&work->async->works, work, in_works);
    work->async->calls++;
    work->async->items += weight(work->n);
}

void work_ended(struct work *work)
{
    TAILQ_INSERT_TAIL(&work->async->ended, work, in_ended);
    work->async->looped.unsettled = true;
}

hibloom_status work_end(struct work *work, hibloom_status status)
{
    struct async *async = work->async;

    if (async == NULL)
        return status;
    if (status != HIBLOOM_OK) {
        alloc.free(work);
        return status;
    }
    work->finish = NULL;
    work_accept(work);
    work_ended(work);
    looped_watch(&async->looped);
    return HIBLOOM_OK;
}

void *work_make(hibloom_store *store, const struct how *how, void *here, size_t size, size_t n,
                hibloom_status (*finish_fn)(struct work *, hibloom_status))
{
    struct work *work = how->done == NULL ? here : size > 0 ? alloc.malloc(size) : NULL;

    if (work == NULL) {
        (void)error_set(&store->error, HIBLOOM_ENOMEM, "out of memory");
        return NULL;
    }
    work->store = store; /* its call is written as that begins */
    work->async = how->done != NULL ? store->async : NULL;
    work->filter = work->other = NULL;
    work->done = how->done;
    work->data = how->data;
    work->told = how->told;
    work->n = n;
    work->finish = finish_fn;
    return work;
}

/* It has ended before anything was sent. */
static hibloom_status refuse(struct work *work)
{
    const hibloom_status status = events_error(carrier_of(work), &work->call);

    end_task(work);
    (void)take_done(work);
    return finish(work, status);
}

/* A task, and those that follow it. */
static hibloom_status wait_for(struct work *work, struct task *task)
{
    struct redis_store *store = (struct redis_store *)work->store;
    hibloom_status status = HIBLOOM_OK;

    for (; task != NULL; task = work->next) {
        work->next = NULL;
        status = work->finish(work, store->run(store, task));
    }
    return status;
}

hibloom_status work_go(struct work *work, struct task *task)
{
    struct async *async = work->async;

    if (work->done == NULL)
        return wait_for(work, task);
    struct carrier *c = carrier_of(work);
    work_accept(work);
    if (work->filter != NULL && work->filter->closing) /* a part of a call over many */
        task_fail(task, HIBLOOM_ECANCELED, "the handle is being closed");
    events_begin(c, &work->call, task);
    if (async == NULL)
        return HIBLOOM_OK;
    while (events_tick(c))
        ;
    const bool refused = work->call.done && task->status != HIBLOOM_OK;
    const hibloom_status status = refused ? refuse(work) : HIBLOOM_OK;
    looped_watch(&async->looped);
    return status;
}

/* ---- Ends ------------------------------------------------------------------------------------ */

static bool uses(const struct work *work, const hibloom *filter)
{
    return filter == NULL || work->filter == filter || work->other == filter;
}

/* The filter's come first: else a hundred thousand works of others are passed for each. */
static void bring_forward(struct async *async, const hibloom *filter)
{
    struct work *next;

    for (struct work *work = TAILQ_FIRST(&async->works); work != NULL; work = next) {
        next = TAILQ_NEXT(work, in_works);
        if (!uses(work, filter))
            continue;
        TAILQ_REMOVE(&async->works, work, in_works);
        TAILQ_INSERT_HEAD(&async->works, work, in_works);
    }
}

/* The first one. False: it is another filter's, or none is left. */
static bool cancel_one(struct async *async, const hibloom *filter)
{
    struct work *work = TAILQ_FIRST(&async->works);

    if (work == NULL || !uses(work, filter))
        return false;
    const struct how how = take_done(work);
    tell(&how, HIBLOOM_ECANCELED);
    return true;
}

/* Commands that were sent are still carried out, so the handle may live longer. */
void async_close_filter(struct async *async, hibloom *filter)
{
    looped_enter(&async->looped);
    if (!async->looped.closing) {
        filter_hold(filter);
        filter->closing = true;
        events_cancel(&async->looped.carrier, filter);
        bring_forward(async, filter);
        while (cancel_one(async, filter))
            ;
        filter_release(filter);
        if (async->looped.loop.timer == NULL)
            looped_settle(&async->looped);
    }
    filter_release(filter);
    looped_leave(&async->looped);
}

static void unmake(struct looped *looped)
{
    struct async *async = (struct async *)looped;
    struct store_settings *settings = looped->store->settings;

    if (store_is_in_memory(looped->store))
        looped->store->free(looped->store);
    alloc.free(async);
    settings_free(settings);
}

/* The calls are no longer the carrier's. */
static void cancel_all(struct async *async)
{
    struct calls *calls = &async->looped.carrier.calls;

    for (struct call *call; (call = TAILQ_FIRST(calls)) != NULL;) {
        TAILQ_REMOVE(calls, call, in_calls);
        task_fail(call->task, HIBLOOM_ECANCELED, "given up before it was answered");
        task_end(call->task);
        (void)finish((struct work *)call, HIBLOOM_ECANCELED);
    }
    while (cancel_one(async, NULL))
        ;
    deliver(&async->looped); /* those that are no tasks */
}

void async_free(struct async *async)
{
    if (async->looped.closing)
        return;
    looped_enter(&async->looped);
    async->looped.closing = true;
    deliver(&async->looped);
    looped_close(&async->looped);
    cancel_all(async);
    filters_leave(async->looped.store);
    looped_leave(&async->looped);
}

/* ---- The store ----------------------------------------------------------------------------------------- */

/* Of the store's connections: its own on a loop, or the caller's. */
struct ends {
    const struct pipe_class *pipes;
    hibloom_loop loop;
    struct redisAsyncContext *theirs;
};

static hibloom_status make(hibloom_store **out, struct store_settings *settings, void *with)
{
    const struct ends *ends = with;
    const bool in_memory = ends->theirs == NULL && settings->uri.kind == URI_MEMORY;
    struct async *async = alloc.calloc(1, sizeof *async);
    bool good = false;

    if (async != NULL) {
        async->limit = (size_t)settings->options.in_flight; /* at most 10^9 */
        TAILQ_INIT(&async->works);
        TAILQ_INIT(&async->ended);
        async->looped.settled = deliver;
        async->looped.unmade = unmake;
        if (in_memory)
            async->looped.store = memory_store(settings);
        good = in_memory || looped_make(&async->looped, settings, ends->pipes);
        *out = async->looped.store;
    }
    if (*out == NULL) {
        alloc.free(async);
        settings_free(settings);
        return HIBLOOM_ENOMEM;
    }
    (*out)->async = async;
    if (!good)
        return HIBLOOM_ENOMEM;
    async->looped.loop = ends->loop;
    async->looped.theirs = ends->theirs;
    return HIBLOOM_OK;
}

hibloom_status hibloom_async_connect(hibloom_store **out, const char *uri, const hibloom_setup *setup,
                                     const hibloom_loop *loop)
{
    const bool good = loop != NULL && loop->size >= sizeof *loop && loop->watch != NULL && loop->timer != NULL;

    return store_make(out, good ? NULL : "hibloom_loop needs its size, watch and timer", false, uri, setup, make,
                      good ? &(struct ends){&loop_pipes, *loop, NULL} : NULL);
}

hibloom_status hibloom_async_borrow(hibloom_store **out, struct redisAsyncContext *context, const hibloom_setup *setup)
{
    const bool good = context != NULL && context->err == 0 && (context->c.flags & REDIS_BLOCK) == 0;

    return store_make(out, good ? NULL : "not an asynchronous hiredis context that is alive", true, NULL, setup, make,
                      &(struct ends){.pipes = &lent_pipes, .theirs = context});
}

/* A borrowed connection has no loop of ours. */
void hibloom_ready(hibloom_store *store, int fd, int events)
{
    if (store != NULL && store->async != NULL && store->async->looped.loop.watch != NULL &&
        !store->async->looped.closing)
        looped_ready(&store->async->looped, fd, events);
}
