/* pipes.c: connections as a carrier's pipes. See pipes.h. */
#include "net/drivers/pipes.h"
#include "base/alloc.h"
#include "net/flights/node.h"
#include "net/flights/setup.h"

#include <poll.h>

#define READS_AT_ONCE 4u /* of a socket at one event: others wait meanwhile */

/* ---- Deadlines ------------------------------------------------------------------------- */

/* The first flight that a call waits for: no call waits for a greeting, or for a WAIT. In a search for the locations all
 * calls wait. On a loop they end by themselves (events_tick). */
static const struct flight *first_of(const struct carrier *c, const struct flights *flights)
{
    const struct flight *flight = flights->first;

    while (flight != NULL && (flight->kind == FLIGHT_GREETING || flight->kind == FLIGHT_WAIT ||
                              (flight->kind == FLIGHT_LOCATE && c->by_turns)))
        flight = flight->next;
    return flight;
}

/* The deadline of the call that has waited longest for the node; 0: none. None waits for a check. On a loop there is always
 * a call whose time is nearly over. So where no command of a call is on its way, the connection has the time of a whole one,
 * and calls that wait for it end alone (events_tick). */
static uint64_t deadline_of(const struct carrier *c, const struct node *node)
{
    const uint64_t whole_ms = c->store.base.deadline_ms;
    const struct flight *flight = first_of(c, &node->touched);

    if (flight == NULL)
        flight = first_of(c, &node->sent);
    if (flight == NULL && c->by_turns)
        return whole_ms != 0 && !carrier_checks(c, node) ? pipe_of(node)->sent_ms + whole_ms : 0;
    if (flight == NULL)
        flight = first_of(c, &node->unwritten);
    const struct call *call = flight != NULL && flight->call != NULL ? flight->call : TAILQ_FIRST(&c->calls);
    return call != NULL && !carrier_checks(c, node) ? call_deadline(c, call) : 0;
}

/* ---- Pipes ----------------------------------------------------------------------------- */

static hibloom_status take_words(const struct connection *connection, struct error *error)
{
    if (connection->status != HIBLOOM_OK)
        *error = connection->error;
    return connection->status;
}

hibloom_status pipes_open(struct carrier *c, struct node *node, struct error *error)
{
    if (node->pipe == NULL)
        node->pipe = alloc.calloc(1, sizeof(struct connection));
    struct connection *connection = node->pipe;
    if (connection == NULL)
        return error_set(error, HIBLOOM_ENOMEM, "out of memory");
    if (connection->borrowed && connection_borrow(connection) == HIBLOOM_OK) {
        node->state = NODE_GREETING;
        setup_note_network(c, connection->context->fd);
    } else if (!connection->borrowed &&
               connection_open(connection, c->settings, node->host, node->port) == HIBLOOM_OK) {
        node->state = NODE_OPENING;
    } else {
        connection_close(connection);
    }
    return take_words(connection, error);
}

bool pipes_are_alive(struct node *node)
{
    return pipe_of(node)->borrowed || node->state == NODE_OPENING || connection_is_alive(pipe_of(node));
}

void pipes_put(struct node *node, const char *bytes, size_t len)
{
    struct connection *connection = node->pipe;

    if (!connection->put)
        connection->owed = node_owes(node);
    connection_put(connection, bytes, len);
}

void pipes_put_long(struct node *node, const struct flight *flight)
{
    pipes_put(node, flight->bytes, flight->len);
    connection_put(pipe_of(node), flight->exchange.payload, flight->exchange.payload_len);
    connection_put(pipe_of(node), "\r\n", 2);
}

/* On a loop calls overlap. While a server owes answers, further commands give it no time; each answer does. */
hibloom_status pipes_flush(struct carrier *c, struct node *node, struct error *error)
{
    if (!c->by_turns || !pipe_of(node)->owed)
        connection_start_clock(pipe_of(node));
    pipe_of(node)->deadline = deadline_of(c, node);
    connection_flush(pipe_of(node));
    return take_words(pipe_of(node), error);
}

void pipes_close(struct carrier *c, struct node *node)
{
    if (node->pipe != NULL)
        connection_close(pipe_of(node));
}

/* ---- Waiting --------------------------------------------------------------------------- */

bool pipes_wait(const struct node *node)
{
    return node->state == NODE_OPENING || node_owes(node);
}

uint64_t pipes_due(const struct carrier *c)
{
    uint64_t due = events_wake_at(c);

    for (unsigned i = 0; i < c->topology.count; i++) {
        struct node *node = c->topology.nodes[i];
        if (!pipes_wait(node))
            continue;
        pipe_of(node)->deadline = deadline_of(c, node);
        due = sooner(due, connection_due(node->pipe));
    }
    return due;
}

/* ---- Events ---------------------------------------------------------------------------- */

/* It is dead, for the reason that it has. */
static void lose(struct carrier *c, struct node *node)
{
    const struct error error = pipe_of(node)->error; /* it may be opened again meanwhile */

    node->hopeless = error.for_good;
    events_lost(c, node, pipe_of(node)->status, error.words);
}

static void receive(struct carrier *c, struct node *node)
{
    struct connection *connection = pipe_of(node);

    while (node_owes(node)) {
        const struct flight *flight = node->sent.first;
        const bool wants_object = flight->kind == FLIGHT_GREETING || flight->kind == FLIGHT_LOCATE;
        redisReply *object = NULL, **wanted = wants_object ? &object : NULL;
        void *bulk = flight_takes_bulk(flight) ? flight->exchange.bulk : NULL;
        const uint64_t before = connection->received;
        struct reply *reply = connection_receive(connection, wanted, bulk, flight->exchange.bulk_room);
        c->store.server.stats.bytes_received += connection->received - before;
        if (reply == NULL)
            break;
        events_reply(c, node, reply, object);
        if (object != NULL)
            freeReplyObject(object);
    }
}

/* A connection that nobody uses has something to say: TLS's own messages, or the server has hung up. */
static void take_unasked(struct carrier *c, struct node *node, short came)
{
    if ((came & ~POLLOUT) != 0 && !connection_is_alive(node->pipe))
        events_lost(c, node, HIBLOOM_EIO, "the connection was closed");
}

void pipes_take(struct carrier *c, struct node *node, short came)
{
    struct connection *connection = pipe_of(node);
    const uint64_t answers = connection->answers;

    if (!pipes_wait(node)) {
        take_unasked(c, node, came);
        return;
    }
    connection->deadline = deadline_of(c, node);
    connection->reads = READS_AT_ONCE;
    connection_polled(connection, came);
    if (node->state != NODE_OPENING && connection->readable) {
        receive(c, node);
    } else if (node->state == NODE_OPENING && connection->alive && connection->opening == 0) {
        setup_note_network(c, connection->context->fd); /* there may be words of the server already: they wait */
        events_opened(c, node);
    }
    if (!connection->alive && node->state != NODE_CLOSED)
        lose(c, node);
    else if (c->by_turns && node_owes(node) && connection->answers > answers)
        connection_start_clock(connection);
}

void pipes_take_check(struct carrier *c)
{
    struct node *const asked = c->locate.at;

    if (asked != NULL && carrier_checks(c, asked) && node_owes(asked))
        pipes_take(c, asked, POLLIN);
}
