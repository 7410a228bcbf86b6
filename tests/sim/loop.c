/* loop.c: an event loop for hiredis' asynchronous contexts, in virtual time. See net.h. */
#include "sim/net.h"

#include <hiredis/async.h>
#include <hiredis/hiredis.h>
#include <poll.h>
#include <stdlib.h>

enum { CONTEXTS = 64 };

struct watched {
    redisAsyncContext *context; /* NULL: hiredis has freed it, within this turn maybe */
    short events;
};

struct loop {
    struct watched *watched[CONTEXTS];
    nfds_t count;
};

/* What hiredis tells of a context. */
#define TELLS(name, does) \
    static void name(void *watched) \
    { \
        ((struct watched *)watched)->does; \
    }
TELLS(add_read, events |= POLLIN)
TELLS(del_read, events &= ~POLLIN)
TELLS(add_write, events |= POLLOUT)
TELLS(del_write, events &= ~POLLOUT)
TELLS(forget, context = NULL)

struct loop *loop_make(void)
{
    return net_memory(sizeof(struct loop));
}

void loop_free(struct loop *loop)
{
    for (nfds_t i = 0; i < loop->count; i++)
        free(loop->watched[i]);
    free(loop);
}

int loop_attach(redisAsyncContext *context, void *data)
{
    struct loop *loop = data;
    struct watched *watched = net_memory(sizeof *watched);

    if (loop->count == CONTEXTS)
        net_die("more connections on a loop than it has room for");
    watched->context = context;
    loop->watched[loop->count++] = watched;
    context->ev.data = watched;
    context->ev.addRead = add_read;
    context->ev.delRead = del_read;
    context->ev.addWrite = add_write;
    context->ev.delWrite = del_write;
    context->ev.cleanup = forget;
    return REDIS_OK;
}

static void sweep(struct loop *loop)
{
    nfds_t kept = 0;

    for (nfds_t i = 0; i < loop->count; i++)
        if (loop->watched[i]->context != NULL)
            loop->watched[kept++] = loop->watched[i];
        else
            free(loop->watched[i]);
    loop->count = kept;
}

/* Either call may free this context, and others. */
static void handle(const struct watched *watched, short came)
{
    const short broken = POLLERR | POLLHUP;

    if (watched->context != NULL && (watched->events & POLLIN) != 0 && (came & (POLLIN | broken)) != 0)
        redisAsyncHandleRead(watched->context);
    if (watched->context != NULL && (watched->events & POLLOUT) != 0 && (came & (POLLOUT | broken)) != 0)
        redisAsyncHandleWrite(watched->context);
}

bool loop_turn(struct loop *loop, uint64_t us)
{
    struct pollfd fds[CONTEXTS];
    struct watched *watched[CONTEXTS];
    nfds_t count = 0;

    sweep(loop);
    for (nfds_t i = 0; i < loop->count; i++) {
        if (loop->watched[i]->events == 0)
            continue;
        watched[count] = loop->watched[i];
        fds[count] = (struct pollfd){.fd = watched[count]->context->c.fd, .events = watched[count]->events};
        count++;
    }
    const bool any = sockets_poll(fds, count, net_now_us() + us) > 0;
    for (nfds_t i = 0; i < count; i++)
        handle(watched[i], fds[i].revents);
    return any;
}
