/* connection.c: one pipe to one Redis. See connection.h. */
#include "net/drivers/connection.h"
#include "base/clock.h"
#include "net/drivers/context.h"
#include "net/drivers/sigpipe.h"
#include "net/drivers/tls.h"

#include <errno.h>
#include <hiredis/sds.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

/* The most bytes that a server may send ahead of decoding. hiredis holds a string whole before
 * it hands it over. Our strings are short, or there is room for them. */
#define UNREAD_MAX (1u << 20)
#define LATE_BYTES (1u << 20) /* read behind a deadline, at most */

/* ---- Failing ---- */

static void restore_reader(struct connection *c)
{
    reply_leave(c->context->reader);
    c->context->reader->fn = c->their_functions;
    c->context->reader->privdata = c->their_privdata;
}

/* Gives the pipe up: no answer that is still to come can be told from another. The first cause counts. */
static void fail(struct connection *c, hibloom_status status, const char *words)
{
    if (c->status == HIBLOOM_OK)
        c->status = error_set(&c->error, status, "%s", words);
    if (c->borrowed && c->alive) {
        /* or its owner would read our answers: it is dead for the owner, too */
        if (c->context->err == 0) {
            c->context->err = REDIS_ERR_OTHER;
            strcpy(c->context->errstr, "abandoned in the middle of a pipeline");
        }
        restore_reader(c);
    }
    c->alive = false;
}

/* Fails as hiredis did. `saved` is errno as it was then. */
static void fail_as_context(struct connection *c, int saved)
{
    struct error error;
    const hibloom_status status = context_failure(c->context, saved, &error);

    fail(c, status, error.words);
}

/* ---- Reading and writing ---- */

static int context_fails(redisContext *context, int err, const char *words)
{
    context->err = err;
    (void)snprintf(context->errstr, sizeof context->errstr, "%s", words);
    return REDIS_ERR;
}

/* A call on the socket did nothing, and errno says why. */
static int context_stalls(redisContext *context)
{
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)
        return REDIS_OK;
    return context_fails(context, REDIS_ERR_IO, strerror(errno));
}

#define READ_BYTES (16u << 10) /* one read of hiredis, and of ours */
#define SEND_BYTES (128u << 10)

static size_t left_to_send(const struct connection *c)
{
    return sdslen(c->context->obuf) - c->sent;
}

static bool is_long(const redisContext *context)
{
    return sdsalloc(context->obuf) > 2 * SEND_BYTES;
}

/* Our own socket without TLS: it is read and written here, faster than by hiredis. */
static bool is_plain(const struct connection *c)
{
    return !c->borrowed && !tls_is_on(c->context);
}

/* MSG_NOSIGNAL spares three calls on signals. A long buffer is not moved up each time, which would cost more than to
 * send it. */
static int send_some(struct connection *c, int *done)
{
    redisContext *context = c->context;
    const ssize_t sent = send(context->fd, context->obuf + c->sent, left_to_send(c), MSG_NOSIGNAL);

    c->sent += sent > 0 ? (size_t)sent : 0;
    const size_t left = left_to_send(c);
    if (c->sent > 0 && (!is_long(context) || left <= SEND_BYTES)) {
        memmove(context->obuf, context->obuf + c->sent, left + 1);
        sdssetlen(context->obuf, left);
        c->sent = 0;
    }
    *done = left == 0;
    return sent > 0 ? REDIS_OK : context_stalls(context);
}

/* hiredis reads 16 KB at a time, which makes a whole bitmap a tenth slower. If a string has a room of its own that is
 * larger, the bytes pass through that room. Until the string is complete, the room holds anything. The strings of an
 * array (ridx > 0) are put there one by one, so they stay. */
static int receive(struct connection *c, void *bulk, size_t room)
{
    redisContext *context = c->context;
    char few[READ_BYTES];
    const bool through = room > sizeof few && context->reader->ridx <= 0;
    void *const into = through ? bulk : few;
    const ssize_t got = recv(context->fd, into, through ? room : sizeof few, 0);

    if (got > 0)
        return redisReaderFeed(context->reader, into, (size_t)got) == REDIS_OK
                   ? REDIS_OK
                   : context_fails(context, REDIS_ERR_OOM, "Out of memory");
    return got == 0 ? context_fails(context, REDIS_ERR_EOF, "Server closed the connection") : context_stalls(context);
}

/* By hiredis: writes; without `done` it reads. TLS may write to read, and where it fails errno may be of something
 * else. */
static int transfer(struct connection *c, int *done)
{
    redisContext *context = c->context;
    const bool tls = tls_is_on(context);
    struct sigpipe before;

    if (!tls && done == NULL)
        return redisBufferRead(context);
    sigpipe_block(&before);
    if (tls)
        tls_forget();
    errno = 0;
    const int result = done != NULL ? redisBufferWrite(context, done) : redisBufferRead(context);
    sigpipe_unblock(&before, result != REDIS_OK);
    return result;
}

/* ---- Making it ---- */

static void install_reader(struct connection *c)
{
    redisReader *reader = c->context->reader;

    c->their_functions = reader->fn;
    c->their_privdata = reader->privdata;
    c->reply.owner = c->borrowed ? reader->fn : NULL;
    reader->fn = &reply_functions;
    reader->privdata = &c->reply;
}

hibloom_status connection_open(struct connection *c, const struct store_settings *s, const char *host, unsigned port)
{
    *c = (struct connection){.settings = s, .timeout_ms = (uint32_t)s->options.connect_timeout_ms};
    c->status = context_begin(&c->context, s, host, port, &c->error);
    c->alive = c->status == HIBLOOM_OK;
    c->opening = POLLOUT;
    connection_start_clock(c);
    return c->status;
}

static hibloom_status shake_hands(struct connection *c)
{
    hibloom_status status = HIBLOOM_OK;
    struct sigpipe before;

    sigpipe_block(&before);
    if (c->ssl == NULL)
        status = tls_begin(c->context, c->settings, c->context->tcp.host, &c->ssl, &c->error);
    if (status == HIBLOOM_OK)
        status = tls_step(c->ssl, &c->opening, &c->error);
    sigpipe_unblock(&before, status != HIBLOOM_OK);
    return status;
}

/* An event has come: one step more. */
static void open_on(struct connection *c)
{
    const struct store_settings *s = c->settings;

    c->status = c->ssl == NULL ? context_connected(c->context, &c->error) : HIBLOOM_OK;
    if (c->status == HIBLOOM_OK && s->uri.tls)
        c->status = shake_hands(c);
    else
        c->opening = 0;
    c->alive = c->status == HIBLOOM_OK;
    if (!c->alive || c->opening != 0)
        return;
    c->ssl = NULL;
    c->timeout_ms = (uint32_t)s->options.command_timeout_ms;
    connection_start_clock(c);
    settings_apply(s, c->context);
    if (s->connected != NULL)
        s->connected(c->context, s->data);
    install_reader(c);
}

/* ---- Receiving ---- */

/* Takes one whole thing out of the reader. NULL: it was a push, which has gone to its owner; or it has `begun`, and is
 * not all here. */
static void *take(struct connection *c)
{
    const redisReader *reader = c->context->reader;
    void *object = NULL;

    if (c->reply.objects && reader->ridx < 0 && reader->pos < reader->len && reader->buf[reader->pos] == '>') {
        fail(c, HIBLOOM_EPROTO, "the server does not answer as Redis does: a push that was not asked for");
    } else if (redisReaderGetReply(c->context->reader, &object) != REDIS_OK) {
        struct error error;
        (void)error_set(&error, HIBLOOM_EPROTO, "the server does not answer as Redis does: %s", reader->errstr);
        fail(c, HIBLOOM_EPROTO, error.words);
    }
    c->begun = object == NULL;
    if (object == NULL || c->reply.objects || !c->reply.pushed)
        return object;
#if HIREDIS_MAJOR >= 1
    if (c->context->push_cb != NULL)
        c->context->push_cb(c->context->privdata, object);
    else
        c->reply.owner->freeObject(object);
#endif
    return NULL;
}

struct pollfd connection_events(const struct connection *c)
{
    const short events = c->opening != 0 ? c->opening : (short)(POLLIN | (c->unsent ? POLLOUT : 0));

    return (struct pollfd){.fd = c->context->fd, .events = events};
}

/* -1: it failed, as by a signal, and tells nothing. */
static int poll_now(const struct connection *c)
{
    struct pollfd ready = connection_events(c);

    return poll(&ready, 1, 0);
}

/* Is the call's time over? If this process stood still, answers may be here that came in time. They are read first, until
 * nothing is here. A server that never stops cannot keep the call for long. They are `readable` also as a timer rings: libuv
 * lets one without time left ring again before it looks at sockets. */
static bool is_late(struct connection *c, uint64_t now)
{
    struct pollfd ready = {.fd = c->context->fd, .events = POLLIN};

    if (c->deadline == 0 || now < c->deadline)
        return false;
    if (c->late != c->deadline)
        c->spare = LATE_BYTES;
    c->late = c->deadline;
    c->readable = c->opening == 0 && c->spare > 0 && poll(&ready, 1, 0) != 0; /* -1: it may be */
    return !c->readable;
}

/* Has the server had its time since the last commands were sent? Then unread answers may have come while another
 * connection was made, or this process stood still. They are read, in the same time again. Commands that wait for
 * room are sent, too, if there is room. */
static bool overdue(struct connection *c)
{
    const uint64_t now = clock_now_ms();

    if (is_late(c, now))
        return true;
    if (c->timeout_ms == 0 || now - c->sent_ms <= c->timeout_ms)
        return false;
    if (c->spared || poll_now(c) == 0)
        return true;
    c->spared = true;
    c->sent_ms = now;
    return false;
}

/* The time was over: which one, and how long was it? */
static void fail_overdue(struct connection *c, const char *words)
{
    const char *const option = c->opening != 0 ? "connect_timeout" : "command_timeout";
    char said[160];

    if (c->deadline != 0 && clock_now_ms() >= c->deadline)
        snprintf(said, sizeof said, "%s (hibloom_store_deadline)", words);
    else
        snprintf(said, sizeof said, "%s (%s=%s)", words, option, options_text(c->settings, option));
    fail(c, HIBLOOM_ETIMEDOUT, said);
}

/* Reads the bytes that have come. Gives up if an answer has taken too long, or is too much for
 * `room`. */
static void read_some(struct connection *c, void *bulk, size_t room)
{
    const redisReader *reader = c->context->reader;

    if (overdue(c)) {
        fail_overdue(c, "timed out between two answers");
    } else if (reader->len - reader->pos > UNREAD_MAX + room) {
        fail(c, HIBLOOM_EPROTO, "the answer is longer than any that was asked for");
    } else {
        const size_t before = reader->len;
        if ((is_plain(c) ? receive(c, bulk, room) : transfer(c, NULL)) != REDIS_OK) {
            fail_as_context(c, errno);
            return;
        }
        const size_t got = reader->len - before;
        c->received += got;
        /* less than there was room for: that was all, but over TLS a next record may be here */
        c->readable = c->borrowed || (got > 0 && (got >= READ_BYTES || tls_is_on(c->context)));
        c->spare = c->readable && got < c->spare ? c->spare - got : 0;
        /* the rest makes another event: OpenSSL keeps nothing back, as no record is longer than one read */
        if (--c->reads == 0)
            c->readable = false;
    }
}

/* Prepares the reply for the next answer, unless that has begun. */
static void begin(struct connection *c, bool object, void *bulk, size_t room)
{
    if (c->begun)
        return;
    c->begun = true;
    reply_reset(&c->reply);
    c->reply.objects = object;
    c->reply.owner = object || c->borrowed ? c->their_functions : NULL;
    c->reply.bulk = bulk;
    c->reply.bulk_room = room;
}

struct reply *connection_receive(struct connection *c, redisReply **object, void *bulk, size_t room)
{
    while (c->alive) {
        begin(c, object != NULL, bulk, room);
        redisReply *taken = take(c);
        if (taken != NULL) {
            c->answers++;
            if (object != NULL)
                *object = taken;
            return &c->reply;
        }
        if (c->alive && c->begun && !c->readable)
            return NULL;
        if (c->alive && c->begun)
            read_some(c, bulk, bulk != NULL ? room : 0);
    }
    return NULL;
}

/* ---- A conversation ---- */

/* Pushes that came behind the last answer belong to the owner. They are delivered now. */
static void deliver_pushes(struct connection *c)
{
    const redisReader *reader = c->context->reader;

    while (c->alive && reader->pos < reader->len && reader->buf[reader->pos] == '>') {
        reply_reset(&c->reply);
        while (c->alive && take(c) == NULL && c->begun)
            if (c->alive)
                read_some(c, NULL, 0);
    }
}

/* A borrowed pipe must be quiet: an answer to its owner that is still to come would pass for
 * ours. Answers on their way cannot be seen, but those that wait here can. */
hibloom_status connection_borrow(struct connection *c)
{
    const redisContext *context = c->context;
    const redisReader *reader = context->reader;

    c->status = HIBLOOM_OK;
    if (context->err != 0)
        return c->status = error_set(&c->error, HIBLOOM_EIO, "the borrowed connection is dead: %s", context->errstr);
    if (sdslen(context->obuf) == 0 && reader->ridx < 0) {
        c->alive = c->readable = true;
        c->begun = false;
        install_reader(c);
        deliver_pushes(c);
    }
    if (c->status == HIBLOOM_OK && (!c->alive || reader->pos < reader->len)) {
        connection_return(c);
        fail(c, HIBLOOM_EINVAL, "the borrowed connection has unsent commands or unread replies");
    }
    return c->status;
}

void connection_return(struct connection *c)
{
    if (c->alive)
        restore_reader(c);
    c->alive = false;
}

/* The server may have closed it for want of use, or because it was restarted. Nothing
 * was sent yet, so a new one loses nothing. */
bool connection_is_alive(struct connection *c)
{
    char byte;

    if (!c->alive || c->context->reader->pos < c->context->reader->len)
        return false;
    const ssize_t peeked = recv(c->context->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (peeked < 0)
        return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
    /* TLS's own messages, a new session ticket or new keys, are read; they bring no answer */
    return peeked > 0 && tls_is_on(c->context) && transfer(c, NULL) == REDIS_OK &&
           c->context->reader->pos == c->context->reader->len;
}

void connection_put(struct connection *c, const char *bytes, size_t len)
{
    c->put = true;
    if (c->alive && redisAppendFormattedCommand(c->context, bytes, len) != REDIS_OK)
        fail(c, HIBLOOM_ENOMEM, "out of memory");
}

void connection_start_clock(struct connection *c)
{
    c->sent_ms = clock_now_ms();
    c->spared = false;
}

void connection_flush(struct connection *c)
{
    int done = 0;
    bool stuck = false;

    c->put = false;
    while (c->alive && !done && !stuck) {
        const size_t before = left_to_send(c);
        /* The end of a long buffer goes by hiredis, which frees the buffer then. */
        const bool here = is_plain(c) && before > (is_long(c->context) ? SEND_BYTES : 0);
        const int result = here ? send_some(c, &done) : transfer(c, &done);
        if (result != REDIS_OK && (errno == EPIPE || errno == ECONNRESET || errno == EINTR)) {
            /* A server that refuses a client says why and hangs up. Its answers are read first. hiredis gives up on a
             * signal over TLS only, where a borrowed one may block. */
            done = errno != EINTR;
            c->context->err = 0;
            c->context->errstr[0] = '\0';
        } else if (result != REDIS_OK) {
            fail_as_context(c, errno);
        } else if (left_to_send(c) < before) {
            /* A server that takes bytes is not silent. If all went at once, the clock has just begun. */
            if (c->unsent || !done)
                c->sent_ms = clock_now_ms();
        } else if (!done && overdue(c)) {
            fail_overdue(c, "timed out: the server takes no more commands");
        } else {
            stuck = !done && !c->borrowed;
        }
    }
    c->unsent = stuck;
}

uint64_t connection_due(const struct connection *c)
{
    return sooner(c->deadline, c->sent_ms + c->timeout_ms + 1);
}

void connection_polled(struct connection *c, short came)
{
    /* an earlier socket may have had this number */
    if (c->alive && c->opening != 0 && came != 0 && poll_now(c) > 0)
        open_on(c);
    /* one that hung up may have answered before */
    else if (c->unsent && (came & (POLLOUT | POLLERR | POLLHUP)) == POLLOUT)
        connection_flush(c);
    c->readable = c->alive && c->opening == 0 && (came & ~POLLOUT) != 0;
    if (c->alive && !c->readable && overdue(c))
        fail_overdue(c, c->ssl != NULL
                            ? "TLS: timed out in the handshake; if this port speaks no TLS, the URI begins with redis, "
                              "not with rediss"
                        : c->opening != 0 ? "timed out connecting"
                        : c->unsent       ? "timed out: the server takes no more commands"
                                          : "timed out waiting for the server");
}

void connection_close(struct connection *c)
{
    if (c->borrowed && c->put)
        fail(c, HIBLOOM_ENOMEM, "out of memory");
    if (c->borrowed) {
        connection_return(c);
    } else {
        redisFree(c->context);
        c->context = NULL;
    }
    c->alive = c->unsent = c->put = false;
    c->opening = 0;
    c->ssl = NULL;
    explicit_bzero(&c->reply, sizeof c->reply); /* a spec, with its seed, may be in it */
}
