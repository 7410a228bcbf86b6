/* async.h: a store on an event loop. Its calls are works (work.h). */
#ifndef HIBLOOM_FILTER_ASYNC_H
#define HIBLOOM_FILTER_ASYNC_H

#include "filter/work.h"
#include "net/drivers/loop.h"

struct async {
    struct looped looped;
    struct works works;  /* whose functions are still to be called, */
    size_t calls;        /* so many */
    struct works ended;  /* those that are no tasks, and have ended: they wait for the timer, */
    struct works due;    /* and these for those before them */
    size_t items, limit; /* of calls under way; at most */
};

/* May a call of n items be made now? */
hibloom_status async_may_call(struct async *, const struct how *, size_t n);

void async_close_filter(struct async *, hibloom *);
void async_free(struct async *);

#endif
