/* blocking.c: the driver that carries a task over one connection, and returns when
 * it is done. See blocking.h.
 *
 * Exchanges are sent as the task writes them, and answered in that order. Where
 * the connection dies, all that is outstanding is lost; if the task goes on, to
 * take back what it did, a new connection is made, once a call. */
#include "net/blocking.h"
#include "net/connection.h"
#include "redis/store.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TIMEOUT_DEFAULT_MS 5000u
#define WHERE_SIZE 300 /* of a host name and a port, or a socket's path */

struct blocking {
    struct redis_store store;
    struct connection connection;
    struct outbox outbox;
    struct exchange *flight; /* sent and not wholly answered: */
    size_t first, count, room;
    uint32_t index; /* of the next reply of the first */
    bool revived;   /* the connection died in this call, and was made again */
};

/* ---- Carrying ---- */

static struct exchange *front(struct blocking *b)
{
    return &b->flight[b->first];
}

static void reply_to(struct blocking *b, struct task *task, const struct reply *reply)
{
    const struct exchange *exchange = front(b);
    const uint32_t tag = exchange->tag, index = b->index++;

    if (b->index == exchange->replies) {
        b->index = 0;
        b->first++;
        b->count--;
    }
    task->class->reply(task, tag, index, reply);
}

static void lose_all(struct blocking *b, struct task *task)
{
    const struct connection *c = &b->connection;

    if (c->status != HIBLOOM_OK)
        task_fail(task, c->status, "%s", c->error.words);
    while (b->count > 0)
        reply_to(b, task, NULL);
}

/* Notes what is in the outbox as sent; false without memory. */
static bool enqueue(struct blocking *b)
{
    const struct outbox *outbox = &b->outbox;

    if (b->count == 0)
        b->first = 0;
    if (b->first + b->count + outbox->count > b->room) {
        const size_t room = (b->count + outbox->count) * 2;
        struct exchange *flight = malloc(room * sizeof *flight);
        if (flight == NULL)
            return false;
        if (b->count > 0)
            memcpy(flight, b->flight + b->first, b->count * sizeof *flight);
        free(b->flight);
        b->flight = flight;
        b->first = 0;
        b->room = room;
    }
    memcpy(b->flight + b->first + b->count, outbox->exchanges, outbox->count * sizeof *b->flight);
    b->count += outbox->count;
    return true;
}

/* What could not even be noted as sent. */
static void lose_outbox(struct blocking *b, struct task *task)
{
    task_no_memory(task);
    for (size_t i = 0; i < b->outbox.count; i++)
        for (uint32_t index = 0; index < b->outbox.exchanges[i].replies; index++)
            task->class->reply(task, b->outbox.exchanges[i].tag, index, NULL);
}

static void send_outbox(struct blocking *b, struct task *task)
{
    struct connection *c = &b->connection;

    if (!c->alive && !c->borrowed && !b->revived) {
        b->revived = true;
        (void)connection_enter(c);
    }
    if (!enqueue(b)) {
        lose_outbox(b, task);
    } else {
        connection_send(c, &b->outbox.commands);
        if (!c->alive)
            lose_all(b, task);
    }
    outbox_empty(&b->outbox);
}

/* Receives the replies of the oldest exchange. */
static void receive_exchange(struct blocking *b, struct task *task)
{
    for (size_t left = b->count; b->count == left;) {
        const struct exchange *exchange = front(b);
        void *bulk = b->index == exchange->bulk_index ? exchange->bulk : NULL;
        const struct reply *reply = connection_receive(&b->connection, bulk, exchange->bulk_room);
        if (reply == NULL) {
            lose_all(b, task);
            return;
        }
        reply_to(b, task, reply);
    }
}

static void carry(struct blocking *b, struct task *task)
{
    for (;;) {
        switch (task->class->next(task, &b->outbox)) {
        case TASK_SEND: send_outbox(b, task); break;
        case TASK_WAIT: receive_exchange(b, task); break;
        case TASK_PAUSE:
            nanosleep(&(struct timespec){task->pause_ms / 1000, (long)(task->pause_ms % 1000) * 1000000}, NULL);
            break;
        case TASK_DONE: return;
        }
    }
}

/* ---- The store ---- */

static hibloom_status fail(struct blocking *b, hibloom_status status, const char *words)
{
    struct error *error = &b->store.base.error;
    char where[WHERE_SIZE];

    if (status < HIBLOOM_EIO) /* the caller's, not the server's */
        return error_set(error, status, "%s", words);
    return error_set(error, status, "%s: %s", connection_where(&b->connection, where, sizeof where), words);
}

static hibloom_status enter(struct blocking *b)
{
    const hibloom_status status = connection_enter(&b->connection);

    return status == HIBLOOM_OK ? status : fail(b, status, b->connection.error.words);
}

static hibloom_status run(struct redis_store *store, struct task *task)
{
    struct blocking *b = (struct blocking *)store;
    hibloom_status status = enter(b);

    if (status != HIBLOOM_OK) {
        task->status = status; /* whoever ends it must not take it for done */
        return status;
    }
    b->revived = false;
    carry(b, task);
    connection_leave(&b->connection, task->status == HIBLOOM_EPROTO);
    return task->status == HIBLOOM_OK ? HIBLOOM_OK : fail(b, task->status, task->error.words);
}

static void close_connection(struct redis_store *store)
{
    struct blocking *b = (struct blocking *)store;

    connection_close(&b->connection);
    outbox_free(&b->outbox);
    free(b->flight);
}

hibloom_status blocking_new(hibloom_store **out, struct redisContext *borrowed)
{
    struct blocking *b = calloc(1, sizeof *b);

    if (b == NULL)
        return HIBLOOM_ENOMEM;
    b->store = (struct redis_store){.base.class = &redis_store_class, .run = run, .close = close_connection};
    b->connection.context = borrowed;
    b->connection.borrowed = borrowed != NULL;
    *out = &b->store.base;
    return HIBLOOM_OK;
}

hibloom_status blocking_connect(hibloom_store *store, struct uri *uri, const hibloom_connect_options *options)
{
    struct blocking *b = (struct blocking *)store;
    struct connection *c = &b->connection;

    c->uri = *uri;
    *uri = (struct uri){0};
    c->connect_timeout_ms = options->connect_timeout_ms != 0 ? options->connect_timeout_ms : TIMEOUT_DEFAULT_MS;
    c->command_timeout_ms = options->command_timeout_ms != 0 ? options->command_timeout_ms : TIMEOUT_DEFAULT_MS;
    b->store.server.bitfield = options->commands == HIBLOOM_COMMANDS_BITFIELD;
    hibloom_status status = enter(b);
    if (status == HIBLOOM_OK)
        connection_leave(c, false);
    return status;
}
