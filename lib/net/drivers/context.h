/* context.h: a context of hiredis, before it is a connection (connection.h): it is
 * made within a time, over TLS where that is asked for; and what its failures mean. */
#ifndef HIBLOOM_CONTEXT_H
#define HIBLOOM_CONTEXT_H

#include "net/settings.h"

#include <hiredis/hiredis.h>

/* One to that address, or path, until the deadline (ms; 0: none) at the latest. It has been shown to
 * the caller's on_connect, nothing has been sent, and from now on it does not block. Not OK: there is none; words in *error. */
hibloom_status context_open(redisContext **out, const struct store_settings *, const char *host, unsigned port,
                            uint64_t deadline, struct error *);

/* What it has failed of; `saved` is errno as it was then. */
hibloom_status context_failure(const redisContext *, int saved, struct error *);

/* Has it failed since there is no host of that name? */
bool context_names_nobody(const redisContext *);

#endif
