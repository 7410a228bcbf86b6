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
static const char *read_host(struct uri_host *host, char *text, unsigned default_port)
{
    char *port = NULL;

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
    if (port != NULL && (!read_number(port, UINT16_MAX, &host->port) || host->port == 0))
        return "the port must be a number from 1 to 65535";
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
        if (!percent_decode(master))
            return "bad escape in the name of the master: a byte is written %XX, and is not %00";
        uri->master = master;
    }
    const char *wrong = text != NULL && *text != '\0' ? read_db(uri, text) : NULL;
    return wrong == NULL && uri->kind == URI_CLUSTER && uri->db != 0 ? "a cluster has only database 0" : wrong;
}

/* name=value[&name=value...] */
static const char *read_tls(struct uri *uri, char *query)
{
    const struct {
        const char *name, **value;
    } known[] = {
        {"cacert=", &uri->tls_cacert}, {"cacertdir=", &uri->tls_cacertdir},
        {"cert=", &uri->tls_cert},     {"key=", &uri->tls_key},
        {"sni=", &uri->tls_sni},
    };
    const size_t count = sizeof known / sizeof known[0];

    for (char *name; (name = strsep(&query, "&")) != NULL;) {
        size_t i = 0;
        while (i < count && !has_prefix(name, known[i].name))
            i++;
        if (i == count)
            return "behind the '?' only cacert, cacertdir, cert, key and sni are known; "
                   "a '?' in the user or password is written %3F";
        if (*known[i].value != NULL)
            return "behind the '?' each name may be given once";
        char *value = name + strlen(known[i].name);
        if (*value == '\0')
            return "a value behind the '?' is empty";
        if (!percent_decode(value))
            return "bad escape behind the '?': a byte is written %XX, and is not %00";
        *known[i].value = value;
    }
    return (uri->tls_cert == NULL) == (uri->tls_key == NULL) ? NULL : "cert and key are given both or not at all";
}

/* [user[:password]@]hosts[/path][?query] */
static const char *read_servers(struct uri *uri, char *text, unsigned default_port)
{
    char *query = text, *path = strsep(&query, "?"), *hosts = strsep(&path, "/"), *at = strrchr(hosts, '@');
    const char *wrong = NULL;

    if (query != NULL)
        wrong = uri->tls ? read_tls(uri, query)
                         : "a '?' is for TLS and unix:// only; in the user or password it is written %3F";
    if (wrong != NULL)
        return wrong;
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
    return wrong != NULL ? wrong : read_path(uri, path);
}

/* /path[?db=N] */
static const char *read_unix(struct uri *uri, char *query)
{
    char *path = strsep(&query, "?");
    const char *wrong = NULL;

    uri->path = path;
    if (query != NULL)
        wrong = has_prefix(query, "db=") ? read_db(uri, query + 3) : "behind the '?' only db=N is known";
    if (wrong != NULL)
        return wrong;
    if (*path != '/')
        return strchr(path, '@') != NULL ? "a unix:// URI has no user and no password: unix:///path"
                                         : "the path must be absolute: unix:///path";
    if (!percent_decode(path))
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
    if (slashes)
        (void)error_set(
            error, HIBLOOM_EINVAL,
            "bad URI: the scheme '%.*s' is none of redis://, redis+cluster://, redis+sentinel://, unix:// and memory:",
            len < 20 ? (int)len : 20, text);
    else
        (void)error_set(
            error, HIBLOOM_EINVAL,
            "bad URI: it must begin with redis://, redis+cluster://, redis+sentinel://, unix:// or memory:");
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
    char *rest = uri.text + strlen(scheme->prefix);
    if (scheme->kind == URI_MEMORY)
        wrong = *rest == '\0' ? NULL : "nothing may follow memory:";
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
