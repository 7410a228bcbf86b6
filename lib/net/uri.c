/* uri.c: what a store's URI says. Parsed in a copy of the text, cut into
 * strings where they lie; percent-decoding only shortens them. */
#include "net/uri.h"
#include "base/number.h"

#include <string.h>
#include <stdlib.h>
#include <sys/un.h>

#define PORT_DEFAULT 6379u
#define DB_MAX INT32_MAX /* SELECT takes an int */

static bool has_prefix(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* Decodes in place; false for a bad escape or one that means a zero byte. */
static bool percent_decode(char *text)
{
    char *to = text;

    for (const char *from = text; *from != '\0'; from++) {
        if (*from != '%') {
            *to++ = *from;
            continue;
        }
        const int high = number_hex_digit(from[1]), low = high < 0 ? -1 : number_hex_digit(from[2]);
        if (low < 0 || (high == 0 && low == 0))
            return false;
        *to++ = (char)(high << 4 | low);
        from += 2;
    }
    *to = '\0';
    return true;
}

static bool read_number(const char *text, uint64_t max, unsigned *out)
{
    uint64_t value;

    if (number_parse(text, strlen(text), max, &value) != HIBLOOM_OK)
        return false;
    *out = (unsigned)value;
    return true;
}

/* user, user:password or :password */
static bool read_credentials(struct uri *uri, char *text)
{
    char *colon = strchr(text, ':');

    uri->user = *text != '\0' && text != colon ? text : NULL;
    uri->password = "";
    if (colon != NULL) {
        *colon = '\0';
        uri->password = colon + 1;
        if (!percent_decode(colon + 1))
            return false;
    }
    return (uri->user != NULL || colon != NULL) && percent_decode(text);
}

/* host, host:port, [ipv6] or [ipv6]:port */
static bool read_host(struct uri *uri, char *text)
{
    char *port = NULL;

    uri->host = text;
    if (*text == '[') {
        char *close = strchr(text, ']');
        if (close == NULL || (close[1] != '\0' && close[1] != ':'))
            return false;
        uri->host = text + 1;
        port = close[1] == ':' ? close + 2 : NULL;
        *close = '\0';
    } else if ((port = strchr(text, ':')) != NULL) {
        *port++ = '\0';
    }
    uri->port = PORT_DEFAULT;
    return *uri->host != '\0' && (port == NULL || (read_number(port, UINT16_MAX, &uri->port) && uri->port != 0));
}

/* [user[:password]@]host[:port][/db] */
static const char *read_tcp(struct uri *uri, char *rest)
{
    char *at, *slash;

    uri->kind = URI_TCP;
    slash = strchr(rest, '/');
    if (slash != NULL) {
        *slash = '\0';
        if (slash[1] != '\0' && !read_number(slash + 1, DB_MAX, &uri->db))
            return "the database must be a number";
    }
    at = strrchr(rest, '@');
    if (at != NULL) {
        *at = '\0';
        if (!read_credentials(uri, rest))
            return "bad user or password (reserved characters are written %XX)";
        rest = at + 1;
    }
    return read_host(uri, rest) ? NULL : "bad host or port";
}

/* /path[?db=N] */
static const char *read_unix(struct uri *uri, char *rest)
{
    char *query = strchr(rest, '?');

    uri->kind = URI_UNIX;
    uri->path = rest;
    if (query != NULL) {
        *query++ = '\0';
        if (!has_prefix(query, "db=") || !read_number(query + 3, DB_MAX, &uri->db))
            return "after '?' only db=N is known";
    }
    if (*rest != '/' || !percent_decode(rest))
        return "the path must be absolute (unix:///path)";
    if (strlen(rest) >= sizeof((struct sockaddr_un *)0)->sun_path - 1) /* hiredis leaves the last byte to chance */
        return "the path is too long for a Unix socket";
    return NULL;
}

hibloom_status uri_parse(struct uri *out, const char *text, struct error *error)
{
    struct uri uri = {0};
    const char *wrong;

    if (has_prefix(text, "rediss://") || has_prefix(text, "redis+cluster://"))
        return error_set(error, HIBLOOM_ENOTSUP, "%s is not supported yet, only redis://, unix:// and memory: are",
                         has_prefix(text, "rediss://") ? "TLS (rediss://)" : "Redis Cluster (redis+cluster://)");
    uri.text_size = strlen(text) + 1;
    uri.text = malloc(uri.text_size);
    if (uri.text == NULL)
        return error_set(error, HIBLOOM_ENOMEM, "out of memory");
    memcpy(uri.text, text, uri.text_size);
    if (strcmp(text, "memory:") == 0) {
        uri.kind = URI_MEMORY;
        wrong = NULL;
    } else if (has_prefix(text, "redis://")) {
        wrong = read_tcp(&uri, uri.text + strlen("redis://"));
    } else if (has_prefix(text, "unix://")) {
        wrong = read_unix(&uri, uri.text + strlen("unix://"));
    } else {
        wrong = "it must begin with redis://, unix:// or memory:";
    }
    if (wrong != NULL) {
        uri_free(&uri);
        return error_set(error, HIBLOOM_EINVAL, "bad URI: %s", wrong);
    }
    *out = uri;
    return HIBLOOM_OK;
}

void uri_free(struct uri *uri)
{
    if (uri->text != NULL)
        explicit_bzero(uri->text, uri->text_size);
    free(uri->text);
    *uri = (struct uri){0};
}
