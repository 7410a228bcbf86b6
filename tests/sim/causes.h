/* causes.h: a status has a cause in its world, and a call ends in time. */
#ifndef HIBLOOM_SIM_CAUSES_H
#define HIBLOOM_SIM_CAUSES_H

#include "sim/names.h"

bool has_cause(const struct call *, hibloom_status);
uint64_t bound_ms(const struct call *); /* the longest that it may take */

#endif
