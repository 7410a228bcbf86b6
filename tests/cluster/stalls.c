/* A server that takes no more bytes delays nothing that is for others. */
#include "../support/items.h"
#include "../support/net.h"
#include "../support/redis_cluster.h"
#include "../support/test.h"

#include <hiredis/hiredis.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ITEMS = 300 /* two pipelines */, FEW = 24, PRIMARIES = 3, PAIRS = 8, ROOM = 1 /* the least that there is */ };

static struct redis_cluster *cluster;
static redisContext *last;      /* the node that is written to last */
static long long heard, before; /* its SETBITs: as the first one was given up, and before the call */

/* ---- In front of node 0: it has little room, and may stall ------------------------------------ */

static struct listener front;
static atomic_bool stalls, ends;

static void pass(int from, int to)
{
    char bytes[4096];
    const ssize_t n = recv(from, bytes, sizeof bytes, MSG_DONTWAIT);

    for (ssize_t at = 0; at < n;) {
        const ssize_t sent = send(to, bytes + at, (size_t)(n - at), MSG_NOSIGNAL);
        if (sent <= 0)
            return;
        at += sent;
    }
}

static void *relay(void *unused)
{
    struct pollfd fds[1 + 2 * PAIRS] = {{.fd = front.fd, .events = POLLIN}};
    redisContext *behind[PAIRS];
    nfds_t count = 1;

    while (!ends) {
        for (nfds_t i = 1; i < count; i += 2)
            fds[i].events = stalls ? 0 : POLLIN;
        if (poll(fds, count, 10) <= 0)
            continue;
        for (nfds_t i = 1; i < count; i++)
            if ((fds[i].revents & POLLIN) != 0)
                pass(fds[i].fd, fds[i % 2 == 1 ? i + 1 : i - 1].fd);
        if (fds[0].revents == 0 || count == 1 + 2 * PAIRS)
            continue;
        fds[count] = (struct pollfd){.fd = accept(front.fd, NULL, NULL), .events = POLLIN};
        behind[count / 2] = redis_server_connect(redis_cluster_node(cluster, 0));
        fds[count + 1] = (struct pollfd){.fd = behind[count / 2]->fd, .events = POLLIN};
        count += 2;
    }
    for (nfds_t i = 1; i < count; i += 2) {
        close(fds[i].fd);
        redisFree(behind[i / 2]);
    }
    return NULL;
}

static bool all_know_the_front(const void *unused)
{
    char address[32];
    bool all = true;

    snprintf(address, sizeof address, "127.0.0.1:%d@", front.port);
    for (int i = 0; i < PRIMARIES; i++)
        all = all && redis_server_says(redis_cluster_node(cluster, i), "CLUSTER NODES", address);
    return all;
}

/* ---- The store's side --------------------------------------------------------------------------- */

static void narrow(redisContext *context, void *unused)
{
    const int room = ROOM;

    assert_int_equal(setsockopt(context->fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof room), 0);
}

static unsigned maps; /* lines of the log that tell of a slot map */

static void note_loss(hibloom_log_level level, const char *line, void *unused)
{
    maps += strstr(line, "slot map read from 127.0.0.1:") != NULL;
    if (stalls && heard == 0 && strstr(line, "timed out") != NULL)
        heard = redis_server_calls_of(last, "setbit");
}

static void others_are_written_to_meanwhile(void **state)
{
    const hibloom_setup setup = {.size = sizeof setup, .connected = narrow, .log = note_loss};
    hibloom_item *items = items_new("in", ITEMS);
    const int room = ROOM;
    pthread_t thread;
    char uri[64];

    cluster = redis_cluster_start(&(struct redis_cluster_options){.primaries = PRIMARIES});
    last = redis_server_connect(redis_cluster_node(cluster, PRIMARIES - 1));
    assert_true(listener_open_tcp(&front, "127.0.0.1"));
    assert_int_equal(setsockopt(front.fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof room), 0);
    assert_int_equal(pthread_create(&thread, NULL, relay, NULL), 0);
    freeReplyObject(
        redis_server_must(redis_cluster_node(cluster, 0), "CONFIG SET cluster-announce-port %d", front.port));
    redis_server_wait(redis_cluster_node(cluster, 0), all_know_the_front, NULL, "not all know the front's port");
    snprintf(uri, sizeof uri, "redis+cluster://127.0.0.1:%d", front.port);
    hibloom_store *store = test_connect(with_options(uri, "command_timeout=2s&link=1m"),
                                        &setup) /* so it goes by commands */;
    /* whose root is not behind the front: on a slow machine an add is proven there first */
    hibloom *filter = test_open(store, "kept", "bits=3000000 hashes=7 segments=12 seed=1");
    assert_ok(hibloom_add_many(filter, items, FEW, NULL), store); /* all are connected to */

    assert_true(maps > 0);
    before = redis_server_calls_of(last, "setbit");
    stalls = true;
    assert_int_equal(hibloom_add_many(filter, items, ITEMS, NULL), HIBLOOM_ETIMEDOUT);
    stalls = false;
    assert_true(heard > before);

    test_close(filter, store);
    ends = true;
    pthread_join(thread, NULL);
    listener_close(&front);
    redisFree(last);
    redis_cluster_stop(cluster);
    items_free(items);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(others_are_written_to_meanwhile),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
