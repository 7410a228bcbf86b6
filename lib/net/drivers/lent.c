/* lent.c: the caller's asynchronous connection of hiredis, as the pipe of a store on a loop. See loop.h.
 *
 * Each command has a callback, as answers to its owner come between. A line outlives its node while hiredis still has
 * to call back, with NULL when the connection is gone:
 *
 *     node -> line -> redisAsyncContext     owed: callbacks to come, + 1 while the node
 *       ^      |  ^_______ callbacks __|          has it
 *       |______|                                                                            */
#include "base/alloc.h"
#include "net/drivers/loop.h"

#include <hiredis/async.h>
#include <string.h>

struct line {
    struct looped *looped;
    struct node *node; /* NULL: it was closed */
    redisAsyncContext *context;
    size_t owed;
    struct reply reply;
    hibloom_status broken; /* it takes no further commands, for this reason; OK: it does */
};

static void release(struct line *line)
{
    if (--line->owed > 0)
        return;
    explicit_bzero(&line->reply, sizeof line->reply); /* a spec, with its seed, may be in it */
    alloc.free(line);
}

static const char *words_of(const struct line *line)
{
    return line->broken == HIBLOOM_ENOMEM ? "out of memory" : "the connection takes no more commands";
}

/* hiredis frees the context. */
static void die(struct line *line)
{
    struct looped *l = line->looped;
    const redisContext *context = &line->context->c;
    struct error error;

    (void)error_set(&error, HIBLOOM_EIO, "%s", context->err != 0 ? context->errstr : "the connection was closed");
    l->theirs = NULL;
    events_lost(&l->carrier, line->node, context->err == REDIS_ERR_OOM ? HIBLOOM_ENOMEM : HIBLOOM_EIO, error.words);
}

/* It may be the last: the connection takes no further commands. */
static void take(struct line *line, const redisReply *object)
{
    const struct flight *flight = line->node->sent.first;
    struct carrier *c = &line->looped->carrier;

    reply_reset(&line->reply);
    if (flight_takes_bulk(flight)) {
        line->reply.bulk = flight->exchange.bulk;
        line->reply.bulk_room = flight->exchange.bulk_room;
    }
    reply_take_object(&line->reply, object);
    events_reply(c, line->node, &line->reply, object);
    if (line->node != NULL && line->broken != HIBLOOM_OK && line->owed == 2)
        events_lost(c, line->node, line->broken, words_of(line));
}

static void on_reply(redisAsyncContext *context, void *object, void *privdata)
{
    struct line *line = privdata;
    struct looped *l = line->looped;

    if (line->node == NULL) { /* and the store may be gone, too */
        release(line);
        return;
    }
    looped_enter(l);
    if (object == NULL)
        die(line);
    else
        take(line, object);
    release(line);
    looped_settle(l);
    looped_leave(l);
}

/* ---- The pipe ---------------------------------------------------------------------- */

static hibloom_status open_line(struct carrier *c, struct node *node, struct error *error)
{
    struct looped *l = (struct looped *)c;

    if (l->theirs == NULL) /* bits are to be taken back, but it has died */
        return error_set(error, HIBLOOM_EIO, "the connection was closed");
    struct line *line = alloc.calloc(1, sizeof *line);
    if (line == NULL)
        return error_set(error, HIBLOOM_ENOMEM, "out of memory");
    *line = (struct line){.looped = l, .node = node, .context = l->theirs, .owed = 1};
    node->pipe = line;
    node->state = NODE_GREETING;
    return HIBLOOM_OK;
}

static bool takes_commands(const redisAsyncContext *context)
{
    return context->err == 0 && (context->c.flags & (REDIS_DISCONNECTING | REDIS_FREEING)) == 0;
}

static bool is_alive(struct node *node)
{
    const struct line *line = node->pipe;

    return line->broken == HIBLOOM_OK && takes_commands(line->context);
}

/* Commands that hiredis does not take are lost once all answers to the others have come. */
static void put(struct node *node, const char *bytes, size_t len)
{
    struct line *line = node->pipe;

    while (len > 0 && line->broken == HIBLOOM_OK) {
        const size_t one = command_length(bytes, len);
        if (redisAsyncFormattedCommand(line->context, on_reply, line, bytes, one) != REDIS_OK)
            line->broken = takes_commands(line->context) ? HIBLOOM_ENOMEM : HIBLOOM_EIO;
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
    const struct line *line = node->pipe;

    return line->broken != HIBLOOM_OK && line->owed == 1 ? error_set(error, line->broken, "%s", words_of(line))
                                                         : HIBLOOM_OK;
}

static void close_line(struct carrier *c, struct node *node)
{
    struct line *line = node->pipe;

    if (line == NULL)
        return;
    node->pipe = NULL;
    line->node = NULL;
    release(line);
}

const struct pipe_class lent_pipes = {open_line, is_alive, put, put_long, flush, close_line};

hibloom_status lent_check(struct looped *l)
{
    const redisAsyncContext *context = l->theirs;
    struct error *error = &l->store->error;

    if (!l->store->settings->borrowed)
        return HIBLOOM_OK;
    if (context == NULL || !takes_commands(context))
        return error_set(error, HIBLOOM_EIO, "the borrowed connection is dead");
    if ((context->c.flags & (REDIS_SUBSCRIBED | REDIS_MONITORING)) != 0)
        return error_set(error, HIBLOOM_EINVAL, "the borrowed connection is subscribed, or monitoring");
    return HIBLOOM_OK;
}

/* ---- Calls that no answer ends ------------------------------------------------------------- */

/* It outlives the store while hiredis still has to call back. */
struct bell {
    struct looped *looped; /* NULL: the store is gone */
    bool rings;
};

static void on_bell(redisAsyncContext *context, void *object, void *privdata)
{
    struct bell *bell = privdata;
    struct looped *l = bell->looped;

    bell->rings = false;
    if (l == NULL) {
        alloc.free(bell);
        return;
    }
    looped_enter(l);
    if (object == NULL) /* hiredis frees the context */
        l->theirs = NULL;
    looped_settle(l);
    looped_leave(l);
}

bool lent_begin(struct looped *l)
{
    l->bell = alloc.malloc(sizeof *l->bell);
    if (l->bell != NULL)
        *l->bell = (struct bell){.looped = l};
    return l->bell != NULL;
}

/* If hiredis has no memory for it, that ends the connection. Then they are told as a handle is closed, or the store freed. */
void lent_ring(struct looped *l)
{
    static const char ping[] = "*1\r\n$4\r\nPING\r\n";

    if (!l->bell->rings && l->theirs != NULL && l->carrier.topology.nodes[0]->sent.first == NULL)
        l->bell->rings = redisAsyncFormattedCommand(l->theirs, on_bell, l->bell, ping, sizeof ping - 1) == REDIS_OK;
}

void lent_end(struct looped *l)
{
    if (l->bell != NULL && l->bell->rings)
        l->bell->looped = NULL;
    else
        alloc.free(l->bell);
    l->bell = NULL;
}
