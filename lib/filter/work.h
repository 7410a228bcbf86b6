/* work.h: a call, from its begin to its end.
 *
 *   a call -> its work: arguments, results, owner's function -> its task, which the store carries
 *          -> the task has ended -> finish: results -> the owner's function, if it is on a loop */
#ifndef HIBLOOM_FILTER_WORK_H
#define HIBLOOM_FILTER_WORK_H

#include "filter/how.h"
#include "net/flights/events.h"

TAILQ_HEAD(works, work);

/* A call. Its task lies behind it. */
struct work {
    union {
        struct call call;
        TAILQ_ENTRY(work) in_ended; /* of a work that is no task */
    };
    hibloom_store *store;
    struct async *async;     /* NULL: the store's calls wait, and those with a `done` are parts of one that does */
    hibloom *filter, *other; /* it uses them; NULL: none */
    hibloom_done_fn *done;   /* NULL: it waits; on a loop: it was called, or is not to be, and results go nowhere */
    void *data;
    uint64_t *told; /* as in struct how, while there is a done */
    TAILQ_ENTRY(work) in_works;
    size_t n; /* items */
    /* Behind the task: hands the results over. Returns the call's status. NULL: there is nothing to do. */
    hibloom_status (*finish)(struct work *, hibloom_status);
    struct task *next; /* begins behind the one that has ended; NULL: none */
};

/* A call without items counts as one. */
static inline size_t work_weight(size_t n)
{
    return n > 0 ? n : 1;
}

/* Makes a call's work: `here`, if the call waits. Size 0 stands for more than memory can have. NULL: out of memory. */
void *work_make(hibloom_store *, const struct how *, void *here, size_t size, size_t n,
                hibloom_status (*finish)(struct work *, hibloom_status));

/* Its caller gets the results. */
static inline bool work_is_wanted(const struct work *work)
{
    return work->async == NULL || work->done != NULL;
}

/* Its task is carried out. A call that waits has ended then. On a loop, and of a part of one that waits, OK says that it is
 * accepted; else it has failed at once, and its function is not called. */
hibloom_status work_go(struct work *, struct task *);

/* It has ended at once, as no task, and its results are handed over. Its status; on a loop its function is called later. */
hibloom_status work_end(struct work *, hibloom_status);

/* The two steps of that on a loop. */
void work_accept(struct work *);
void work_ended(struct work *); /* its function is called with the loop's next turn */

/* Hands over what has ended. What a done begins, and what ends at once, waits for the loop's next turn. */
void works_deliver(struct redis_store *);

/* One that was no task, or is given up. Its function is called; after its store began to be freed, with ECANCELED. */
void work_deliver(struct work *, hibloom_status);

/* Its function is called with ECANCELED at once, and its results go nowhere. */
void work_cancel(struct work *);

#endif
