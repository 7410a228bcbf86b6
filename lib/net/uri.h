/* uri.h: the parts of a store's URI. */
#ifndef HIBLOOM_URI_H
#define HIBLOOM_URI_H

#include "base/error.h"

enum uri_kind { URI_MEMORY, URI_TCP, URI_UNIX, URI_CLUSTER, URI_SENTINEL };

#define URI_HOSTS_MAX 64u

struct uri_host {
    const char *name; /* without brackets */
    unsigned port;
};

struct uri {
    enum uri_kind kind;
    bool tls;
    struct uri_host *hosts; /* URI_TCP one; URI_CLUSTER and URI_SENTINEL one or more */
    unsigned host_count;
    const char *path;     /* URI_UNIX */
    const char *user;     /* NULL = the default user */
    const char *password; /* NULL = no AUTH */
    const char *master;   /* URI_SENTINEL: the name that the Sentinels know it by */
    const char *db;       /* the path's number; NULL: it has none */
    char *query;          /* the text behind the '?', as it is; NULL: none */
    char *text;           /* the strings above lie in it */
    size_t text_size;
};

/* Parses a URI as hibloom_connect takes it; end with uri_free on OK. EINVAL,
 * ENOMEM; words in *error, which never repeat the URI, since there
 * may be a password in it. */
hibloom_status uri_parse(struct uri *out, const char *text, struct error *error);

/* Decodes %XX in place. False: a bad escape, or one that means a zero byte. */
bool uri_decode(char *text);

/* "rediss+cluster://" */
const char *uri_scheme(enum uri_kind kind, bool tls);

/* Overwrites the password before it frees. */
void uri_free(struct uri *uri);

#endif
