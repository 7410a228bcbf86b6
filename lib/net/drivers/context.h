/* context.h: a context of hiredis that is being connected, by steps that never wait. Also the meaning of its failures.
 * It keeps SIGPIPE away from the program. */
#ifndef HIBLOOM_CONTEXT_H
#define HIBLOOM_CONTEXT_H

#include "net/settings.h"

#include <hiredis/hiredis.h>
#include <signal.h>

/* Begins to connect to the address, or path. A host name is looked up at once, which may block. Once the socket is
 * writable, or has failed, context_connected tells the outcome. Not OK: words in *error. *out may be NULL. */
hibloom_status context_begin(redisContext **out, const struct store_settings *, const char *host, unsigned port,
                             struct error *);
hibloom_status context_connected(const redisContext *, struct error *);

/* The cause of its failure; `saved` is errno as it was then. */
hibloom_status context_failure(const redisContext *, int saved, struct error *);

/* hiredis and OpenSSL write without MSG_NOSIGNAL, and a library may not touch the process' handlers. So SIGPIPE is blocked
 * in this thread while they write, and one that arose is taken back. Failed: one may have come of it. Leaves errno
 * alone. */
struct sigpipe {
    sigset_t mask, pending; /* as they were */
};

void sigpipe_block(struct sigpipe *before);
void sigpipe_unblock(const struct sigpipe *before, bool failed);

#endif
