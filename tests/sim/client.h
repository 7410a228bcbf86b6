/* client.h: the programs of a world: processes that use the library as hibloom.h and async.h say. */
#ifndef HIBLOOM_SIM_CLIENT_H
#define HIBLOOM_SIM_CLIENT_H

#include "sim/plan.h"

void clients_make(void); /* once in a process */
/* Each client is a fiber that does its steps. Once the world has settled, it asks by its old handles and by a new store. */
void clients_begin(void);
bool clients_are_done(void); /* with their steps */
void clients_end(void);      /* frees what killed ones have left; a leak or a hang of the others is a finding */

#endif
