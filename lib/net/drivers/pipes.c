/* pipes.c: connections as a carrier's pipes. See pipes.h. */
#include "net/drivers/pipes.h"
#include "base/alloc.h"
#include "net/flights/node.h"
#include "net/flights/setup.h"

#include <poll.h>

hibloom_status pipes_take_words(const struct connection *connection, struct error *error)
{
    if (connection->status != HIBLOOM_OK)
        *error = connection->error;
    return connection->status;
}

hibloom_status pipes_open(struct carrier *c, struct node *node, struct error *error)
{
    if (node->pipe == NULL)
        node->pipe = alloc.calloc(1, sizeof(struct connection));
    if (node->pipe == NULL)
        return error_set(error, HIBLOOM_ENOMEM, "out of memory");
    if (connection_open(pipe_of(node), c->settings, node->host, node->port) == HIBLOOM_OK) {
        node->state = NODE_OPENING;
        return HIBLOOM_OK;
    }
    connection_close(pipe_of(node));
    return pipes_take_words(pipe_of(node), error);
}

bool pipes_are_alive(struct node *node)
{
    return pipe_of(node)->borrowed || connection_is_alive(pipe_of(node));
}

void pipes_put(struct node *node, const char *bytes, size_t len)
{
    connection_put(pipe_of(node), bytes, len);
}

void pipes_put_long(struct node *node, const struct flight *flight)
{
    connection_put(pipe_of(node), flight->bytes, flight->len);
    connection_put(pipe_of(node), flight->exchange.payload, flight->exchange.payload_len);
    connection_put(pipe_of(node), "\r\n", 2);
}

void pipes_close(struct carrier *c, struct node *node)
{
    if (node->pipe != NULL)
        connection_close(pipe_of(node));
}

bool pipes_wait(const struct node *node)
{
    return node->state == NODE_OPENING || node_owes(node);
}

/* No call waits for a greeting, nor for WAIT, but for what is before and behind them. */
static const struct flight *first_of(const struct flights *flights)
{
    const struct flight *flight = flights->first;

    while (flight != NULL && (flight->kind == FLIGHT_GREETING || flight->kind == FLIGHT_WAIT))
        flight = flight->next;
    return flight;
}

/* All calls wait in a search for the locations, and none for a check. */
uint64_t pipes_deadline(const struct carrier *c, const struct node *node)
{
    const struct flight *flight = first_of(&node->touched);

    if (flight == NULL)
        flight = first_of(&node->sent);
    if (flight == NULL)
        flight = first_of(&node->pending);
    const struct call *call = flight != NULL && flight->call != NULL ? flight->call : TAILQ_FIRST(&c->calls);
    return call != NULL && !carrier_checks(c, node) ? call_deadline(c, call) : 0;
}

uint32_t pipes_time_left(const struct carrier *c, struct node *node)
{
    pipe_of(node)->deadline = pipes_deadline(c, node);
    return connection_time_left(pipe_of(node));
}

void pipes_lose(struct carrier *c, struct node *node)
{
    const struct error error = pipe_of(node)->error; /* it may be opened again meanwhile */

    node->hopeless = error.for_good;
    events_lost(c, node, pipe_of(node)->status, error.words);
}

void pipes_receive(struct carrier *c, struct node *node, bool until_idle)
{
    struct connection *connection = pipe_of(node);

    while (node_owes(node) && !(until_idle && TAILQ_EMPTY(&c->calls))) {
        const struct exchange *exchange = &node->sent.first->exchange;
        redisReply *object = NULL, **wanted = events_wants_object(node) ? &object : NULL;
        void *bulk = flight_takes_bulk(node->sent.first) ? exchange->bulk : NULL;
        const uint64_t before = connection->received;
        struct reply *reply = connection_receive(connection, wanted, bulk, exchange->bulk_room);
        c->store.server.stats.bytes_received += connection->received - before;
        if (reply == NULL)
            break;
        events_reply(c, node, reply, object);
        if (object != NULL)
            freeReplyObject(object);
    }
    if (!connection->alive && node->sent.first != NULL)
        pipes_lose(c, node);
}

void pipes_polled(struct carrier *c, struct node *node, const struct pollfd *ready, bool until_idle)
{
    struct connection *connection = pipe_of(node);

    connection->deadline = pipes_deadline(c, node);
    const bool alive = connection_polled(connection, ready);
    if (node->state != NODE_OPENING) {
        if (!alive || connection->readable)
            pipes_receive(c, node, until_idle);
    } else if (!alive) {
        pipes_lose(c, node);
    } else if (connection->opening == 0) { /* there may be words of the server already: they wait */
        setup_note_network(c, pipe_of(node)->context->fd);
        events_opened(c, node);
    }
}
