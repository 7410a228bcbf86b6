/* settings.h: a store's URI and its options, defaults filled in. */
#ifndef HIBLOOM_SETTINGS_H
#define HIBLOOM_SETTINGS_H

#include "net/uri.h"

struct store_settings {
    struct uri uri;
    hibloom_connect_options options; /* its strings lie in: */
    char *strings;
};

/* Copies both; end with settings_free on OK. EINVAL, ERANGE, ENOMEM; words in *error. */
hibloom_status settings_make(struct store_settings *, const char *uri, const hibloom_connect_options *, struct error *);

/* Overwrites the password before it frees. */
void settings_free(struct store_settings *);

/* Sets up a new connection of our own. It gets TCP keepalive after keepalive_s of silence, and a
 * bound on arrays in answers. */
void settings_apply(const struct store_settings *, struct redisContext *);

/* Explains a refusal in the server's words, and what to do. They must not repeat the password.
 * settings NULL: there is none. */
hibloom_status settings_explain(const struct store_settings *, const char *words, struct error *);

/* A line for the caller's log, if one is wanted. */
__attribute__((format(printf, 3, 4))) void settings_log(const struct store_settings *, hibloom_log_level,
                                                        const char *format, ...);

#endif
