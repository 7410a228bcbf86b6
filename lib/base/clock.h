/* clock.h: time that only goes forward, for deadlines and times to live. */
#ifndef HIBLOOM_CLOCK_H
#define HIBLOOM_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t clock_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
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
