/* libevent. See loops.h. */
#include "loops.h"

#include <hibloom/adapters/libevent.h>
#include <hiredis/adapters/libevent.h>

static void *open_loop(void)
{
    return event_base_new();
}

static hibloom_loop functions(void *loop)
{
    return hibloom_libevent(loop);
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

const struct loop_class loop_libevent = {"libevent", open_loop, functions, attach, turn, close_loop};
