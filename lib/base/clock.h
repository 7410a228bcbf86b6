/* clock.h: time that only goes forward, for deadlines and times to live. It goes on while the machine sleeps: what was
 * proven before that is old behind it. */
#ifndef HIBLOOM_CLOCK_H
#define HIBLOOM_CLOCK_H

#include <stdint.h>
#include <time.h>

#ifdef CLOCK_BOOTTIME
#define CLOCK_FORWARD CLOCK_BOOTTIME
#else
#define CLOCK_FORWARD CLOCK_MONOTONIC
#endif

static inline uint64_t clock_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_FORWARD, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static inline uint64_t clock_now_ms(void)
{
    return clock_now_ns() / 1000000;
}

/* Of two times. */
static inline uint64_t sooner(uint64_t one, uint64_t other) /* 0: never */
{
    return one == 0 || (other != 0 && other < one) ? other : one;
}

#endif
