/* What the file $HIBLOOM_TEST_CLOCK holds, by which a test sets the clocks of its servers: see clock.c. */
#ifndef HIBLOOM_TEST_PRELOAD_CLOCK_H
#define HIBLOOM_TEST_PRELOAD_CLOCK_H

#include <stdatomic.h>
#include <stdint.h>

enum { CLOCKS_MAX = 64 }; /* servers that are started with it */

struct clock_file {
    _Atomic int64_t from_us;  /* since this time of this machine's clock */
    _Atomic int64_t speed;    /* they run so many times as fast; 0: as it does */
    _Atomic int64_t ahead_us; /* all of them are ahead; */
    atomic_int count;
    struct {
        atomic_int pid;
        _Atomic int64_t ahead_us; /* this one besides */
    } servers[CLOCKS_MAX];
};

/* What all show but for what one is ahead, when this machine's clock shows that. */
static inline int64_t clock_shown_us(const struct clock_file *file, int64_t real_us)
{
    const int64_t speed = file->speed, from = file->from_us;

    return (speed != 0 ? from + (real_us - from) * speed : real_us) + file->ahead_us;
}

#endif
