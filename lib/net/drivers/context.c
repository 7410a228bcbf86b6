/* context.c: a context of hiredis is made. See context.h. */
#include "net/drivers/context.h"
#include "base/clock.h"
#include "net/drivers/sigpipe.h"
#include "net/drivers/tls.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <string.h>
#include <sys/time.h>

static struct timeval context_time(uint32_t ms)
{
    return (struct timeval){.tv_sec = (time_t)(ms / 1000), .tv_usec = (suseconds_t)(ms % 1000) * 1000};
}

/* hiredis keeps only the words of getaddrinfo. A name that cannot be looked up just now (EAI_AGAIN) has others. */
bool context_names_nobody(const redisContext *context)
{
    return context->err == REDIS_ERR_OTHER && strcmp(context->errstr, gai_strerror(EAI_NONAME)) == 0;
}

hibloom_status context_failure(const redisContext *context, int saved, struct error *error)
{
    const char *tls = tls_is_on(context) ? tls_words(NULL) : NULL;
    bool timed_out = context->err == REDIS_ERR_IO && (saved == EAGAIN || saved == EWOULDBLOCK || saved == ETIMEDOUT);
    hibloom_status status;

#ifdef REDIS_ERR_TIMEOUT
    timed_out = timed_out || context->err == REDIS_ERR_TIMEOUT;
#endif
    if (timed_out)
        status = error_set(error, HIBLOOM_ETIMEDOUT, "timed out waiting for the server");
    else if (context->err == REDIS_ERR_OOM)
        status = error_set(error, HIBLOOM_ENOMEM, "out of memory");
    else
        status = error_set(error, HIBLOOM_EIO, tls != NULL ? "TLS: %s" : "%s", tls != NULL ? tls : context->errstr);
    if (tls != NULL)
        tls_forget();
    error->for_good = context_names_nobody(context);
    return status;
}

static redisContext *connect_once(const struct store_settings *s, const char *host, unsigned port, uint32_t timeout_ms)
{
    const struct timeval timeout = context_time(timeout_ms);

    errno = 0;
    if (s->uri.kind == URI_UNIX)
        return redisConnectUnixWithTimeout(s->uri.path, timeout);
    return redisConnectWithTimeout(host, (int)port, timeout);
}

/* hiredis gives up if a signal interrupts its waiting. Did one? */
static bool interrupted(const redisContext *context)
{
    return context != NULL && context->err == REDIS_ERR_IO && errno == EINTR;
}

static hibloom_status connect_until(redisContext **out, const struct store_settings *s, const char *host, unsigned port,
                                    uint64_t until, struct error *error)
{
    do {
        const uint64_t now = clock_now_ms(), left = until > now ? until - now : 0;
        if (*out != NULL)
            redisFree(*out);
        *out = NULL;
        if (left == 0)
            return error_set(error, HIBLOOM_ETIMEDOUT, "timed out connecting");
        *out = connect_once(s, host, port, (uint32_t)left);
    } while (interrupted(*out));
    if (*out == NULL)
        return error_set(error, HIBLOOM_ENOMEM, "out of memory");
    const int flags = (*out)->err == 0 ? fcntl((*out)->fd, F_GETFL) : -1;
    if ((*out)->err != 0)
        return context_failure(*out, errno, error);
    if (flags < 0 || fcntl((*out)->fd, F_SETFL, flags | O_NONBLOCK) != 0)
        return error_set(error, HIBLOOM_EIO, "%s", strerror(errno));
    (*out)->flags &= ~REDIS_BLOCK;
    return HIBLOOM_OK;
}

static hibloom_status start_tls(redisContext *context, const struct store_settings *s, const char *host, uint64_t until,
                                struct error *error)
{
    struct ssl_st *ssl = NULL;
    struct sigpipe before;

    sigpipe_block(&before);
    hibloom_status status = tls_begin(context, s, host, &ssl, error);
    if (status == HIBLOOM_OK)
        status = tls_handshake(context, ssl, until, error);
    sigpipe_unblock(&before, status != HIBLOOM_OK);
    return status;
}

hibloom_status context_open(redisContext **out, const struct store_settings *s, const char *host, unsigned port,
                            uint64_t deadline, struct error *error)
{
    uint64_t until = clock_now_ms() + s->options.connect_timeout_ms;
    redisContext *context = NULL;

    if (deadline != 0 && deadline < until)
        until = deadline;
    hibloom_status status = connect_until(&context, s, host, port, until, error);
    if (status == HIBLOOM_OK && s->uri.tls)
        status = start_tls(context, s, host, until, error);
    if (status != HIBLOOM_OK) {
        if (context != NULL)
            redisFree(context);
        return status;
    }
    settings_apply(s, context);
    if (s->connected != NULL)
        s->connected(context, s->data);
    *out = context;
    return HIBLOOM_OK;
}
