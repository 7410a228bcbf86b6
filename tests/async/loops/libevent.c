/* libevent. See loops.h. */
#include "loops.h"

#include <hiredis/adapters/libevent.h>

static void *open_loop(void)
{
    return event_base_new();
}

static int attach(struct redisAsyncContext *context, void *loop)
{
    return redisLibeventAttach(context, loop);
}

static void turn(void *loop)
{
    event_base_loop(loop, EVLOOP_NONBLOCK);
}

static void close_loop(void *loop)
{
    event_base_free(loop);
}

const struct loop_class loop_libevent = {"libevent", open_loop, attach, turn, close_loop};
