/* A loop of poll() alone: all that hibloom asks of one. See loops.h. */
#include "loops.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

enum { SOCKETS = 64, STORES = 4 };

struct poll_loop {
    struct pollfd sockets[SOCKETS];
    hibloom_store *stores[SOCKETS];
    nfds_t count;
    struct timer {
        hibloom_store *store; /* NULL: nobody's */
        uint64_t rings_ms;
    } timers[STORES];
};

static void *open_loop(void)
{
    struct poll_loop *loop = calloc(1, sizeof *loop);

    assert_non_null(loop);
    return loop;
}

static nfds_t find(const struct poll_loop *loop, int fd)
{
    nfds_t i = 0;

    while (i < loop->count && loop->sockets[i].fd != fd)
        i++;
    return i;
}

static int watch(void *data, int fd, int events, void **slot, hibloom_store *store)
{
    struct poll_loop *loop = data;
    const nfds_t i = find(loop, fd);

    if (i == SOCKETS)
        return -1;
    loop->count += i == loop->count;
    loop->stores[i] = store;
    loop->sockets[i] = (struct pollfd){
        .fd = fd, .events = (short)((events & HIBLOOM_READ ? POLLIN : 0) | (events & HIBLOOM_WRITE ? POLLOUT : 0))};
    if (events == 0) {
        loop->sockets[i] = loop->sockets[--loop->count];
        loop->stores[i] = loop->stores[loop->count];
    }
    return 0;
}

static int set_timer(void *data, int64_t ms, void **slot, hibloom_store *store)
{
    struct poll_loop *loop = data;
    struct timer *timer = *slot;

    for (int i = 0; timer == NULL && i < STORES; i++)
        timer = loop->timers[i].store == NULL ? &loop->timers[i] : NULL;
    if (timer == NULL)
        return -1;
    *slot = ms < 0 ? NULL : timer;
    *timer = (struct timer){ms < 0 ? NULL : store, ms < 0 ? UINT64_MAX : test_now_ms() + (uint64_t)ms};
    return 0;
}

static hibloom_loop functions(void *loop)
{
    return (hibloom_loop){sizeof(hibloom_loop), loop, watch, set_timer};
}

static int events_of(const struct pollfd *socket)
{
    const short broken = POLLERR | POLLHUP, came = socket->revents & broken ? socket->events : socket->revents;

    return (came & POLLIN ? HIBLOOM_READ : 0) | (came & POLLOUT ? HIBLOOM_WRITE : 0);
}

/* An event may change what is watched: so each socket is looked for again. */
static void turn(void *data)
{
    struct poll_loop *loop = data;
    struct pollfd ready[SOCKETS];
    const nfds_t count = loop->count;

    memcpy(ready, loop->sockets, sizeof ready);
    (void)poll(ready, count, 0);
    for (nfds_t i = 0; i < count; i++) {
        const nfds_t at = find(loop, ready[i].fd);
        if (ready[i].revents != 0 && at < loop->count)
            hibloom_ready(loop->stores[at], ready[i].fd, events_of(&ready[i]));
    }
    for (int i = 0; i < STORES; i++) {
        struct timer *timer = &loop->timers[i];
        if (timer->store == NULL || test_now_ms() < timer->rings_ms)
            continue;
        timer->rings_ms = UINT64_MAX;
        hibloom_ready(timer->store, -1, 0);
    }
}

static void close_loop(void *data)
{
    const struct poll_loop *loop = data;

    assert_int_equal(loop->count, 0);
    for (int i = 0; i < STORES; i++)
        assert_null(loop->timers[i].store);
    free(data);
}

const struct loop_class loop_poll = {"poll", open_loop, functions, NULL, turn, close_loop};
