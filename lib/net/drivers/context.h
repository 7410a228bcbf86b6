/* context.h: a blocking context of hiredis, before it is a connection (connection.h): it is
 * made within a time, over TLS where that is asked for; and what its failures mean. */
#ifndef HIBLOOM_CONTEXT_H
#define HIBLOOM_CONTEXT_H

#include "net/settings.h"

#include <hiredis/hiredis.h>
#include <sys/time.h>

/* One to that address, or path, until the deadline (ms; 0: none) at the latest. It has been shown to
 * the caller's on_connect, and nothing has been sent. Not OK: there is none; words in *error. */
hibloom_status context_open(redisContext **out, const struct store_settings *, const char *host, unsigned port,
                            uint64_t deadline, struct error *);

/* What it has failed of; `saved` is errno as it was then. */
hibloom_status context_failure(const redisContext *, int saved, struct error *);

/* Has it failed since there is no host of that name? */
bool context_names_nobody(const redisContext *);

struct timeval context_time(uint32_t ms);

/* What is left until then, in milliseconds, but no more than `most`; 0: nothing. Then 0: never. */
uint32_t context_left(uint64_t then, uint32_t most);

#endif
