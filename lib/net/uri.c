/* uri.c: the parts of a store's URI. Parsed in a copy of the text, cut into strings where they
 * lie; percent-decoding only shortens them.
 *
 * The functions that read a part return NULL, or an error in words. A password with a ':', '/'
 * or '@' in it may end up in any part. So the words repeat nothing of the URI but a scheme. */
#include "net/uri.h"
#include "base/alloc.h"
#include "base/number.h"

#include <string.h>
#include <sys/un.h>

#define DB_MAX INT32_MAX /* SELECT takes an int */

static const struct scheme {
    const char *prefix;
    enum uri_kind kind;
    bool tls;
    unsigned port; /* the default; 0: it has no hosts */
} schemes[] = {
    {"redis://", URI_TCP, false, 6379},
    {"rediss://", URI_TCP, true, 6379},
    {"redis+cluster://", URI_CLUSTER, false, 6379},
    {"rediss+cluster://", URI_CLUSTER, true, 6379},
    {"redis+sentinel://", URI_SENTINEL, false, 26379},
    {"rediss+sentinel://", URI_SENTINEL, true, 26379},
    {"unix://", URI_UNIX, false, 0},
    {"memory:", URI_MEMORY, false, 0},
};

static bool has_prefix(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

const char *uri_scheme(enum uri_kind kind, bool tls)
{
    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++)
        if (schemes[i].kind == kind && schemes[i].tls == tls)
            return schemes[i].prefix;
    return "";
}

bool uri_decode(char *text)
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

static bool is_number(const char *text, uint64_t max, uint64_t *out)
{
    return number_parse(text, strlen(text), max, out) == HIBLOOM_OK;
}

static const char *read_db(struct uri *uri, const char *text)
{
    uint64_t db;

    if (!is_number(text, DB_MAX, &db))
        return "the database must be a number from 0 to 2147483647";
    uri->db = text;
    return NULL;
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
        if (!uri_decode(colon + 1))
            return "bad escape in the password: a byte is written %XX, and is not %00";
    }
    return uri_decode(text) ? NULL : "bad escape in the user: a byte is written %XX, and is not %00";
}

/* host, host:port, [ipv6] or [ipv6]:port */
static const char *read_host(struct uri_host *host, char *text, unsigned default_port)
{
    char *port = NULL;
    uint64_t number = default_port;

    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): schemes with hosts have room for them */
    *host = (struct uri_host){text, default_port};
    if (*text == '[') {
        char *close = strchr(text, ']');
        if (close == NULL || (close[1] != '\0' && close[1] != ':'))
            return "an IPv6 host is written [host] or [host]:port";
        host->name = text + 1;
        port = close[1] == ':' ? close + 2 : NULL;
        *close = '\0';
    } else if ((port = strchr(text, ':')) != NULL) {
        *port++ = '\0';
        if (strchr(port, ':') != NULL)
            return "there is more than one ':' in host and port; an IPv6 host is written in brackets";
    }
    if (*host->name == '\0')
        return "the host is missing";
    if (strlen(host->name) > 255)
        return "the host is longer than 255 bytes";
    if (strpbrk(host->name, " \t\r\n") != NULL)
        return "there is a blank in the host";
    if (port != NULL && (!is_number(port, UINT16_MAX, &number) || number == 0))
        return "the port must be a number from 1 to 65535";
    host->port = (unsigned)number;
    return NULL;
}

static const char *read_hosts(struct uri *uri, char *text, unsigned default_port)
{
    const char *wrong = NULL;

    for (char *host; wrong == NULL && (host = strsep(&text, ",")) != NULL;) {
        if (uri->kind == URI_TCP && text != NULL)
            return "only a cluster and Sentinels may have more than one host";
        if (uri->host_count == URI_HOSTS_MAX)
            return "there are more than 64 hosts";
        wrong = read_host(&uri->hosts[uri->host_count++], host, default_port);
    }
    return wrong;
}

/* The part behind the '/': a database or nothing; with Sentinels MASTER or MASTER/db. NULL:
 * there is no '/'. */
static const char *read_path(struct uri *uri, char *text)
{
    if (uri->kind == URI_SENTINEL) {
        char *master = strsep(&text, "/");
        if (master == NULL || *master == '\0')
            return "the name of the master is missing: redis+sentinel://host/MASTER";
        if (!uri_decode(master))
            return "bad escape in the name of the master: a byte is written %XX, and is not %00";
        uri->master = master;
    }
    return text != NULL && *text != '\0' ? read_db(uri, text) : NULL;
}

/* [user[:password]@]hosts[/path] */
static const char *read_servers(struct uri *uri, char *path, unsigned default_port)
{
    char *hosts = strsep(&path, "/"), *at = strrchr(hosts, '@');
    const char *wrong = NULL;

    if (path != NULL && strchr(path, '@') != NULL)
        return "a '/' in the user or password is written %2F";
    if (at != NULL) {
        *at = '\0';
        /* else user:password@ before each host would be taken for one long password */
        if (uri->kind != URI_TCP && strpbrk(hosts, ",@") != NULL)
            return "user and password are given once, before all hosts; a ',' or '@' in them is written %2C or %40";
        wrong = read_credentials(uri, hosts);
        hosts = at + 1;
    }
    if (wrong == NULL)
        wrong = read_hosts(uri, hosts, default_port);
    if (wrong != NULL && at == NULL && uri->query != NULL && strchr(uri->query, '@') != NULL)
        return "a '?' in the user or password is written %3F";
    return wrong != NULL ? wrong : read_path(uri, path);
}

/* [user[:password]@]/path */
static const char *read_unix(struct uri *uri, char *path)
{
    char *slash = strchr(path, '/');

    if (slash != NULL && slash > path && slash[-1] == '@') {
        slash[-1] = '\0';
        const char *wrong = read_credentials(uri, path);
        if (wrong != NULL)
            return wrong;
        path = slash;
    }
    uri->path = path;
    if (*path != '/' && uri->query != NULL && strchr(uri->query, '@') != NULL)
        return "a '?' in the user or password is written %3F";
    if (*path != '/')
        return strchr(path, '@') != NULL ? "a '/' in the user or password is written %2F"
                                         : "the path must be absolute: unix:///path";
    if (strpbrk(path, "@&") != NULL) /* else a password there would be shown with the path */
        return "user and password stand before the path, as in unix://user:password@/path, and options behind a '?'; "
               "in the path '@' is written %40, and '&' %26";
    if (!uri_decode(path))
        return "bad escape in the path: a byte is written %XX, and is not %00";
    if (strlen(path) >= sizeof((struct sockaddr_un *)0)->sun_path - 1) /* hiredis leaves the last byte to chance */
        return "the path is too long for a Unix socket";
    return NULL;
}

/* NULL, and words, if the text begins with no scheme that is known. */
static const struct scheme *find_scheme(const char *text, struct error *error)
{
    const size_t len = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-.");
    const bool slashes = has_prefix(text + len, "://");

    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++)
        if (has_prefix(text, schemes[i].prefix) && strlen(schemes[i].prefix) == len + (slashes ? 3 : 1))
            return &schemes[i];
#define SCHEMES \
    "redis://, redis+cluster://, redis+sentinel://, over TLS rediss://, rediss+cluster://, rediss+sentinel://, " \
    "unix:// " \
    "or memory:"
    if (slashes)
        (void)error_set(error, HIBLOOM_EINVAL, "bad URI: not '%.*s://' but " SCHEMES, len < 20 ? (int)len : 20, text);
    else
        (void)error_set(error, HIBLOOM_EINVAL, "bad URI: it must begin with " SCHEMES);
    return NULL;
}

hibloom_status uri_parse(struct uri *out, const char *text, struct error *error)
{
    const struct scheme *scheme = find_scheme(text, error);
    const char *wrong;

    if (scheme == NULL)
        return HIBLOOM_EINVAL;
    struct uri uri = {.kind = scheme->kind, .tls = scheme->tls, .text_size = strlen(text) + 1};
    uri.text = alloc.malloc(uri.text_size);
    if (scheme->port != 0)
        uri.hosts = alloc.malloc(URI_HOSTS_MAX * sizeof *uri.hosts);
    if (uri.text == NULL || (scheme->port != 0 && uri.hosts == NULL)) {
        uri_free(&uri);
        return error_set(error, HIBLOOM_ENOMEM, "out of memory");
    }
    memcpy(uri.text, text, uri.text_size);
    uri.query = uri.text + strlen(scheme->prefix);
    char *rest = strsep(&uri.query, "?");
    if (scheme->kind == URI_MEMORY)
        wrong = *rest == '\0' ? NULL : "only a '?' and options may follow memory:";
    else if (scheme->kind == URI_UNIX)
        wrong = read_unix(&uri, rest);
    else
        wrong = read_servers(&uri, rest, scheme->port);
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
    alloc.free(uri->text);
    alloc.free(uri->hosts);
    *uri = (struct uri){0};
}
