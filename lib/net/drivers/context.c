/* context.c: a context of hiredis is connected. See context.h. */
#include "net/drivers/context.h"
#include "net/drivers/tls.h"

#include <errno.h>
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

hibloom_status context_begin(redisContext **out, const struct store_settings *s, const char *host, unsigned port,
                             struct error *error)
{
    errno = 0;
    *out = s->uri.kind == URI_UNIX ? redisConnectUnixNonBlock(s->uri.path) : redisConnectNonBlock(host, (int)port);
    if (*out == NULL)
        return error_set(error, HIBLOOM_ENOMEM, "out of memory");
    return (*out)->err != 0 ? context_failure(*out, errno, error) : HIBLOOM_OK;
}

hibloom_status context_connected(const redisContext *context, struct error *error)
{
    int failed = 0;
    struct sockaddr_storage peer;
    socklen_t len = sizeof failed, peer_len = sizeof peer;

    if (getsockopt(context->fd, SOL_SOCKET, SO_ERROR, &failed, &len) != 0)
        failed = errno;
    if (failed == 0 && getpeername(context->fd, (struct sockaddr *)&peer, &peer_len) != 0)
        failed = errno; /* a Unix socket whose queue of new connections is full, which hiredis 1.0 does not tell */
    if (failed == ETIMEDOUT)
        return error_set(error, HIBLOOM_ETIMEDOUT, "timed out connecting");
    return failed != 0 ? error_set(error, HIBLOOM_EIO, "%s", strerror(failed)) : HIBLOOM_OK;
}
