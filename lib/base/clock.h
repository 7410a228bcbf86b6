/* clock.h: time that only goes forward, for deadlines and times to live. */
#ifndef HIBLOOM_CLOCK_H
#define HIBLOOM_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t clock_now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

#endif
