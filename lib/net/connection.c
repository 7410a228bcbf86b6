/* connection.c: one pipe to one Redis. See connection.h. */
#include "net/connection.h"
#include "base/clock.h"

#include <errno.h>
#include <hiredis/sds.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

/* The most that a server may send ahead of what has been decoded: hiredis
 * holds a string whole before it hands it over, and ours are short. */
#define UNREAD_MAX (1u << 20)

/* ---- Failing ---- */

static void fail(struct connection *c, hibloom_status status, const char *words)
{
    if (c->status == HIBLOOM_OK)
        c->status = error_set(&c->error, status, "%s", words);
}

static void restore_reader(struct connection *c)
{
    reply_leave(c->context->reader);
    c->context->reader->fn = c->their_functions;
    c->context->reader->privdata = c->their_privdata;
}

/* Gives the pipe up: no answer that is still to come can be told from another. */
static void abandon(struct connection *c)
{
    c->alive = false;
    if (c->borrowed) {
        /* or its owner would read our answers: it is dead for the owner, too */
        if (c->context->err == 0) {
            c->context->err = REDIS_ERR_OTHER;
            strcpy(c->context->errstr, "abandoned in the middle of a pipeline");
        }
        restore_reader(c);
    } else {
        redisFree(c->context);
        c->context = NULL;
    }
}

/* Fails as hiredis did. `saved` is errno as it was then. */
static void fail_as_context(struct connection *c, int saved)
{
    const redisContext *context = c->context;
    bool timed_out = context->err == REDIS_ERR_IO && (saved == EAGAIN || saved == EWOULDBLOCK || saved == ETIMEDOUT);

#ifdef REDIS_ERR_TIMEOUT
    timed_out = timed_out || context->err == REDIS_ERR_TIMEOUT;
#endif
    if (timed_out)
        fail(c, HIBLOOM_ETIMEDOUT, "timed out waiting for the server");
    else if (context->err == REDIS_ERR_OOM)
        fail(c, HIBLOOM_ENOMEM, "out of memory");
    else if (c->answers == 1 && c->first.words[0] != '\0') /* a client that is not let in is told so, once */
        fail(c, refusal_status(refusal_of(c->first.words)), c->first.words);
    else
        fail(c, HIBLOOM_EIO, context->errstr);
    abandon(c);
}

/* The server's refusal, as words and status; it must not repeat the password. */
static void fail_as_server(struct connection *c)
{
    const enum refusal refusal = refusal_of(c->reply.text);
    const char *password = c->uri.password;

    if (c->status != HIBLOOM_OK)
        return;
    if (password != NULL && error_repeats(c->reply.text, password, strlen(password)))
        (void)error_set(&c->error, refusal_status(refusal), "refused, in words that repeat the password");
    else
        refusal_explain(refusal, c->reply.text, c->error.words, sizeof c->error.words);
    c->status = refusal_status(refusal);
}

/* ---- Making it ---- */

static struct timeval milliseconds(uint32_t ms)
{
    return (struct timeval){.tv_sec = ms / 1000, .tv_usec = (suseconds_t)(ms % 1000) * 1000};
}

/* AUTH and SELECT, where the URI asks for them, in one round trip. */
static void authenticate(struct connection *c)
{
    const struct uri *uri = &c->uri;
    struct commands commands = {0};

    if (uri->password != NULL) {
        command_start(&commands, uri->user != NULL ? 3 : 2, "AUTH");
        if (uri->user != NULL)
            command_text(&commands, uri->user);
        command_text(&commands, uri->password);
    }
    if (uri->db != 0) {
        command_start(&commands, 2, "SELECT");
        command_number(&commands, uri->db);
    }
    size_t answers = commands.count;
    if (answers > 0)
        connection_send(c, &commands);
    commands_wipe(&commands);
    for (; answers > 0; answers--) {
        const struct reply *reply = connection_receive(c, NULL, 0);
        if (reply != NULL && reply->type == REDIS_REPLY_ERROR)
            fail_as_server(c);
        else if (reply != NULL && reply->type != REDIS_REPLY_STATUS)
            fail(c, HIBLOOM_EPROTO, "the server's answer is not of the kind that was asked for");
    }
    if (c->status != HIBLOOM_OK && c->alive)
        abandon(c); /* the next call shall try again, not go on as somebody else */
}

static void install_reader(struct connection *c)
{
    redisReader *reader = c->context->reader;

    c->their_functions = reader->fn;
    c->their_privdata = reader->privdata;
    c->reply.owner = c->borrowed ? reader->fn : NULL;
    reader->fn = &reply_functions;
    reader->privdata = &c->reply;
}

static redisContext *connect_context(const struct connection *c, uint32_t timeout_ms)
{
    const struct timeval timeout = milliseconds(timeout_ms);

    errno = 0;
    if (c->uri.kind == URI_UNIX)
        return redisConnectUnixWithTimeout(c->uri.path, timeout);
    return redisConnectWithTimeout(c->uri.host, (int)c->uri.port, timeout);
}

/* hiredis gives up where a signal interrupts its waiting; whether it did. */
static bool interrupted(const redisContext *context)
{
    return context != NULL && context->err == REDIS_ERR_IO && errno == EINTR;
}

static void make(struct connection *c)
{
    const uint64_t start = clock_now_ms();

    c->answers = 0;
    c->context = connect_context(c, c->connect_timeout_ms);
    while (interrupted(c->context)) {
        const uint64_t spent = clock_now_ms() - start;
        if (spent >= c->connect_timeout_ms) {
            fail(c, HIBLOOM_ETIMEDOUT, "timed out connecting");
            abandon(c);
            return;
        }
        redisFree(c->context);
        c->context = connect_context(c, c->connect_timeout_ms - (uint32_t)spent);
    }
    if (c->context == NULL) {
        fail(c, HIBLOOM_ENOMEM, "out of memory");
    } else if (c->context->err != 0 || redisSetTimeout(c->context, milliseconds(c->command_timeout_ms)) != REDIS_OK) {
        fail_as_context(c, errno);
    } else {
        c->alive = true;
        install_reader(c);
        authenticate(c);
    }
}

/* ---- Receiving ---- */

enum received { RECEIVED_NOTHING, RECEIVED_ANSWER, RECEIVED_PUSH };

/* Takes one whole thing out of the reader, a push to its owner at once. */
static enum received take(struct connection *c)
{
    void *object = NULL;

    if (redisReaderGetReply(c->context->reader, &object) != REDIS_OK) {
        if (c->status == HIBLOOM_OK)
            c->status = error_set(&c->error, HIBLOOM_EPROTO, "nonsense from the server: %s",
                                  c->context->reader->errstr);
        abandon(c);
        return RECEIVED_NOTHING;
    }
    if (object == NULL || !c->reply.pushed)
        return object != NULL ? RECEIVED_ANSWER : RECEIVED_NOTHING;
#if HIREDIS_MAJOR >= 1
    if (c->context->push_cb != NULL)
        c->context->push_cb(c->context->privdata, object);
    else
        c->reply.owner->freeObject(object);
#endif
    return RECEIVED_PUSH;
}

/* Whether the server has had its time since the last commands were sent. */
static bool overdue(const struct connection *c)
{
    return c->command_timeout_ms != 0 && clock_now_ms() - c->sent_ms > c->command_timeout_ms;
}

/* Reads what has come; gives up if that has gone on for too long or come to
 * too much. */
static void read_some(struct connection *c)
{
    const redisReader *reader = c->context->reader;

    if (overdue(c)) {
        fail(c, HIBLOOM_ETIMEDOUT, "timed out in the middle of the answers");
        abandon(c);
    } else if (reader->len - reader->pos > UNREAD_MAX) {
        fail(c, HIBLOOM_EPROTO, "an answer far longer than any that was asked for");
        abandon(c);
    } else if (redisBufferRead(c->context) != REDIS_OK) {
        fail_as_context(c, errno);
    }
}

const struct reply *connection_receive(struct connection *c, void *bulk, size_t room)
{
    enum received received = RECEIVED_PUSH;

    if (!c->alive)
        return NULL;
    do {
        if (received == RECEIVED_PUSH) {
            reply_reset(&c->reply);
            c->reply.bulk = bulk;
            c->reply.bulk_room = room;
        }
        received = take(c);
        if (c->alive && received == RECEIVED_NOTHING)
            read_some(c);
        if (!c->alive)
            return NULL;
    } while (received != RECEIVED_ANSWER);
    if (c->answers++ == 0)
        (void)error_set(&c->first, HIBLOOM_OK, "%s", c->reply.type == REDIS_REPLY_ERROR ? c->reply.text : "");
    return &c->reply;
}

/* ---- A conversation ---- */

/* Pushes that came behind the last answer belong to the owner. They are delivered now. */
static void deliver_pushes(struct connection *c)
{
    const redisReader *reader = c->context->reader;

    while (c->alive && reader->pos < reader->len && reader->buf[reader->pos] == '>') {
        reply_reset(&c->reply);
        while (c->alive && take(c) == RECEIVED_NOTHING)
            if (c->alive)
                read_some(c);
    }
}

/* A borrowed pipe must be quiet: an answer of its owner's that is still to
 * come would be taken for ours. What is on its way cannot be seen, but what
 * waits here can. */
static void borrow(struct connection *c)
{
    const redisContext *context = c->context;
    const redisReader *reader = context->reader;

    if (context->err != 0) {
        c->status = error_set(&c->error, HIBLOOM_EIO, "the borrowed connection is dead: %s", context->errstr);
        return;
    }
    if (sdslen(context->obuf) == 0 && reader->ridx < 0) {
        c->alive = true;
        install_reader(c);
        deliver_pushes(c);
    }
    if (c->status == HIBLOOM_OK && (!c->alive || reader->pos < reader->len)) {
        fail(c, HIBLOOM_EINVAL, "the borrowed connection has commands or replies pending");
        if (c->alive)
            restore_reader(c);
        c->alive = false;
    }
}

/* Has the server closed the connection since its last use, for want of use or
 * because it was restarted; or said more than it was asked? Nothing was sent yet,
 * so a new one loses nothing. */
static bool is_spent(const struct connection *c)
{
    char byte;

    if (c->context->reader->pos < c->context->reader->len)
        return true;
    return recv(c->context->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
}

hibloom_status connection_enter(struct connection *c)
{
    c->status = HIBLOOM_OK;
    if (!c->borrowed && c->context != NULL && is_spent(c))
        abandon(c);
    if (c->borrowed)
        borrow(c);
    else if (c->context == NULL)
        make(c);
    else
        c->alive = true;
    return c->status;
}

void connection_leave(struct connection *c, bool confused)
{
    if (c->alive && confused && !c->borrowed)
        abandon(c);
    if (c->alive && c->borrowed)
        restore_reader(c);
    c->alive = false;
}

/* hiredis writes without MSG_NOSIGNAL, and a library may not touch the
 * process' handlers. So SIGPIPE is blocked in this thread while it writes, and
 * one that came of it is taken back. */
static int write_some(redisContext *context, int *done)
{
    static const struct timespec at_once = {0, 0};
    sigset_t pipe, before, pending;

    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    sigpending(&pending);
    pthread_sigmask(SIG_BLOCK, &pipe, &before);
    const int result = redisBufferWrite(context, done), saved = errno;
    if (result != REDIS_OK && saved == EPIPE && !sigismember(&pending, SIGPIPE))
        while (sigtimedwait(&pipe, NULL, &at_once) < 0 && errno == EINTR)
            ;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = saved;
    return result;
}

/* A server that refuses a client says why and hangs up: its words may be here
 * although it takes none of ours. They come after the answers that it still
 * gave, of which there are no more than two windows can have. */
#define LAST_ANSWERS 10000

static void hear_last_words(struct connection *c)
{
    const struct reply *reply = NULL;

    c->context->err = 0;
    for (unsigned i = 0; i < LAST_ANSWERS; i++) {
        reply = connection_receive(c, NULL, 0);
        if (reply == NULL || reply->type == REDIS_REPLY_ERROR)
            break;
    }
    if (reply != NULL && reply->type == REDIS_REPLY_ERROR)
        fail_as_server(c);
    fail(c, HIBLOOM_EIO, "the server takes no more commands");
    if (c->alive)
        abandon(c);
}

void connection_send(struct connection *c, struct commands *commands)
{
    int done = 0;

    if (c->alive &&
        (commands->failed || redisAppendFormattedCommand(c->context, commands->bytes, commands->len) != REDIS_OK)) {
        fail(c, HIBLOOM_ENOMEM, "out of memory");
        abandon(c);
    }
    commands_empty(commands);
    c->sent_ms = clock_now_ms();
    while (c->alive && !done) {
        if (write_some(c->context, &done) != REDIS_OK) {
            if (errno == EPIPE || errno == ECONNRESET)
                hear_last_words(c);
            else
                fail_as_context(c, errno);
        } else if (!done && overdue(c)) {
            fail(c, HIBLOOM_ETIMEDOUT, "timed out: the server takes no more commands");
            abandon(c);
        }
    }
}

void connection_close(struct connection *c)
{
    if (!c->borrowed && c->context != NULL)
        redisFree(c->context);
    uri_free(&c->uri);
}

const char *connection_where(const struct connection *c, char *buf, size_t size)
{
    if (c->borrowed)
        snprintf(buf, size, "borrowed connection");
    else if (c->uri.kind == URI_UNIX)
        snprintf(buf, size, "unix://%s", c->uri.path);
    else
        snprintf(buf, size, strchr(c->uri.host, ':') != NULL ? "[%s]:%u" : "%s:%u", c->uri.host, c->uri.port);
    return buf;
}
