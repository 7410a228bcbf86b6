/* blocking.c: a store whose calls return when they are done. See blocking.h.
 *
 * It is a loop of its own, which ends with the last call. One poll waits for all nodes. So a server that stalls delays
 * nothing that is for others. The caller's connection waits as it reads. */
#include "net/drivers/blocking.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "net/drivers/pipes.h"
#include "net/flights/setup.h"

#include <poll.h>

struct blocking {
    struct carrier carrier;
    uint64_t heard_ms;              /* in step: when a node was last ready, or the calls began */
    struct node *waited[NODES_MAX]; /* those that answer or open */
    struct pollfd ready[NODES_MAX];
};

static const struct pipe_class pipes = {pipes_open,     pipes_are_alive, pipes_put,
                                        pipes_put_long, pipes_flush,     pipes_close};

/* ---- Waiting --------------------------------------------------------------------------- */

/* In step, each node waits for all answers. If none comes for a quarter of the time, a server stands still: the others have
 * the rest. When is that? 0: never. */
static uint64_t stalled_at(const struct blocking *b)
{
    const struct carrier *c = &b->carrier;
    const uint64_t timeout = c->settings->options.command_timeout_ms, deadline = c->store.base.deadline_ms;

    return c->in_step ? b->heard_ms + (deadline != 0 && deadline < timeout ? deadline : timeout) / 4 : 0;
}

/* In milliseconds. */
static int time_left(const struct blocking *b)
{
    const uint64_t due = sooner(pipes_due(&b->carrier), stalled_at(b)), now = clock_now_ms();

    return due == 0 || due > now + INT32_MAX ? INT32_MAX : due > now ? (int)(due - now) : 0;
}

/* Waits for all nodes at once, and takes what has come. `most` are the milliseconds until it goes on without. */
static void turn(struct blocking *b, int most)
{
    struct carrier *c = &b->carrier;
    unsigned count = 0;

    for (unsigned i = 0; i < c->topology.count; i++) {
        struct node *node = c->topology.nodes[i];
        if (!pipes_wait(node))
            continue;
        b->waited[count] = node;
        b->ready[count++] = connection_events(node->pipe);
    }
    int polled = 1;
    if (count > 0 && c->settings->borrowed)
        b->ready[0].revents = POLLIN;
    else
        polled = poll(b->ready, count, most); /* -1: a signal, and nothing has come */
    if (polled > 0) {
        b->heard_ms = clock_now_ms();
    } else if (c->in_step && clock_now_ms() >= stalled_at(b)) {
        c->in_step = false;
        events_flush(c);
    }
    pipes_take_check(c);
    for (unsigned i = 0; i < count; i++) /* another one's answers may have closed it; one that opens looks anew */
        if (pipes_wait(b->waited[i]))
            pipes_take(c, b->waited[i], b->ready[i].revents);
    (void)events_tick(c);
}

/* A borrowed connection is its owner's again once all calls have ended. */
static void wait_for_all(struct blocking *b)
{
    const struct carrier *c = &b->carrier;

    while (!TAILQ_EMPTY(&c->calls))
        turn(b, time_left(b));
    if (!c->settings->borrowed)
        return;
    connection_return(c->topology.nodes[0]->pipe);
    c->topology.nodes[0]->state = NODE_CLOSED;
}

/* Answers that no call waits for any longer, and no Sentinel's. Those that have come meanwhile are not late. The clock of the
 * others goes on: short calls would else never give up a server that is silent. A handshake stood still with its client. */
static void receive_rest(struct blocking *b)
{
    const struct topology *t = &b->carrier.topology;
    bool any = false;

    for (unsigned i = 0; i < t->count; i++)
        if (pipes_wait(t->nodes[i])) {
            pipe_of(t->nodes[i])->spared = false;
            if (t->nodes[i]->state == NODE_OPENING)
                connection_start_clock(t->nodes[i]->pipe);
            any = true;
        }
    if (any)
        turn(b, 0);
}

static hibloom_status run(struct redis_store *store, struct task *task)
{
    struct blocking *b = (struct blocking *)store;
    struct carrier *c = &b->carrier;
    struct call call;

    receive_rest(b);
    events_begin(c, &call, task);
    events_go(c);
    wait_for_all(b);
    const hibloom_status status = events_error(c, &call);
    events_end(c, &call);
    return status;
}

static void run_all(struct redis_store *store, void (*begin)(void *), void (*ended)(struct redis_store *), void *data)
{
    struct blocking *b = (struct blocking *)store;
    struct carrier *c = &b->carrier;

    b->heard_ms = clock_now_ms();
    receive_rest(b);
    c->in_step = true;
    begin(data);
    events_go(c);
    wait_for_all(b);
    c->in_step = false;
    ended(store);
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
    b->carrier.store.run = run;
    b->carrier.store.run_all = run_all;
    b->carrier.store.base.free = free_store;
    b->carrier.timed = true;
    if (!setup_make(&b->carrier, settings, &pipes))
        return HIBLOOM_ENOMEM;
    if (theirs == NULL)
        return run(&b->carrier.store, &(struct talk){.step = reach}.task);
    struct connection *connection = alloc.calloc(1, sizeof *connection);
    if (connection == NULL)
        return HIBLOOM_ENOMEM;
    connection->context = theirs;
    connection->borrowed = true;
    b->carrier.topology.nodes[0]->pipe = connection;
    return HIBLOOM_OK;
}
