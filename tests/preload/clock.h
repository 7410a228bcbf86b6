/* What the file $HIBLOOM_TEST_CLOCK holds, by which a test sets the clocks of its servers: see clock.c. */
#ifndef HIBLOOM_TEST_PRELOAD_CLOCK_H
#define HIBLOOM_TEST_PRELOAD_CLOCK_H

#include <stdatomic.h>
#include <stdint.h>

enum { CLOCKS_MAX = 64 }; /* servers that are started with it */

struct clock_file {
    _Atomic int64_t ahead_us; /* of this machine's clock: all of them; */
    atomic_int count;
    struct {
        atomic_int pid;
        _Atomic int64_t ahead_us; /* this one besides */
    } servers[CLOCKS_MAX];
};

#endif
