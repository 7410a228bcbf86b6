/* connection.c: one pipe to one Redis. See connection.h. */
#include "connection.h"

#include <errno.h>
#include <hiredis/sds.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* The most that a server may send ahead of what has been decoded: hiredis
 * holds a string whole before it hands it over, and ours are short. */
#define UNREAD_MAX (1u << 20)

/* ---- Failing ---- */

void connection_fail(struct connection *c, hibloom_status status, const char *format, ...)
{
    va_list arguments;

    if (c->status != HIBLOOM_OK)
        return;
    c->status = status;
    va_start(arguments, format);
    vsnprintf(c->error->words, sizeof c->error->words, format, arguments);
    va_end(arguments);
}

void connection_unexpected(struct connection *c)
{
    connection_fail(c, HIBLOOM_EPROTO, "the server's answer is not of the kind that was asked for");
}

static void restore_reader(struct connection *c)
{
    c->context->reader->fn = c->their_functions;
    c->context->reader->privdata = c->their_privdata;
}

/* Gives the pipe up: no answer that is still to come can be told from another. */
static void abandon(struct connection *c)
{
    c->alive = false;
    if (c->borrowed) {
        /* its owner must not read our answers as his: mark it dead for him too */
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
        connection_fail(c, HIBLOOM_ETIMEDOUT, "timed out waiting for the server");
    else if (context->err == REDIS_ERR_OOM)
        connection_fail(c, HIBLOOM_ENOMEM, "out of memory");
    else
        connection_fail(c, HIBLOOM_EIO, "%s", context->errstr);
    abandon(c);
}

/* ---- Making it ---- */

static struct timeval milliseconds(uint32_t ms)
{
    return (struct timeval){.tv_sec = ms / 1000, .tv_usec = (suseconds_t)(ms % 1000) * 1000};
}

/* Does the text hold a piece of the secret, four bytes or all of it? */
static bool repeats(const char *text, size_t len, const char *secret)
{
    const size_t secret_len = strlen(secret), piece = secret_len < 4 ? secret_len : 4;

    for (size_t at = 0; secret_len > 0 && at + piece <= secret_len; at++)
        if (memmem(text, len, secret + at, piece) != NULL)
            return true;
    return false;
}

/* A server that does not know AUTH answers with its arguments, cut and escaped
 * somehow. Of words that repeat the password only the first is kept, the
 * error's code, if that does not. */
static void hide_password(struct connection *c)
{
    const struct error answer = *c->error;
    const size_t code = strcspn(answer.words, " ");

    if (repeats(answer.words, strlen(answer.words), c->uri.password))
        error_set(c->error, c->status, "%.*sAUTH failed, in words that repeat the password",
                  repeats(answer.words, code, c->uri.password) ? 0 : (int)code + 1, answer.words);
}

/* AUTH and SELECT, where the URI asks for them, in one round trip. */
static void introduce(struct connection *c)
{
    const struct uri *uri = &c->uri;
    struct commands commands = {0};
    unsigned answers = 0;

    if (uri->password != NULL) {
        command_start(&commands, uri->user != NULL ? 3 : 2, "AUTH");
        if (uri->user != NULL)
            command_text(&commands, uri->user);
        command_text(&commands, uri->password);
        answers++;
    }
    if (uri->db != 0) {
        command_start(&commands, 2, "SELECT");
        command_number(&commands, uri->db);
        answers++;
    }
    if (answers > 0)
        connection_send(c, &commands);
    commands_wipe(&commands);
    while (answers-- > 0)
        (void)connection_receive_status(c);
    if (c->status != HIBLOOM_OK && uri->password != NULL)
        hide_password(c);
    if (c->status != HIBLOOM_OK && c->alive)
        abandon(c); /* the next call shall try again, not go on as somebody else */
}

static void install_reader(struct connection *c)
{
    redisReader *reader = c->context->reader;

    c->their_functions = reader->fn;
    c->their_privdata = reader->privdata;
    c->reply.owner = reader->fn;
    reader->fn = &reply_functions;
    reader->privdata = &c->reply;
}

static void make(struct connection *c)
{
    const struct timeval timeout = milliseconds(c->connect_timeout_ms);

    errno = 0;
    c->context = c->uri.kind == URI_UNIX ? redisConnectUnixWithTimeout(c->uri.path, timeout)
                                         : redisConnectWithTimeout(c->uri.host, (int)c->uri.port, timeout);
    if (c->context == NULL) {
        connection_fail(c, HIBLOOM_ENOMEM, "out of memory");
    } else if (c->context->err != 0 || redisSetTimeout(c->context, milliseconds(c->command_timeout_ms)) != REDIS_OK) {
        fail_as_context(c, errno);
    } else {
        c->alive = true;
        install_reader(c);
        introduce(c);
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
        connection_fail(c, HIBLOOM_EIO, "the borrowed connection is dead: %s", context->errstr);
    } else if (sdslen(context->obuf) > 0 || reader->pos < reader->len || reader->ridx >= 0) {
        connection_fail(c, HIBLOOM_EINVAL, "the borrowed connection has commands or replies pending");
    } else {
        c->alive = true;
        install_reader(c);
    }
}

/* ---- A conversation ---- */

hibloom_status connection_enter(struct connection *c)
{
    c->status = HIBLOOM_OK;
    if (c->borrowed)
        borrow(c);
    else if (c->context == NULL)
        make(c);
    else
        c->alive = true;
    return c->status;
}

hibloom_status connection_leave(struct connection *c)
{
    /* a server that answers nonsense may be counting differently, too */
    if (c->alive && c->status == HIBLOOM_EPROTO && !c->borrowed)
        abandon(c);
    if (c->alive && c->borrowed)
        restore_reader(c);
    c->alive = false;
    return c->status;
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

static uint64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Whether an exchange that began at `start` has taken too long. */
static bool overdue(const struct connection *c, uint64_t start)
{
    return c->command_timeout_ms != 0 && now_ms() - start > c->command_timeout_ms;
}

void connection_send(struct connection *c, struct commands *commands)
{
    uint64_t start = 0;
    int done = 0;

    if (!c->alive)
        return;
    if (commands->failed || redisAppendFormattedCommand(c->context, commands->bytes, commands->len) != REDIS_OK) {
        connection_fail(c, HIBLOOM_ENOMEM, "out of memory");
        abandon(c);
    }
    commands_empty(commands);
    while (c->alive && !done) {
        if (write_some(c->context, &done) != REDIS_OK) {
            fail_as_context(c, errno);
        } else if (start == 0) {
            start = now_ms();
        } else if (!done && overdue(c, start)) {
            connection_fail(c, HIBLOOM_ETIMEDOUT, "timed out: the server takes no more commands");
            abandon(c);
        }
    }
}

/* Takes one whole answer out of the reader; false if it has none yet, or is
 * broken. */
static bool next_answer(struct connection *c)
{
    void *object = NULL;

    while (redisReaderGetReply(c->context->reader, &object) == REDIS_OK) {
        if (object == NULL || !c->reply.pushed)
            return object != NULL;
#if HIREDIS_MAJOR >= 1
        if (c->context->push_cb != NULL)
            c->context->push_cb(c->context->privdata, object);
        else
            c->reply.owner->freeObject(object);
#endif
        reply_reset(&c->reply);
    }
    connection_fail(c, HIBLOOM_EPROTO, "%s", c->context->reader->errstr);
    abandon(c);
    return false;
}

/* Reads what has come; gives up if that has gone on for too long or come to
 * too much. `start` is when this answer's first byte was awaited, 0 = now. */
static void read_some(struct connection *c, uint64_t *start)
{
    const redisReader *reader = c->context->reader;

    if (*start == 0)
        *start = now_ms();
    if (overdue(c, *start)) {
        connection_fail(c, HIBLOOM_ETIMEDOUT, "timed out in the middle of an answer");
        abandon(c);
    } else if (reader->len - reader->pos > UNREAD_MAX) {
        connection_fail(c, HIBLOOM_EPROTO, "an answer far longer than any that was asked for");
        abandon(c);
    } else if (redisBufferRead(c->context) != REDIS_OK) {
        fail_as_context(c, errno);
    }
}

const struct reply *connection_receive(struct connection *c)
{
    uint64_t start = 0;

    if (!c->alive)
        return NULL;
    reply_reset(&c->reply);
    while (!next_answer(c)) {
        if (c->alive)
            read_some(c, &start);
        if (!c->alive)
            return NULL;
    }
    if (c->reply.type == REDIS_REPLY_ERROR) {
        connection_fail(c, HIBLOOM_ESERVER, "%s", c->reply.text);
        return NULL;
    }
    return &c->reply;
}

bool connection_receive_integer(struct connection *c, long long *out)
{
    const struct reply *reply = connection_receive(c);

    if (reply != NULL && reply->type == REDIS_REPLY_INTEGER) {
        *out = reply->integers[0];
        return true;
    }
    if (reply != NULL)
        connection_unexpected(c);
    return false;
}

bool connection_receive_status(struct connection *c)
{
    const struct reply *reply = connection_receive(c);

    if (reply != NULL && reply->type == REDIS_REPLY_STATUS)
        return true;
    if (reply != NULL)
        connection_unexpected(c);
    return false;
}

void connection_close(struct connection *c)
{
    if (!c->borrowed && c->context != NULL)
        redisFree(c->context);
    uri_free(&c->uri);
}
