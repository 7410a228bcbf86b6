/* The faults of bytes.c on a cluster: they come at any byte of what is said to one of
 * its three nodes, the greeting and the slot map among it, while the others answer.
 * The proxy stands before node 0, which announces the proxy's port as its own. */
#include "support/byte_faults.h"
#include "support/redis_cluster.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>

enum { NODES = 3 };

static struct redis_cluster *cluster;
static struct proxy *proxy;
static redisContext *nodes[NODES];
static char uri[64];

static bool says_port(const struct redis_server *node, int port)
{
    redisReply *slots = redis_server_must(node, "CLUSTER SLOTS");
    bool says = false;

    for (size_t i = 0; i < slots->elements; i++)
        says = says || slots->element[i]->element[2]->element[1]->integer == port;
    freeReplyObject(slots);
    return says;
}

static bool all_know_the_proxy(const void *argument)
{
    for (int i = 0; i < NODES; i++)
        if (!says_port(redis_cluster_node(cluster, i), proxy_port(proxy)))
            return false;
    return true;
}

static int set_up(void **state)
{
    struct redis_server *first;

    cluster = redis_cluster_start(&(struct redis_cluster_options){.primaries = NODES});
    first = redis_cluster_node(cluster, 0);
    proxy = proxy_start_tcp(redis_server_socket(first));
    snprintf(uri, sizeof uri, "redis+cluster://127.0.0.1:%d", proxy_port(proxy));
    freeReplyObject(redis_server_must(first, "CONFIG SET cluster-announce-port %d", proxy_port(proxy)));
    redis_server_wait(first, all_know_the_proxy, NULL, "its cluster does not learn the proxy's port");
    for (int i = 0; i < NODES; i++)
        nodes[i] = redis_server_connect(redis_cluster_node(cluster, i));
    return 0;
}

static int tear_down(void **state)
{
    for (int i = 0; i < NODES; i++)
        redisFree(nodes[i]);
    proxy_stop(proxy);
    redis_cluster_stop(cluster);
    return 0;
}

static void on_a_node_of_a_cluster(void **state)
{
    struct byte_faults faults = {.proxy = proxy,
                                 .hold = dialogue_hold,
                                 .walks = BYTE_FAULT_WALKS,
                                 .dialogue = {.uri = uri,
                                              .options = HIBLOOM_CONNECT_OPTIONS_INIT,
                                              .spec = "bits=8192 hashes=4 seed=5eed segments=4",
                                              .servers = nodes,
                                              .server_count = NODES}};

    byte_faults_commit(&faults);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(on_a_node_of_a_cluster),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
