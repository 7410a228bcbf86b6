/* work.c: calls from their begin to their end. See work.h. */
#include "filter/work.h"
#include "base/alloc.h"
#include "filter/async.h"
#include "filter/handle.h"

/* ---- The end ---------------------------------------------------------------------- */

static struct carrier *carrier_of(const struct work *work)
{
    return (struct carrier *)work->store;
}

/* Of a call over many filters, which counts as one. */
static bool is_part(const struct work *work)
{
    return work->told != NULL;
}

/* From here on nothing is called for the work. */
static struct how take_done(struct work *work)
{
    const struct how how = {.done = work->done, .data = work->data};

    if (work->done != NULL && work->async != NULL) {
        TAILQ_REMOVE(&work->async->works, work, in_works);
        work->async->calls -= !is_part(work);
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

static void call_back(const struct how *how, hibloom_status status)
{
    if (how->done != NULL)
        how->done(status, how->data);
}

static void end_work(struct work *work, hibloom_status status)
{
    const struct how how = take_done(work);

    if (work->async != NULL)
        work->async->items -= work_weight(work->n);
    filter_release(work->filter);
    filter_release(work->other);
    alloc.free(work);
    call_back(&how, status);
}

/* Its finish may call its owner, which may free the store. A call that was made at once, in memory, may have none. */
static hibloom_status finish(struct work *work, hibloom_status status)
{
    work->next = NULL;
    if (work->finish != NULL)
        status = work->finish(work, status);
    if (work->next == NULL) {
        end_work(work, status);
    } else {
        events_begin(carrier_of(work), &work->call, work->next);
        events_go(carrier_of(work));
    }
    return status;
}

/* Once the store is being freed, what has ended is canceled, too: nobody has been told. */
void work_deliver(struct work *work, hibloom_status status)
{
    const bool closing = work->async != NULL && work->async->looped.closing;
    const struct how how = closing ? take_done(work) : (struct how){0};

    (void)finish(work, status);
    call_back(&how, HIBLOOM_ECANCELED);
}

void work_cancel(struct work *work)
{
    const struct how how = take_done(work);

    call_back(&how, HIBLOOM_ECANCELED);
}

void works_deliver(struct redis_store *store)
{
    struct carrier *c = (struct carrier *)store;
    const uint64_t newest = store->server.stats.calls;

    for (struct call *call; (call = TAILQ_FIRST(&c->ended)) != NULL && call->number <= newest;) {
        const bool canceled = call->task->status == HIBLOOM_ECANCELED; /* its owner knows that */
        const hibloom_status status = canceled ? HIBLOOM_ECANCELED : events_error(c, call);
        end_task((struct work *)call);
        work_deliver((struct work *)call, status);
    }
}

/* ---- The begin --------------------------------------------------------------------------- */

void work_accept(struct work *work)
{
    filter_hold(work->filter);
    filter_hold(work->other);
    if (work->async == NULL)
        return;
    TAILQ_INSERT_TAIL(&work->async->works, work, in_works);
    work->async->calls += !is_part(work);
    work->async->items += work_weight(work->n);
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

/* A loop carries it, or the call over many whose part it is. */
static hibloom_status carry(struct work *work, struct task *task)
{
    struct carrier *c = carrier_of(work);
    struct async *async = work->async;

    work_accept(work);
    events_begin(c, &work->call, task);
    if (async == NULL)
        return HIBLOOM_OK;
    if (!is_part(work)) /* else all parts go on together */
        events_go(c);
    while (events_tick(c))
        ;
    const bool refused = work->call.done && task->status != HIBLOOM_OK;
    const hibloom_status status = refused ? refuse(work) : HIBLOOM_OK;
    looped_watch(&async->looped);
    return status;
}

/* A call that waits runs one task after the other. */
hibloom_status work_go(struct work *work, struct task *task)
{
    struct redis_store *store = &carrier_of(work)->store;
    hibloom_status status = HIBLOOM_OK;

    if (work->done != NULL)
        return carry(work, task);
    for (; task != NULL; task = work->next) {
        work->next = NULL;
        status = work->finish(work, store->run(store, task));
    }
    return status;
}
