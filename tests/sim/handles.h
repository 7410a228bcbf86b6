/* handles.h: a script changes only the filter that its client has opened. */
#ifndef HIBLOOM_SIM_HANDLES_H
#define HIBLOOM_SIM_HANDLES_H

#include "sim/names.h"

void note_handle(const struct call *);
/* Whatever is late: some scripts take only from the filter that their caller has opened, and an undo from none. */
bool may_take(int name, int client, const char *what);
/* Whether the script, which compares identities, comes from a client that has never opened the filter that is there. */
bool is_foreign(int client, const char *script, struct blob key);

#endif
