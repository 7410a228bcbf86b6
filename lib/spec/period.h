/* period.h: the time of a sliding window, cut into periods, and the slices that hold what is added in them.
 *
 *   period       number c is that of a clock that shows a time from c * window / slices seconds on
 *   slice        number c mod (slices + 1) holds what is added in period c. So when a slice is emptied for a new
 *                period, what it held is that of the period `slices` + 1 before, which no look-up counts any more
 *   epoch        in the trailer of a slice's key: half seconds. Of a key that was emptied for a period it is the first
 *                half second that begins in it; each clear counts it up by one. So it tells the period and never
 *                comes again, and a clear that arrives late does no harm. 0: the key was never added to
 *
 * An item added in period a is found in periods a to a + slices. After any time in a that is `window` seconds at
 * least, and `window` and one period at most. */
#ifndef HIBLOOM_PERIOD_H
#define HIBLOOM_PERIOD_H

#include "spec/spec.h"

#define PERIOD_SECOND UINT64_C(1000000) /* clocks show microseconds */

/* Beyond that a clock shows nonsense, and epochs have no room. */
#define PERIOD_CLOCK_MAX (UINT64_C(4999999999) * PERIOD_SECOND)

static inline uint32_t period_slice(const struct spec *spec, uint64_t period)
{
    return (uint32_t)(period % ((uint64_t)spec->slices + 1));
}

static inline uint64_t period_at(const struct spec *spec, uint64_t us)
{
    return us * spec->slices / (spec->window * PERIOD_SECOND);
}

static inline uint64_t period_divide_up(uint64_t a, uint64_t b)
{
    return (a + b - 1) / b;
}

/* The first microsecond of the next one. */
static inline uint64_t period_end_us(const struct spec *spec, uint64_t period)
{
    return period_divide_up((period + 1) * spec->window * PERIOD_SECOND, spec->slices);
}

static inline uint64_t period_epoch(const struct spec *spec, uint64_t period)
{
    return period_divide_up(period * spec->window * 2, spec->slices);
}

/* The period of a key of slice number spec->link; 0: none; period 0 no longer counts. */
static inline uint64_t period_of_epoch(const struct spec *spec, uint64_t epoch)
{
    const uint64_t period = epoch * spec->slices / (spec->window * UINT64_C(2));
    const uint64_t count = spec->slices + 1, beyond = (period + count - spec->link) % count;

    return period >= beyond ? period - beyond : 0;
}

/* Does what was added in it still count when it is `now`? */
static inline bool period_counts(const struct spec *spec, uint64_t period, uint64_t now)
{
    return period + spec->slices >= now;
}

#endif
