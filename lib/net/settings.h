/* settings.h: what a store was asked to be: its URI, its options, and its caller's functions. */
#ifndef HIBLOOM_SETTINGS_H
#define HIBLOOM_SETTINGS_H

#include "net/options.h"
#include "net/uri.h"

struct redisContext;

struct store_settings {
    struct uri uri; /* of a borrowed connection: nothing */
    bool borrowed;  /* the connection is the caller's */
    struct store_options options;
    const char *texts[OPTIONS]; /* in force, in the order of the table; NULL: none */
    void (*log)(hibloom_log_level, const char *line, void *data);
    void (*connected)(struct redisContext *, void *data);
    void *data;
    char *pairs; /* copies of the caller's */
    size_t pairs_size;
    char replicas_text[8];
};

/* Copies both; end with settings_free on OK. A borrowed connection has no URI. setup NULL: defaults.
 * EINVAL, ERANGE, ENOTSUP, ENOMEM; words in *error. */
hibloom_status settings_make(struct store_settings **out, bool borrowed, const char *uri, const hibloom_setup *,
                             struct error *);

/* Overwrites the password before it frees. NULL: nothing. */
void settings_free(struct store_settings *);

/* Sets up a new connection of our own. It gets TCP keepalive, and a bound on arrays in answers. */
void settings_apply(const struct store_settings *, struct redisContext *);

/* Explains a refusal in the server's words, and what to do. They must not repeat the password. */
hibloom_status settings_explain(const struct store_settings *, const char *words, struct error *error);

/* A line for the caller's log, if one is wanted. */
__attribute__((format(printf, 3, 4))) void settings_log(const struct store_settings *, hibloom_log_level,
                                                        const char *format, ...);

#endif
