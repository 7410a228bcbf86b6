/* Starting and changing a real Redis Cluster. See redis_cluster.h. */
#include "redis_cluster.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ID_SIZE = 41, MIGRATE_MS = 60000, LOOKS = 300, NOBODY = 255 }; /* so many looks: over 6 s */

struct redis_cluster {
    int primaries, size;
    struct redis_server *nodes[REDIS_CLUSTER_NODES_MAX];
    char ids[REDIS_CLUSTER_NODES_MAX][ID_SIZE];
    char uri[32 + REDIS_CLUSTER_NODES_MAX * 16];
};

/* What one node believes. */
struct view {
    bool knows[REDIS_CLUSTER_NODES_MAX], is_primary[REDIS_CLUSTER_NODES_MAX];
    int epochs[REDIS_CLUSTER_NODES_MAX]; /* where these differ, the next move may make two nodes point at each other */
    unsigned char owners[REDIS_CLUSTER_SLOTS]; /* NOBODY: no node */
};

/* ---- Asking --------------------------------------------------------------------- */

/* A command whose reply only must be no error. */
#define DO(...) freeReplyObject(redis_server_must(__VA_ARGS__))

/* "5", "5-9"; "[5->-ID]" is on its way and still the sender's. */
static void read_slots(struct view *view, int node, char *words)
{
    char *rest = words;

    for (char *word; (word = strtok_r(rest, " ", &rest)) != NULL;) {
        int first = 0, last = 0;
        const int found = sscanf(word, "%d-%d", &first, &last);

        for (int slot = first; found >= 1 && slot <= (found == 2 ? last : first); slot++)
            view->owners[slot] = (unsigned char)node;
    }
}

static int node_with(const struct redis_cluster *cluster, const char *id)
{
    for (int i = 0; i < cluster->size; i++)
        if (strncmp(cluster->ids[i], id, ID_SIZE - 1) == 0)
            return i;
    return -1;
}

/* Reads lines as "ID 127.0.0.1:1@2 master,fail - PING PONG EPOCH connected SLOTS";
 * false where the node does not answer. */
static bool read_view(const struct redis_cluster *cluster, int of, struct view *view)
{
    redisReply *reply = redis_server_ask(cluster->nodes[of], "CLUSTER NODES");
    const bool answered = reply != NULL && reply->type == REDIS_REPLY_STRING;
    char *rest = answered ? reply->str : NULL;

    memset(view, 0, sizeof *view);
    memset(view->owners, NOBODY, sizeof view->owners);
    for (char *line; rest != NULL && (line = strtok_r(rest, "\n", &rest)) != NULL;) {
        const int node = node_with(cluster, line);
        char flags[64];
        int epoch, slots_at = 0;

        if (node < 0 || sscanf(line, "%*s %*s %63s %*s %*s %*s %d %*s%n", flags, &epoch, &slots_at) != 2 ||
            slots_at == 0)
            continue;
        view->epochs[node] = redis_server_runs(cluster->nodes[node]) ? epoch : 0;
        /* What is said of one that does not run differs from node to node, and does not matter. */
        view->knows[node] = strstr(flags, "handshake") == NULL && strstr(flags, "noaddr") == NULL &&
                            (strstr(flags, "fail") == NULL || !redis_server_runs(cluster->nodes[node]));
        view->is_primary[node] = strstr(flags, "master") != NULL;
        read_slots(view, node, line + slots_at);
    }
    freeReplyObject(reply);
    return answered;
}

/* ---- Waiting ---------------------------------------------------------------------- */

static bool knows_all(const struct redis_cluster *cluster, const struct view *view)
{
    for (int i = 0; i < cluster->size; i++)
        if (!view->knows[i])
            return false;
    return true;
}

static bool is_settled(const void *argument)
{
    const struct redis_cluster *cluster = argument;
    struct view first, view;
    bool is_first = true;

    for (int i = 0; i < cluster->size; i++) {
        const struct redis_server *node = cluster->nodes[i];

        if (!redis_server_runs(node))
            continue;
        if (!redis_server_says(node, "CLUSTER INFO", "cluster_state:ok") || !redis_server_is_in_sync(node) ||
            !read_view(cluster, i, &view) || !knows_all(cluster, &view))
            return false;
        if (is_first)
            first = view;
        is_first = false;
        if (memcmp(&view, &first, sizeof view) != 0)
            return false;
    }
    return !is_first;
}

void redis_cluster_wait_settled(const struct redis_cluster *cluster)
{
    redis_server_wait(cluster->nodes[0], is_settled, cluster, "its cluster does not settle");
}

/* The first node that runs and answers tells its view. */
static void current_view(const struct redis_cluster *cluster, struct view *view)
{
    for (int i = 0; i < cluster->size; i++)
        if (redis_server_runs(cluster->nodes[i]) && read_view(cluster, i, view))
            return;
    redis_server_give_up(cluster->nodes[0], "no node of its cluster answers");
}

/* Another node of the same shard that is a primary with slots; -1: none. No replica ever changes its shard. */
static int successor_of(const struct redis_cluster *cluster, int primary)
{
    struct view view;

    current_view(cluster, &view);
    for (int i = primary % cluster->primaries; i < cluster->size; i += cluster->primaries)
        if (i != primary && view.is_primary[i] && memchr(view.owners, i, sizeof view.owners) != NULL)
            return i;
    return -1;
}

struct failover {
    const struct redis_cluster *cluster;
    int primary;
};

static bool is_over(const void *argument)
{
    const struct failover *failover = argument;

    return successor_of(failover->cluster, failover->primary) >= 0 && is_settled(failover->cluster);
}

int redis_cluster_wait_failover(const struct redis_cluster *cluster, int primary)
{
    const struct failover failover = {cluster, primary};

    redis_server_wait(cluster->nodes[primary], is_over, &failover, "no replica takes over");
    return successor_of(cluster, primary);
}

/* Of a cluster with one replica a primary: the other one of the two. */
static int replica_of(const struct redis_cluster *cluster, int primary)
{
    return (primary + cluster->primaries) % cluster->size;
}

void redis_cluster_cut_off(const struct redis_cluster *cluster, int primary)
{
    redis_server_cut_off(cluster->nodes[primary], cluster->nodes[replica_of(cluster, primary)]);
}

void redis_cluster_fail_over(const struct redis_cluster *cluster, int primary, void (*stop)(struct redis_server *),
                             void (*back)(struct redis_server *))
{
    stop(cluster->nodes[primary]);
    redis_server_resume(cluster->nodes[replica_of(cluster, primary)]);
    redis_cluster_wait_failover(cluster, primary);
    back(cluster->nodes[primary]);
    redis_cluster_wait_settled(cluster);
}

/* ---- Starting ---------------------------------------------------------------------- */

static void start_nodes(struct redis_cluster *cluster, const struct redis_cluster_options *options)
{
    size_t len = (size_t)snprintf(cluster->uri, sizeof cluster->uri, "redis%s+cluster:/",
                                  options->certificate ? "s" : "");

    for (int i = 0; i < cluster->size; i++) {
        redisReply *id;

        cluster->nodes[i] = redis_server_start_node(options->certificate, options->args);
        id = redis_server_must(cluster->nodes[i], "CLUSTER MYID");
        snprintf(cluster->ids[i], ID_SIZE, "%s", id->str);
        freeReplyObject(id);
        DO(cluster->nodes[i], "CLUSTER SET-CONFIG-EPOCH %d", i + 1); /* else they quarrel over one */
        len += (size_t)snprintf(cluster->uri + len, sizeof cluster->uri - len, "%c127.0.0.1:%d", i == 0 ? '/' : ',',
                                redis_server_port(cluster->nodes[i]));
    }
}

/* Each that does not know another meets it, as rumour alone takes seconds more; and again, as a handshake that takes
 * over a second on a busy machine is given up, and the other side may then take it for done. */
static bool all_know_all(const void *argument)
{
    const struct redis_cluster *cluster = argument;
    struct view view;
    bool all = true;

    for (int i = 0; i < cluster->size; i++) {
        all &= read_view(cluster, i, &view);
        for (int j = 0; j < cluster->size; j++) {
            if (j == i || view.knows[j])
                continue;
            all = false;
            DO(cluster->nodes[i], "CLUSTER MEET 127.0.0.1 %d %d", redis_server_port(cluster->nodes[j]),
               redis_server_bus_port(cluster->nodes[j]));
        }
    }
    return all;
}

struct redis_cluster *redis_cluster_start(const struct redis_cluster_options *options)
{
    struct redis_cluster *cluster = calloc(1, sizeof *cluster);
    const int primaries = options->primaries;

    if (cluster == NULL || primaries < 1 || primaries * (1 + options->replicas) > REDIS_CLUSTER_NODES_MAX)
        abort();
    cluster->primaries = primaries;
    cluster->size = primaries * (1 + options->replicas);
    start_nodes(cluster, options);
    for (int i = 0; i < primaries; i++)
        DO(cluster->nodes[i], "CLUSTER ADDSLOTSRANGE %d %d", REDIS_CLUSTER_SLOTS * i / primaries,
           REDIS_CLUSTER_SLOTS * (i + 1) / primaries - 1);
    redis_server_wait(cluster->nodes[0], all_know_all, cluster, "its cluster does not meet");
    for (int i = primaries; i < cluster->size; i++)
        DO(cluster->nodes[i], "CLUSTER REPLICATE %s", cluster->ids[i % primaries]);
    redis_cluster_wait_settled(cluster);
    return cluster;
}

void redis_cluster_stop(struct redis_cluster *cluster)
{
    if (cluster == NULL)
        return;
    for (int i = 0; i < cluster->size; i++)
        redis_server_stop(cluster->nodes[i]);
    free(cluster);
}

/* ---- Looking ----------------------------------------------------------------------- */

const char *redis_cluster_uri(const struct redis_cluster *cluster)
{
    return cluster->uri;
}

struct redis_server *redis_cluster_node(const struct redis_cluster *cluster, int node)
{
    return cluster->nodes[node];
}

const char *redis_cluster_id(const struct redis_cluster *cluster, int node)
{
    return cluster->ids[node];
}

int redis_cluster_owner(const struct redis_cluster *cluster, int slot)
{
    struct view view;

    current_view(cluster, &view);
    return view.owners[slot] == NOBODY ? -1 : view.owners[slot];
}

/* CLUSTER KEYSLOT reads the {tag}, too. */
int redis_cluster_slot(const struct redis_cluster *cluster, const char *key)
{
    for (int i = 0; i < cluster->size; i++) {
        redisReply *reply = NULL;
        int slot = -1;

        if (redis_server_runs(cluster->nodes[i]))
            reply = redis_server_ask(cluster->nodes[i], "CLUSTER KEYSLOT %s", key);
        if (reply != NULL && reply->type == REDIS_REPLY_INTEGER)
            slot = (int)reply->integer;
        freeReplyObject(reply);
        if (slot >= 0)
            return slot;
    }
    redis_server_give_up(cluster->nodes[0], "no node of its cluster answers");
}

/* ---- Moving slots ------------------------------------------------------------------- */

void redis_cluster_begin_move(const struct redis_cluster *cluster, const struct redis_cluster_move *move)
{
    for (int slot = move->first_slot; slot <= move->last_slot; slot++) {
        DO(cluster->nodes[move->to], "CLUSTER SETSLOT %d IMPORTING %s", slot, cluster->ids[move->from]);
        DO(cluster->nodes[move->from], "CLUSTER SETSLOT %d MIGRATING %s", slot, cluster->ids[move->to]);
    }
}

static void migrate(const struct redis_cluster *cluster, const struct redis_cluster_move *move, const redisReply *key)
{
    const struct redis_server *from = cluster->nodes[move->from];
    const int port = redis_server_port(cluster->nodes[move->to]);
    const char *password = redis_server_password(from);

    if (password != NULL)
        DO(from, "MIGRATE 127.0.0.1 %d %b 0 %d AUTH %s", port, key->str, key->len, MIGRATE_MS, password);
    else
        DO(from, "MIGRATE 127.0.0.1 %d %b 0 %d", port, key->str, key->len, MIGRATE_MS);
}

int redis_cluster_move_keys(const struct redis_cluster *cluster, const struct redis_cluster_move *move, int most)
{
    int moved = 0;

    for (int slot = move->first_slot; slot <= move->last_slot && moved < most; slot++) {
        const struct redis_server *from = cluster->nodes[move->from];
        redisReply *keys = redis_server_must(from, "CLUSTER GETKEYSINSLOT %d %d", slot, most - moved);

        for (size_t i = 0; i < keys->elements; i++, moved++)
            migrate(cluster, move, keys->element[i]);
        freeReplyObject(keys);
    }
    return moved;
}

/* The new owner first: a slot without an owner refuses. Then all primaries, as rumour alone takes longer. */
void redis_cluster_end_move(const struct redis_cluster *cluster, const struct redis_cluster_move *move)
{
    struct view view;

    current_view(cluster, &view);
    for (int slot = move->first_slot; slot <= move->last_slot; slot++) {
        DO(cluster->nodes[move->to], "CLUSTER SETSLOT %d NODE %s", slot, cluster->ids[move->to]);
        DO(cluster->nodes[move->from], "CLUSTER SETSLOT %d NODE %s", slot, cluster->ids[move->to]);
        for (int i = 0; i < cluster->size; i++)
            if (i != move->to && i != move->from && view.is_primary[i] && redis_server_runs(cluster->nodes[i]))
                DO(cluster->nodes[i], "CLUSTER SETSLOT %d NODE %s", slot, cluster->ids[move->to]);
    }
}
