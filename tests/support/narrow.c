/* A proxy with small buffers. See narrow.h. */
#include "narrow.h"
#include "test.h"

#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { NARROW = 4096 };

static bool pass(const struct narrow *narrow, int from, int to)
{
    char bytes[NARROW];
    const ssize_t n = read(from, bytes, sizeof bytes);

    return n > 0 && worker_send(&narrow->worker, to, bytes, (size_t)n);
}

static int open_narrow(int fd)
{
    const int bytes = NARROW;

    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes), 0);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes), 0);
    return fd;
}

static void *run(void *of)
{
    struct narrow *narrow = of;
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    strncpy(address.sun_path, narrow->upstream, sizeof address.sun_path - 1);
    while (worker_wait_readable(&narrow->worker, narrow->listener.fd)) {
        const int client = open_narrow(accept(narrow->listener.fd, NULL, NULL));
        const int upstream = open_narrow(socket(AF_UNIX, SOCK_STREAM, 0));
        struct pollfd fds[] = {{.fd = narrow->worker.stop, .events = POLLIN},
                               {.fd = upstream, .events = POLLIN},
                               {.fd = client, .events = POLLIN}};
        bool goes_on = connect(upstream, (struct sockaddr *)&address, sizeof address) == 0;
        while (goes_on && poll(fds, 3, -1) > 0 && fds[0].revents == 0)
            goes_on = fds[1].revents != 0 ? pass(narrow, upstream, client) : pass(narrow, client, upstream);
        close(upstream);
        close(client);
    }
    return NULL;
}

void narrow_start(struct narrow *narrow, const char *upstream_socket)
{
    narrow->upstream = upstream_socket;
    listener_open_unix(&narrow->listener);
    worker_start(&narrow->worker, run, narrow);
}

void narrow_stop(struct narrow *narrow)
{
    worker_stop(&narrow->worker);
    listener_close(&narrow->listener);
}
