/* Event loops, as one: each test runs on each of them. The headers of three cannot be included together, so each is a
 * file of its own. The fourth is poll() and some lines. */
#ifndef HIBLOOM_TEST_LOOPS_H
#define HIBLOOM_TEST_LOOPS_H

#include "support/test.h"

#include <hibloom/async.h>

struct redisAsyncContext;

struct loop_class {
    const char *name;
    void *(*open)(void);
    hibloom_loop (*functions)(void *loop);
    int (*attach)(struct redisAsyncContext *, void *loop); /* by hiredis' adapter; NULL: it has none */
    void (*turn)(void *loop);                              /* what is ready; does not wait */
    void (*close)(void *loop);
};

extern const struct loop_class loop_libevent, loop_libuv, loop_libev, loop_poll;

#endif
