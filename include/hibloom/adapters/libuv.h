/* hibloom on libuv: hibloom_loop loop = hibloom_libuv(uv_default_loop());
 *
 * libuv frees a handle in its next turn: so turn the loop once more after hibloom_store_free.
 * Before 1.48 it serves no socket while calls that end at once follow each other without end. uv.h needs -std=gnu11,
 * not c11.
 *
 * SPDX-License-Identifier: MIT */
#ifndef HIBLOOM_ADAPTERS_LIBUV_H
#define HIBLOOM_ADAPTERS_LIBUV_H

#include <hibloom/async.h>
#include <stdlib.h>
#include <uv.h>

struct hibloom_libuv_socket {
    uv_poll_t poll; /* the first field: it is freed by this address */
    int fd, events;
};

static inline void hibloom_libuv_closed(uv_handle_t *handle)
{
    free(handle);
}

static inline void hibloom_libuv_on_socket(uv_poll_t *poll, int status, int what);

static inline int hibloom_libuv_start(struct hibloom_libuv_socket *socket)
{
    return uv_poll_start(&socket->poll,
                         ((socket->events & HIBLOOM_READ) != 0 ? UV_READABLE : 0) |
                             ((socket->events & HIBLOOM_WRITE) != 0 ? UV_WRITABLE : 0),
                         hibloom_libuv_on_socket);
}

/* libuv stops at an error of the socket, which may have more to be read. */
static inline void hibloom_libuv_on_socket(uv_poll_t *poll, int status, int what)
{
    struct hibloom_libuv_socket *socket = (struct hibloom_libuv_socket *)poll;
    const int came = ((what & UV_READABLE) != 0 ? HIBLOOM_READ : 0) | ((what & UV_WRITABLE) != 0 ? HIBLOOM_WRITE : 0);
    if (status < 0)
        (void)hibloom_libuv_start(socket);
    hibloom_ready((hibloom_store *)poll->data, socket->fd, status < 0 ? socket->events : came);
}

static inline void hibloom_libuv_on_timer(uv_timer_t *timer)
{
    hibloom_ready((hibloom_store *)timer->data, -1, 0);
}

static inline int hibloom_libuv_watch(void *loop, int fd, int events, void **slot, hibloom_store *store)
{
    struct hibloom_libuv_socket *socket = (struct hibloom_libuv_socket *)*slot;
    if (events == 0) {
        if (socket != NULL)
            uv_close((uv_handle_t *)socket, hibloom_libuv_closed); /* stops it at once */
        *slot = NULL;
        return 0;
    }
    if (socket == NULL) {
        socket = (struct hibloom_libuv_socket *)malloc(sizeof *socket);
        if (socket == NULL || uv_poll_init((uv_loop_t *)loop, &socket->poll, fd) != 0) {
            free(socket);
            return -1;
        }
        socket->poll.data = store;
        socket->fd = fd;
        *slot = socket;
    }
    socket->events = events;
    return hibloom_libuv_start(socket);
}

static inline int hibloom_libuv_timer(void *loop, int64_t ms, void **slot, hibloom_store *store)
{
    uv_timer_t *timer = (uv_timer_t *)*slot;
    if (ms < 0) {
        if (timer != NULL)
            uv_close((uv_handle_t *)timer, hibloom_libuv_closed);
        *slot = NULL;
        return 0;
    }
    if (timer == NULL) {
        timer = (uv_timer_t *)malloc(sizeof *timer);
        if (timer == NULL)
            return -1;
        (void)uv_timer_init((uv_loop_t *)loop, timer);
        *slot = timer;
    }
    timer->data = store;
    uv_update_time((uv_loop_t *)loop); /* or it would ring too early */
    return uv_timer_start(timer, hibloom_libuv_on_timer, (uint64_t)ms, 0);
}

static inline hibloom_loop hibloom_libuv(uv_loop_t *base)
{
    hibloom_loop loop = {sizeof loop, base, hibloom_libuv_watch, hibloom_libuv_timer};
    return loop;
}

#endif
