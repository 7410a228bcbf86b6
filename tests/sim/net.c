/* net.c: the sockets of libc's, and what lies between them and the servers. See net.h.
 *
 * Each write and each send is one piece. A socket has a way to the server and a way to the client. The
 * pieces of a way arrive in order, so only the first one has an event:
 *
 *     write --piece--> to_server --> conn.in     conn_send --piece--> to_client --> got --> read
 */
#undef _FORTIFY_SOURCE /* its inline functions are not what is wrapped here */
#include "sim/net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { FD_FIRST = 1 << 20 /* above those of the system */, SOCKETS = 1 << 18 };

enum kind { BYTES, OPENED, REFUSED, RESET, END, CLOSED };

struct piece {
    struct piece *next;
    uint64_t at;
    enum kind kind;
    size_t len;
    char bytes[];
};

struct way {
    struct socket *socket;
    struct piece *first, *last;
    uint64_t last_at;
    size_t len;
    bool planned; /* there is an event */
};

struct offer {
    uint64_t end, us;
};

struct socket {
    struct conn conn; /* the first field: conn_ functions are given this one */
    struct fiber *owner;
    int fd;
    bool nonblocking, connected, closed;
    bool accepted, finished; /* the server knows of it; it is to hear of its end */
    bool ended, broken;      /* nothing more comes; and nothing more goes */
    int error;               /* the next call fails with it */
    uint64_t stalled_until;
    struct way to_server, to_client;
    uint64_t written, used; /* bytes that write() has taken, and of these the server */
    struct buffer offers;   /* struct offer: what write() was given, and had not been before */
    struct buffer got;
    size_t got_at; /* so much of it was read */
    struct cut {
        bool planned, quietly, arrives;
        size_t after;
    } cut;
};

static struct socket *sockets[SOCKETS]; /* those that were closed, too */
static size_t socket_count;
static struct socket *latest[SOCKETS]; /* the one that has had each descriptor last */

/* ---- Pieces on their way ------------------------------------------------------------------- */

static void arrive(void *way);

static void plan(struct way *w)
{
    if (w->first == NULL || w->planned)
        return;
    const uint64_t at = w->first->at, stalled = w->socket->stalled_until;
    w->planned = true;
    net_at(at > stalled ? at : stalled, arrive, w);
}

static void put(struct way *w, enum kind kind, const void *bytes, size_t len, uint64_t at)
{
    struct piece *piece = resized(NULL, sizeof *piece + len);

    w->last_at = at > w->last_at ? at : w->last_at;
    *piece = (struct piece){.at = w->last_at, .kind = kind, .len = len};
    if (len > 0)
        memcpy(piece->bytes, bytes, len);
    if (w->first == NULL)
        w->first = piece;
    else
        w->last->next = piece;
    w->last = piece;
    w->len += len;
    plan(w);
}

static struct piece *take_first(struct way *w)
{
    struct piece *piece = w->first;

    w->first = piece->next;
    w->len -= piece->len;
    return piece;
}

static void drop_all(struct way *w)
{
    while (w->first != NULL)
        free(take_first(w));
    w->last_at = 0;
}

static void arrive_at_server(struct socket *s, const struct piece *piece)
{
    if (piece->kind == CLOSED) {
        net_closed(&s->conn);
        return;
    }
    buffer_put(&s->conn.in, piece->bytes, piece->len);
    fiber_wake(s->owner); /* there is room again */
    net_received(&s->conn);
}

static void arrive_at_client(struct socket *s, const struct piece *piece)
{
    if (s->broken) /* by itself, or by an earlier reset */
        return;
    switch (piece->kind) {
    case OPENED: s->connected = true; break;
    case BYTES: buffer_put(&s->got, piece->bytes, piece->len); break;
    case END: s->ended = true; break;
    default:
        s->error = piece->kind == REFUSED ? ECONNREFUSED : s->ended ? EPIPE : ECONNRESET;
        s->ended = s->broken = true;
    }
    fiber_wake(s->owner);
}

static void arrive(void *way)
{
    struct way *w = way;
    struct socket *s = w->socket;

    w->planned = false;
    if (w->first != NULL && w->first->at <= net_now_us() && s->stalled_until <= net_now_us()) {
        struct piece *piece = take_first(w);
        (w == &s->to_server ? arrive_at_server : arrive_at_client)(s, piece);
        free(piece);
    }
    plan(w);
}

/* ---- The world's part ---------------------------------------------------------------------- */

static struct socket *socket_of(struct conn *conn)
{
    return (struct socket *)conn;
}

static uint64_t arrival(const struct socket *s, bool to_server)
{
    return net_now_us() + net_latency_us(&s->conn, to_server);
}

/* One latency behind the other: what chance gives the world does not depend on the compiler. */
static uint64_t answer_arrival(const struct socket *s)
{
    const uint64_t there = arrival(s, true);

    return there + net_latency_us(&s->conn, false);
}

/* The server hears that nothing more comes, behind all that comes. */
static void finish(struct socket *s)
{
    if (s->accepted && !s->finished)
        put(&s->to_server, CLOSED, NULL, 0, arrival(s, true));
    s->finished = true;
}

static void strike(struct socket *s)
{
    s->conn.cut = true;
    put(&s->to_client, s->cut.quietly ? END : RESET, NULL, 0, arrival(s, false));
    if (!s->cut.arrives)
        drop_all(&s->to_server);
    finish(s);
}

void conn_take(struct conn *conn, size_t len)
{
    conn->taken += len;
    socket_of(conn)->used += len;
    if (conn->taken == conn->in.len)
        conn->taken = conn->in.len = 0;
    fiber_wake(socket_of(conn)->owner);
}

uint64_t conn_offered_us(const struct conn *conn, size_t len)
{
    const struct socket *s = (const struct socket *)conn;
    const struct offer *first = (const void *)s->offers.bytes, *last = first + s->offers.len / sizeof *first - 1;

    while (last > first && last[-1].end >= s->used + len)
        last--;
    return last->us;
}

void conn_send(struct conn *conn, const void *bytes, size_t len, uint64_t delay_us)
{
    struct socket *s = socket_of(conn);

    if (s->closed || s->conn.cut)
        return;
    if (s->cut.planned && len > s->cut.after)
        len = s->cut.after;
    if (len > 0)
        put(&s->to_client, BYTES, bytes, len, arrival(s, false) + delay_us);
    s->cut.after -= s->cut.planned ? len : 0;
    if (s->cut.planned && s->cut.after == 0)
        strike(s);
}

void conn_stall(struct conn *conn, uint64_t until_us)
{
    struct socket *s = socket_of(conn);

    if (until_us > s->stalled_until)
        s->stalled_until = until_us;
}

void conn_cut(struct conn *conn, size_t after, bool quietly, bool arrives)
{
    struct socket *s = socket_of(conn);

    if (s->finished)
        return;
    s->cut = (struct cut){.planned = true, .after = after, .quietly = quietly, .arrives = arrives};
    if (after == 0)
        strike(s);
}

int fiber_open_sockets(int client)
{
    int count = 0;

    for (size_t i = 0; i < socket_count; i++)
        count += sockets[i]->conn.client == client && !sockets[i]->closed;
    return count;
}

void net_reset(uint64_t seed)
{
    fiber_reset(seed);
    for (struct socket *s; socket_count > 0; free(s)) {
        s = sockets[--socket_count];
        latest[s->fd - FD_FIRST] = NULL;
        drop_all(&s->to_server);
        drop_all(&s->to_client);
        free(s->conn.in.bytes);
        free(s->got.bytes);
        free(s->offers.bytes);
    }
}

/* ---- Sockets ------------------------------------------------------------------------------- */

/* NULL: there is none, or it was closed. */
static struct socket *look_up(int fd)
{
    struct socket *s = fd >= FD_FIRST ? latest[fd - FD_FIRST] : NULL;

    return s != NULL && !s->closed ? s : NULL;
}

static int fail(int error)
{
    errno = error;
    return -1;
}

static int take_error(struct socket *s)
{
    const int error = s->error;

    s->error = 0;
    return error;
}

static size_t room_of(const struct socket *s)
{
    const size_t window = s->conn.cut ? SIZE_MAX : net_window(&s->conn);

    return !s->connected || window <= s->to_server.len ? 0 : window - s->to_server.len;
}

/* No call waits, whatever its flags: the library polls. */
static void never_waits(const struct socket *s, int flags)
{
    if (!s->nonblocking && (flags & MSG_DONTWAIT) == 0)
        net_die("a socket that blocks");
}

static ssize_t give(struct socket *s, const void *bytes, size_t len, int flags)
{
    const size_t room = room_of(s);
    const struct offer offer = {s->written + len, net_now_us()};

    never_waits(s, flags);
    const struct offer *last = s->offers.len > 0 ? (const void *)(s->offers.bytes + s->offers.len - sizeof offer)
                                                 : NULL;
    if (last == NULL || last->end < offer.end)
        buffer_put(&s->offers, &offer, sizeof offer);
    if (s->error != 0)
        return fail(take_error(s));
    if (s->broken)
        return fail(EPIPE);
    if (room == 0)
        return fail(EAGAIN);
    len = len < room ? len : room;
    s->written += len;
    if (!s->conn.cut)
        put(&s->to_server, BYTES, bytes, len, arrival(s, true));
    else if (s->cut.quietly) /* as a server answers that has closed it */
        put(&s->to_client, RESET, NULL, 0, answer_arrival(s));
    return (ssize_t)len;
}

static ssize_t take(struct socket *s, void *bytes, size_t len, int flags)
{
    never_waits(s, flags);
    if (s->got_at == s->got.len && !s->ended && s->error == 0)
        return fail(EAGAIN);
    if (s->got_at == s->got.len && s->error != 0 && s->error != EPIPE)
        return fail(take_error(s));
    if (len > s->got.len - s->got_at)
        len = s->got.len - s->got_at;
    if (len > 0)
        memcpy(bytes, s->got.bytes + s->got_at, len);
    if ((flags & MSG_PEEK) == 0)
        s->got_at += len;
    if (s->got_at == s->got.len)
        s->got.len = s->got_at = 0;
    return (ssize_t)len;
}

/* It is elsewhere. */
static int name_peer(const struct socket *s)
{
    if (!s->connected && !s->broken)
        net_die("a connection that is used before it is made");
    return 0;
}

static int hang_up(struct socket *s)
{
    s->conn.shut = s->ended = s->broken = true;
    finish(s);
    return 0;
}

void sockets_close(struct fiber *f)
{
    for (size_t i = 0; i < socket_count; i++)
        if (sockets[i]->owner == f && !sockets[i]->closed) {
            sockets[i]->closed = true;
            (void)hang_up(sockets[i]);
        }
}

static short events_of(const struct socket *s)
{
    const bool readable = s->got_at < s->got.len || s->ended;
    const bool writable = s->broken || room_of(s) > 0;

    return (short)((readable ? POLLIN : 0) | (writable ? POLLOUT : 0) | (s->error != 0 ? POLLERR : 0) |
                   (s->broken ? POLLHUP : 0));
}

int sockets_poll(struct pollfd *fds, size_t count, uint64_t until_us)
{
    fiber_enter();
    for (int ready = 0;; fiber_wait(until_us)) {
        for (size_t i = 0; i < count; i++) {
            const struct socket *s = look_up(fds[i].fd);
            const short came = s != NULL ? events_of(s) : POLLNVAL;
            fds[i].revents = (short)(came & (fds[i].events | POLLERR | POLLHUP | POLLNVAL));
            ready += fds[i].revents != 0;
        }
        if (ready > 0 || net_now_us() >= until_us)
            return ready;
    }
}

/* ---- Connecting ---------------------------------------------------------------------------- */

static int connect_socket(struct socket *s, const struct sockaddr *address)
{
    never_waits(s, 0);
    const enum net_answer answer = net_connect(&s->conn,
                                               ntohs(((const struct sockaddr_in *)(const void *)address)->sin_port));
    if (answer == NET_REFUSED_AT_ONCE)
        return fail(ECONNREFUSED);
    s->accepted = answer == NET_ACCEPTED;
    if (answer != NET_SILENT)
        put(&s->to_client, s->accepted ? OPENED : REFUSED, NULL, 0, answer_arrival(s));
    return fail(EINPROGRESS);
}

/* ---- In the place of libc's ---------------------------------------------------------------- */

static int control(struct socket *s, int command, long argument)
{
    if (command == F_SETFL)
        s->nonblocking = (argument & O_NONBLOCK) != 0;
    return command == F_GETFL ? O_RDWR | (s->nonblocking ? O_NONBLOCK : 0) : 0;
}

/* A connection that is reset takes nothing, and gives nothing, from then on. */
static bool misses(struct socket *s, const char *call)
{
    const int error = net_misses(s->conn.client, call);

    if (error == EPIPE || error == ECONNRESET)
        (void)hang_up(s);
    if (error != 0)
        errno = error;
    return error != 0;
}

/* Descriptors of the system, such as files, go to libc. A variadic fcntl would say the same in more lines. */
#define WRAP(type, name, parameters, arguments, ours) \
    type __real_##name parameters; \
    type __wrap_##name parameters \
    { \
        if (fd < FD_FIRST) \
            return __real_##name arguments; \
        fiber_enter(); \
        struct socket *s = look_up(fd); \
        return s == NULL ? fail(EBADF) : misses(s, #name) ? -1 : ours; \
    }

WRAP(int, connect, (int fd, const struct sockaddr *to, socklen_t len), (fd, to, len), connect_socket(s, to))
WRAP(ssize_t, read, (int fd, void *bytes, size_t len), (fd, bytes, len), take(s, bytes, len, 0))
WRAP(ssize_t, recv, (int fd, void *bytes, size_t len, int flags), (fd, bytes, len, flags), take(s, bytes, len, flags))
WRAP(ssize_t, write, (int fd, const void *bytes, size_t len), (fd, bytes, len), give(s, bytes, len, 0))
WRAP(ssize_t, send, (int fd, const void *bytes, size_t len, int flags), (fd, bytes, len, flags),
     give(s, bytes, len, flags))
WRAP(int, close, (int fd), (fd), (s->closed = true, hang_up(s)))
WRAP(int, setsockopt, (int fd, int level, int name, const void *value, socklen_t len), (fd, level, name, value, len),
     0 /* none of them matters here */)
WRAP(int, getsockopt, (int fd, int level, int name, void *value, socklen_t *len), (fd, level, name, value, len),
     (*(int *)value = level == SOL_SOCKET && name == SO_ERROR ? take_error(s) : 0, 0))
WRAP(int, getpeername, (int fd, struct sockaddr *peer, socklen_t *len), (fd, peer, len), name_peer(s))
WRAP(int, fcntl, (int fd, int command, long argument), (fd, command, argument), control(s, command, argument))

int __wrap_socket(int domain, int type, int protocol)
{
    const int error = net_misses(fiber_client(), "socket");
    if (error != 0)
        return fail(error);
    struct socket *s = net_memory(sizeof *s);
    fiber_enter();
    s->owner = fiber_running();
    s->conn.client = fiber_client();
    s->to_server.socket = s->to_client.socket = s;
    if (socket_count == SOCKETS)
        net_die("more sockets than a world has room for");
    for (s->fd = FD_FIRST; look_up(s->fd) != NULL;) /* that of one that was closed comes again */
        s->fd++;
    latest[s->fd - FD_FIRST] = sockets[socket_count++] = s;
    return s->fd;
}

int __wrap_poll(struct pollfd *fds, nfds_t count, int ms)
{
    const int error = net_misses(fiber_client(), "poll");
    if (error != 0)
        return fail(error);
    return sockets_poll(fds, count, ms < 0 ? NEVER : net_now_us() + (uint64_t)ms * 1000);
}

/* The fortified name of the same call. */
int __wrap___poll_chk(struct pollfd *fds, nfds_t count, int ms, size_t size)
{
    return __wrap_poll(fds, count, ms);
}

/* ---- Names --------------------------------------------------------------------------------- */

/* All servers have addresses of four numbers. */
int __wrap_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints, struct addrinfo **out)
{
    struct {
        struct addrinfo info;
        struct sockaddr_in v4;
    } *found = net_memory(sizeof *found);

    fiber_enter();
    found->v4 = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((in_port_t)strtoul(service, NULL, 10))};
    if (inet_pton(AF_INET, host, &found->v4.sin_addr) != 1)
        net_die("a host that is no address");
    found->info = (struct addrinfo){.ai_family = AF_INET,
                                    .ai_socktype = SOCK_STREAM,
                                    .ai_addr = (void *)&found->v4,
                                    .ai_addrlen = sizeof found->v4};
    *out = &found->info;
    return 0;
}

void __wrap_freeaddrinfo(struct addrinfo *info)
{
    free(info);
}
