/* sigpipe.h: keeps SIGPIPE away from the program.
 *
 * hiredis and OpenSSL write without MSG_NOSIGNAL, and a library may not touch the process'
 * handlers. So SIGPIPE is blocked in this thread while they write, and one that arose is taken
 * back. */
#ifndef HIBLOOM_SIGPIPE_H
#define HIBLOOM_SIGPIPE_H

#include <signal.h>
#include <stdbool.h>

struct sigpipe {
    sigset_t mask, pending; /* as they were */
};

void sigpipe_block(struct sigpipe *before);

/* Failed: one may have come of it. Leaves errno alone. */
void sigpipe_unblock(const struct sigpipe *before, bool failed);

#endif
