/* libev. See loops.h. */
#include "loops.h"

#include <hibloom/adapters/libev.h>
#include <hiredis/adapters/libev.h>

static void *open_loop(void)
{
    return ev_loop_new(EVFLAG_AUTO);
}

static hibloom_loop functions(void *loop)
{
    return hibloom_libev(loop);
}

static int attach(struct redisAsyncContext *context, void *loop)
{
    return redisLibevAttach(loop, context);
}

static void turn(void *loop)
{
    ev_run(loop, EVRUN_NOWAIT);
}

static void close_loop(void *loop)
{
    ev_loop_destroy(loop);
}

const struct loop_class loop_libev = {"libev", open_loop, functions, attach, turn, close_loop};
