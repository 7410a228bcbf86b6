/* sigpipe.c: keeps SIGPIPE away from the program. See sigpipe.h. */
#include "net/drivers/sigpipe.h"

#include <errno.h>
#include <stddef.h>
#include <time.h>

static sigset_t only_sigpipe(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGPIPE);
    return set;
}

void sigpipe_block(struct sigpipe *before)
{
    const sigset_t pipe = only_sigpipe();

    sigpending(&before->pending);
    pthread_sigmask(SIG_BLOCK, &pipe, &before->mask);
}

void sigpipe_unblock(const struct sigpipe *before, bool failed)
{
    static const struct timespec at_once = {0, 0};
    const sigset_t pipe = only_sigpipe();
    const int saved = errno;

    if (failed && !sigismember(&before->pending, SIGPIPE))
        while (sigtimedwait(&pipe, NULL, &at_once) < 0 && errno == EINTR)
            ;
    pthread_sigmask(SIG_SETMASK, &before->mask, NULL);
    errno = saved;
}
