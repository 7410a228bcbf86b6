/* A proxy between the library and a real redis-server, which can cut, hold,
 * slow down or falsify what passes at an exact byte, reply or command: a fault
 * in the middle of a pipeline that comes at the same place every time.
 *
 * It serves one connection at a time: a new one ends the one before. A fault
 * is set between two calls of the library, counts from there, and is over once
 * its connection is. */
#ifndef HIBLOOM_TEST_PROXY_H
#define HIBLOOM_TEST_PROXY_H

#include <stddef.h>
#include <stdint.h>

struct proxy;

struct proxy *proxy_start(const char *upstream_socket); /* on a Unix socket */
void proxy_stop(struct proxy *proxy);                   /* accepts NULL */

const char *proxy_uri(const struct proxy *proxy);
const char *proxy_socket(const struct proxy *proxy);

enum proxy_way { PROXY_REQUESTS, PROXY_REPLIES };

/* What has passed since the last proxy_mark: how a test learns how long a
 * call is before it cuts one at each of its places. */
void proxy_mark(struct proxy *proxy);
uint64_t proxy_bytes(struct proxy *proxy, enum proxy_way way);
uint64_t proxy_values(struct proxy *proxy, enum proxy_way way); /* whole commands or replies */

/* Connections accepted since the start. */
unsigned proxy_connections(struct proxy *proxy);

/* Waits until the connection that its client has closed is over here, too: so that
 * a fault that is set next is one of the connection to come. */
void proxy_wait_idle(struct proxy *proxy);

/* After that many bytes more that way: close both sides, or pass no more of
 * it. 0 bytes: when there is a first one to pass. */
void proxy_cut(struct proxy *proxy, enum proxy_way way, uint64_t after);
void proxy_hold(struct proxy *proxy, enum proxy_way way, uint64_t after);

/* Replies pass in small pieces, the last ones a byte long, with this pause before each; 0 = at once. */
void proxy_drip(struct proxy *proxy, unsigned microseconds);

/* From the reply number `first` on (0 is the next), `count` replies are
 * replaced, each by these bytes, which must outlive the fault. */
void proxy_replace(struct proxy *proxy, uint64_t first, uint64_t count, const char *bytes);

/* The type, which is the first byte, of the last reply that was replaced since the mark; 0 = none was. */
char proxy_replaced(struct proxy *proxy);

/* Takes back what was set by the five above and has not happened. */
void proxy_heal(struct proxy *proxy);

/* No command reaches the real server any more: each is answered with these
 * bytes instead; NULL = as before. Lasts over connections. */
void proxy_answer(struct proxy *proxy, const char *bytes);

#endif
