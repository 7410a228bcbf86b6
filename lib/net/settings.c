/* settings.c: a store's URI, options and functions, copied. See settings.h. */
#include "net/settings.h"
#include "base/alloc.h"
#include "resp/refusal.h"

#include <hiredis/hiredis.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define PAIRS_MAX (2 * 64) /* more cannot be right, as each option stands there once */

/* All in one block, the list itself first. */
static hibloom_status copy_pairs(struct store_settings *s, const char *const *given, struct error *error)
{
    size_t count = 0, size = sizeof(char *);

    while (count < PAIRS_MAX && given[count] != NULL)
        size += sizeof(char *) + strlen(given[count++]) + 1;
    s->pairs = alloc.malloc(size);
    if (s->pairs == NULL)
        return error_set(error, HIBLOOM_ENOMEM, "out of memory");
    s->pairs_size = size;
    const char **list = (const char **)(void *)s->pairs;
    char *at = (char *)(list + count + 1);
    for (size_t i = 0; i < count; i++) {
        const size_t len = strlen(given[i]) + 1;
        list[i] = memcpy(at, given[i], len);
        at += len;
    }
    list[count] = NULL;
    return HIBLOOM_OK;
}

static hibloom_status take_setup(struct store_settings *s, const hibloom_setup *given, struct error *error)
{
    hibloom_setup setup = {0};
    hibloom_status status = HIBLOOM_OK;

    if (given != NULL && given->size < sizeof given->size)
        return error_set(error, HIBLOOM_EINVAL, "hibloom_setup.size is not sizeof(hibloom_setup)");
    if (given != NULL) /* a program that was compiled against another header has a shorter or longer one */
        memcpy(&setup, given, given->size < sizeof setup ? given->size : sizeof setup);
    s->log = setup.log;
    s->connected = setup.connected;
    s->data = setup.data;
    if (setup.options != NULL)
        status = copy_pairs(s, setup.options, error);
    return status == HIBLOOM_OK ? options_read(s, (const char *const *)(const void *)s->pairs, error) : status;
}

hibloom_status settings_make(struct store_settings **out, bool borrowed, const char *uri, const hibloom_setup *setup,
                             struct error *error)
{
    if (!borrowed && uri == NULL)
        return error_set(error, HIBLOOM_EINVAL, "the URI is NULL");
    struct store_settings *s = alloc.calloc(1, sizeof *s);
    if (s == NULL)
        return error_set(error, HIBLOOM_ENOMEM, "out of memory");
    s->borrowed = borrowed;
    hibloom_status status = borrowed ? HIBLOOM_OK : uri_parse(&s->uri, uri, error);
    if (status == HIBLOOM_OK)
        status = take_setup(s, setup, error);
#ifndef HIBLOOM_TLS
    if (status == HIBLOOM_OK && s->uri.tls)
        status = error_set(
            error, HIBLOOM_ENOTSUP,
            "this library was built without TLS: install hiredis 1.0 or later with its hiredis_ssl, OpenSSL 3 "
            "and pkg-config (Debian 13: libhiredis-dev, libssl-dev, pkg-config), and build it again");
#endif
    if (status == HIBLOOM_OK)
        *out = s;
    else
        settings_free(s);
    return status;
}

void settings_free(struct store_settings *s)
{
    if (s == NULL)
        return;
    uri_free(&s->uri);
    if (s->pairs != NULL)
        explicit_bzero(s->pairs, s->pairs_size);
    alloc.free(s->pairs);
    alloc.free(s);
}

#define ELEMENTS_MAX 65536 /* four times the ranges of a slot map that has one for each slot */

void settings_apply(const struct store_settings *s, struct redisContext *context)
{
    const int on = 1, seconds = (int)(s->options.keepalive_ms / 1000);

#if HIREDIS_MAJOR >= 1 /* 0.14 has a bound of its own */
    context->reader->maxelements = ELEMENTS_MAX;
#endif
    if (seconds == 0 || s->uri.kind == URI_UNIX)
        return;
    (void)setsockopt(context->fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    (void)setsockopt(context->fd, IPPROTO_TCP, TCP_KEEPIDLE, &seconds, sizeof seconds);
}

hibloom_status settings_explain(const struct store_settings *s, const char *words, struct error *error)
{
    const enum refusal refusal = refusal_of(words);
    const char *password = s != NULL ? s->options.password : NULL;

    if (refusal_explain(refusal, words, error->words, sizeof error->words) && password != NULL &&
        error_repeats(words, password, strlen(password)))
        return error_set(error, refusal_status(refusal), "refused, in words that repeat the password");
    return refusal_status(refusal);
}

void settings_log(const struct store_settings *s, hibloom_log_level level, const char *format, ...)
{
    char line[1200];
    va_list arguments;

    if (s->log == NULL)
        return;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    error_make_line(line);
    s->log(level, line, s->data);
}
