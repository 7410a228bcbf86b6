/* async.h: a store on an event loop, and its calls, which are works.
 *
 *   a call -> its work: arguments, results, owner's function -> its task, which the loop carries
 *          -> the task has ended -> finish: results -> the owner's function
 *
 * A store in memory has no tasks: its works have ended when they begin (how_end). */
#ifndef HIBLOOM_FILTER_ASYNC_H
#define HIBLOOM_FILTER_ASYNC_H

#include "filter/how.h"
#include "net/drivers/loop.h"

struct work;
TAILQ_HEAD(works, work);

struct async {
    struct looped looped;
    struct works works;       /* whose functions are still to be called */
    struct works ended;       /* those that are no tasks, and have ended: they wait for the timer */
    struct work *spare_ended; /* of a store in memory, for the call that is being made */
    size_t items, limit;      /* of calls under way; at most */
};

/* A call that was accepted. Its task lies behind it. */
struct work {
    union {
        struct call call;
        TAILQ_ENTRY(work) in_ended; /* of a work that is no task */
    };
    struct async *async;
    hibloom *filter, *other; /* it uses them; NULL: none */
    hibloom_done_fn *done;   /* NULL: it was called, or is not to be: results go nowhere */
    void *data;
    uint64_t *told; /* as in struct how, while there is a done */
    TAILQ_ENTRY(work) in_works;
    size_t n; /* items */
    /* Ends the task; hands the results over. Returns the call's status. NULL: there is nothing to do. */
    hibloom_status (*finish)(struct work *, hibloom_status);
    struct task *next; /* begins behind the one that has ended; NULL: none */
};

/* May a call of n items be made now? */
hibloom_status async_may_call(struct async *, const struct how *, size_t n);

/* Makes a call's work. Size 0 stands for more than memory can have. NULL: out of memory. */
void *async_new_work(struct async *, const struct how *, size_t size, size_t n,
                     hibloom_status (*finish)(struct work *, hibloom_status));

/* OK: accepted. Else it has failed at once, and its function is not called. */
hibloom_status async_begin(struct work *, struct task *);

/* The work is none of the carrier's. It is accepted; later it has ended. */
void async_accept(struct work *);
void async_end(struct work *);

void async_close_filter(struct async *, hibloom *);
void async_free(struct async *);

#endif
