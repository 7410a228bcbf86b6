/* watch.h: the commands of calls, as servers carry them out: what serves a look-up, and what adds set and take back. */
#ifndef HIBLOOM_SIM_WATCH_H
#define HIBLOOM_SIM_WATCH_H

#include "sim/names.h"

void watch_begin_world(void);
void watch_begin(const struct call *);
void watch_end(const struct call *, hibloom_status, bool open_end);
void watch_check(const struct call *, const bool *answers); /* a "no" was served by its filter */

#endif
