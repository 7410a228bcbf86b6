/* options.h: the options of a store. They stand in the query of its URI, or in hibloom_setup as pairs. */
#ifndef HIBLOOM_OPTIONS_H
#define HIBLOOM_OPTIONS_H

#include "base/error.h"

#define OPTIONS 21u /* rows of the table */

struct store_settings;

/* The values. NULL or 0 in a field: it has no default, or the option does not apply to this store. */
struct store_options {
    uint64_t connect_timeout_ms, command_timeout_ms, retry_ms, replicas_ms, keepalive_ms;
    uint64_t min_replicas, in_flight, db, near_bytes, network_bytes; /* network_bytes: a second */
    uint64_t read_from_replicas, accept_restarts, bitfield;          /* 0 or 1 */
    const char *client_name, *user, *password;                       /* password NULL: no AUTH */
    const char *tls_cacert, *tls_cacertdir, *tls_cert, *tls_key, *tls_sni;
};

/* Reads the URI's query, its user, password and database, and then the pairs; what is left out gets its default.
 * EINVAL, ERANGE: words name the option and never repeat a value. The query is cut up; the pairs are not copied. */
hibloom_status options_read(struct store_settings *, const char *const *pairs, struct error *);

/* The text in force. NULL: no such option, none in force, or a secret. */
const char *options_text(const struct store_settings *, const char *name);

#endif
