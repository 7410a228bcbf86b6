/* uri.c: what a store's URI says. Parsed in a copy of the text, cut into
 * strings where they lie; percent-decoding only shortens them.
 *
 * The functions that read a part return NULL, or in words what is wrong with it.
 * A password with a ':', '/' or '@' in it may end up in any part, so the words
 * repeat nothing of the URI but a scheme. */
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

static const char *read_db(struct uri *uri, const char *text)
{
    return read_number(text, DB_MAX, &uri->db) ? NULL : "the database must be a number from 0 to 2147483647";
}

/* user, user:password or :password */
static const char *read_credentials(struct uri *uri, char *text)
{
    char *colon = strchr(text, ':');

    uri->user = *text != '\0' && text != colon ? text : NULL;
    uri->password = "";
    if (uri->user == NULL && colon == NULL)
        return "there is no user or password before the '@'";
    if (colon != NULL) {
        *colon = '\0';
        uri->password = colon + 1;
        if (!percent_decode(colon + 1))
            return "bad escape in the password: a byte is written %XX, and is not %00";
    }
    return percent_decode(text) ? NULL : "bad escape in the user: a byte is written %XX, and is not %00";
}

/* host, host:port, [ipv6] or [ipv6]:port */
static const char *read_host(struct uri *uri, char *text)
{
    char *port = NULL;

    uri->host = text;
    if (*text == '[') {
        char *close = strchr(text, ']');
        if (close == NULL || (close[1] != '\0' && close[1] != ':'))
            return "an IPv6 host is written [host] or [host]:port";
        uri->host = text + 1;
        port = close[1] == ':' ? close + 2 : NULL;
        *close = '\0';
    } else if ((port = strchr(text, ':')) != NULL) {
        *port++ = '\0';
        if (strchr(port, ':') != NULL)
            return "there is more than one ':' in host and port; an IPv6 host is written in brackets";
    }
    uri->port = PORT_DEFAULT;
    if (*uri->host == '\0')
        return "the host is missing";
    if (port != NULL && (!read_number(port, UINT16_MAX, &uri->port) || uri->port == 0))
        return "the port must be a number from 1 to 65535";
    return NULL;
}

/* [user[:password]@]host[:port][/db] */
static const char *read_tcp(struct uri *uri, char *rest)
{
    char *slash = strchr(rest, '/');
    const char *wrong = NULL;

    uri->kind = URI_TCP;
    if (slash != NULL) {
        *slash = '\0';
        if (strchr(slash + 1, '@') != NULL)
            wrong = "a '/' in the user or password is written %2F";
        else if (slash[1] != '\0')
            wrong = read_db(uri, slash + 1);
    }
    char *at = strrchr(rest, '@');
    if (at != NULL) {
        *at = '\0';
        if (wrong == NULL)
            wrong = read_credentials(uri, rest);
        rest = at + 1;
    }
    return wrong != NULL ? wrong : read_host(uri, rest);
}

/* /path[?db=N] */
static const char *read_unix(struct uri *uri, char *rest)
{
    char *query = strchr(rest, '?');
    const char *wrong = NULL;

    uri->kind = URI_UNIX;
    uri->path = rest;
    if (query != NULL) {
        *query++ = '\0';
        wrong = has_prefix(query, "db=") ? read_db(uri, query + 3) : "behind the '?' only db=N is known";
    }
    if (wrong != NULL)
        return wrong;
    if (*rest != '/')
        return strchr(rest, '@') != NULL ? "a unix:// URI has no user and no password: unix:///path"
                                         : "the path must be absolute: unix:///path";
    if (!percent_decode(rest))
        return "bad escape in the path: a byte is written %XX, and is not %00";
    if (strlen(rest) >= sizeof((struct sockaddr_un *)0)->sun_path - 1) /* hiredis leaves the last byte to chance */
        return "the path is too long for a Unix socket";
    return NULL;
}

hibloom_status uri_parse(struct uri *out, const char *text, struct error *error)
{
    struct uri uri = {0};
    const char *wrong;
    const size_t scheme = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-.");

    if (has_prefix(text, "rediss://") || has_prefix(text, "redis+cluster://"))
        return error_set(error, HIBLOOM_ENOTSUP, "%s is not supported yet, only redis://, unix:// and memory: are",
                         has_prefix(text, "rediss://") ? "TLS (rediss://)" : "Redis Cluster (redis+cluster://)");
    if (has_prefix(text + scheme, "://") && !has_prefix(text, "redis://") && !has_prefix(text, "unix://"))
        return error_set(error, HIBLOOM_EINVAL, "bad URI: the scheme '%.*s' is none of redis://, unix:// and memory:",
                         scheme < 20 ? (int)scheme : 20, text);
    uri.text_size = strlen(text) + 1;
    uri.text = malloc(uri.text_size);
    if (uri.text == NULL)
        return error_set(error, HIBLOOM_ENOMEM, "out of memory");
    memcpy(uri.text, text, uri.text_size);
    if (has_prefix(text, "memory:")) {
        uri.kind = URI_MEMORY;
        wrong = text[strlen("memory:")] == '\0' ? NULL : "nothing may follow memory:";
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
