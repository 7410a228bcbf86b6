/* serve.c: serves a simulated server over sockets, with the real time, so that the tests of real servers run on it:
 *
 *   HIBLOOM_TEST_SERVER=build/tests/sim/serve build/tests/redis/...
 *   serve [--port N] [--unixsocket PATH] [--requirepass WORDS] [--dir PATH]   other options are taken and ignored
 *
 * It keeps nothing, has no replicas, and ends with its process. WAIT is answered 0 when its time is over. */
#include "sim/node.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { CLIENTS = 512, READ = 65536, TICK_MS = 20 };

struct client {
    struct session session;
    struct buffer in, out;
    uint64_t waits_until; /* ms; 0: for ever */
    bool ends;
};

static struct node node;
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

static void execute(struct client *client, size_t argc, const struct blob *argv)
{
    struct session *session = &client->session;

    node.now_us = now_us();
    node_execute(&node, session, argc, argv, &client->out);
    if (session->waits)
        client->waits_until = session->wait_ms > 0 ? node.now_us / 1000 + (uint64_t)session->wait_ms : UINT64_MAX;
    if (session->waits && session->wait_replicas <= 0)
        client->waits_until = 0;
}

static void execute_all(struct client *client)
{
    size_t used = 0, argc;
    const struct blob *argv;
    long len = 0;

    while (!client->session.waits && used < client->in.len &&
           (len = read_command(client->in.bytes + used, client->in.len - used, &argv, &argc)) > 0) {
        if (argc > 0)
            execute(client, argc, argv);
        used += (size_t)len;
    }
    if (len < 0)
        client->ends = true;
    if (used > 0)
        memmove(client->in.bytes, client->in.bytes + used, client->in.len -= used);
}

static void take(size_t listener)
{
    static uint64_t ids;
    const int fd = accept4(polled[listener].fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    size_t i = 0;

    while (i < CLIENTS && polled[i + 2].fd >= 0)
        i++;
    if (fd < 0 || i == CLIENTS) {
        close(fd);
        return;
    }
    polled[i + 2] = (struct pollfd){.fd = fd, .events = POLLIN};
    session_make(&clients[i].session, ++ids);
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
    client->session.id = 0;
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
    } else if (strcmp(name, "--requirepass") == 0) {
        node.password = value;
    } else if (strcmp(name, "--dir") == 0 && chdir(value) != 0) {
        die(value);
    }
}

int main(int argc, char **argv)
{
    unsigned char id[20];

    node_make(&node, 70000);
    if (getentropy(id, sizeof id) != 0)
        die("getentropy");
    for (size_t i = 0; i < sizeof id; i++)
        snprintf(node.run_id + 2 * i, 3, "%02x", id[i]);
    for (size_t i = 0; i < CLIENTS + 2; i++)
        polled[i] = (struct pollfd){.fd = -1, .events = POLLIN};
    for (int i = 1; i + 1 < argc; i++)
        set_option(argv[i], argv[i + 1]);
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
