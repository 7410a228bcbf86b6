/* loop.h: a store whose connections are on the caller's event loop.
 *
 *     hibloom_ready -> looped_ready -> the carrier: calls end -> settled -> their owners
 *                                                             -> watch, timer
 *
 * The loop watches sockets and has one timer for the store; nothing here waits. When all have settled, `settled` hands
 * calls that have ended to their owners. So no owner is ever called within the carrier. A store in memory has the timer
 * only. */
#ifndef HIBLOOM_LOOP_H
#define HIBLOOM_LOOP_H

#include "hibloom/async.h"
#include "net/flights/events.h"

struct looped {
    struct carrier carrier;
    hibloom_store *store;             /* that of the carrier, or one in memory */
    hibloom_loop loop;                /* all NULL: the connection is the caller's */
    void *slot;                       /* the timer's */
    uint64_t armed_ms;                /* when the timer rings; 0: it does not */
    bool unsettled;                   /* calls have ended, and wait for the timer */
    struct redisAsyncContext *theirs; /* the caller's, if it is borrowed; NULL once it is dead */
    struct line *line;                /* its callbacks (lent.c); NULL: it is not borrowed */
    unsigned inside;                  /* events and calls that are under way: it may not be freed */
    bool closing;                     /* it is freed behind the last of them */
    void (*settled)(struct looped *);
    void (*unmade)(struct looped *); /* frees it */
};

/* Takes the settings over. False: out of memory; end it with looped_close all the same. */
bool looped_make(struct looped *, struct store_settings *, const struct pipe_class *);

extern const struct pipe_class loop_pipes; /* connections of ours */
extern const struct pipe_class lent_pipes; /* the caller's: lent.c */

/* Does the caller's connection take commands, if it is borrowed? */
hibloom_status lent_check(struct looped *);

/* Is it alive, and not being ended? */
bool lent_takes_commands(const struct redisAsyncContext *);

/* It has no timer. Where calls have ended a PING is sent, and its answer tells of them. False: out of memory. */
bool lent_begin(struct looped *);
void lent_ring(struct looped *);
void lent_end(struct looped *);

/* Around all that may call an owner back. */
void looped_enter(struct looped *);
void looped_leave(struct looped *);

/* Behind each event: owners are called. */
void looped_settle(struct looped *);

/* A call has begun, or has ended early: tells the loop what to wait for. */
void looped_watch(struct looped *);

/* An event of hibloom_ready. */
void looped_ready(struct looped *, int fd, int events);

void looped_close(struct looped *); /* the connections, and the timer */

#endif
