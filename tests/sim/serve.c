/* serve.c: serves a simulated server over sockets, with the real time, so that the tests of real servers run on it:
 *
 *   HIBLOOM_TEST_SERVER=build/tests/sim/serve build/tests/redis/...
 *   serve [--port N] [--unixsocket PATH] [--dir PATH] [--cluster-enabled yes]
 *
 * Other options are taken and ignored. It keeps nothing, has no replicas, and ends with its process. WAIT is answered 0
 * when its time is over. A node of a cluster hears no rumours: CLUSTER MEET asks the other node once, and each SETSLOT
 * has to reach all nodes. */
#include "sim/commands.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { CLIENTS = 512, READ = 65536, TICK_MS = 20, PEERS = 32, ME = 0 };

struct client {
    struct session session;
    struct buffer in, out;
    uint64_t waits_until; /* ms; 0: for ever */
    bool ends;
};

static struct node node = {.version = 70000};
static struct peer peers[PEERS];
static struct slot_range slots[NODE_SLOTS]; /* each a range of its own */
static struct cluster cluster = {.peers = peers, .peer_count = 1, .ranges = slots, .range_count = NODE_SLOTS};
static struct client clients[CLIENTS];
static struct pollfd polled[CLIENTS + 2]; /* the listeners stand first */

static uint64_t now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static void die(const char *what)
{
    perror(what);
    exit(EXIT_FAILURE);
}

static int listen_at(const void *address, socklen_t len, int family)
{
    const int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (fd < 0 || bind(fd, address, len) != 0 || listen(fd, CLIENTS) != 0)
        die("listen");
    return fd;
}

/* ---- A node of a cluster ---------------------------------------------------------------------- */

/* Another node's answer, with a zero behind it. That node closes the connection when ours ends. */
static struct buffer ask(int port, size_t argc, const struct blob *argv)
{
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct buffer question = {0}, answer = {0};
    struct run run = {.out = &question};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char bytes[READ];
    ssize_t n;

    put_command(&run, argc, argv);
    if (fd < 0 || connect(fd, (const void *)&address, sizeof address) != 0 ||
        send(fd, question.bytes, question.len, MSG_NOSIGNAL) != (ssize_t)question.len || shutdown(fd, SHUT_WR) != 0)
        die("another node");
    while ((n = read(fd, bytes, sizeof bytes)) > 0)
        buffer_put(&answer, bytes, (size_t)n);
    buffer_put(&answer, "", 1);
    close(fd);
    free(question.bytes);
    return answer;
}

static void own(int from, int to, int owner)
{
    for (int slot = from; slot <= to && slot < NODE_SLOTS; slot++)
        slots[slot] = (struct slot_range){slot, slot, owner, -1, -1};
}

static int peer_named(struct blob id)
{
    for (size_t i = 0; i < cluster.peer_count; i++)
        if (blob_equals(blob_of(peers[i].id), id))
            return (int)i;
    return -1;
}

/* As CLUSTER NODES has them, this node first. */
static bool put_nodes(struct run *run)
{
    struct buffer text = {0};

    for (int i = 0; i < (int)cluster.peer_count; i++) {
        buffer_format(&text, "%s " NODE_HOST ":%d@0 %smaster - 0 0 0 connected", peers[i].id, peers[i].port,
                      i == ME ? "myself," : "");
        for (int from = 0, to = 0; from < NODE_SLOTS; from = ++to) {
            while (to + 1 < NODE_SLOTS && slots[to + 1].owner == slots[from].owner)
                to++;
            if (slots[from].owner == i)
                buffer_format(&text, " %d-%d", from, to);
        }
        buffer_put(&text, "\n", 1);
    }
    put_bulk(run, (struct blob){text.bytes, text.len});
    free(text.bytes);
    return true;
}

static bool meet(struct run *run, int port)
{
    struct buffer answer = ask(port, 2, (const struct blob[]){blob_of("CLUSTER"), blob_of("NODES")});
    struct peer *peer = &peers[cluster.peer_count];
    const char *line = strchr(answer.bytes, '\n'), *at = strstr(answer.bytes, "connected");
    int from, to, used;

    if (line == NULL || at == NULL || cluster.peer_count == PEERS)
        die("CLUSTER NODES");
    *peer = (struct peer){.port = port, .primary = -1};
    memcpy(peer->id, line + 1, sizeof peer->id - 1);
    if (peer_named(blob_of(peer->id)) < 0)
        for (cluster.peer_count++, at += 9; sscanf(at, "%d-%d%n", &from, &to, &used) == 2; at += used)
            own(from, to, (int)(peer - peers));
    free(answer.bytes);
    return put_ok(run);
}

static bool put_keys_in(struct run *run, unsigned slot, long long most)
{
    long long count = 0;

    for (size_t i = 0; i < node.key_count && count < most; i++)
        count += node_slot(node.keys[i]->name) == slot;
    put_array(run, (size_t)count);
    for (size_t i = 0; count > 0; i++)
        if (node_slot(node.keys[i]->name) == slot)
            count -= put_bulk(run, node.keys[i]->name);
    return true;
}

/* A string goes as it is, with the time when it expires. */
static bool migrate(struct run *run, int port, struct blob name)
{
    const struct key *key = node_find(&node, 0, name);
    char text[NUMBER_LEN];

    if (key == NULL)
        return put_line(run, '+', "NOKEY");
    snprintf(text, sizeof text, "%llu", (unsigned long long)key->expire_ms);
    const struct blob argv[] = {blob_of("RESTORE-ASKING"), name, blob_of(text), value_of(key)};
    struct buffer answer = ask(port, 4, argv);
    if (strncmp(answer.bytes, "+OK", 3) != 0)
        die("RESTORE-ASKING");
    free(answer.bytes);
    node_evict(&node, 0, name);
    return put_ok(run);
}

static bool set_slot(struct run *run, int slot, const struct blob *how)
{
    const int peer = peer_named(how[1]);

    if (peer < 0)
        return fail(run, "Unknown node");
    if (blob_is(how[0], "migrating"))
        slots[slot].migrating = peer;
    else if (blob_is(how[0], "importing"))
        slots[slot].importing = ME;
    else
        own(slot, slot, peer);
    return put_ok(run);
}

/* The commands by which tests make a cluster and move its slots; false: it is another one. */
static bool execute_clustered(struct run *run)
{
    const struct blob *argv = run->argv;
    const size_t argc = run->argc;
    long long first = 0, second = 0;

    if (argc == 4 && blob_is(argv[0], "restore-asking") && blob_int(argv[2], &first)) {
        const struct buffer value = {.bytes = (char *)(uintptr_t)argv[3].bytes, .len = argv[3].len};
        const struct key key = {.expire_ms = (uint64_t)first, .value = value};
        node_put_key(&node, 0, argv[1], &key);
        return put_ok(run);
    }
    if (argc >= 6 && blob_is(argv[0], "migrate"))
        return blob_int(argv[2], &first) && migrate(run, (int)first, argv[3]);
    if (argc < 2 || !blob_is(argv[0], "cluster"))
        return false;
    const bool is_slot = argc > 2 && blob_int(argv[2], &first) && first >= 0 && first < NODE_SLOTS;
    if (argc > 3 && !blob_int(argv[3], &second))
        second = 0;
    if (blob_is(argv[1], "myid"))
        return put_text(run, node.run_id);
    if (blob_is(argv[1], "info"))
        return put_text(run, "cluster_state:ok\r\n");
    if (blob_is(argv[1], "nodes"))
        return put_nodes(run);
    if (blob_is(argv[1], "set-config-epoch"))
        return put_ok(run);
    if (blob_is(argv[1], "keyslot") && argc == 3)
        return put_int(run, node_slot(argv[2]));
    if (blob_is(argv[1], "meet") && argc >= 4)
        return meet(run, (int)second);
    if (blob_is(argv[1], "addslotsrange") && argc == 4 && is_slot) {
        own((int)first, (int)second, ME);
        return put_ok(run);
    }
    if (blob_is(argv[1], "getkeysinslot") && argc == 4 && is_slot)
        return put_keys_in(run, (unsigned)first, second);
    return blob_is(argv[1], "setslot") && argc == 5 && is_slot && set_slot(run, (int)first, argv + 3);
}

/* ---- Clients ---------------------------------------------------------------------------------- */

static void execute(struct client *client, size_t argc, const struct blob *argv)
{
    struct session *session = &client->session;
    struct run run = {.node = &node, .session = session, .argc = argc, .argv = argv, .out = &client->out};

    node.now_us = now_us();
    if (node.cluster != NULL && execute_clustered(&run))
        return;
    node_execute(&node, session, argc, argv, &client->out);
    if (session->waits)
        client->waits_until = session->wait_replicas <= 0 ? 0
                              : session->wait_ms > 0      ? node.now_us / 1000 + (uint64_t)session->wait_ms
                                                          : UINT64_MAX;
}

static void execute_all(struct client *client)
{
    size_t used = 0, argc, len;
    const struct blob *argv;

    while (!client->session.waits &&
           (len = read_command(client->in.bytes + used, client->in.len - used, &argv, &argc)) > 0) {
        execute(client, argc, argv);
        used += len;
    }
    if (used > 0)
        memmove(client->in.bytes, client->in.bytes + used, client->in.len -= used);
}

static void take(size_t listener)
{
    const int fd = accept4(polled[listener].fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    size_t i = 0;

    while (i < CLIENTS && polled[i + 2].fd >= 0)
        i++;
    if (fd < 0 || i == CLIENTS) {
        close(fd);
        return;
    }
    polled[i + 2] = (struct pollfd){.fd = fd, .events = POLLIN};
    clients[i].session = (struct session){0};
    clients[i].ends = false;
}

static void serve(size_t i)
{
    struct client *client = &clients[i];
    struct pollfd *p = &polled[i + 2];
    char bytes[READ];

    if (p->revents & (POLLIN | POLLHUP | POLLERR)) {
        const ssize_t n = read(p->fd, bytes, sizeof bytes);
        if (n > 0)
            buffer_put(&client->in, bytes, (size_t)n);
        client->ends = client->ends || n == 0 || (n < 0 && errno != EAGAIN);
    }
    if (client->session.waits && client->waits_until <= now_us() / 1000) {
        buffer_put(&client->out, ":0\r\n", 4);
        client->session.waits = false;
    }
    execute_all(client);
    const ssize_t sent = client->out.len > 0 ? send(p->fd, client->out.bytes, client->out.len, MSG_NOSIGNAL) : 0;
    if (sent > 0)
        memmove(client->out.bytes, client->out.bytes + sent, client->out.len -= (size_t)sent);
    client->ends = client->ends || (sent < 0 && errno != EAGAIN);
    p->events = (short)(POLLIN | (client->out.len > 0 ? POLLOUT : 0));
    if (!client->ends)
        return;
    close(p->fd);
    p->fd = -1;
    client->in.len = client->out.len = 0;
}

static void set_option(const char *name, const char *value)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_un un = {.sun_family = AF_UNIX};

    if (strcmp(name, "--port") == 0 && (node.port = atoi(value)) > 0) {
        in.sin_port = htons((uint16_t)node.port);
        polled[0].fd = listen_at(&in, sizeof in, AF_INET);
    } else if (strcmp(name, "--unixsocket") == 0) {
        snprintf(un.sun_path, sizeof un.sun_path, "%s", value);
        polled[1].fd = listen_at(&un, sizeof un, AF_UNIX);
    } else if (strcmp(name, "--cluster-enabled") == 0) {
        node.cluster = &cluster;
    } else if (strcmp(name, "--dir") == 0 && chdir(value) != 0) {
        die(value);
    }
}

int main(int argc, char **argv)
{
    unsigned char id[20];

    if (getentropy(id, sizeof id) != 0)
        die("getentropy");
    for (size_t i = 0; i < sizeof id; i++)
        snprintf(node.run_id + 2 * i, 3, "%02x", id[i]);
    for (size_t i = 0; i < CLIENTS + 2; i++)
        polled[i] = (struct pollfd){.fd = -1, .events = POLLIN};
    for (int i = 1; i + 1 < argc; i++)
        set_option(argv[i], argv[i + 1]);
    peers[ME] = (struct peer){.port = node.port, .primary = -1};
    node.begun_us = now_us() - 10000000; /* a cluster of real ones is older, too, once it is made */
    memcpy(peers[ME].id, node.run_id, sizeof node.run_id);
    own(0, NODE_SLOTS - 1, -1);
    for (;;) {
        if (poll(polled, CLIENTS + 2, TICK_MS) < 0 && errno != EINTR)
            die("poll");
        for (size_t i = 0; i < 2; i++)
            if (polled[i].revents & POLLIN)
                take(i);
        node.now_us = now_us();
        node_expire(&node);
        for (size_t i = 0; i < CLIENTS; i++)
            if (polled[i + 2].fd >= 0)
                serve(i);
    }
}
