/* hibloom on libev: hibloom_loop loop = hibloom_libev(ev_default_loop(0));
 *
 * SPDX-License-Identifier: MIT */
#ifndef HIBLOOM_ADAPTERS_LIBEV_H
#define HIBLOOM_ADAPTERS_LIBEV_H

#include <ev.h>
#include <hibloom/async.h>
#include <stdlib.h>

static inline void hibloom_libev_on_socket(struct ev_loop *loop, ev_io *io, int what)
{
    hibloom_ready((hibloom_store *)io->data, io->fd,
                  ((what & EV_READ) != 0 ? HIBLOOM_READ : 0) | ((what & EV_WRITE) != 0 ? HIBLOOM_WRITE : 0));
    (void)loop;
}

static inline void hibloom_libev_on_timer(struct ev_loop *loop, ev_timer *timer, int what)
{
    hibloom_ready((hibloom_store *)timer->data, -1, 0);
    (void)loop;
    (void)what;
}

static inline int hibloom_libev_watch(void *data, int fd, int events, void **slot, hibloom_store *store)
{
    struct ev_loop *loop = (struct ev_loop *)data;
    ev_io *io = (ev_io *)*slot;
    if (io != NULL)
        ev_io_stop(loop, io);
    else if (events != 0)
        *slot = io = (ev_io *)malloc(sizeof *io);
    if (events == 0) {
        free(io);
        *slot = NULL;
        return 0;
    }
    if (io == NULL)
        return -1;
    ev_io_init(io, hibloom_libev_on_socket, fd,
               ((events & HIBLOOM_READ) != 0 ? EV_READ : 0) | ((events & HIBLOOM_WRITE) != 0 ? EV_WRITE : 0));
    io->data = store;
    ev_io_start(loop, io);
    return 0;
}

static inline int hibloom_libev_timer(void *data, int64_t ms, void **slot, hibloom_store *store)
{
    struct ev_loop *loop = (struct ev_loop *)data;
    ev_timer *timer = (ev_timer *)*slot;
    if (timer != NULL)
        ev_timer_stop(loop, timer);
    else if (ms >= 0)
        *slot = timer = (ev_timer *)malloc(sizeof *timer);
    if (ms < 0) {
        free(timer);
        *slot = NULL;
        return 0;
    }
    if (timer == NULL)
        return -1;
    ev_now_update(loop); /* or it would ring too early */
    ev_timer_init(timer, hibloom_libev_on_timer, (double)ms / 1000.0, 0.0);
    timer->data = store;
    ev_timer_start(loop, timer);
    return 0;
}

static inline hibloom_loop hibloom_libev(struct ev_loop *base)
{
    hibloom_loop loop = {sizeof loop, base, hibloom_libev_watch, hibloom_libev_timer};
    return loop;
}

#endif
