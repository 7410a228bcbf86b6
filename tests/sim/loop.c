/* loop.c: an event loop for stores of async.h, in virtual time. See net.h. */
#include "sim/net.h"

#include <hibloom/async.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

enum { SOCKETS_MAX = 64 };

struct loop {
    struct pollfd watched[SOCKETS_MAX];
    nfds_t count;
    hibloom_store *store; /* its timer, and sockets */
    uint64_t rings_us;    /* NEVER: it does not */
};

struct loop *loop_make(void)
{
    struct loop *loop = net_memory(sizeof *loop);

    loop->rings_us = NEVER;
    return loop;
}

void loop_free(struct loop *loop)
{
    if (loop->count > 0 || loop->rings_us != NEVER)
        net_die("a store leaves sockets or its timer to the loop");
    free(loop);
}

static struct pollfd *find(struct loop *loop, int fd)
{
    for (nfds_t i = 0; i < loop->count; i++)
        if (loop->watched[i].fd == fd)
            return &loop->watched[i];
    return NULL;
}

static int watch(void *data, int fd, int events, void **slot, hibloom_store *store)
{
    struct loop *loop = data;
    struct pollfd *watched = find(loop, fd);

    loop->store = store;
    if (watched == NULL && loop->count == SOCKETS_MAX)
        net_die("more connections on a loop than it has room for");
    if (watched == NULL) {
        watched = &loop->watched[loop->count++];
        *watched = (struct pollfd){.fd = fd};
    }
    watched->events = (short)(((events & HIBLOOM_READ) != 0 ? POLLIN : 0) |
                              ((events & HIBLOOM_WRITE) != 0 ? POLLOUT : 0));
    if (events == 0)
        *watched = loop->watched[--loop->count];
    return 0;
}

static int set_timer(void *data, int64_t ms, void **slot, hibloom_store *store)
{
    struct loop *loop = data;

    loop->store = store;
    loop->rings_us = ms < 0 ? NEVER : net_now_us() + (uint64_t)ms * 1000;
    return 0;
}

hibloom_loop loop_functions(struct loop *loop)
{
    return (hibloom_loop){sizeof(hibloom_loop), loop, watch, set_timer};
}

/* An earlier event may have closed it, or freed the store. What has its number since has seen no event. */
static void handle(struct loop *loop, int fd)
{
    const struct pollfd *watched = find(loop, fd);
    const short broken = POLLERR | POLLHUP;

    if (watched == NULL || watched->revents == 0)
        return;
    const short came = (watched->revents & broken) != 0 ? watched->events : watched->revents & watched->events;
    hibloom_ready(loop->store, fd,
                  ((came & POLLIN) != 0 ? HIBLOOM_READ : 0) | ((came & POLLOUT) != 0 ? HIBLOOM_WRITE : 0));
}

void loop_turn(struct loop *loop, uint64_t us)
{
    struct pollfd fds[SOCKETS_MAX];
    const nfds_t count = loop->count;
    const uint64_t until = net_now_us() + us;

    (void)sockets_poll(loop->watched, count, loop->rings_us < until ? loop->rings_us : until);
    memcpy(fds, loop->watched, count * sizeof *fds);
    if (net_now_us() >= loop->rings_us) {
        loop->rings_us = NEVER;
        hibloom_ready(loop->store, -1, 0);
    }
    for (nfds_t i = 0; i < count; i++)
        handle(loop, fds[i].fd);
}
