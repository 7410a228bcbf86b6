/* async.c: how a store on an event loop comes to be and goes. See async.h.
 *
 * A store in memory uses no carrier, but `looped` has one, all zeros. The code here relies on that: events_* and
 * works_deliver run on it all the same, and find no call and no server. */
#include "filter/async.h"
#include "base/alloc.h"
#include "filter/handle.h"
#include "memory/memory.h"

#include <hiredis/async.h>

hibloom_status async_may_call(struct async *async, const struct how *how, size_t n)
{
    struct error *error = &async->looped.store->error;

    if (how->done == NULL)
        return error_set(error, HIBLOOM_EINVAL, "done is NULL");
    if (async->looped.closing)
        return error_set(error, HIBLOOM_ECANCELED, "the store is being freed");
    if (async->items > 0 && (work_weight(n) > async->limit || async->items > async->limit - work_weight(n)))
        return error_set(error, HIBLOOM_EBUSY,
                         "%zu items are in flight, and in_flight= allows %zu: call again after a done", async->items,
                         async->limit);
    return lent_check(&async->looped);
}

static void deliver(struct looped *looped)
{
    struct async *async = (struct async *)looped;

    works_deliver(&looped->carrier.store);
    TAILQ_CONCAT(&async->due, &async->ended, in_ended);
    for (struct work *work; (work = TAILQ_FIRST(&async->due)) != NULL;) {
        TAILQ_REMOVE(&async->due, work, in_ended);
        work_deliver(work, HIBLOOM_OK);
    }
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
    work_cancel(work);
    return true;
}

/* Commands that were sent are still carried out, so the handle may live longer. */
void async_close_filter(struct async *async, hibloom *filter)
{
    const bool alone = !async->looped.closing; /* else hibloom_store_free has called a done that closes it */

    if (filter->uses == 0) { /* a hundred thousand calls of others are not gone through */
        filter_close(filter);
        return;
    }
    looped_enter(&async->looped);
    filter_hold(filter);
    filter->closing = true;
    if (alone)
        events_cancel(&async->looped.carrier, filter);
    bring_forward(async, filter);
    while (cancel_one(async, filter))
        ;
    filter_release(filter);
    if (alone && async->looped.loop.timer == NULL)
        looped_settle(&async->looped);
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
        work_deliver((struct work *)call, HIBLOOM_ECANCELED);
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
        TAILQ_INIT(&async->due);
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
    const bool good = lent_takes_commands(context) && (context->c.flags & REDIS_BLOCK) == 0;

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
