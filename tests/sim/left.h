/* left.h: what a call leaves behind, and what is there once all is well. */
#ifndef HIBLOOM_SIM_LEFT_H
#define HIBLOOM_SIM_LEFT_H

#include "sim/names.h"

/* Late bits, though nothing has happened that excuses them. `unclean`: as it began. */
bool leaves_late_bits(const struct call *, hibloom_status, bool unclean);
void check_left(const struct call *, bool unclean); /* it is OK */

#endif
