/* async.h: how a call ends: it waits, or its function is called later, from a loop. And what a store on a loop keeps.
 *
 *   hibloom_X, hibloom_async_X -> one function, which is told how -> checks -> a task
 *                                     waits: the store runs it
 *                                     later: a work has it -> the loop -> the task has ended -> its owner's function
 *
 * A store in memory has no tasks. There the call is made at once, and only its function waits for the loop. */
#ifndef HIBLOOM_FILTER_ASYNC_H
#define HIBLOOM_FILTER_ASYNC_H

#include "net/drivers/loop.h"

struct how {
    const char *name; /* of the function, behind its prefix */
    bool async;
    hibloom_done_fn *done;
    void *data;
};

#define WAITS(name) (&(const struct how){#name, false, NULL, NULL})
#define LATER(name) (&(const struct how){#name, true, done, data})

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
    struct call call;
    struct async *async;
    hibloom *filter, *other; /* it uses them; NULL: none */
    hibloom_done_fn *done;   /* NULL: it was called, or is not to be: results go nowhere */
    void *data;
    TAILQ_ENTRY(work) in_works, in_ended;
    size_t n; /* items */
    /* Ends the task; hands the results over. Returns the call's status. NULL: there is nothing to do. */
    hibloom_status (*finish)(struct work *, hibloom_status);
    struct task *next; /* begins behind the one that has ended; NULL: none */
};

/* May a call of n items be made so on this store? */
hibloom_status how_check(hibloom_store *, const struct how *, size_t n);

/* Does the store's loop carry tasks? */
bool how_is_task(const hibloom_store *);

/* The call was made at once. Its status; on a loop its function is called later. */
hibloom_status how_end(hibloom_store *, hibloom *, hibloom_status, const struct how *);

/* hibloom_list, made at once: its owner's function may make calls in the middle of it, and free the store. */
hibloom_status how_list(hibloom_store *, const char *pattern, hibloom_list_fn *, void *each_data, const struct how *);

/* A call that is one task, of redis/links.h. `made`: it is not open, and the call's. It is opened, and goes to *out, or
 * its filter becomes that of `filter`; or it is there for its name alone. */
struct request;
struct links_call {
    enum links_goal goal;
    hibloom *filter, *made; /* NULL: none */
    const struct request *wanted;
    uint64_t ms;
    hibloom **out;
    hibloom_info *info; /* of a count; NULL: it is none */
    size_t size;
};
hibloom_status links_call(hibloom_store *, const struct links_call *, const struct how *);

/* The other calls as works. */
hibloom_status async_items(hibloom *, enum store_call, const hibloom_item *, size_t n, bool *answers,
                           const struct how *);
hibloom_status async_list(hibloom_store *, const char *pattern, hibloom_list_fn *, void *each_data, const struct how *);

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
