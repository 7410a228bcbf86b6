/* server.c: the simulated server's commands about itself, its connections, its cluster and its masters. */
#include "sim/commands.h"

#include <stdlib.h>

bool run_ping(struct run *run)
{
    return put_line(run, '+', "PONG");
}

/* Within a script of 7.0 time goes on. */
bool run_time(struct run *run)
{
    const uint64_t now = run->node->now_us;

    run->node->now_us += run->node->in_script && run->node->version < 70200;
    return put_array(run, 2) && put_number(run, now / 1000000) && put_number(run, now % 1000000);
}

/* INFO, INFO replication: no other is sent. */
bool run_info(struct run *run)
{
    const struct node *node = run->node;
    const int version = node->is_valkey ? 70204 : node->version; /* the one that Valkey claims */
    struct buffer text = {0};

    if (run->argc == 1)
        buffer_format(
            &text,
            "# Server\r\nredis_version:%d.%d.%d\r\n%sredis_mode:%s\r\nrun_id:%s\r\ntcp_port:%d\r\n"
            "uptime_in_seconds:%llu\r\n",
            version / 10000, version / 100 % 100, version % 100, node->is_valkey ? "server_name:valkey\r\n" : "",
            node->sentinel != NULL  ? "sentinel"
            : node->cluster != NULL ? "cluster"
                                    : "standalone",
            node->run_id, node->port, (unsigned long long)(node->now_us / 1000000 - node->begun_us / 1000000));
    must(run->argc == 1 || blob_is(run->argv[1], "replication"));
    buffer_format(&text,
                  "# Replication\r\nrole:%s\r\nconnected_slaves:%d\r\nmaster_replid:%040x\r\n"
                  "master_replid2:%040x\r\nmaster_repl_offset:%llu\r\n",
                  node->replica ? "slave" : "master", node->replicas_connected, node->history, node->branched_from,
                  (unsigned long long)node->offset);
    if (node->replica)
        buffer_format(&text, "master_host:" NODE_HOST "\r\nmaster_port:%d\r\nmaster_link_status:%s\r\n",
                      node->primary_port, node->refuses.stale ? "down" : "up");
    put_bulk(run, (struct blob){text.bytes, text.len});
    free(text.bytes);
    return true;
}

bool run_role(struct run *run)
{
    const struct node *node = run->node;
    const long long offset = (long long)node->offset;

    if (!node->replica)
        return put_array(run, 3) && put_text(run, "master") && put_int(run, offset) && put_array(run, 0);
    return put_array(run, 5) && put_text(run, "slave") && put_text(run, NODE_HOST) &&
           put_int(run, node->primary_port) && put_text(run, node->refuses.stale ? "connect" : "connected") &&
           put_int(run, offset);
}

bool run_wait(struct run *run)
{
    struct session *session = run->session;

    if (run->node->replica)
        return fail(run,
                    "WAIT cannot be used with replica instances. Please also note that since Redis 4.0 if a replica is "
                    "configured to be writable (which is not the default) writes to replicas are just local and are "
                    "not propagated.");
    session->wait_replicas = int_at(run, 1);
    session->wait_ms = int_at(run, 2);
    session->wait_offset = session->last_write_offset;
    return session->waits = true;
}

static bool is_clustered(struct run *run)
{
    return run->node->cluster != NULL || fail(run, "This instance has cluster support disabled");
}

bool run_asking(struct run *run)
{
    return is_clustered(run) && (run->session->asking = true) && put_ok(run);
}

bool run_readonly(struct run *run)
{
    return (run->node->is_valkey || is_clustered(run)) && (run->session->readonly = true) && put_ok(run);
}

static bool put_peer(struct run *run, const struct peer *peer)
{
    const struct cluster *c = run->node->cluster;

    return put_array(run, 4) && (c->nameless == 3 ? put_null(run) : put_text(run, cluster_host(c))) &&
           put_int(run, peer->port) && put_text(run, peer->id) && put_array(run, 0);
}

/* The range that begins with this one, and has the next ones of the same owner in it. */
static const struct slot_range *range_end(const struct cluster *cluster, const struct slot_range *range)
{
    while (range + 1 < cluster->ranges + cluster->range_count && range[1].owner == range->owner &&
           range[1].from == range->to + 1)
        range++;
    return range;
}

/* Of its subcommands only SLOTS. */
bool run_cluster(struct run *run)
{
    const struct cluster *c = run->node->cluster;
    size_t count = 0;

    if (!is_clustered(run))
        return false;
    for (const struct slot_range *r = c->ranges; r < c->ranges + c->range_count; r = range_end(c, r) + 1)
        count += r->owner >= 0;
    put_array(run, count);
    for (const struct slot_range *r = c->ranges; r < c->ranges + c->range_count; r = range_end(c, r) + 1) {
        size_t replicas = 0;
        for (size_t i = 0; i < c->peer_count; i++)
            replicas += c->peers[i].primary == r->owner;
        if (r->owner < 0)
            continue;
        put_array(run, 3 + replicas);
        put_int(run, r->from);
        put_int(run, range_end(c, r)->to);
        put_peer(run, &c->peers[r->owner]);
        for (size_t i = 0; i < c->peer_count; i++)
            if (c->peers[i].primary == r->owner)
                put_peer(run, &c->peers[i]);
    }
    return true;
}

static void put_replica(struct run *run, const struct peer *peer)
{
    put_array(run, 10);
    put_text(run, "ip");
    put_text(run, NODE_HOST);
    put_text(run, "port");
    put_number(run, (uint64_t)peer->port);
    put_text(run, "runid");
    put_text(run, peer->id);
    put_text(run, "flags");
    put_text(run, peer->doubted ? "slave,s_down,disconnected" : "slave");
    put_text(run, "master-link-status");
    put_text(run, "ok");
}

/* GET-MASTER-ADDR-BY-NAME, REPLICAS */
bool run_sentinel(struct run *run)
{
    const struct sentinel_view *view = run->node->sentinel;
    size_t count = 0;

    if (blob_is(run->argv[1], "get-master-addr-by-name"))
        return put_array(run, 2) && put_text(run, NODE_HOST) &&
               put_number(run, (uint64_t)view->peers[view->master].port);
    for (size_t i = 0; i < view->peer_count; i++)
        count += view->peers[i].primary == view->master;
    put_array(run, count);
    for (size_t i = 0; i < view->peer_count; i++)
        if (view->peers[i].primary == view->master)
            put_replica(run, &view->peers[i]);
    return true;
}
