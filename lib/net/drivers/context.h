/* context.h: a context of hiredis that is being connected, by steps that never wait. Also the meaning of its failures. */
#ifndef HIBLOOM_CONTEXT_H
#define HIBLOOM_CONTEXT_H

#include "net/settings.h"

#include <hiredis/hiredis.h>

/* Begins to connect to the address, or path. A host name is looked up at once, which may block. Once the socket is
 * writable, or has failed, context_connected tells the outcome. Not OK: words in *error. *out may be NULL. */
hibloom_status context_begin(redisContext **out, const struct store_settings *, const char *host, unsigned port,
                             struct error *);
hibloom_status context_connected(const redisContext *, struct error *);

/* The cause of its failure; `saved` is errno as it was then. */
hibloom_status context_failure(const redisContext *, int saved, struct error *);

#endif
