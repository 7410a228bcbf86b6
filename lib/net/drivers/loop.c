/* loop.c: a store whose connections are on the caller's event loop. see loop.h.
 *
 * Gives the carrier pipes that never wait. A line is one connection of hiredis. It outlives its
 * node while hiredis still has to call back, with NULL when the connection is gone:
 *
 *     node -> line -> redisAsyncContext     owed: callbacks to come, + 1 while the node
 *       ^      |  ^_______ callbacks __|          has it
 *       |______|
 *
 * A callback and an object for each answer cost more than all else that is done here. So a
 * connection of ours has one callback for all that is on its way. At the first answer we take
 * those behind it out of hiredis' reader, which only notes them (resp/reply.h). That relies on
 * hiredis 0.14 and 1.x: a callback may empty the reader, and commands may be appended without a
 * callback. One of no bytes may be appended with it. A borrowed connection has a callback for
 * each command, as answers to its owner come between.
 *
 * hiredis frees a connection of ours that fails; we free one that we close. Once the context has
 * no line any more, its data is NULL. */
#include "net/drivers/loop.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "net/drivers/context.h"
#include "net/drivers/tls.h"

#include <hiredis/async.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#define CHECK_MS 100u /* events look for time-outs at this interval */

struct line {
    struct async *async;
    struct node *node; /* NULL: it was closed */
    redisAsyncContext *context;
    struct ssl_st *ssl; /* the context's; NULL: no TLS, or not ours */
    size_t owed;
    uint64_t heard_ms;  /* when an answer came, or the first command was sent; ours only */
    size_t unwritten;   /* bytes that waited for room in the socket at the last check */
    uint64_t spared_ms; /* so far it was silent for too long, but something lay here: then heard_ms was set to this */
    struct reply reply;
    redisReplyObjectFunctions *theirs; /* of hiredis' reader; NULL: it is not ours yet */
    bool called;                       /* at the next answer; one of ours, and commands are on their way */
    bool connecting;                   /* hiredis calls back for it, and touches the context afterwards */
    bool broken;                       /* it takes no further commands */
};

static struct async *async_of(struct carrier *c)
{
    return (struct async *)c;
}

/* ---- In and out -------------------------------------------------------------------- */

void async_enter(struct async *a)
{
    a->inside++;
}

void async_leave(struct async *a)
{
    if (--a->inside == 0 && a->closing)
        a->unmade(a);
}

/* Behind each event. */
static void settle(struct async *a)
{
    while (!a->closing && carrier_tick(&a->carrier))
        ;
    a->settled(a);
}

/* ---- A line dies ------------------------------------------------------------------- */

static void release(struct line *line)
{
    if (--line->owed > 0)
        return;
    explicit_bzero(&line->reply, sizeof line->reply); /* a spec, with its seed, may be in it */
    alloc.free(line);
}

static hibloom_status status_of(const redisContext *context)
{
    if (context->reader->err != 0)
        return HIBLOOM_EPROTO;
    switch (context->err) {
#ifdef REDIS_ERR_TIMEOUT
    case REDIS_ERR_TIMEOUT: return HIBLOOM_ETIMEDOUT;
#endif
    case REDIS_ERR_OOM: return HIBLOOM_ENOMEM;
    default: return HIBLOOM_EIO;
    }
}

/* hiredis frees the context. */
static void die(struct line *line)
{
    struct async *a = line->async;
    const redisContext *context = &line->context->c;
    const hibloom_status status = status_of(context);
    /* in a handshake OpenSSL knows more of it */
    const char *tls = line->node->state == NODE_GREETING && line->ssl != NULL ? tls_words(line->ssl) : NULL;
    struct error error;

    (void)error_set(&error, status, "%s%s", tls != NULL ? "TLS: " : "",
                    tls != NULL ? tls
                    : context->reader->err == REDIS_ERR_OOM
                        ? "the server does not answer as Redis does" /* reply_functions refuse so */
                    : context->err != 0 ? context->errstr
                                        : "the connection was closed");
    line->node->hopeless = tls != NULL && tls_is_refused(line->ssl);
    if (tls != NULL)
        tls_forget();
    if (a->carrier.borrowed)
        a->theirs = NULL;
    else
        line->context->data = NULL;
    line->context = NULL;
    carrier_lost(&a->carrier, line->node, status, error.words);
}

/* ---- Events of hiredis -------------------------------------------------------------- */

static void on_reply(redisAsyncContext *, void *object, void *line);

/* It is connected. The greeting waits for TLS, as hiredis writes by it. */
static void greet(struct line *line)
{
    struct carrier *c = &line->async->carrier;
    redisContext *context = &line->context->c;
    hibloom_status status = HIBLOOM_OK;
    struct error error;

    line->heard_ms = clock_now_ms();
    carrier_note_link(c, context->fd);
    if (c->settings->connected != NULL)
        c->settings->connected(context, c->settings->data);
    if (c->settings->uri.tls)
        status = tls_begin(context, c->settings, line->node->host, &line->ssl, &error);
    if (status == HIBLOOM_OK)
        carrier_opened(c, line->node);
    else
        carrier_lost(c, line->node, status, error.words);
}

static void on_connect(const redisAsyncContext *context, int status)
{
    struct line *line = context->data;

    if (line == NULL)
        return;
    struct async *a = line->async;
    async_enter(a);
    line->owed++;
    line->connecting = status == REDIS_OK;
    if (line->connecting)
        greet(line);
    else
        die(line);
    settle(a);
    line->connecting = false;
    release(line);
    async_leave(a);
}

static void on_disconnect(const redisAsyncContext *context, int status)
{
    struct line *line = context->data;

    if (line == NULL)
        return;
    struct async *a = line->async;
    async_enter(a);
    die(line);
    settle(a);
    async_leave(a);
}

/* Prepares the reply for the next answer, that to the oldest command, noted or as an object. If no command is on
 * its way, nothing may come. */
static void expect(struct line *line)
{
    const struct flight *flight = line->node->sent.first;

    reply_reset(&line->reply);
    line->reply.objects = flight == NULL || carrier_wants_object(line->node);
    line->reply.owner = flight != NULL && line->reply.objects ? line->theirs : NULL;
    if (flight == NULL || flight->index != flight->exchange.bulk_index)
        return;
    line->reply.bulk = flight->exchange.bulk;
    line->reply.bulk_room = flight->exchange.bulk_room;
}

/* The next answer calls on_reply, for all commands on their way. False: out of memory. */
static bool call_at_next(struct line *line)
{
    if (!line->called) {
        line->called = redisAsyncFormattedCommand(line->context, on_reply, line, "*1\r\n$4\r\nPING\r\n", 0) == REDIS_OK;
        line->owed += line->called;
    }
    return line->called;
}

static void take(struct line *line, const redisReply *object)
{
    struct carrier *c = &line->async->carrier;

    if (carrier_wants_object(line->node))
        carrier_object(c, line->node, object);
    else
        carrier_reply(c, line->node, &line->reply);
}

/* The answer that hiredis has brought, which it frees, and those behind it. If the reader then
 * fails, hiredis meets that again. */
static void take_all(struct line *line, void *object)
{
    struct carrier *c = &line->async->carrier;
    redisReader *reader = line->context->c.reader;

    for (bool first = true; object != NULL; first = false) {
        take(line, object);
        if (!first)
            reply_functions.freeObject(object);
        if (line->node == NULL)
            return;
        expect(line);
        object = NULL;
        if (line->node->sent.first != NULL)
            (void)redisReaderGetReply(reader, &object);
    }
    if (line->node->sent.first != NULL && !call_at_next(line))
        carrier_lost(c, line->node, HIBLOOM_ENOMEM, "out of memory");
}

/* The next answer of a borrowed connection. It may be the last: the connection takes no further commands. */
static void take_borrowed(struct line *line, const redisReply *object)
{
    struct carrier *c = &line->async->carrier;

    expect(line);
    reply_take_object(&line->reply, object);
    take(line, object);
    if (line->node != NULL && line->broken && line->owed == 2)
        carrier_lost(c, line->node, HIBLOOM_EIO, "the connection takes no more commands");
}

static void find_overdue(struct async *a);

static void on_reply(redisAsyncContext *context, void *object, void *privdata)
{
    struct line *line = privdata;
    struct async *a = line->async;

    if (line->node == NULL) { /* and the store may be gone, too */
        release(line);
        return;
    }
    async_enter(a);
    line->called = false;
    line->heard_ms = clock_now_ms();
    if (object == NULL)
        die(line);
    else if (a->carrier.borrowed)
        take_borrowed(line, object);
    else
        take_all(line, object);
    if (line->heard_ms - a->checked_ms >= CHECK_MS)
        find_overdue(a);
    release(line);
    settle(a);
    async_leave(a);
}

/* ---- Pipes ------------------------------------------------------------------------- */

static void set_timeouts(redisAsyncContext *context, const struct store_settings *s)
{
#if HIREDIS_MAJOR >= 1
    const uint64_t ms = s->options.command_timeout_ms;
    (void)redisAsyncSetTimeout(context, (struct timeval){(time_t)(ms / 1000), (suseconds_t)(ms % 1000) * 1000});
#endif
}

/* Not OK: it is freed again. */
static hibloom_status attach(struct async *a, struct line *line, struct error *error)
{
    redisAsyncContext *context = line->context;
    const struct store_settings *s = a->carrier.settings;
    hibloom_status status = HIBLOOM_OK;

    if (context->err != 0) {
        status = error_set(error, status_of(&context->c), "%s", context->c.errstr);
        error->for_good = context_names_nobody(&context->c);
    } else if (a->attach(context, a->loop) != REDIS_OK) {
        status = error_set(error, HIBLOOM_EIO, "the event loop does not take the connection");
    }
    if (status != HIBLOOM_OK) {
        if (context->ev.data == NULL) /* half attached: there is nothing to be cleaned up */
            context->ev.cleanup = NULL;
        redisAsyncFree(context);
        return status;
    }
    context->data = line;
    settings_apply(s, &context->c);
    set_timeouts(context, s);
    (void)redisAsyncSetDisconnectCallback(context, on_disconnect);
    (void)redisAsyncSetConnectCallback(context, on_connect);
    return HIBLOOM_OK;
}

static hibloom_status open_pipe(struct carrier *c, struct node *node, struct error *error)
{
    struct async *a = async_of(c);
    struct line *line = alloc.calloc(1, sizeof *line);
    hibloom_status status = HIBLOOM_OK;

    if (line != NULL && c->borrowed)
        line->context = a->theirs;
    else if (line != NULL)
        line->context = c->settings->uri.kind == URI_UNIX ? redisAsyncConnectUnix(c->settings->uri.path)
                                                          : redisAsyncConnect(node->host, (int)node->port);
    if (line == NULL || line->context == NULL) {
        alloc.free(line);
        return error_set(error, HIBLOOM_ENOMEM, "out of memory");
    }
    if (!c->borrowed)
        status = attach(a, line, error);
    if (status != HIBLOOM_OK) {
        alloc.free(line);
        return status;
    }
    line->async = a;
    line->node = node;
    line->owed = 1;
    line->heard_ms = clock_now_ms();
    node->pipe = line;
    node->state = c->borrowed ? NODE_GREETING : NODE_OPENING;
    if (c->borrowed)
        carrier_note_link(c, a->theirs->c.fd);
    return HIBLOOM_OK;
}

static bool is_alive(struct node *node)
{
    const struct line *line = node->pipe;

    return !line->broken && line->context->err == 0 &&
           (line->context->c.flags & (REDIS_DISCONNECTING | REDIS_FREEING)) == 0;
}

/* On a connection of ours the first answer calls back: see flush. On a borrowed one unsent
 * commands are lost once all answers to the others have come. */
static void put(struct node *node, const char *bytes, size_t len)
{
    struct line *line = node->pipe;
    const bool borrowed = line->async->carrier.borrowed;

    while (len > 0 && !line->broken) {
        const size_t one = borrowed ? command_length(bytes, len) : len;
        line->broken = (borrowed ? redisAsyncFormattedCommand(line->context, on_reply, line, bytes, one)
                                 : redisAppendFormattedCommand(&line->context->c, bytes, one)) != REDIS_OK;
        line->owed += borrowed && !line->broken;
        bytes += one;
        len -= one;
    }
}

/* To hiredis, a command on a borrowed connection is one piece. */
static void put_long(struct node *node, const struct flight *flight)
{
    const size_t payload_len = flight->exchange.payload_len, len = flight->len + payload_len + 2;
    struct line *line = node->pipe;
    char *bytes = alloc.malloc(len);

    if (bytes == NULL) {
        line->broken = true;
        return;
    }
    memcpy(bytes, flight->bytes, flight->len);
    memcpy(bytes + flight->len, flight->exchange.payload, payload_len);
    memcpy(bytes + len - 2, "\r\n", 2);
    put(node, bytes, len);
    alloc.free(bytes);
}

/* The loop writes. */
static hibloom_status flush(struct carrier *c, struct node *node, struct error *error)
{
    struct line *line = node->pipe;
    redisAsyncContext *context = line->context;
    const bool idle = !line->called;

    if (c->borrowed)
        return HIBLOOM_OK;
    if (line->broken || !call_at_next(line))
        return error_set(error, HIBLOOM_ENOMEM, "out of memory");
    if (line->theirs == NULL) { /* it is quiet so far */
        line->theirs = context->c.reader->fn;
        context->c.reader->fn = &reply_functions;
        context->c.reader->privdata = &line->reply;
    }
    if (idle) {
        line->heard_ms = clock_now_ms();
        expect(line);
    } else {
        context->ev.addWrite(context->ev.data);
    }
    return HIBLOOM_OK;
}

static void close_pipe(struct node *node)
{
    struct line *line = node->pipe;

    if (line == NULL)
        return;
    redisAsyncContext *context = line->async->carrier.borrowed ? NULL : line->context;
    node->pipe = NULL;
    line->node = NULL;
    line->context = NULL;
    if (context != NULL)
        context->data = NULL;
    if (context != NULL && line->connecting)
        (void)shutdown(context->c.fd, SHUT_RDWR); /* so hiredis frees it, in the loop's next round */
    else if (context != NULL)
        redisAsyncFree(context);
    release(line);
}

static const struct pipe_class pipes = {open_pipe, is_alive, put, put_long, flush, close_pipe};

/* ---- Time -------------------------------------------------------------------------- */

/* heard_ms may be later than `now`: if this check loses a connection, another may be opened in its place. */
static bool is_silent_for(const struct line *line, uint64_t now, uint64_t ms)
{
    return now > line->heard_ms + ms;
}

static bool has_events(const struct line *line, short events)
{
    struct pollfd socket = {.fd = line->context->c.fd, .events = events};

    return poll(&socket, 1, 0) > 0 && (socket.revents & (events | POLLERR)) != 0;
}

/* A loop that stands still is no silence. Before the next check it reads and writes what lies here, in the same time
 * again. */
static bool is_overdue(const struct carrier *c, const struct node *node, uint64_t now)
{
    struct line *line = node->pipe;
    const struct store_options *options = &c->settings->options;
    const bool opening = node->state == NODE_OPENING; /* POLLOUT says that it is connected */

    if (!opening && node->sent.first == NULL)
        return false;
    const bool writes = opening || line->context->c.obuf[0] != '\0';
    const size_t before = line->unwritten;
    line->unwritten = opening ? 0 : sdslen(line->context->c.obuf);
    if (line->unwritten < before) /* a server that takes bytes is not silent */
        line->heard_ms = now;
    if (!is_silent_for(line, now, opening ? options->connect_timeout_ms : options->command_timeout_ms))
        return false;
    if (line->spared_ms == line->heard_ms || !has_events(line, writes ? POLLIN | POLLOUT : POLLIN))
        return true;
    line->spared_ms = line->heard_ms = now;
    return false;
}

/* The libuv adapter of hiredis 0.14 ignores an error on a socket, and gets no further event. */
static bool is_cut(const struct node *node, uint64_t now)
{
    const struct line *line = node->pipe;

    if ((node->sent.first == NULL && node->state != NODE_OPENING) || !is_silent_for(line, now, CHECK_MS))
        return false;
    return has_events(line, 0);
}

static void find_overdue(struct async *a)
{
    struct carrier *c = &a->carrier;

    a->checked_ms = clock_now_ms();
    for (unsigned i = 0; !c->borrowed && i < c->topology.count; i++) {
        struct node *node = c->topology.nodes[i];
        if (is_cut(node, a->checked_ms))
            carrier_lost(c, node, HIBLOOM_EIO, "the connection was cut");
        else if (is_overdue(c, node, a->checked_ms))
            carrier_lost(c, node, HIBLOOM_ETIMEDOUT, "timed out waiting for the server");
    }
}

void async_tick(struct async *a)
{
    async_enter(a);
    a->carrier.timed = true;
    find_overdue(a);
    settle(a);
    async_leave(a);
}

/* ---- The store --------------------------------------------------------------------- */

bool async_make(struct async *a, struct store_settings *settings)
{
    a->checked_ms = clock_now_ms();
    return carrier_make(&a->carrier, settings, &pipes);
}

hibloom_status async_check(struct async *a)
{
    const redisAsyncContext *context = a->theirs;
    struct error *error = &a->carrier.store.base.error;

    if (!a->carrier.borrowed)
        return HIBLOOM_OK;
    if (context == NULL || context->err != 0 || (context->c.flags & (REDIS_DISCONNECTING | REDIS_FREEING)) != 0)
        return error_set(error, HIBLOOM_EIO, "the borrowed connection is dead");
    if ((context->c.flags & (REDIS_SUBSCRIBED | REDIS_MONITORING)) != 0)
        return error_set(error, HIBLOOM_EINVAL, "the borrowed connection is subscribed, or monitoring");
    return HIBLOOM_OK;
}

void async_begin(struct async *a, struct call *call, struct task *task)
{
    carrier_begin(&a->carrier, call, task);
    while (carrier_tick(&a->carrier))
        ;
}

void async_close(struct async *a)
{
    carrier_free(&a->carrier);
}
