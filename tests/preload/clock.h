/* The file $HIBLOOM_TEST_CLOCK, by which a test sets the clocks of its servers: see clock.c. */
#ifndef HIBLOOM_TEST_PRELOAD_CLOCK_H
#define HIBLOOM_TEST_PRELOAD_CLOCK_H

#include <stdatomic.h>
#include <stdint.h>

struct clock_file {
    _Atomic int64_t ahead_us; /* of this machine's clock */
};

#endif
