/* client.h: the programs of a world: processes that use the library as hibloom.h and async.h say. */
#ifndef HIBLOOM_SIM_CLIENT_H
#define HIBLOOM_SIM_CLIENT_H

#include "sim/plan.h"

void memory_make(void); /* once in a process; see memory.c */
void memory_end(void);  /* frees what a world has left; a leak of a client that was not killed is a finding */

/* Each client is a fiber that does its steps. Once the world has settled, it asks by its old handles and by a new store. */
void clients_begin(void);
bool clients_are_done(void); /* with their steps */
void clients_end(void);      /* a hang of one that was not killed is a finding */

#endif
