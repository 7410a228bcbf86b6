/* A real Redis Cluster for the tests, on free ports of 127.0.0.1. It needs no
 * redis-cli, and finds a dead primary within 1 s, so that a failover is over
 * in 2 to 4 s. To start one takes 3 s: let the tests of a program share it.
 *
 * Each node is a redis_server: what kills, pauses, resumes and restarts it
 * stands in redis_server.h. Nothing is kept on disk but who is in the cluster,
 * so a primary that restarts before its replica took over is empty.
 * What goes wrong here is no result of a test: the program ends with a message. */
#ifndef HIBLOOM_TEST_REDIS_CLUSTER_H
#define HIBLOOM_TEST_REDIS_CLUSTER_H

#include "redis_server.h"

enum { REDIS_CLUSTER_SLOTS = 16384, REDIS_CLUSTER_NODES_MAX = 32 };

struct redis_cluster;

struct redis_cluster_options {
    int primaries;                         /* 3 or more where one is to fail over, which takes most of them */
    int replicas;                          /* of each primary */
    const char *const *args;               /* more of each node's command line, as for redis_server_start */
    const struct certificate *certificate; /* for TLS; NULL: none */
};

/* Starts one and waits until it is settled, see below. Nodes 0 to primaries - 1 are the primaries; node i + primaries *
 * n is a replica of node i. Where args name a --requirepass, they want a --masterauth as well. */
struct redis_cluster *redis_cluster_start(const struct redis_cluster_options *options);

/* "redis+cluster://127.0.0.1:PORT,127.0.0.1:PORT,...", or rediss+cluster, of all nodes. */
const char *redis_cluster_uri(const struct redis_cluster *cluster);

struct redis_server *redis_cluster_node(const struct redis_cluster *cluster, int node);
const char *redis_cluster_id(const struct redis_cluster *cluster, int node); /* as CLUSTER MYID says */
int redis_cluster_slot(const struct redis_cluster *cluster, const char *key);

/* The node that owns a slot, as the first node that runs sees it; -1 where none does. */
int redis_cluster_owner(const struct redis_cluster *cluster, int slot);

/* Waits until all nodes that run say that the state is ok, agree who is a primary and who owns which slot, and each
 * replica of them has its primary's data. For after a restart, or after slots moved. */
void redis_cluster_wait_settled(const struct redis_cluster *cluster);

/* Waits until a replica of this primary, which was killed or paused, has taken
 * over and the nodes that run are settled; the new primary. */
int redis_cluster_wait_failover(const struct redis_cluster *cluster, int primary);

/* Of a cluster with one replica a primary: redis_server_cut_off of that one. */
void redis_cluster_cut_off(const struct redis_cluster *cluster, int primary);

/* Stops a primary; its replica, which may be paused, takes over; then it is brought back. */
void redis_cluster_fail_over(const struct redis_cluster *cluster, int primary, void (*stop)(struct redis_server *),
                             void (*back)(struct redis_server *));

void redis_cluster_stop(struct redis_cluster *cluster); /* accepts NULL */

/* ---- Moving slots, as redis-cli --cluster reshard does ------------------------
 *
 * In three steps, between which a test can leave the slots half moved: a client
 * meets ASK for keys that the old owner has not any more, and TRYAGAIN. */

struct redis_cluster_move {
    int first_slot, last_slot;
    int from, to; /* nodes: primaries */
};

void redis_cluster_begin_move(const struct redis_cluster *cluster, const struct redis_cluster_move *move);

/* Moves at most this many keys; how many it did. Fewer: no more are there. */
int redis_cluster_move_keys(const struct redis_cluster *cluster, const struct redis_cluster_move *move, int most);

/* Only once all keys are moved. Other nodes hear of it a moment later. */
void redis_cluster_end_move(const struct redis_cluster *cluster, const struct redis_cluster_move *move);

#endif
