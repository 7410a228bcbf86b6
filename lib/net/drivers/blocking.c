/* blocking.c: a store whose calls return when they are done. See blocking.h.
 *
 * The carrier gets pipes that do not wait; one poll waits for all of them. A server that stalls delays nothing that is
 * for others. Only a new connection is waited for alone. */
#include "net/drivers/blocking.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "net/flights/events.h"
#include "net/drivers/connection.h"

#include <poll.h>
#include <string.h>
#include <time.h>

struct blocking {
    struct carrier carrier;
    struct call call;
    redisContext *theirs;           /* the caller's connection, if it is borrowed */
    struct node *waited[NODES_MAX]; /* those with answers to come, the one first that was sent to first */
    struct pollfd ready[NODES_MAX];
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

/* Taking bits back has a command's time more, of all servers together. */
static uint64_t deadline_of(const struct blocking *b)
{
    const struct task *task = b->call.task;
    const uint64_t more_ms = b->carrier.settings->options.command_timeout_ms;

    if (b->call.deadline == 0 || b->carrier.borrowed)
        return 0;
    if (task->reads || (!task_has_failed(task) && !task_is_cleaning(task)))
        return b->call.deadline;
    return more_ms != 0 ? b->call.deadline + more_ms : 0;
}

/* To connect may take long. Commands for other servers, proven just now, go first. If that fails, their own
 * connections report it. */
static void flush_others(struct carrier *c)
{
    for (unsigned i = 0; i < c->topology.count; i++) {
        struct connection *connection = c->topology.nodes[i]->pipe;
        if (c->topology.nodes[i]->dirty) {
            c->topology.nodes[i]->dirty = false;
            c->store.server.stats.round_trips++;
            connection->deadline = deadline_of((struct blocking *)c);
            (void)connection_flush(connection);
        }
    }
}

/* That time does not make answers of other servers late. */
static void note_elsewhere(const struct carrier *c, const struct node *at, uint64_t ms)
{
    for (unsigned i = 0; i < c->topology.count; i++)
        if (c->topology.nodes[i] != at && c->topology.nodes[i]->sent.first != NULL)
            connection_note_elsewhere(c->topology.nodes[i]->pipe, ms);
}

static hibloom_status open_pipe(struct carrier *c, struct node *node, struct error *error)
{
    struct blocking *b = (struct blocking *)c;

    if (node->pipe == NULL)
        node->pipe = alloc.calloc(1, sizeof(struct connection));
    struct connection *connection = node->pipe;
    if (connection == NULL)
        return error_set(error, HIBLOOM_ENOMEM, "out of memory");
    if (c->borrowed) {
        connection->context = b->theirs;
        connection->borrowed = true;
        (void)connection_borrow(connection);
    } else {
        flush_others(c);
        const uint64_t since = clock_now_ms();
        (void)connection_open(connection, c->settings, node->host, node->port, deadline_of(b));
        note_elsewhere(c, node, clock_now_ms() - since);
    }
    node->state = connection->status == HIBLOOM_OK ? NODE_GREETING : NODE_CLOSED;
    if (node->state == NODE_GREETING)
        carrier_note_link(c, connection->context->fd);
    return take_words(connection, error);
}

static bool is_alive(struct node *node)
{
    struct connection *connection = node->pipe;

    return connection->borrowed || connection_is_alive(connection);
}

static void put(struct node *node, const char *bytes, size_t len)
{
    connection_put(node->pipe, bytes, len);
}

static hibloom_status flush(struct carrier *c, struct node *node, struct error *error)
{
    struct connection *connection = node->pipe;

    connection->deadline = deadline_of((struct blocking *)c);
    (void)connection_flush(connection);
    return take_words(connection, error);
}

static void close_pipe(struct node *node)
{
    if (node->pipe != NULL)
        connection_close(node->pipe);
}

static void put_long(struct node *node, const struct flight *flight)
{
    connection_put(node->pipe, flight->bytes, flight->len);
    connection_put(node->pipe, flight->exchange.payload, flight->exchange.payload_len);
    connection_put(node->pipe, "\r\n", 2);
}

static const struct pipe_class pipes = {open_pipe, is_alive, put, put_long, flush, close_pipe};

/* ---- Waiting --------------------------------------------------------------------------- */

/* All answers that are here, as long as the call is not done. */
static void receive(struct blocking *b, struct node *node)
{
    struct carrier *c = &b->carrier;
    struct connection *connection = node->pipe;

    while (!b->call.done && node->sent.first != NULL) {
        const struct exchange *exchange = &node->sent.first->exchange;
        const bool wants_object = carrier_wants_object(node);
        void *bulk = node->sent.first->index == exchange->bulk_index ? exchange->bulk : NULL;
        const uint64_t before = connection->received;
        redisReply *object = wants_object ? connection_receive_object(connection) : NULL;
        struct reply *reply = wants_object ? NULL : connection_receive(connection, bulk, exchange->bulk_room);
        c->store.server.stats.bytes_received += connection->received - before;
        if (object != NULL) {
            carrier_object(c, node, object);
            freeReplyObject(object);
        } else if (reply != NULL) {
            carrier_reply(c, node, reply);
        } else {
            break;
        }
    }
    if (!connection->alive && node->sent.first != NULL)
        carrier_lost(c, node, connection->status, connection->error.words);
}

/* Returns their number. */
static unsigned find_waited(struct blocking *b)
{
    const struct carrier *c = &b->carrier;
    struct node **waited = b->waited;
    unsigned count = 0;

    for (unsigned i = 0; i < c->topology.count; i++) {
        struct node *node = c->topology.nodes[i];
        unsigned at = count;
        if (node->sent.first == NULL)
            continue;
        for (count++; at > 0 && waited[at - 1]->sent.first->number > node->sent.first->number; at--)
            waited[at] = waited[at - 1];
        waited[at] = node;
    }
    return count;
}

/* The milliseconds until something that sleeps is sent again. */
static uint32_t rest_of_sleep(const struct carrier *c)
{
    const uint64_t at = carrier_wake_at(c), now = clock_now_ms();

    return at == 0 || at > now + INT32_MAX ? INT32_MAX : at > now ? (uint32_t)(at - now) : 0;
}

/* Waits for one of them, and takes what has come. */
static void wait_for(struct blocking *b, unsigned count)
{
    struct node **waited = b->waited;
    struct pollfd *ready = b->ready;
    uint32_t least = rest_of_sleep(&b->carrier);

    for (unsigned i = 0; i < count; i++) {
        struct connection *connection = waited[i]->pipe;
        if (!connection->alive) { /* flush_others has found it so */
            receive(b, waited[i]);
            return;
        }
        connection->deadline = deadline_of(b);
        const uint32_t left = connection_poll(connection, &ready[i]);
        least = left < least ? left : least;
    }
    if (poll(ready, count, (int)least) < 0) /* a signal; overdue answers are seen all the same */
        for (unsigned i = 0; i < count; i++)
            ready[i].revents = 0;
    for (unsigned i = 0; i < count && !b->call.done; i++) {
        struct connection *connection = waited[i]->pipe;
        /* another one's answers may have closed it, or opened it again */
        if (waited[i]->sent.first == NULL || connection->context == NULL || connection->context->fd != ready[i].fd)
            continue;
        connection->deadline = deadline_of(b); /* one that failed meanwhile has more time */
        if (connection_polled(connection, &ready[i]) && !connection->readable)
            continue;
        receive(b, waited[i]);
    }
    if (!b->call.done && rest_of_sleep(&b->carrier) == 0)
        (void)carrier_tick(&b->carrier);
}

/* An earlier call may have ended in the middle of what was read: so no event comes of the rest. */
static void receive_rest(struct blocking *b)
{
    for (unsigned count = b->carrier.borrowed ? 0 : find_waited(b), i = 0; i < count; i++) {
        ((struct connection *)b->waited[i]->pipe)->deadline = deadline_of(b);
        receive(b, b->waited[i]);
    }
}

static bool wait_for_some(struct blocking *b)
{
    const unsigned count = find_waited(b);

    if (b->carrier.borrowed && count > 0)
        receive(b, b->waited[0]);
    else if (count > 0)
        wait_for(b, count);
    return count > 0;
}

static void sleep_until(uint64_t at)
{
    const uint64_t now = clock_now_ms(), ms = at > now ? at - now : 0;

    nanosleep(&(struct timespec){(time_t)(ms / 1000), (long)(ms % 1000) * 1000000}, NULL);
}

/* Answers that an earlier call, which failed, has left unread were not late meanwhile. */
static void start_clocks(const struct carrier *c)
{
    for (unsigned i = 0; i < c->topology.count; i++)
        if (c->topology.nodes[i]->sent.first != NULL)
            connection_start_clock(c->topology.nodes[i]->pipe);
}

static hibloom_status run(struct redis_store *store, struct task *task)
{
    struct blocking *b = blocking_of(store);
    struct carrier *c = &b->carrier;

    start_clocks(c);
    carrier_begin(c, &b->call, task);
    receive_rest(b);
    while (!b->call.done) {
        if (wait_for_some(b))
            continue;
        sleep_until(carrier_wake_at(c));
        (void)carrier_tick(c);
    }
    const hibloom_status status = carrier_error(c, &b->call);
    carrier_end(c, &b->call);
    if (c->borrowed) { /* it is the caller's again */
        connection_return(c->topology.nodes[0]->pipe);
        c->topology.nodes[0]->state = NODE_CLOSED;
    }
    return status;
}

/* ---- The store ------------------------------------------------------------------------- */

/* hibloom_connect waits for an exchange without commands. It is over once a connection could
 * carry some; in a cluster, once the slots are known. */
struct reach {
    struct task task;
    bool begun, over;
};

static enum task_next next_reach(struct task *task, struct outbox *outbox)
{
    struct reach *reach = (struct reach *)task;

    if (reach->begun)
        return reach->over ? TASK_DONE : TASK_WAIT;
    reach->begun = true;
    outbox_begin(outbox, 0, (struct argument){"", 0});
    outbox_end(outbox);
    if (outbox->commands.failed) {
        outbox_empty(outbox);
        task_no_memory(task);
    }
    return TASK_SEND;
}

static void end_reach(struct task *task, uint32_t tag, uint32_t index, const struct reply *reply)
{
    ((struct reach *)task)->over = true;
}

static const struct task_class reach_class = {next_reach, end_reach};

static void set_deadline(struct redis_store *store, uint32_t ms)
{
    blocking_of(store)->carrier.deadline_ms = ms;
}

static void refresh(struct redis_store *store)
{
    carrier_note_stale(&blocking_of(store)->carrier);
}

_Static_assert(NODES_MAX <= REDIS_SERVERS_MAX, "a node's number is a server's");

static uint32_t server_of(const struct redis_store *store, uint16_t slot)
{
    const struct node *node = topology_route(&((struct blocking *)store)->carrier.topology, slot, false);

    return node != NULL ? node->number : REDIS_SERVERS_MAX;
}

static void close_store(struct redis_store *store)
{
    struct blocking *b = blocking_of(store);

    carrier_free(&b->carrier);
    outbox_free(&b->call.outbox);
}

static hibloom_status make(struct blocking **out, struct store_settings *settings)
{
    struct blocking *b = alloc.calloc(1, sizeof *b);

    if (b == NULL) {
        settings_free(settings);
        return HIBLOOM_ENOMEM;
    }
    b->carrier.store = (struct redis_store){.base.class = &redis_store_class,
                                            .run = run,
                                            .set_deadline = set_deadline,
                                            .refresh = refresh,
                                            .server_of = server_of,
                                            .close = close_store};
    b->carrier.timed = true;
    *out = b;
    return carrier_make(&b->carrier, settings, &pipes) ? HIBLOOM_OK : HIBLOOM_ENOMEM;
}

hibloom_status blocking_connect(hibloom_store **out, struct store_settings *settings)
{
    struct blocking *b = NULL;
    hibloom_status status = make(&b, settings);

    if (status == HIBLOOM_OK)
        status = run(&b->carrier.store, &(struct reach){.task.class = &reach_class}.task);
    if (b != NULL)
        *out = &b->carrier.store.base;
    return status;
}

hibloom_status blocking_borrow(hibloom_store **out, struct redisContext *context, struct store_settings *settings)
{
    struct blocking *b = NULL;
    hibloom_status status = make(&b, settings);

    if (b != NULL) {
        b->theirs = context;
        b->carrier.borrowed = true;
        *out = &b->carrier.store.base;
    }
    return status;
}
