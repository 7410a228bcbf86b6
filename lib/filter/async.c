/* async.c: the functions of async.h: calls that are begun here, and call back.
 *
 *   hibloom_async_add -> hibloom_add_many -> the store's class, as any call
 *      checks, copies      checks              begins a work: a task, and whom to call back
 *   loop -> driver -> carrier: the task has ended -> deliver -> the owner's function
 *
 * So what the caller says is checked where it is for blocking calls; this store's
 * class begins works in place of waiting for them. */
#include "net/async.h"
#include "base/alloc.h"
#include "net/tls.h"
#include "redis/life.h"
#include "redis/upkeep.h"

#include <hiredis/async.h>
#include <string.h>

struct work;
TAILQ_HEAD(works, work);
TAILQ_HEAD(filters, hibloom_async_filter);

struct hibloom_async_filter {
    struct hibloom_async *async;
    hibloom *handle;
    struct works works; /* whose functions are still to be called */
    unsigned uses;      /* works that run, + 1 until it is closed */
    bool closed;
    TAILQ_ENTRY(hibloom_async_filter) in_filters;
};

/* Whom to call back: the first that is not NULL. */
struct callback {
    hibloom_opened_fn *opened;
    hibloom_answered_fn *answered;
    hibloom_counted_fn *counted;
    hibloom_done_fn *done;
    void *data;
};

struct hibloom_async {
    struct async driver;
    struct outbox spare; /* for the next call: most have ended with theirs when they return */
    size_t items, limit; /* on their way; at most */
    struct filters filters;
    struct hibloom_async_filter *filter; /* of the call that is being made, */
    struct callback callback;            /* and its function */
    const struct store_count *count;     /* answers the next count */
};

/* A call that was accepted. Its task lies behind it. */
struct work {
    struct call call;
    struct hibloom_async_filter *filter;
    struct callback callback; /* nobody, once it is done */
    TAILQ_ENTRY(work) in_works;
    size_t n; /* items */
    void (*finish)(struct work *, hibloom_status);
};

static struct hibloom_async *async_of(const hibloom *filter)
{
    return (struct hibloom_async *)filter->store;
}

static struct error *error_of(struct hibloom_async *async)
{
    return &async->driver.carrier.store.base.error;
}

/* What a call of so many items counts for. */
static size_t weight(size_t n)
{
    return n > 0 ? n : 1;
}

/* ---- Calling back ---------------------------------------------------------------------- */

/* A filter goes with its last use. */
static void release(struct hibloom_async_filter *filter)
{
    if (--filter->uses > 0)
        return;
    hibloom_close(filter->handle);
    TAILQ_REMOVE(&filter->async->filters, filter, in_filters);
    alloc.free(filter);
}

/* Its owner hears no more of it. */
static struct callback take_callback(struct work *work)
{
    const struct callback callback = work->callback;

    if (callback.opened != NULL || callback.answered != NULL || callback.counted != NULL || callback.done != NULL)
        TAILQ_REMOVE(&work->filter->works, work, in_works);
    work->callback = (struct callback){0};
    return callback;
}

/* Of a call that was not OK. */
static void call_back(const struct callback *callback, hibloom_status status, size_t n)
{
    if (callback->opened != NULL)
        callback->opened(status, NULL, callback->data);
    else if (callback->answered != NULL)
        callback->answered(status, NULL, n, callback->data);
    else if (callback->counted != NULL)
        callback->counted(status, NULL, callback->data);
    else if (callback->done != NULL)
        callback->done(status, callback->data);
}

static void finish(struct work *work, hibloom_status status)
{
    struct hibloom_async_filter *filter = work->filter;

    filter->async->items -= weight(work->n);
    outbox_free(&work->call.outbox);
    work->finish(work, status);
    alloc.free(work);
    release(filter);
}

static void deliver(struct async *driver)
{
    struct carrier *c = &driver->carrier;

    for (struct call *call; (call = TAILQ_FIRST(&c->ended)) != NULL;) {
        const bool canceled = call->task->status == HIBLOOM_ECANCELED; /* which its owner knows */
        const hibloom_status status = canceled ? HIBLOOM_ECANCELED : carrier_error(c, call);
        carrier_end(c, call);
        finish((struct work *)call, status);
    }
}

/* ---- Beginning --------------------------------------------------------------------------- */

/* A call of so many items: may it be made? What it needs is kept for the store's class. */
static hibloom_status submit(struct hibloom_async *async, struct hibloom_async_filter *filter, size_t n,
                             struct callback callback)
{
    if (async->driver.carrier.store.base.class == NULL)
        return HIBLOOM_EINVAL; /* its error says why there is no store */
    if (callback.opened == NULL && callback.answered == NULL && callback.counted == NULL && callback.done == NULL)
        return error_set(error_of(async), HIBLOOM_EINVAL, "there is no function to be called back");
    if (async->driver.closing)
        return error_set(error_of(async), HIBLOOM_ECANCELED, "the store is being freed");
    if (async->items > 0 && (weight(n) > async->limit || async->items > async->limit - weight(n)))
        return error_set(error_of(async), HIBLOOM_EBUSY, "%zu items are on their way: wait until a function is called",
                         async->items);
    async->filter = filter;
    async->callback = callback;
    return async_check(&async->driver);
}

static void *new_work(struct hibloom_async *async, size_t size, size_t n, void (*fn)(struct work *, hibloom_status))
{
    struct work *work = size > 0 ? alloc.malloc(size) : NULL; /* 0: more than memory can have */

    if (work == NULL) {
        (void)error_set(error_of(async), HIBLOOM_ENOMEM, "out of memory");
        return NULL;
    }
    *work = (struct work){.filter = async->filter, .callback = async->callback, .n = n, .finish = fn};
    return work;
}

/* Accepted, or it has failed at once: then nobody is called back. */
static hibloom_status begin(struct hibloom_async *async, struct work *work, struct task *task)
{
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

/* ---- How a filter comes to be and goes ------------------------------------------------------ */

struct life_work {
    struct work work;
    struct life life;
    hibloom_spec wanted;
};

static void finish_life(struct work *work, hibloom_status status)
{
    struct life_work *own = (struct life_work *)work;
    const struct callback callback = take_callback(work);
    struct hibloom_async_filter *filter = work->filter;

    life_end(&own->life);
    explicit_bzero(&own->wanted, sizeof own->wanted);
    if (callback.opened != NULL && status == HIBLOOM_OK)
        callback.opened(status, filter, callback.data);
    else
        call_back(&callback, status, 0);
    if (callback.opened != NULL && status != HIBLOOM_OK)
        release(filter);
}

static hibloom_status begin_life(hibloom *handle, enum life_goal goal, const hibloom_spec *wanted)
{
    struct hibloom_async *async = async_of(handle);
    struct life_work *own = new_work(async, sizeof *own, 0, finish_life);

    if (own == NULL)
        return HIBLOOM_ENOMEM;
    if (wanted != NULL)
        own->wanted = *wanted;
    life_begin(&own->life, goal, handle, wanted != NULL ? &own->wanted : NULL);
    return begin(async, &own->work, &own->life.talk.task);
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
        return error_set(error_of(async), HIBLOOM_ENOMEM, "out of memory");
    filter->async = async;
    filter->uses = 1;
    TAILQ_INIT(&filter->works);
    hibloom_status status = submit(async, filter, 0, (struct callback){.opened = opened, .data = data});
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
        call_back(&callback, HIBLOOM_ECANCELED, work->n);
    }
    release(filter);
    deliver(&async->driver);
    async_leave(&async->driver);
}

const hibloom_spec *hibloom_async_spec_of(const hibloom_async_filter *filter)
{
    return hibloom_spec_of(filter->handle);
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
    const struct callback callback = take_callback(work);

    store_end_items(&own->run, own->answers);
    if (status == HIBLOOM_OK && callback.answered != NULL)
        callback.answered(status, own->answers, work->n, callback.data);
    else
        call_back(&callback, status, work->n);
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
    struct items_work *own = new_work(async, fits ? size : 0, n, finish_items);
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
    struct hibloom_async *async = async_of(handle);
    struct items_work *own = copy_items(async, items, n, is_new != NULL);

    if (own == NULL)
        return HIBLOOM_ENOMEM;
    store_begin_add(&own->run, handle, own->items, n, is_new != NULL);
    return begin(async, &own->work, &own->run.task);
}

static hibloom_status contains(hibloom *handle, const hibloom_item *items, size_t n, bool *found)
{
    struct hibloom_async *async = async_of(handle);
    struct items_work *own = copy_items(async, items, n, true);

    if (own == NULL)
        return HIBLOOM_ENOMEM;
    store_begin_contains(&own->run, handle, own->items, n);
    return begin(async, &own->work, &own->run.task);
}

/* Where there are no items hibloom_add_many asks nobody; here somebody waits to be called. */
hibloom_status hibloom_async_add(hibloom_async_filter *filter, const hibloom_item *items, size_t n, bool want_new,
                                 hibloom_answered_fn *answered, void *data)
{
    bool wanted;
    hibloom_status status = submit(filter->async, filter, n, (struct callback){.answered = answered, .data = data});

    if (status != HIBLOOM_OK)
        return status;
    return n == 0 ? add(filter->handle, items, n, want_new ? &wanted : NULL)
                  : hibloom_add_many(filter->handle, items, n, want_new ? &wanted : NULL);
}

hibloom_status hibloom_async_contains(hibloom_async_filter *filter, const hibloom_item *items, size_t n,
                                      hibloom_answered_fn *answered, void *data)
{
    hibloom_status status = submit(filter->async, filter, n, (struct callback){.answered = answered, .data = data});

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
    const struct callback callback = take_callback(work);
    hibloom_info info;

    if (status == HIBLOOM_OK && callback.counted != NULL) {
        async->count = &((struct upkeep_work *)work)->upkeep.count;
        status = hibloom_get_info(work->filter->handle, &info);
        async->count = NULL;
        callback.counted(status, &info, callback.data);
    } else {
        call_back(&callback, status, 0);
    }
}

static struct upkeep_work *new_upkeep(hibloom *handle)
{
    return new_work(async_of(handle), sizeof(struct upkeep_work), 0, finish_upkeep);
}

static hibloom_status begin_upkeep(hibloom *handle, struct upkeep_work *own)
{
    return begin(async_of(handle), &own->work, &own->upkeep.talk.task);
}

static hibloom_status count(hibloom *handle, struct store_count *out)
{
    struct hibloom_async *async = async_of(handle);

    if (async->count != NULL) {
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
    hibloom_status status = submit(filter->async, filter, 0, (struct callback){.counted = counted, .data = data});

    return status == HIBLOOM_OK ? count(filter->handle, NULL) : status;
}

static hibloom_status submit_done(hibloom_async_filter *filter, hibloom_done_fn *done, void *data)
{
    return submit(filter->async, filter, 0, (struct callback){.done = done, .data = data});
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

/* ---- The store ----------------------------------------------------------------------------------------- */

static const struct store_class async_class = {
    .open = open_filter,
    .add = add,
    .contains = contains,
    .count = count,
    .clear = clear,
    .drop = drop,
    .expire = expire,
    .close = redis_filter_free,
};

static void unmake(struct async *driver)
{
    struct hibloom_async *async = (struct hibloom_async *)driver;

    outbox_free(&async->spare);
    alloc.free(async);
}

/* Takes the settings over. */
static hibloom_status make(hibloom_async **out, struct settings *settings)
{
    struct hibloom_async *async = alloc.calloc(1, sizeof *async);

    *out = async;
    if (async == NULL)
        return HIBLOOM_ENOMEM;
    async->limit = HIBLOOM_ASYNC_ITEMS;
    TAILQ_INIT(&async->filters);
    async->driver.settled = deliver;
    async->driver.unmade = unmake;
    async->driver.carrier.store.base.class = &async_class;
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
        *error_of(async) = *error;
    *out = async;
    return async != NULL ? status : HIBLOOM_ENOMEM;
}

hibloom_status hibloom_async_connect(hibloom_async **out, const char *uri, const hibloom_connect_options *options,
                                     hibloom_attach_fn *attach, void *loop)
{
    struct settings settings = {0};
    struct error error;
    hibloom_status status = settings_make(&settings, uri, options, &error);

    if (status == HIBLOOM_OK && settings.uri.kind == URI_MEMORY)
        status = error_set(&error, HIBLOOM_ENOTSUP, "a store in memory needs no event loop: use hibloom_memory");
    else if (status == HIBLOOM_OK && settings.uri.tls)
        status = tls_check(&error);
    if (status == HIBLOOM_OK && attach == NULL)
        status = error_set(&error, HIBLOOM_EINVAL, "there is no function that attaches a connection to the loop");
    if (status == HIBLOOM_OK)
        status = make(out, &settings);
    else
        status = fail_unmade(out, status, &error);
    settings_free(&settings);
    if (status == HIBLOOM_OK) {
        (*out)->driver.attach = attach;
        (*out)->driver.loop = loop;
    }
    return status;
}

hibloom_status hibloom_async_borrow(hibloom_async **out, struct redisAsyncContext *context)
{
    struct error error;

    if (context == NULL || context->err != 0 || (context->c.flags & REDIS_BLOCK) != 0)
        return fail_unmade(out, error_set(&error, HIBLOOM_EINVAL, "not an asynchronous hiredis context that is alive"),
                           &error);
    hibloom_status status = make(out, &(struct settings){0});
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

void hibloom_async_limit(hibloom_async *async, size_t items)
{
    async->limit = items;
}

const char *hibloom_async_error(const hibloom_async *async)
{
    return async != NULL ? async->driver.carrier.store.base.error.words : "";
}

/* The calls are the carrier's no more. */
static void cancel_all(struct hibloom_async *async)
{
    struct calls *calls = &async->driver.carrier.calls;

    for (struct call *call; (call = TAILQ_FIRST(calls)) != NULL;) {
        TAILQ_REMOVE(calls, call, in_calls);
        task_fail(call->task, HIBLOOM_ECANCELED, "given up before it was answered");
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
            release(filter);
    }
    async_leave(&async->driver);
}
