/* outages.h: servers go and come, are replaced by their replicas, and refuse things. */
#ifndef HIBLOOM_SIM_OUTAGES_H
#define HIBLOOM_SIM_OUTAGES_H

#include "sim/servers.h"

void fail_over(int server, uint64_t arg, bool isolate);
void restart(int server, uint64_t arg);
void refuse(struct server *, uint64_t arg);
void deny(struct server *, const char *place, uint64_t arg);
void end_conditions(void *server); /* once their time is over */
void outages_heal(void);

#endif
