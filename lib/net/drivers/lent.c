/* lent.c: the caller's asynchronous connection of hiredis, as the pipe of a store on a loop. See loop.h.
 *
 * Each command has a callback, as answers to its owner come between. hiredis calls back for all of them, with NULL once
 * the connection is gone. So the line outlives its store while callbacks are to come. */
#include "base/alloc.h"
#include "net/drivers/loop.h"

#include <hiredis/async.h>
#include <string.h>

struct line {
    struct looped *looped; /* NULL: the store is gone */
    size_t owed;           /* callbacks to come; */
    size_t idle;           /* the first of them, which answer nobody: their node was closed, or they were a PING */
    struct reply reply;
    hibloom_status broken; /* it takes no further commands, for this reason; OK: it does */
};

static struct node *node_of(const struct line *line)
{
    return line->looped->carrier.topology.nodes[0];
}

static void free_line(struct line *line)
{
    explicit_bzero(&line->reply, sizeof line->reply); /* a spec, with its seed, may be in it */
    alloc.free(line);
}

/* Commands that hiredis does not take are lost once all answers to the others have come. */
static hibloom_status outcome(const struct line *line, struct error *error)
{
    if (line->broken == HIBLOOM_OK || line->owed > line->idle)
        return HIBLOOM_OK;
    return error_set(error, line->broken, "%s",
                     line->broken == HIBLOOM_ENOMEM ? "out of memory" : "the connection takes no more commands");
}

static void take(struct line *line, const redisReply *object)
{
    struct carrier *c = &line->looped->carrier;
    struct node *node = node_of(line);
    const struct flight *flight = node->sent.first;
    struct error error;

    reply_reset(&line->reply);
    if (flight_takes_bulk(flight)) {
        line->reply.bulk = flight->exchange.bulk;
        line->reply.bulk_room = flight->exchange.bulk_room;
    }
    reply_take_object(&line->reply, object);
    events_reply(c, node, &line->reply, object);
    if (node->state != NODE_CLOSED && outcome(line, &error) != HIBLOOM_OK)
        events_lost(c, node, line->broken, error.words);
}

/* No answer comes any more: hiredis frees the context. */
static void die(struct line *line, const redisContext *context)
{
    const hibloom_status status = context->err == REDIS_ERR_OOM ? HIBLOOM_ENOMEM : HIBLOOM_EIO;
    struct error error;

    (void)error_set(&error, status, "%s", context->err != 0 ? context->errstr : "the connection was closed");
    line->looped->theirs = NULL;
    if (node_of(line)->state != NODE_CLOSED)
        events_lost(&line->looped->carrier, node_of(line), status, error.words);
}

static void on_reply(redisAsyncContext *context, void *object, void *privdata)
{
    struct line *line = privdata;
    struct looped *l = line->looped;
    const bool idle = line->idle > 0;

    line->owed--;
    line->idle -= idle;
    if (l == NULL) {
        if (line->owed == 0)
            free_line(line);
        return;
    }
    looped_enter(l);
    if (object == NULL)
        die(line, &context->c);
    else if (!idle)
        take(line, object);
    looped_settle(l); /* the owner may free the store, and so the line */
    looped_leave(l);
}

/* ---- The pipe ---------------------------------------------------------------------- */

static hibloom_status open_line(struct carrier *c, struct node *node, struct error *error)
{
    struct looped *l = (struct looped *)c;

    if (l->theirs == NULL) /* bits are to be taken back, but it has died */
        return error_set(error, HIBLOOM_EIO, "the connection was closed");
    l->line->broken = HIBLOOM_OK;
    node->pipe = l->line;
    node->state = NODE_GREETING;
    return HIBLOOM_OK;
}

bool lent_takes_commands(const struct redisAsyncContext *context)
{
    return context != NULL && context->err == 0 && (context->c.flags & (REDIS_DISCONNECTING | REDIS_FREEING)) == 0;
}

static bool is_alive(struct node *node)
{
    const struct line *line = node->pipe;

    return line->broken == HIBLOOM_OK && lent_takes_commands(line->looped->theirs);
}

static void put(struct node *node, const char *bytes, size_t len)
{
    struct line *line = node->pipe;
    redisAsyncContext *context = line->looped->theirs;

    while (len > 0 && line->broken == HIBLOOM_OK) {
        const size_t one = command_length(bytes, len);
        if (redisAsyncFormattedCommand(context, on_reply, line, bytes, one) != REDIS_OK)
            line->broken = lent_takes_commands(context) ? HIBLOOM_ENOMEM : HIBLOOM_EIO;
        line->owed += line->broken == HIBLOOM_OK;
        bytes += one;
        len -= one;
    }
}

/* To hiredis a command is one piece. */
static void put_long(struct node *node, const struct flight *flight)
{
    const size_t payload_len = flight->exchange.payload_len, len = flight->len + payload_len + 2;
    struct line *line = node->pipe;
    char *bytes = alloc.malloc(len);

    if (bytes == NULL) {
        line->broken = HIBLOOM_ENOMEM;
        return;
    }
    memcpy(bytes, flight->bytes, flight->len);
    memcpy(bytes + flight->len, flight->exchange.payload, payload_len);
    memcpy(bytes + len - 2, "\r\n", 2);
    put(node, bytes, len);
    alloc.free(bytes);
}

/* hiredis writes. If no answer is owed, no event would tell that commands are lost. */
static hibloom_status flush(struct carrier *c, struct node *node, struct error *error)
{
    return outcome(node->pipe, error);
}

static void close_line(struct carrier *c, struct node *node)
{
    struct line *line = ((struct looped *)c)->line;

    node->pipe = NULL;
    if (line != NULL)
        line->idle = line->owed;
}

const struct pipe_class lent_pipes = {open_line, is_alive, put, put_long, flush, close_line};

hibloom_status lent_check(struct looped *l)
{
    const redisAsyncContext *context = l->theirs;
    struct error *error = &l->store->error;

    if (!l->store->settings->borrowed)
        return HIBLOOM_OK;
    if (!lent_takes_commands(context))
        return error_set(error, HIBLOOM_EIO, "the borrowed connection is dead");
    if ((context->c.flags & (REDIS_SUBSCRIBED | REDIS_MONITORING)) != 0)
        return error_set(error, HIBLOOM_EINVAL, "the borrowed connection is subscribed, or monitoring");
    return HIBLOOM_OK;
}

bool lent_begin(struct looped *l)
{
    l->line = alloc.calloc(1, sizeof *l->line);
    if (l->line != NULL)
        l->line->looped = l;
    return l->line != NULL;
}

/* Any callback settles. If hiredis has no memory for one, that ends the connection. Then calls are told as a handle is
 * closed, or the store freed. */
void lent_ring(struct looped *l)
{
    static const char ping[] = "*1\r\n$4\r\nPING\r\n";

    if (l->line->owed == 0 && l->theirs != NULL &&
        redisAsyncFormattedCommand(l->theirs, on_reply, l->line, ping, sizeof ping - 1) == REDIS_OK)
        l->line->idle = ++l->line->owed;
}

void lent_end(struct looped *l)
{
    if (l->line != NULL && l->line->owed > 0)
        l->line->looped = NULL;
    else if (l->line != NULL)
        free_line(l->line);
    l->line = NULL;
}
