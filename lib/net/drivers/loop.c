/* loop.c: a store whose connections are on the caller's event loop. See loop.h.
 *
 * The loop's next turn writes the commands of calls: then many calls share a write. Behind an event, the driver writes
 * those that follow from it. */
#include "net/drivers/loop.h"
#include "base/clock.h"
#include "net/drivers/pipes.h"
#include "net/flights/call.h"
#include "net/flights/node.h"
#include "net/flights/setup.h"

#include <poll.h>

/* ---- In and out -------------------------------------------------------------------- */

void looped_enter(struct looped *l)
{
    l->inside++;
}

void looped_leave(struct looped *l)
{
    if (--l->inside > 0)
        return;
    if (l->closing)
        l->unmade(l);
    else
        looped_watch(l);
}

/* ---- Pipes ------------------------------------------------------------------------- */

static bool watch(struct looped *l, struct connection *connection, int events)
{
    if (connection->watched == events)
        return true;
    connection->watched = events;
    return l->loop.watch(l->loop.data, connection->context->fd, events, &connection->slot, l->store) == 0;
}

/* The loop forgets the socket before it is closed. */
static void close_pipe(struct carrier *c, struct node *node)
{
    struct connection *connection = node->pipe;

    if (connection != NULL && connection->context != NULL)
        (void)watch((struct looped *)c, connection, 0);
    pipes_close(c, node);
}

const struct pipe_class loop_pipes = {pipes_open, pipes_are_alive, pipes_put, pipes_put_long, pipes_flush, close_pipe};

/* ---- Events ------------------------------------------------------------------------ */

/* Reads come first: a server that hung up may have answered before. */
static short poll_events(int events)
{
    return (events & HIBLOOM_READ) != 0 ? POLLIN : (events & HIBLOOM_WRITE) != 0 ? POLLOUT : 0;
}

static int loop_events(short events)
{
    return ((events & POLLIN) != 0 ? HIBLOOM_READ : 0) | ((events & POLLOUT) != 0 ? HIBLOOM_WRITE : 0);
}

/* False: there is nothing to write. */
static bool writes(struct carrier *c)
{
    const uint64_t before = c->store.server.stats.round_trips;

    events_flush(c);
    return c->store.server.stats.round_trips != before;
}

void looped_settle(struct looped *l)
{
    do {
        while (!l->closing && events_tick(&l->carrier))
            ;
        l->unsettled = false;
        if (!l->closing)
            l->settled(l);
    } while (!l->closing && l->loop.watch != NULL && writes(&l->carrier));
}

void looped_ready(struct looped *l, int fd, int events)
{
    struct carrier *c = &l->carrier;

    looped_enter(l);
    if (fd < 0)
        l->armed_ms = 0;
    pipes_take_check(c);
    for (unsigned i = 0; i < c->topology.count; i++) {
        struct node *node = c->topology.nodes[i];
        if (node->state == NODE_CLOSED)
            continue;
        if (fd < 0) {
            pipes_take(c, node, 0);
        } else if (pipe_of(node)->context->fd == fd && pipe_of(node)->watched != 0) {
            pipes_take(c, node, poll_events(events));
            break;
        }
    }
    looped_settle(l);
    looped_leave(l);
}

/* ---- What the loop waits for --------------------------------------------------------- */

static void watch_all(struct looped *l)
{
    struct carrier *c = &l->carrier;

    for (unsigned i = 0; i < c->topology.count; i++) {
        struct node *node = c->topology.nodes[i];
        if (node->state == NODE_CLOSED)
            continue;
        const int events = loop_events(connection_events(node->pipe).events);
        if (watch(l, node->pipe, events | (node->unwritten_bytes > 0 ? HIBLOOM_WRITE : 0)))
            continue;
        events_lost(c, node, HIBLOOM_EIO, "the event loop does not take the connection");
        l->unsettled = true;
    }
}

/* A timer that is set too early rings once for nothing, which is cheaper than to set it again for each answer. */
void looped_watch(struct looped *l)
{
    if (l->closing || l->inside > 0)
        return;
    if (l->loop.watch == NULL) {
        if (l->unsettled || !TAILQ_EMPTY(&l->carrier.ended))
            lent_ring(l);
        return;
    }
    const uint64_t now = clock_now_ms();
    watch_all(l);
    uint64_t due = pipes_due(&l->carrier);
    if (l->unsettled || !TAILQ_EMPTY(&l->carrier.ended))
        due = now;
    if (due == 0 || (l->armed_ms != 0 && l->armed_ms <= due))
        return;
    /* one that failed may have removed the earlier one: it is set at the next turn */
    const bool armed = l->loop.timer(l->loop.data, due > now ? (int64_t)(due - now) : 0, &l->slot, l->store) == 0;
    l->armed_ms = armed ? due : 0;
}

/* ---- The store --------------------------------------------------------------------- */

bool looped_make(struct looped *l, struct store_settings *settings, const struct pipe_class *pipes)
{
    l->store = &l->carrier.store.base;
    l->carrier.timed = l->carrier.by_turns = pipes == &loop_pipes;
    return setup_make(&l->carrier, settings, pipes) && (pipes != &lent_pipes || lent_begin(l));
}

void looped_close(struct looped *l)
{
    setup_free(&l->carrier);
    lent_end(l);
    if (l->loop.timer != NULL)
        (void)l->loop.timer(l->loop.data, -1, &l->slot, l->store);
}
