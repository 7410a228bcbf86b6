/* settings.c: a store's URI and options, copied. See settings.h. */
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

#define TIMEOUT_DEFAULT_MS 5000u
#define REPLICAS_DEFAULT_MS 1000u
#define TIMEOUT_MOST_MS (INT32_MAX - 1u) /* 24 days: poll takes an int, and here and there 1 is added */

static void fill_in(uint32_t *field, uint32_t otherwise)
{
    if (*field == 0)
        *field = otherwise;
    if (*field > TIMEOUT_MOST_MS)
        *field = TIMEOUT_MOST_MS;
}

/* A program that was compiled against an older header has a shorter struct. */
static void copy_known(hibloom_connect_options *out, const hibloom_connect_options *given)
{
    const size_t least = offsetof(hibloom_connect_options, size) + sizeof out->size;
    size_t size = given->size > least ? given->size : least;

    if (size > sizeof *out)
        size = sizeof *out;
    *out = (hibloom_connect_options){0};
    memcpy(out, given, size);
}

/* Each string as a copy, all in one block. */
static bool copy_strings(struct store_settings *s)
{
    hibloom_connect_options *o = &s->options;
    const char **const fields[] = {&o->client_name, &o->tls_cacert, &o->tls_cacertdir,
                                   &o->tls_cert,    &o->tls_key,    &o->tls_sni};
    const size_t count = sizeof fields / sizeof *fields;
    size_t size = 1;

    for (size_t i = 0; i < count; i++)
        size += *fields[i] != NULL ? strlen(*fields[i]) + 1 : 0;
    s->strings = alloc.malloc(size);
    if (s->strings == NULL)
        return false;
    char *at = s->strings;
    for (size_t i = 0; i < count; i++)
        if (*fields[i] != NULL) {
            const size_t len = strlen(*fields[i]) + 1;
            *fields[i] = memcpy(at, *fields[i], len);
            at += len;
        }
    return true;
}

static void prefer(const char **option, const char *in_uri)
{
    if (in_uri != NULL)
        *option = in_uri;
}

static hibloom_status check(const struct store_settings *s, struct error *error)
{
    const hibloom_connect_options *o = &s->options;

    if (o->commands != HIBLOOM_COMMANDS_SETBIT && o->commands != HIBLOOM_COMMANDS_BITFIELD)
        return error_set(error, HIBLOOM_EINVAL, "options->commands is none of enum hibloom_commands");
    if ((o->tls_cert == NULL) != (o->tls_key == NULL))
        return error_set(error, HIBLOOM_EINVAL, "of a certificate and its key, one is missing");
    if (o->client_name != NULL && (*o->client_name == '\0' || strpbrk(o->client_name, " \r\n\t") != NULL))
        return error_set(error, HIBLOOM_EINVAL, "options->client_name has no blanks and no line ends");
    if (o->min_replicas != 0 && o->replicas_ms >= o->command_timeout_ms)
        return error_set(error, HIBLOOM_ERANGE, "options->replicas_ms is not below options->command_timeout_ms");
#ifndef HIBLOOM_TLS
    if (s->uri.tls)
        return error_set(
            error, HIBLOOM_ENOTSUP,
            "this library was built without TLS: install hiredis 1.0 or later with its hiredis_ssl, OpenSSL 3 "
            "and pkg-config (Debian 13: libhiredis-dev, libssl-dev, pkg-config), and build it again");
#endif
    return HIBLOOM_OK;
}

hibloom_status settings_make(struct store_settings *out, const char *uri, const hibloom_connect_options *given,
                             struct error *error)
{
    static const hibloom_connect_options defaults = HIBLOOM_CONNECT_OPTIONS_INIT;
    struct store_settings s = {0};
    hibloom_connect_options *o = &s.options;
    hibloom_status status = uri_parse(&s.uri, uri, error);

    if (status != HIBLOOM_OK)
        return status;
    copy_known(o, given != NULL ? given : &defaults);
    prefer(&o->tls_cacert, s.uri.tls_cacert);
    prefer(&o->tls_cacertdir, s.uri.tls_cacertdir);
    prefer(&o->tls_cert, s.uri.tls_cert);
    prefer(&o->tls_key, s.uri.tls_key);
    prefer(&o->tls_sni, s.uri.tls_sni);
    fill_in(&o->connect_timeout_ms, TIMEOUT_DEFAULT_MS);
    fill_in(&o->command_timeout_ms, TIMEOUT_DEFAULT_MS);
    fill_in(&o->replicas_ms,
            o->command_timeout_ms > REPLICAS_DEFAULT_MS ? REPLICAS_DEFAULT_MS : o->command_timeout_ms / 2);
    status = check(&s, error);
    if (status == HIBLOOM_OK && !copy_strings(&s))
        status = error_set(error, HIBLOOM_ENOMEM, "out of memory");
    if (status == HIBLOOM_OK)
        *out = s;
    else
        uri_free(&s.uri);
    return status;
}

void settings_free(struct store_settings *s)
{
    uri_free(&s->uri);
    alloc.free(s->strings);
    *s = (struct store_settings){0};
}

#define ELEMENTS_MAX 65536 /* four times the ranges of a slot map that has one for each slot */

void settings_apply(const struct store_settings *s, struct redisContext *context)
{
    const int on = 1, seconds = (int)s->options.keepalive_s;

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
    const char *password = s != NULL ? s->uri.password : NULL;

    if (password != NULL && error_repeats(words, password, strlen(password)))
        return error_set(error, refusal_status(refusal), "refused, in words that repeat the password");
    refusal_explain(refusal, words, error->words, sizeof error->words);
    return refusal_status(refusal);
}

void settings_log(const struct store_settings *s, hibloom_log_level level, const char *format, ...)
{
    char line[1200];
    va_list arguments;

    if (s->options.on_log == NULL)
        return;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    s->options.on_log(level, line, s->options.data);
}
