/* A primary with replicas and real Sentinels that watch it, for the tests, on
 * free ports of 127.0.0.1. They find it dead within 1 s and fail over in 1 to
 * 3 s. To start them takes 1 to 3 s: let the tests of a program share them.
 *
 * Each server and each Sentinel is a redis_server: what kills, pauses, resumes
 * and restarts it stands in redis_server.h. Nothing of the data is on disk, so
 * a primary that restarts before a replica took over is empty.
 * What goes wrong here is no result of a test: the program ends with a message. */
#ifndef HIBLOOM_TEST_SENTINEL_H
#define HIBLOOM_TEST_SENTINEL_H

#include "redis_server.h"

enum { SENTINEL_SERVERS_MAX = 8 };

#define SENTINEL_MASTER "mymaster" /* what they call it */

struct sentinel;

struct sentinel_options {
    int replicas;                          /* at least 1 */
    int sentinels;                         /* at least 1; most of them decide, so 2 of 3 */
    const char *const *args;               /* more of each server's command line, as for redis_server_start */
    const char *const *sentinel_args;      /* of each Sentinel's */
    const struct certificate *certificate; /* for TLS, Sentinels too; NULL: none */
};

/* Starts them and waits until all are settled, see below. Server 0 is the
 * first primary. Where args name a --requirepass, they want a --masterauth as
 * well, and no space in it, which a Sentinel cannot read back from its file. */
struct sentinel *sentinel_start(const struct sentinel_options *options);

/* "redis+sentinel://127.0.0.1:PORT,.../mymaster", or rediss+sentinel, of all Sentinels. */
const char *sentinel_uri(const struct sentinel *sentinel);

int sentinel_servers(const struct sentinel *sentinel); /* how many, the replicas among them */
struct redis_server *sentinel_server(const struct sentinel *sentinel, int server);
struct redis_server *sentinel_watcher(const struct sentinel *sentinel, int watcher);

/* The server that the first Sentinel that runs names as the primary; -1: none of ours. */
int sentinel_master(const struct sentinel *sentinel);

/* Waits until all Sentinels that run name the same primary and see all others of them and all replicas, the primary
 * says that it is one, and each other server that runs has its data. For after a restart. A Sentinel's own restart
 * makes it slow, until this is called. */
void sentinel_wait_settled(const struct sentinel *sentinel);

void sentinel_stop(struct sentinel *sentinel); /* accepts NULL */

#endif
