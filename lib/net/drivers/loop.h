/* loop.h: a Redis store whose connections are on the caller's event loop.
 *
 * The loop calls hiredis, hiredis calls this driver, and the driver calls the carrier. When all
 * have settled, `settled` hands calls that have ended to their owner. So no owner is ever called
 * within the carrier. */
#ifndef HIBLOOM_NET_ASYNC_H
#define HIBLOOM_NET_ASYNC_H

#include "hibloom/async.h"
#include "net/flights/events.h"

struct async {
    struct carrier carrier;
    hibloom_attach_fn *attach;
    void *loop;
    struct redisAsyncContext *theirs; /* the caller's, if it is borrowed; NULL once it is dead */
    uint64_t checked_ms;              /* when time-outs were looked for last */
    unsigned inside;                  /* events and calls that are under way: it may not be freed */
    bool closing;                     /* it is freed behind the last of them */
    void (*settled)(struct async *);
    void (*unmade)(struct async *); /* frees it */
};

/* Takes the settings over. False: out of memory; end it with async_close all the same. */
bool async_make(struct async *, struct store_settings *);

/* Does the caller's connection take commands, if it is borrowed? */
hibloom_status async_check(struct async *);

/* Around all that may call an owner back. */
void async_enter(struct async *);
void async_leave(struct async *);

/* Begins a call; its `done` is true if it ended at once. */
void async_begin(struct async *, struct call *, struct task *);

void async_tick(struct async *);
void async_close(struct async *); /* the connections */

#endif
