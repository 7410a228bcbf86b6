/* context.h: a context of hiredis, before it is a connection (connection.h). It is made within a
 * time, over TLS if wanted. Also the meaning of its failures. */
#ifndef HIBLOOM_CONTEXT_H
#define HIBLOOM_CONTEXT_H

#include "net/settings.h"

#include <hiredis/hiredis.h>

/* Connects to the address, or path, until the deadline (ms; 0: none) at the latest. The caller's `connected` has
 * seen it, nothing has been sent, and from now on it does not block. Not OK: there is none; words in *error. */
hibloom_status context_open(redisContext **out, const struct store_settings *, const char *host, unsigned port,
                            uint64_t deadline, struct error *);

/* The cause of its failure; `saved` is errno as it was then. */
hibloom_status context_failure(const redisContext *, int saved, struct error *);

/* Has it failed because no host has the name? */
bool context_names_nobody(const redisContext *);

#endif
