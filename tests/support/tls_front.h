/* A TLS server before a real redis-server, for what that does not do on demand:
 * it tells which host name was asked for, sends new keys and session tickets
 * while nobody asks, and stops, hangs up or slows down after an exact number of
 * bytes, those of the handshake among them.
 *
 * It serves one connection at a time, in a thread of its own. */
#ifndef HIBLOOM_TEST_TLS_FRONT_H
#define HIBLOOM_TEST_TLS_FRONT_H

#include <stdbool.h>
#include <stddef.h>

struct certificate;
struct tls_front;

/* On a free port of 127.0.0.1. Certificate and server outlive it. */
struct tls_front *tls_front_start(const struct certificate *certificate, const char *upstream_socket);
void tls_front_stop(struct tls_front *front); /* accepts NULL */

int tls_front_port(const struct tls_front *front);

/* The host name that the last client asked for; "" if it asked for none. */
const char *tls_front_sni(struct tls_front *front);

/* Sends new keys and a session ticket, and waits until they are on their way. */
void tls_front_chatter(struct tls_front *front);

/* What befalls what is sent on each connection from now on, once so many bytes have passed. */
enum tls_fault { TLS_FAULT_NONE, TLS_FAULT_HOLD, TLS_FAULT_CUT, TLS_FAULT_DRIP };
void tls_front_fault(struct tls_front *front, enum tls_fault fault, size_t after);

/* How many bytes the last connection was sent. */
size_t tls_front_sent(struct tls_front *front);

/* No later version than TLS 1.2. */
void tls_front_limit(struct tls_front *front);

#endif
