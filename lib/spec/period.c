/* period.c: the time of a sliding window, cut into periods. See period.h. */
#include "spec/period.h"

static uint64_t divide_up(uint64_t a, uint64_t b)
{
    return (a + b - 1) / b;
}

uint64_t period_at(const hibloom_spec *spec, uint64_t us)
{
    return us * spec->slices / (spec->window * PERIOD_SECOND);
}

uint64_t period_end_us(const hibloom_spec *spec, uint64_t period)
{
    return divide_up((period + 1) * spec->window * PERIOD_SECOND, spec->slices);
}

uint64_t period_epoch(const hibloom_spec *spec, uint64_t period)
{
    return divide_up(period * spec->window * 2, spec->slices);
}

uint64_t period_of_epoch(const hibloom_spec *spec, uint64_t epoch)
{
    const uint64_t period = epoch * spec->slices / (spec->window * UINT64_C(2));
    const uint64_t count = spec->slices + 1, beyond = (period + count - spec->link) % count;

    return period >= beyond ? period - beyond : 0;
}
