/* libuv. See loops.h. */
#include "loops.h"

#include <hibloom/adapters/libuv.h>
#include <hiredis/adapters/libuv.h>

static void *open_loop(void)
{
    uv_loop_t *loop = malloc(sizeof *loop);

    assert_non_null(loop);
    assert_int_equal(uv_loop_init(loop), 0);
    return loop;
}

static hibloom_loop functions(void *loop)
{
    return hibloom_libuv(loop);
}

static int attach(struct redisAsyncContext *context, void *loop)
{
    return redisLibuvAttach(context, loop);
}

static void turn(void *loop)
{
    uv_run(loop, UV_RUN_NOWAIT);
}

/* What is closed is closed within a turn. */
static void close_loop(void *loop)
{
    int result = -1;

    for (int i = 0; i < 100 && (result = uv_loop_close(loop)) != 0; i++)
        turn(loop);
    assert_int_equal(result, 0);
    free(loop);
}

const struct loop_class loop_libuv = {"libuv", open_loop, functions, attach, turn, close_loop};
