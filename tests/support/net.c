/* Sockets, a stoppable thread and a growing buffer for the servers of the tests. See net.h. */
#include "net.h"

#include "temp_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static void give_up(const char *what)
{
    perror(what);
    exit(EXIT_FAILURE);
}

void listener_open_unix(struct listener *listener)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char uri[sizeof address.sun_path + sizeof "unix://"];

    *listener = (struct listener){.dir = temp_dir_make()};
    listener->path = temp_dir_path(listener->dir, "test.sock");
    snprintf(address.sun_path, sizeof address.sun_path, "%s", listener->path);
    snprintf(uri, sizeof uri, "unix://%s", listener->path);
    listener->uri = strdup(uri);
    listener->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener->fd < 0 || bind(listener->fd, (struct sockaddr *)&address, sizeof address) != 0 ||
        listen(listener->fd, 16) != 0)
        give_up(listener->path);
}

/* The port that the kernel chose. */
static const char *port_of(int fd, char port[NI_MAXSERV])
{
    struct sockaddr_storage address;
    socklen_t length = sizeof address;

    if (getsockname(fd, (struct sockaddr *)&address, &length) != 0 ||
        getnameinfo((struct sockaddr *)&address, length, NULL, 0, port, NI_MAXSERV, NI_NUMERICSERV) != 0)
        give_up("a port");
    return port;
}

bool listener_open_tcp(struct listener *listener, const char *host)
{
    const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_PASSIVE, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found;
    char port[NI_MAXSERV], uri[128];
    bool open;

    *listener = (struct listener){.fd = -1};
    if (getaddrinfo(host, "0", &hints, &found) != 0)
        return false;
    listener->fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    open = listener->fd >= 0 && bind(listener->fd, found->ai_addr, found->ai_addrlen) == 0 &&
           listen(listener->fd, 16) == 0;
    freeaddrinfo(found);
    if (!open) {
        listener_close(listener);
        return false;
    }
    listener->port = atoi(port_of(listener->fd, port));
    snprintf(uri, sizeof uri, strchr(host, ':') != NULL ? "redis://[%s]:%s" : "redis://%s:%s", host, port);
    listener->uri = strdup(uri);
    return true;
}

void listener_close(struct listener *listener)
{
    if (listener->fd >= 0)
        close(listener->fd);
    temp_dir_remove(listener->dir);
    free(listener->path);
    free(listener->uri);
    *listener = (struct listener){.fd = -1};
}

void worker_start(struct worker *worker, void *(*run)(void *), void *argument)
{
    worker->stop = eventfd(0, EFD_CLOEXEC);
    if (worker->stop < 0)
        give_up("eventfd");
    errno = pthread_create(&worker->thread, NULL, run, argument);
    if (errno != 0)
        give_up("a thread");
}

void worker_stop(struct worker *worker)
{
    const uint64_t one = 1;

    if (write(worker->stop, &one, sizeof one) != sizeof one)
        give_up("eventfd");
    pthread_join(worker->thread, NULL);
    close(worker->stop);
}

bool worker_sleep(const struct worker *worker, unsigned microseconds)
{
    const struct timespec pause = {(time_t)(microseconds / 1000000), (long)(microseconds % 1000000) * 1000};
    struct pollfd stop = {.fd = worker->stop, .events = POLLIN};

    return ppoll(&stop, 1, &pause, NULL) == 0;
}

static bool wait_for(const struct worker *worker, int fd, short events)
{
    struct pollfd fds[2] = {{.fd = worker->stop, .events = POLLIN}, {.fd = fd, .events = events}};

    return poll(fds, 2, -1) > 0 && fds[0].revents == 0;
}

bool worker_wait_readable(const struct worker *worker, int fd)
{
    return wait_for(worker, fd, POLLIN);
}

bool worker_send(const struct worker *worker, int fd, const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t n = send(fd, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT);

        if (n >= 0) {
            bytes += n;
            len -= (size_t)n;
        } else if ((errno != EAGAIN && errno != EINTR) || !wait_for(worker, fd, POLLOUT)) {
            return false;
        }
    }
    return true;
}

void bytes_append(struct bytes *bytes, const char *data, size_t len)
{
    char *grown = realloc(bytes->data, bytes->len + len + 1);

    if (grown == NULL)
        give_up("memory");
    memcpy(grown + bytes->len, data, len);
    bytes->data = grown;
    bytes->len += len;
    grown[bytes->len] = '\0'; /* for who prints it, and for strtol */
}

void bytes_consume(struct bytes *bytes, size_t len)
{
    if (len == 0)
        return;
    memmove(bytes->data, bytes->data + len, bytes->len - len + 1);
    bytes->len -= len;
}

void bytes_clear(struct bytes *bytes)
{
    free(bytes->data);
    *bytes = (struct bytes){0};
}

bool bytes_read(struct bytes *bytes, int fd)
{
    char chunk[16384];
    ssize_t n = recv(fd, chunk, sizeof chunk, MSG_DONTWAIT);

    if (n > 0)
        bytes_append(bytes, chunk, (size_t)n);
    return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}
