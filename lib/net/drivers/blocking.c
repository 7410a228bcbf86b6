/* blocking.c: a store whose calls return when they are done. See blocking.h.
 *
 * The carrier gets pipes that do not wait; one poll waits for all of them. A server that stalls delays nothing that is
 * for others. */
#include "net/drivers/blocking.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "net/drivers/pipes.h"
#include "net/flights/setup.h"

#include <poll.h>
#include <time.h>

struct blocking {
    struct carrier carrier;
    redisContext *theirs;           /* the caller's connection, if it is borrowed */
    uint64_t heard_ms;              /* in step: when a node was last ready, or the calls began */
    struct node *waited[NODES_MAX]; /* those that answer or open */
    struct pollfd ready[NODES_MAX];
};

/* ---- Pipes ----------------------------------------------------------------------------- */

static hibloom_status open_pipe(struct carrier *c, struct node *node, struct error *error)
{
    struct connection *connection = node->pipe;

    if (!c->settings->borrowed)
        return pipes_open(c, node, error);
    if (connection == NULL)
        node->pipe = connection = alloc.calloc(1, sizeof *connection);
    if (connection == NULL)
        return error_set(error, HIBLOOM_ENOMEM, "out of memory");
    connection->context = ((struct blocking *)c)->theirs;
    connection->borrowed = true;
    node->state = connection_borrow(connection) == HIBLOOM_OK ? NODE_GREETING : NODE_CLOSED;
    if (node->state == NODE_GREETING)
        setup_note_network(c, connection->context->fd);
    return pipes_take_words(connection, error);
}

static hibloom_status flush(struct carrier *c, struct node *node, struct error *error)
{
    struct connection *connection = node->pipe;

    connection->deadline = pipes_deadline(c, node);
    connection_start_clock(connection);
    (void)connection_flush(connection);
    return pipes_take_words(connection, error);
}

static const struct pipe_class pipes = {open_pipe, pipes_are_alive, pipes_put, pipes_put_long, flush, pipes_close};

/* ---- Waiting --------------------------------------------------------------------------- */

/* Returns their number. A Sentinel that is asked comes first. While the client stood still, others may have answered, too:
 * their calls would go on without its answer. */
static unsigned find_waited(struct blocking *b)
{
    const struct topology *t = &b->carrier.topology;
    unsigned count = 0;

    for (unsigned i = 0; i < t->count; i++) {
        if (!pipes_wait(t->nodes[i]))
            continue;
        unsigned at = count++;
        if (carrier_checks(&b->carrier, t->nodes[i])) {
            b->waited[at] = b->waited[0];
            at = 0;
        }
        b->waited[at] = t->nodes[i];
    }
    return count;
}

/* The milliseconds until something that sleeps is sent again. */
static uint32_t rest_of_sleep(const struct carrier *c)
{
    const uint64_t at = events_wake_at(c), now = clock_now_ms();

    return at == 0 || at > now + INT32_MAX ? INT32_MAX : at > now ? (uint32_t)(at - now) : 0;
}

static bool is_done(const struct blocking *b)
{
    return TAILQ_EMPTY(&b->carrier.calls);
}

/* In step, each node waits for all answers. If none comes for a quarter of the time, a server stands still: the others have
 * the rest. Gives the milliseconds that are left of that. */
static uint32_t patience_of(const struct blocking *b)
{
    const struct carrier *c = &b->carrier;
    const uint64_t timeout = c->settings->options.command_timeout_ms;
    const uint64_t deadline = c->store.base.deadline_ms, all = deadline != 0 && deadline < timeout ? deadline : timeout;

    if (!c->in_step)
        return INT32_MAX;
    const uint64_t end = b->heard_ms + all / 4, now = clock_now_ms();
    return end > now ? (uint32_t)(end - now) : 0;
}

/* Waits for all nodes at once, or until something that sleeps is sent again, and takes what has come. */
static void wait_for_some(struct blocking *b)
{
    const unsigned count = find_waited(b);
    struct node **waited = b->waited;
    struct pollfd *ready = b->ready;
    uint32_t least = rest_of_sleep(&b->carrier);
    const uint32_t patience = patience_of(b);

    if (count == 0) {
        least = rest_of_sleep(&b->carrier); /* the clock is read last */
        nanosleep(&(struct timespec){(time_t)(least / 1000), (long)(least % 1000) * 1000000}, NULL);
        (void)events_tick(&b->carrier);
        return;
    }
    if (b->carrier.settings->borrowed) {
        pipes_receive(&b->carrier, waited[0], true);
        return;
    }
    for (unsigned i = 0; i < count; i++) {
        ready[i] = connection_events(waited[i]->pipe);
        const uint32_t left = pipes_time_left(&b->carrier, waited[i]);
        least = left < least ? left : least;
    }
    const int polled = poll(ready, count, (int)(patience < least ? patience : least));
    if (polled < 0) /* a signal; overdue answers are seen all the same */
        for (unsigned i = 0; i < count; i++)
            ready[i].revents = 0;
    if (polled > 0) {
        b->heard_ms = clock_now_ms();
    } else if (patience_of(b) == 0) {
        b->carrier.in_step = false;
        events_flush(&b->carrier);
    }
    for (unsigned i = 0; i < count && !is_done(b); i++) {
        struct connection *connection = waited[i]->pipe;
        /* another one's answers may have closed it, or opened it again */
        if (!pipes_wait(waited[i]) || connection->context == NULL || connection->context->fd != ready[i].fd)
            continue;
        pipes_polled(&b->carrier, waited[i], &ready[i], true);
    }
    if (!is_done(b) && rest_of_sleep(&b->carrier) == 0)
        (void)events_tick(&b->carrier);
}

/* Answers that no call waits for any more. The last call may have ended in the middle of what was read, and more may have
 * come since. A Sentinel's answer among them is not late. */
static void receive_rest(struct blocking *b)
{
    for (unsigned count = b->carrier.settings->borrowed ? 0 : find_waited(b), i = 0; i < count; i++) {
        struct node *node = b->waited[i];
        if (!pipes_wait(node)) /* the answers of another one have closed it */
            continue;
        struct pollfd ready = connection_events(node->pipe);
        connection_start_clock(node->pipe); /* nor were they late meanwhile */
        pipe_of(node)->deadline = 0;
        if (poll(&ready, 1, 0) > 0)
            pipes_polled(&b->carrier, node, &ready, false);
        if (pipes_wait(node))
            pipes_receive(&b->carrier, node, false);
    }
}

static void return_borrowed(const struct carrier *c)
{
    if (!c->settings->borrowed || c->topology.nodes[0]->pipe == NULL) /* it was not needed yet */
        return;
    connection_return(c->topology.nodes[0]->pipe);
    c->topology.nodes[0]->state = NODE_CLOSED;
}

static hibloom_status run(struct redis_store *store, struct task *task)
{
    struct blocking *b = (struct blocking *)store;
    struct carrier *c = &b->carrier;
    struct call call;

    receive_rest(b);
    events_begin(c, &call, task);
    while (!is_done(b))
        wait_for_some(b);
    const hibloom_status status = events_error(c, &call);
    events_end(c, &call);
    return_borrowed(c);
    return status;
}

static void run_all(struct redis_store *store, void (*begin)(void *), void (*ended)(struct redis_store *), void *data)
{
    struct blocking *b = (struct blocking *)store;
    struct carrier *c = &b->carrier;

    b->heard_ms = clock_now_ms();
    receive_rest(b);
    events_gather(c);
    c->in_step = true;
    begin(data);
    events_go(c);
    while (!is_done(b))
        wait_for_some(b);
    c->in_step = false;
    ended(store);
    return_borrowed(c);
}

/* ---- The store ------------------------------------------------------------------------- */

/* hibloom_connect waits for an exchange without commands. It is over once a connection could
 * carry some; in a cluster, once the slots are known. */
static void reach(struct talk *talk, struct outbox *outbox)
{
    outbox_begin(outbox, 0, (struct argument){"", 0});
    outbox_end(outbox);
}

static void free_store(hibloom_store *store)
{
    setup_free((struct carrier *)store);
    alloc.free(store);
}

hibloom_status blocking_make(hibloom_store **out, struct store_settings *settings, struct redisContext *theirs)
{
    struct blocking *b = alloc.calloc(1, sizeof *b);

    if (b == NULL) {
        settings_free(settings);
        return HIBLOOM_ENOMEM;
    }
    *out = &b->carrier.store.base;
    b->theirs = theirs;
    b->carrier.store.run = run;
    b->carrier.store.run_all = run_all;
    b->carrier.store.base.free = free_store;
    b->carrier.timed = true;
    if (!setup_make(&b->carrier, settings, &pipes))
        return HIBLOOM_ENOMEM;
    return theirs != NULL ? HIBLOOM_OK : run(&b->carrier.store, &(struct talk){.step = reach}.task);
}
