/* hibloom on libevent: hibloom_loop loop = hibloom_libevent(base);
 *
 * SPDX-License-Identifier: MIT */
#ifndef HIBLOOM_ADAPTERS_LIBEVENT_H
#define HIBLOOM_ADAPTERS_LIBEVENT_H

#include <event2/event.h>
#include <hibloom/async.h>

static inline void hibloom_libevent_ready(evutil_socket_t fd, short what, void *store)
{
    hibloom_ready((hibloom_store *)store, (what & EV_TIMEOUT) != 0 ? -1 : (int)fd,
                  ((what & EV_READ) != 0 ? HIBLOOM_READ : 0) | ((what & EV_WRITE) != 0 ? HIBLOOM_WRITE : 0));
}

/* An event may be freed from within its own callback. */
static inline int hibloom_libevent_set(void *base, int fd, int what, const struct timeval *in, void **slot,
                                       hibloom_store *store)
{
    if (*slot != NULL)
        event_free((struct event *)*slot);
    *slot = what != 0 ? event_new((struct event_base *)base, fd, (short)what, hibloom_libevent_ready, store) : NULL;
    return what == 0 || (*slot != NULL && event_add((struct event *)*slot, in) == 0) ? 0 : -1;
}

static inline int hibloom_libevent_watch(void *base, int fd, int events, void **slot, hibloom_store *store)
{
    const int what = ((events & HIBLOOM_READ) != 0 ? EV_READ : 0) | ((events & HIBLOOM_WRITE) != 0 ? EV_WRITE : 0);
    return hibloom_libevent_set(base, fd, what != 0 ? what | EV_PERSIST : 0, NULL, slot, store);
}

static inline int hibloom_libevent_timer(void *base, int64_t ms, void **slot, hibloom_store *store)
{
    struct timeval in;
    in.tv_sec = (time_t)(ms / 1000);
    in.tv_usec = (suseconds_t)(ms % 1000 * 1000);
    return hibloom_libevent_set(base, -1, ms < 0 ? 0 : EV_TIMEOUT, &in, slot, store);
}

static inline hibloom_loop hibloom_libevent(struct event_base *base)
{
    hibloom_loop loop = {sizeof loop, base, hibloom_libevent_watch, hibloom_libevent_timer};
    return loop;
}

#endif
