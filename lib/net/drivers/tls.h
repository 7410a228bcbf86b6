/* tls.h: TLS on a hiredis context, by hiredis_ssl and OpenSSL.
 *
 * hiredis' own redisSSLContext does not verify the host name. So OpenSSL's object is made here
 * and handed to hiredis, which reads and writes by it from then on.
 *
 * All of OpenSSL is behind this header. Where the library is built without it (HIBLOOM_TLS is
 * not defined), settings.c lets nobody begin. */
#ifndef HIBLOOM_TLS_H
#define HIBLOOM_TLS_H

#include "net/settings.h"

#include <hiredis/hiredis.h>

struct ssl_st; /* OpenSSL's SSL */

/* Begins TLS on a connected context, which does not block, and owns *ssl. Reads and writes go on with the
 * handshake. The files are read for each connection: so a renewed certificate needs no restart. EIO: a file is not
 * what it has to be; ENOMEM. */
hibloom_status tls_begin(redisContext *, const struct store_settings *, const char *host, struct ssl_st **ssl,
                         struct error *);

/* Goes on with the handshake, as far as it goes. *events: to be waited for before the next step; 0: it has ended.
 * EIO. */
hibloom_status tls_step(struct ssl_st *ssl, short *events, struct error *);

/* Does it go over TLS? Also if it is the caller's. */
bool tls_is_on(const redisContext *);

/* To be called before hiredis reads or writes over TLS, and after that failed. It drops earlier
 * reasons: they would be wrong for later failures. */
void tls_forget(void);

/* Why that failed, as OpenSSL says; NULL: it says nothing. */
const char *tls_words(void);

#endif
