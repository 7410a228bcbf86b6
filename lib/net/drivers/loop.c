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

#define READS_AT_ONCE 4u /* of a socket at one event: others wait meanwhile */

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

/* While a server owes answers, further commands give it no more time. */
static hibloom_status flush(struct carrier *c, struct node *node, struct error *error)
{
    struct connection *connection = node->pipe;

    if (!connection->owing)
        connection_start_clock(connection);
    connection->owing = connection->put = true;
    return pipes_take_words(connection, error);
}

/* The loop forgets the socket before it is closed. */
static void close_pipe(struct carrier *c, struct node *node)
{
    struct connection *connection = node->pipe;

    if (connection != NULL && connection->context != NULL)
        (void)watch((struct looped *)c, connection, 0);
    pipes_close(c, node);
}

const struct pipe_class loop_pipes = {pipes_open, pipes_are_alive, pipes_put, pipes_put_long, flush, close_pipe};

/* ---- Events ------------------------------------------------------------------------ */

static bool is_open(const struct node *node)
{
    return node->state != NODE_CLOSED && node->pipe != NULL && pipe_of(node)->context != NULL;
}

/* A connection that nobody uses has something to say: TLS's own messages, or the server has hung up. */
static void take_events(struct looped *l, struct node *node, short came)
{
    struct connection *connection = node->pipe;

    if (!pipes_wait(node)) {
        if ((came & ~POLLOUT) == 0 || connection_is_alive(connection))
            return;
        events_lost(&l->carrier, node, HIBLOOM_EIO, "the connection was closed");
        return;
    }
    const uint64_t answers = connection->answers;
    connection->reads = READS_AT_ONCE;
    pipes_polled(&l->carrier, node, &(struct pollfd){.revents = came}, false);
    if (!is_open(node) || connection->opening != 0)
        return;
    if (connection->answers != answers)
        connection_start_clock(connection);
    connection->owing = connection->owing && node->sent.first != NULL;
}

/* Reads come first: a server that hung up may have answered before. */
static short poll_events(int events)
{
    return (events & HIBLOOM_READ) != 0 ? POLLIN : (events & HIBLOOM_WRITE) != 0 ? POLLOUT : 0;
}

static int loop_events(short events)
{
    return ((events & POLLIN) != 0 ? HIBLOOM_READ : 0) | ((events & POLLOUT) != 0 ? HIBLOOM_WRITE : 0);
}

/* Writes what was put. False: there was nothing. */
static bool write_put(struct looped *l)
{
    struct carrier *c = &l->carrier;
    bool any = false;

    events_flush(c);
    for (unsigned i = 0; i < c->topology.count; i++) {
        struct node *node = c->topology.nodes[i];
        if (!is_open(node) || !pipe_of(node)->put)
            continue;
        any = true;
        pipe_of(node)->put = false;
        if (connection_flush(pipe_of(node)) != HIBLOOM_OK)
            pipes_lose(c, node);
    }
    return any;
}

void looped_settle(struct looped *l)
{
    do {
        while (!l->closing && events_tick(&l->carrier))
            ;
        l->unsettled = false;
        if (!l->closing)
            l->settled(l);
    } while (!l->closing && l->loop.watch != NULL && write_put(l));
}

/* A Sentinel may have answered while the program computed. A loop may ring its timer first, or read another socket. False: a
 * connection was made meanwhile. It may have the number of a socket that the loop tells of, and that was closed. */
static bool take_check(struct looped *l)
{
    struct carrier *c = &l->carrier;
    struct node *const asked = c->locate.at;
    const uint64_t connections = c->store.server.stats.connections;

    if (asked != NULL && carrier_checks(c, asked) && is_open(asked) && node_owes(asked))
        take_events(l, asked, POLLIN);
    return c->store.server.stats.connections == connections;
}

void looped_ready(struct looped *l, int fd, int events)
{
    struct carrier *c = &l->carrier;

    looped_enter(l);
    if (fd < 0)
        l->armed_ms = 0;
    const bool same = take_check(l); /* else the loop tells again of what is still so */
    for (unsigned i = 0; (same || fd < 0) && i < c->topology.count; i++) {
        struct node *node = c->topology.nodes[i];
        if (is_open(node) && (fd < 0 || pipe_of(node)->context->fd == fd)) {
            take_events(l, node, fd < 0 ? 0 : poll_events(events));
            if (fd >= 0)
                break;
        }
    }
    looped_settle(l);
    looped_leave(l);
}

/* ---- What the loop waits for --------------------------------------------------------- */

static uint64_t sooner(uint64_t one, uint64_t other)
{
    return one == 0 || (other != 0 && other < one) ? other : one;
}

/* Sockets. Returns when the first server has had its time; 0: none has anything to do. */
static uint64_t watch_all(struct looped *l, uint64_t now)
{
    struct carrier *c = &l->carrier;
    uint64_t due = 0;

    for (unsigned i = 0; i < c->topology.count; i++) {
        struct node *node = c->topology.nodes[i];
        if (!is_open(node))
            continue;
        struct connection *connection = pipe_of(node);
        const short events = connection_events(connection).events;
        connection->owing = connection->owing && node->sent.first != NULL; /* what lacked memory was never written */
        if (!watch(l, connection, loop_events(events) | (node->unwritten != NULL ? HIBLOOM_WRITE : 0))) {
            events_lost(c, node, HIBLOOM_EIO, "the event loop does not take the connection");
            l->unsettled = true;
        } else if (pipes_wait(node)) {
            due = sooner(due, now + pipes_time_left(c, node));
        }
    }
    return due;
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
    uint64_t due = watch_all(l, now);
    due = sooner(due, events_wake_at(&l->carrier));
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
