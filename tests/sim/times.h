/* times.h: all keys of a filter go with its root, and a call leaves the times to live that it should. */
#ifndef HIBLOOM_SIM_TIMES_H
#define HIBLOOM_SIM_TIMES_H

#include "sim/names.h"

void times_begin(struct call *);
void times_look(int name, uint64_t expiry_ms); /* the root has this one now */
void times_check_listed(int name, const struct filter_seen *now, const struct filter_seen *was);
/* A script was carried out; root and expiry_ms are those before it. */
void times_after(int name, int who, const char *what, uint64_t root, uint64_t expiry_ms);
void times_end(struct call *, hibloom_status, bool open_end); /* it is open what of it arrives late */
void times_cross(struct blob key); /* a making has met it, and given it another time to live */
void times_check_left(const struct call *);
void times_check_end(int name);
bool times_may_be_over(int name); /* a key may go between an answer and its check */

#endif
