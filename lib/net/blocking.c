/* blocking.c: a store whose calls return when they are done. See blocking.h.
 *
 * Gives the carrier pipes that block, and waits for one answer at a time: the
 * oldest that is on its way. */
#include "net/blocking.h"
#include "base/clock.h"
#include "net/carrier.h"
#include "net/connection.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

struct blocking {
    struct carrier carrier;
    struct call call;
    redisContext *theirs; /* the caller's connection, if it is borrowed */
};

static struct blocking *blocking_of(struct redis_store *store)
{
    return (struct blocking *)store;
}

/* ---- Pipes ----------------------------------------------------------------------------- */

static hibloom_status take_words(const struct connection *connection, struct error *error)
{
    if (connection->status != HIBLOOM_OK)
        *error = connection->error;
    return connection->status;
}

static hibloom_status open_pipe(struct carrier *c, struct node *node, struct error *error)
{
    struct blocking *b = (struct blocking *)c;

    if (node->pipe == NULL)
        node->pipe = calloc(1, sizeof(struct connection));
    struct connection *connection = node->pipe;
    if (connection == NULL)
        return error_set(error, HIBLOOM_ENOMEM, "out of memory");
    if (c->borrowed) {
        connection->context = b->theirs;
        connection->borrowed = true;
        (void)connection_borrow(connection);
    } else {
        (void)connection_open(connection, &c->settings, node->host, node->port, b->call.deadline);
    }
    node->state = connection->status == HIBLOOM_OK ? NODE_GREETING : NODE_CLOSED;
    return take_words(connection, error);
}

static bool is_alive(struct node *node)
{
    const struct connection *connection = node->pipe;

    return connection->borrowed || connection_is_alive(connection);
}

static void put(struct node *node, const char *bytes, size_t len)
{
    connection_put(node->pipe, bytes, len);
}

static hibloom_status flush(struct node *node, struct error *error)
{
    struct connection *connection = node->pipe;

    (void)connection_flush(connection);
    return take_words(connection, error);
}

static void close_pipe(struct node *node)
{
    if (node->pipe != NULL)
        connection_close(node->pipe);
}

static const struct pipe_class pipes = {open_pipe, is_alive, put, flush, close_pipe};

/* ---- Waiting --------------------------------------------------------------------------- */

static struct node *find_oldest(struct carrier *c)
{
    struct node *oldest = NULL;

    for (unsigned i = 0; i < c->topology.count; i++) {
        struct node *node = c->topology.nodes[i];
        if (node->sent.first != NULL && (oldest == NULL || node->sent.first->number < oldest->sent.first->number))
            oldest = node;
    }
    return oldest;
}

/* What the other servers send meanwhile is not late. */
static void note_waiting(struct carrier *c, const struct node *at, uint64_t ms)
{
    for (unsigned i = 0; ms > 0 && i < c->topology.count; i++)
        if (c->topology.nodes[i] != at && c->topology.nodes[i]->sent.first != NULL)
            ((struct connection *)c->topology.nodes[i]->pipe)->elsewhere_ms += ms;
}

static void receive(struct blocking *b, struct node *node)
{
    struct carrier *c = &b->carrier;
    struct connection *connection = node->pipe;
    const struct flight *flight = node->sent.first;
    const uint64_t before = connection->received, since = clock_now_ms();
    redisReply *object = NULL;
    struct reply *reply = NULL;

    connection->deadline = b->call.task->status == HIBLOOM_OK ? b->call.deadline : 0;
    if (carrier_wants_object(node))
        object = connection_receive_object(connection);
    else
        reply = connection_receive(connection, flight->index == flight->exchange.bulk_index ? flight->exchange.bulk : NULL,
                                   flight->exchange.bulk_room);
    c->store.server.stats.bytes_received += connection->received - before;
    note_waiting(c, node, clock_now_ms() - since);
    if (object != NULL)
        carrier_object(c, node, object);
    else if (reply != NULL)
        carrier_reply(c, node, reply);
    else
        carrier_lost(c, node, connection->status, connection->error.words);
    if (object != NULL)
        freeReplyObject(object);
}

static void sleep_until(uint64_t at)
{
    const uint64_t now = clock_now_ms(), ms = at > now ? at - now : 0;

    nanosleep(&(struct timespec){(time_t)(ms / 1000), (long)(ms % 1000) * 1000000}, NULL);
}

static hibloom_status carry(struct blocking *b, struct task *task)
{
    struct carrier *c = &b->carrier;

    carrier_begin(c, &b->call, task);
    while (!b->call.done) {
        struct node *node = find_oldest(c);
        if (node != NULL) {
            receive(b, node);
        } else {
            sleep_until(carrier_wake_at(c));
            carrier_tick(c);
        }
    }
    carrier_end(c, &b->call);
    if (c->borrowed) { /* it is the caller's again */
        connection_return(c->topology.nodes[0]->pipe);
        c->topology.nodes[0]->state = NODE_CLOSED;
    }
    return carrier_error(c, &b->call);
}

static hibloom_status run(struct redis_store *store, struct task *task)
{
    return carry(blocking_of(store), task);
}

/* ---- The store ------------------------------------------------------------------------- */

/* Wants no answer, but a connection over which one could come: it is asked for the
 * third time once that is there. */
static enum task_next next_reach(struct task *task, struct outbox *outbox)
{
    if (task->pause_ms++ > 0)
        return task->pause_ms == 2 ? TASK_WAIT : TASK_DONE;
    outbox_begin(outbox, 0, (struct argument){"", 0});
    outbox_end(outbox);
    if (outbox->commands.failed) {
        outbox_empty(outbox);
        task_no_memory(task);
    }
    return TASK_SEND;
}

static const struct task_class reach_class = {next_reach, NULL};

static void set_deadline(struct redis_store *store, uint32_t ms)
{
    blocking_of(store)->carrier.deadline_ms = ms;
}

static void close_store(struct redis_store *store)
{
    struct blocking *b = blocking_of(store);

    carrier_free(&b->carrier);
    outbox_free(&b->call.outbox);
}

static hibloom_status make(struct blocking **out, struct settings *settings)
{
    struct blocking *b = calloc(1, sizeof *b);

    if (b == NULL)
        return HIBLOOM_ENOMEM;
    b->carrier.store =
        (struct redis_store){.base.class = &redis_store_class, .run = run, .set_deadline = set_deadline, .close = close_store};
    *out = b;
    return carrier_make(&b->carrier, settings, &pipes) ? HIBLOOM_OK : HIBLOOM_ENOMEM;
}

hibloom_status blocking_connect(hibloom_store **out, struct settings *settings)
{
    struct blocking *b = NULL;
    hibloom_status status = make(&b, settings);

    if (status == HIBLOOM_OK)
        status = carry(b, &(struct task){.class = &reach_class});
    if (b != NULL)
        *out = &b->carrier.store.base;
    return status;
}

hibloom_status blocking_borrow(hibloom_store **out, struct redisContext *context)
{
    struct blocking *b = NULL;
    hibloom_status status = make(&b, &(struct settings){0});

    if (b != NULL) {
        b->theirs = context;
        b->carrier.borrowed = true;
        *out = &b->carrier.store.base;
    }
    return status;
}
