/* async.h: a store on an event loop, its filters, and the calls that are under way.
 *
 *   hibloom_async_add -> checks, as a blocking call -> a work: a task, and whom to call back
 *   loop -> driver -> carrier: the task has ended -> deliver -> the owner's function */
#ifndef HIBLOOM_FILTER_ASYNC_H
#define HIBLOOM_FILTER_ASYNC_H

#include "net/drivers/loop.h"

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
};

/* Ends the task, and calls back. */
typedef void work_finish(struct work *, hibloom_status, const struct callback *);

/* A call that was accepted. Its task lies behind it. */
struct work {
    struct call call;
    struct hibloom_async_filter *filter;
    struct callback callback; /* nobody, once it is done */
    TAILQ_ENTRY(work) in_works;
    size_t n; /* items */
    work_finish *finish;
};

static inline struct error *async_error(struct hibloom_async *async)
{
    return &async->driver.carrier.store.base.error;
}

/* Is a call of n items allowed? */
hibloom_status async_may_call(struct hibloom_async *, size_t n, const struct callback *);

/* Makes a call's work, with the task behind it. Size 0 stands for more than memory can have. NULL: out of memory. */
void *async_new_work(struct hibloom_async_filter *, const struct callback *, size_t size, size_t n, work_finish *fn);

/* OK: accepted. Else it has failed at once, and no callback follows. */
hibloom_status async_begin_work(struct work *, struct task *);

/* `result`: the filter, the answers or the info; NULL unless the call was OK. */
void async_call_back(const struct callback *, hibloom_status, void *result, size_t n);

/* A filter goes with its last use. */
void async_release(struct hibloom_async_filter *);

#endif
