/* What a program of tests on one real server runs on: the server, its own, and a
 * connection to it past the library.
 *
 *     cmocka_run_group_tests(tests, served_set_up, served_tear_down) */
#ifndef HIBLOOM_TEST_SERVED_H
#define HIBLOOM_TEST_SERVED_H

#include "certificates.h"
#include "proxy.h"
#include "redis_server.h"

#include <hibloom/hibloom.h>

extern struct redis_server *server;
extern struct redisContext *redis; /* somebody else's connection */

int served_set_up(void **state); /* with a port as well; a server that is there already is taken */
int served_tear_down(void **state);

/* The same with a store on it. */
extern hibloom_store *ours;
int served_set_up_store(void **state);
int served_tear_down_store(void **state);

/* As teardown of a test, so that what it leaves is not there in the next. */
int served_leave_nothing(void **state);

/* All that the server holds, byte by byte, and what of it lives for some time, and for more than 700 s. */
long long served_digest(void);

/* The same with the proxy before the server, for faults in the middle of a conversation. */
extern struct proxy *proxy;
int proxied_set_up(void **state);
int proxied_tear_down(void **state);

/* A server that speaks TLS, alone, and what it and its clients show. */
extern struct certificates *certificates;
extern struct redis_server *tls_server;
int tls_set_up(void **state);
int tls_tear_down(void **state);

/* A test that is skipped, where the library is built without TLS. */
void tls_is_missing(void **state);

#endif
