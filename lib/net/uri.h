/* uri.h: what a store's URI says. */
#ifndef HIBLOOM_URI_H
#define HIBLOOM_URI_H

#include "base/error.h"

enum uri_kind { URI_MEMORY, URI_TCP, URI_UNIX };

struct uri {
    enum uri_kind kind;
    const char *host;     /* URI_TCP; without brackets */
    const char *path;     /* URI_UNIX */
    const char *user;     /* NULL = the default user */
    const char *password; /* NULL = no AUTH */
    unsigned port, db;
    char *text; /* what the strings above lie in */
    size_t text_size;
};

/* Parses a URI as hibloom_connect takes it; end with uri_free on OK. EINVAL,
 * ENOTSUP, ENOMEM; words in *error, which never repeat the URI, since there
 * may be a password in it. */
hibloom_status uri_parse(struct uri *out, const char *text, struct error *error);

/* Overwrites the password before it frees. */
void uri_free(struct uri *uri);

#endif
