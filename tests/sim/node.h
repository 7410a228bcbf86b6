/* node.h: a simulated Redis server: its keys, and what decides how it answers.
 *
 * It has no clock, no chance and no socket of its own: the world sets the fields
 * of struct node, hands commands in, and carries the replies and effects away.
 *
 *   world: node->now_us = ...;  node_execute(node, session, argc, argv, &reply);
 *          for each node->changed: node_copy_key(replica, node, db, key)
 *
 * All that is allocated is there or the program ends. One thread only. */
#ifndef HIBLOOM_SIM_NODE_H
#define HIBLOOM_SIM_NODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { NODE_DATABASES = 16, NODE_SLOTS = 16384 };
#define NODE_HOST "127.0.0.1"  /* of all */
#define NODE_MASTER "mymaster" /* as Sentinels call it */

struct blob {
    const char *bytes;
    size_t len;
};
static inline struct blob blob_of(const char *text)
{
    return (struct blob){text, strlen(text)};
}

static inline bool blob_equals(struct blob a, struct blob b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.bytes, b.bytes, a.len) == 0);
}

/* A step of SplitMix64 (Steele, Lea and Flood 2014): all chance comes from it. */
static inline uint64_t mix(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

void *resized(void *, size_t);

/* Grows as needed. {0} is an empty one. */
struct buffer {
    char *bytes;
    size_t len, room;
};
void buffer_put(struct buffer *, const void *bytes, size_t len);

/* All are strings. */
struct key {
    uint32_t hash; /* of its name */
    int db;
    bool gone; /* it is no key any more */
    struct blob name;
    struct buffer value;
    uint64_t expire_ms; /* since 1970; 0: never */
};

/* ---- A cluster, as one node sees it. Nodes may share a map or have maps of their own ---------- */

struct peer {
    int port;
    char id[41];
    int primary;  /* its index, or -1: it is a primary itself */
    bool doubted; /* Sentinels take it for down, whatever it is */
};

/* Slots from..to. The other three are indexes of peers, or -1. */
struct slot_range {
    int from, to;
    int owner;     /* -1: nobody serves them */
    int migrating; /* where the owner sends their keys */
    int importing; /* the peer that takes them, with ASKING */
};

struct cluster {
    const struct peer *peers;
    size_t peer_count;
    const struct slot_range *ranges; /* by their slots; one that is in none is not served */
    size_t range_count;
    bool down;
    unsigned nameless; /* 0: servers have their host; else that of who is asked: "?", "", in the map NULL */
};

static inline const char *cluster_host(const struct cluster *cluster)
{
    return cluster->nameless == 0 ? NODE_HOST : cluster->nameless == 1 ? "?" : "";
}

/* Of NODE_MASTER, of which Sentinels are asked. The replicas are peers whose primary is `master`. */
struct sentinel_view {
    const struct peer *peers;
    size_t peer_count;
    int master; /* index of a peer */
};

/* A key whose state changed: a command's effect, which replicas get. */
struct change {
    int db;
    struct buffer name;
};

/* What it refuses. */
struct refusing {
    bool stale; /* a replica without its primary: MASTERDOWN */
    bool loading, busy, full, noreplicas;
    const char *denied; /* the command that the user of all connections is denied, in lower case; NULL: none */
};

/* A node begins with a version, and all else 0. */
struct node {
    /* ---- The world sets these ---- */
    int version;     /* 70000, 70200, 80000 */
    bool is_valkey;  /* version is that of Valkey then */
    uint64_t now_us; /* its clock, since 1970; TIME within a script of 7.0 moves it on */
    bool replica;    /* of the one at `primary_port`: READONLY; it hides expired keys and does not delete them */
    struct refusing refuses;
    const struct cluster *cluster;        /* NULL: no cluster */
    int me;                               /* this node's index there */
    const struct sentinel_view *sentinel; /* NULL: it is no Sentinel */
    char run_id[41];
    uint64_t begun_us;               /* the run, by its clock */
    unsigned history, branched_from; /* master_replid and master_replid2; 0: none */
    uint64_t branched_at;            /* the offset of that */
    int port, primary_port;
    int replicas_connected; /* for INFO and ROLE */

    /* ---- The node keeps these ---- */
    struct key **keys; /* of all databases, by their hashes */
    size_t key_count, key_room;
    uint64_t offset;        /* of replication: raised by each block of changes */
    struct change *changed; /* by the last node_execute, node_expire or node_evict: one block */
    size_t changed_count, changed_room;
    bool dirty;         /* there is a block */
    bool in_script;     /* a script runs */
    bool wrote;         /* it has called a write command */
    uint64_t frozen_ms; /* the time by which keys expire while a command or script runs */
};

/* What a connection is to the node; as it begins, all is 0. */
struct session {
    int db;
    bool asking, readonly;
    uint64_t last_write_offset;       /* what WAIT waits for, from 7.2 on; up to 7.0 it is node->offset */
    bool waits;                       /* WAIT was sent: nothing was replied; the world answers when it is so */
    long long wait_replicas, wait_ms; /* 0 ms: for ever */
    uint64_t wait_offset;             /* which replicas must have reached */
};

void node_free(struct node *);

/* The bytes of the first command; 0: it is not whole. Its arguments last until the next call. */
size_t read_command(const char *bytes, size_t len, const struct blob **argv, size_t *argc);

/* Carries out one command, and appends its reply. */
void node_execute(struct node *, struct session *, size_t argc, const struct blob *argv, struct buffer *reply);

/* Raw access, for oracles and the world: an expired key is still there. NULL: no such key. */
struct key *node_find(const struct node *, int db, struct blob name);
bool key_expired(const struct node *, const struct key *, uint64_t now_ms);

/* The key gets that value and time to live. It is removed for NULL, and for one that is gone. No change is noted. */
void node_put_key(struct node *, int db, struct blob name, const struct key *value);
/* The same with what the key is in `from`, which may be nothing. */
void node_copy_key(struct node *to, const struct node *from, int db, struct blob name);
/* All keys and the offset: a full resync, a dump, and a dump that comes back. `to` may hold keys, which go. */
void node_copy(struct node *to, const struct node *from);

/* Deletes a key, or those that are expired, as one block of changes: DEL of a primary. A replica does not. */
void node_evict(struct node *, int db, struct blob name);
void node_expire(struct node *);

unsigned node_slot(struct blob key); /* of a cluster: CRC16, of what is in {} */

#endif
