/* context.c: a context of hiredis is connected. See context.h. */
#include "net/drivers/context.h"
#include "net/drivers/tls.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <string.h>
#include <sys/socket.h>

/* hiredis keeps only the words of getaddrinfo. A name that cannot be looked up just now (EAI_AGAIN) has others. */
static bool names_nobody(const redisContext *context)
{
    return context->err == REDIS_ERR_OTHER && strcmp(context->errstr, gai_strerror(EAI_NONAME)) == 0;
}

hibloom_status context_failure(const redisContext *context, int saved, struct error *error)
{
    const char *tls = tls_is_on(context) ? tls_words() : NULL;
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
    error->for_good = names_nobody(context);
    return status;
}

/* Of a Unix socket, which has no other way to wait. */
static hibloom_status fail_full(struct error *error)
{
    return error_set(error, HIBLOOM_EUNAVAILABLE, "the server's queue of new connections is full");
}

hibloom_status context_begin(redisContext **out, const struct store_settings *s, const char *host, unsigned port,
                             struct error *error)
{
    errno = 0;
    *out = s->uri.kind == URI_UNIX ? redisConnectUnixNonBlock(s->uri.path) : redisConnectNonBlock(host, (int)port);
    if (*out == NULL)
        return error_set(error, HIBLOOM_ENOMEM, "out of memory");
    if ((*out)->err != 0 && s->uri.kind == URI_UNIX && errno == EAGAIN)
        return fail_full(error);
    if ((*out)->err != 0)
        return context_failure(*out, errno, error);
    (void)fcntl((*out)->fd, F_SETFD, FD_CLOEXEC); /* a program that this one starts has no use for it */
    return HIBLOOM_OK;
}

hibloom_status context_connected(const redisContext *context, struct error *error)
{
    int failed = 0;
    struct sockaddr_storage peer;
    socklen_t len = sizeof failed, peer_len = sizeof peer;

    if (getsockopt(context->fd, SOL_SOCKET, SO_ERROR, &failed, &len) != 0)
        failed = errno;
    if (failed == ETIMEDOUT)
        return error_set(error, HIBLOOM_ETIMEDOUT, "timed out connecting");
    if (failed != 0)
        return error_set(error, HIBLOOM_EIO, "%s", strerror(failed));
    if (getpeername(context->fd, (struct sockaddr *)&peer, &peer_len) != 0 && errno == ENOTCONN)
        return fail_full(error); /* hiredis from 1.0 on has waited for it */
    return HIBLOOM_OK;
}
