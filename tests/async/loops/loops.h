/* The three event loops, as one: each test runs on each of them. Their headers
 * cannot be included together, so each is a file of its own. */
#ifndef HIBLOOM_TEST_LOOPS_H
#define HIBLOOM_TEST_LOOPS_H

#include "support/test.h"

#include <hibloom/async.h>

struct loop_class {
    const char *name;
    void *(*open)(void);
    hibloom_attach_fn *attach;
    void (*turn)(void *loop); /* what is ready; does not wait */
    void (*close)(void *loop);
};

extern const struct loop_class loop_libevent, loop_libuv, loop_libev;

#endif
