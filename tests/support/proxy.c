/* A proxy that commits faults. See proxy.h.
 *
 *     library --> requests: in [framing] out --> real server
 *     library <-- out [framing] in :replies <-- real server
 *
 * Each way is a flow. What comes in is taken over value by value, where values
 * are counted and replaced; what goes out is bytes, where bytes are counted,
 * cut, held and slowed down. Both sides are polled at once and nothing blocks,
 * since a real server too reads requests while its replies pile up. */
#include "proxy.h"

#include "net.h"
#include "resp.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define NO_LIMIT UINT64_MAX

enum fault { CUT, HOLD };

struct flow {
    struct bytes in, out;
    _Atomic uint64_t bytes, values; /* passed since the mark */
    uint64_t left;                  /* bytes to pass until the fault; NO_LIMIT without one */
    enum fault fault;
};

struct proxy {
    struct worker worker;
    struct listener listener;
    const char *upstream;
    pthread_mutex_t mutex; /* guards all below, but reads of what is atomic; never held while waiting */
    struct flow flows[2];  /* by enum proxy_way */
    bool serves;           /* a connection */
    _Atomic unsigned connections;
    unsigned drip_us;
    const char *answer, *replacement;
    uint64_t replace_first, replace_end; /* as flows[PROXY_REPLIES].values counts */
    _Atomic char replaced;               /* the type of the last one */
};

/* ---- One connection: what comes in goes out, faults apart ---------------------- */

static void take_request(struct proxy *proxy, const char *bytes, size_t len)
{
    if (proxy->answer != NULL)
        bytes_append(&proxy->flows[PROXY_REPLIES].in, proxy->answer, strlen(proxy->answer));
    else
        bytes_append(&proxy->flows[PROXY_REQUESTS].out, bytes, len);
}

static void take_reply(struct proxy *proxy, const char *bytes, size_t len)
{
    struct flow *flow = &proxy->flows[PROXY_REPLIES];

    if (flow->values >= proxy->replace_first && flow->values < proxy->replace_end) {
        proxy->replaced = bytes[0];
        bytes = proxy->replacement;
        len = strlen(bytes);
    }
    bytes_append(&flow->out, bytes, len);
}

/* Whole values go from in to out. */
static void take_values(struct proxy *proxy, enum proxy_way way)
{
    struct flow *flow = &proxy->flows[way];
    size_t done = 0, len;

    while (done < flow->in.len && (len = resp_length(flow->in.data + done, flow->in.len - done)) > 0) {
        if (way == PROXY_REQUESTS)
            take_request(proxy, flow->in.data + done, len);
        else
            take_reply(proxy, flow->in.data + done, len);
        flow->values++;
        done += len;
    }
    bytes_consume(&flow->in, done);
}

/* That nobody need wake the proxy when the hold is taken back. */
enum { HELD_POLL_MS = 10 };

/* How long poll may wait; -1: until something comes. */
static int patience_of(const struct flow *flow)
{
    return flow->out.len == 0 || flow->left != 0 ? -1 : HELD_POLL_MS;
}

static bool wants_to_send(const struct flow *flow)
{
    return flow->out.len > 0 && flow->left > 0;
}

/* Sends what it may; false if the connection is over, by a fault or of itself. */
static bool send_out(const struct proxy *proxy, struct flow *flow, int to)
{
    bool slowly = proxy->drip_us > 0 && flow == &proxy->flows[PROXY_REPLIES];
    size_t most = slowly ? 1 + flow->out.len / 64 : flow->out.len;
    ssize_t n;

    if (flow->out.len == 0)
        return true;
    if (flow->left == 0)
        return flow->fault != CUT;
    if (most > flow->left)
        most = (size_t)flow->left;
    n = send(to, flow->out.data, most, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n <= 0)
        return true; /* full: poll says when; or gone: then its end is read */
    bytes_consume(&flow->out, (size_t)n);
    flow->bytes += (uint64_t)n;
    if (flow->left != NO_LIMIT)
        flow->left -= (uint64_t)n;
    return flow->left > 0 || flow->fault != CUT;
}

/* Handles what poll found; false if the connection is over. */
static bool step(struct proxy *proxy, const struct pollfd *client, const struct pollfd *server)
{
    struct flow *requests = &proxy->flows[PROXY_REQUESTS], *replies = &proxy->flows[PROXY_REPLIES];

    if ((client->revents & ~POLLOUT) != 0 && !bytes_read(&requests->in, client->fd))
        return false;
    if ((server->revents & ~POLLOUT) != 0 && !bytes_read(&replies->in, server->fd))
        return false;
    take_values(proxy, PROXY_REQUESTS);
    take_values(proxy, PROXY_REPLIES);
    return send_out(proxy, requests, server->fd) && send_out(proxy, replies, client->fd);
}

static void converse(struct proxy *proxy, int client, int server)
{
    struct pollfd fds[4] = {{.fd = proxy->worker.stop, .events = POLLIN},
                            {.fd = client},
                            {.fd = server},
                            {.fd = proxy->listener.fd, .events = POLLIN}};
    bool goes_on = true;

    while (goes_on) {
        unsigned pause;
        int patience;

        pthread_mutex_lock(&proxy->mutex);
        pause = wants_to_send(&proxy->flows[PROXY_REPLIES]) ? proxy->drip_us : 0;
        patience = patience_of(&proxy->flows[PROXY_REQUESTS]);
        if (patience < 0)
            patience = patience_of(&proxy->flows[PROXY_REPLIES]);
        fds[1].events = (short)(POLLIN | (wants_to_send(&proxy->flows[PROXY_REPLIES]) ? POLLOUT : 0));
        fds[2].events = (short)(POLLIN | (wants_to_send(&proxy->flows[PROXY_REQUESTS]) ? POLLOUT : 0));
        pthread_mutex_unlock(&proxy->mutex);
        if ((pause > 0 && !worker_sleep(&proxy->worker, pause)) || poll(fds, 4, patience) < 0 || fds[0].revents != 0 ||
            fds[3].revents != 0)
            return;
        pthread_mutex_lock(&proxy->mutex);
        goes_on = step(proxy, &fds[1], &fds[2]);
        pthread_mutex_unlock(&proxy->mutex);
    }
}

/* ---- The thread: one connection after the other --------------------------------- */

static int connect_upstream(const struct proxy *proxy)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    strncpy(address.sun_path, proxy->upstream, sizeof address.sun_path - 1);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static void forget_faults(struct proxy *proxy)
{
    proxy->flows[PROXY_REQUESTS].left = proxy->flows[PROXY_REPLIES].left = NO_LIMIT;
    proxy->drip_us = 0;
    proxy->replace_first = proxy->replace_end = 0;
}

static void forget_connection(struct proxy *proxy)
{
    for (int way = PROXY_REQUESTS; way <= PROXY_REPLIES; way++) {
        bytes_clear(&proxy->flows[way].in);
        bytes_clear(&proxy->flows[way].out);
    }
    forget_faults(proxy);
}

static void *run(void *argument)
{
    struct proxy *proxy = argument;

    while (worker_wait_readable(&proxy->worker, proxy->listener.fd)) {
        pthread_mutex_lock(&proxy->mutex);
        proxy->connections++;
        proxy->serves = true; /* before it is taken from the listener: see proxy_wait_idle */
        pthread_mutex_unlock(&proxy->mutex);
        int client = accept4(proxy->listener.fd, NULL, NULL, SOCK_CLOEXEC);
        int server = connect_upstream(proxy);

        if (client >= 0 && server >= 0)
            converse(proxy, client, server);
        pthread_mutex_lock(&proxy->mutex);
        forget_connection(proxy);
        proxy->serves = false;
        pthread_mutex_unlock(&proxy->mutex);
        /* Last, so that who sees the end may set the next fault at once. */
        if (server >= 0)
            close(server);
        if (client >= 0)
            close(client);
    }
    return NULL;
}

struct proxy *proxy_start(const char *upstream_socket)
{
    struct proxy *proxy = calloc(1, sizeof *proxy);

    if (proxy == NULL)
        abort();
    proxy->upstream = upstream_socket;
    listener_open_unix(&proxy->listener);
    pthread_mutex_init(&proxy->mutex, NULL);
    forget_faults(proxy);
    worker_start(&proxy->worker, run, proxy);
    return proxy;
}

void proxy_stop(struct proxy *proxy)
{
    if (proxy == NULL)
        return;
    worker_stop(&proxy->worker);
    forget_connection(proxy);
    listener_close(&proxy->listener);
    pthread_mutex_destroy(&proxy->mutex);
    free(proxy);
}

const char *proxy_uri(const struct proxy *proxy)
{
    return proxy->listener.uri;
}

const char *proxy_socket(const struct proxy *proxy)
{
    return proxy->listener.path;
}

/* ---- Counting, and faults -------------------------------------------------------- */

void proxy_mark(struct proxy *proxy)
{
    pthread_mutex_lock(&proxy->mutex);
    for (int way = PROXY_REQUESTS; way <= PROXY_REPLIES; way++)
        proxy->flows[way].bytes = proxy->flows[way].values = 0;
    proxy->replace_first = proxy->replace_end = 0; /* it counted from the mark before */
    proxy->replaced = '\0';
    pthread_mutex_unlock(&proxy->mutex);
}

uint64_t proxy_bytes(struct proxy *proxy, enum proxy_way way)
{
    return proxy->flows[way].bytes;
}

uint64_t proxy_values(struct proxy *proxy, enum proxy_way way)
{
    return proxy->flows[way].values;
}

unsigned proxy_connections(struct proxy *proxy)
{
    return proxy->connections;
}

void proxy_wait_idle(struct proxy *proxy)
{
    struct pollfd listener = {.fd = proxy->listener.fd, .events = POLLIN};
    bool busy;

    do {
        busy = poll(&listener, 1, 0) != 0;
        pthread_mutex_lock(&proxy->mutex);
        busy = busy || proxy->serves;
        pthread_mutex_unlock(&proxy->mutex);
    } while (busy && worker_sleep(&proxy->worker, 100));
}

static void limit(struct proxy *proxy, enum proxy_way way, uint64_t after, enum fault fault)
{
    pthread_mutex_lock(&proxy->mutex);
    proxy->flows[way].left = after;
    proxy->flows[way].fault = fault;
    pthread_mutex_unlock(&proxy->mutex);
}

void proxy_cut(struct proxy *proxy, enum proxy_way way, uint64_t after)
{
    limit(proxy, way, after, CUT);
}

void proxy_hold(struct proxy *proxy, enum proxy_way way, uint64_t after)
{
    limit(proxy, way, after, HOLD);
}

void proxy_drip(struct proxy *proxy, unsigned microseconds)
{
    pthread_mutex_lock(&proxy->mutex);
    proxy->drip_us = microseconds;
    pthread_mutex_unlock(&proxy->mutex);
}

void proxy_replace(struct proxy *proxy, uint64_t first, uint64_t count, const char *bytes)
{
    pthread_mutex_lock(&proxy->mutex);
    proxy->replace_first = proxy->flows[PROXY_REPLIES].values + first;
    proxy->replace_end = proxy->replace_first + count;
    proxy->replacement = bytes;
    pthread_mutex_unlock(&proxy->mutex);
}

char proxy_replaced(struct proxy *proxy)
{
    return proxy->replaced;
}

void proxy_heal(struct proxy *proxy)
{
    pthread_mutex_lock(&proxy->mutex);
    forget_faults(proxy);
    pthread_mutex_unlock(&proxy->mutex);
}

void proxy_answer(struct proxy *proxy, const char *bytes)
{
    pthread_mutex_lock(&proxy->mutex);
    proxy->answer = bytes;
    pthread_mutex_unlock(&proxy->mutex);
}
