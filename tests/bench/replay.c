/* Sends a recording of what hibloom sent (recorder.h) again and again over a
 * bare socket, and reads as many bytes of answers as there were: what server
 * and socket allow to a client that has nothing to think about. It knows
 * nothing of hibloom, hiredis or Redis.
 *
 *     replay PORT RECORDING SECONDS calls|stream
 *
 * calls: all answers are waited for where hibloom waited: where a call ended, and after a guard alone.
 * stream: never; so there is always a pipeline ahead of the answers.
 * Prints the calls that were sent in a second. */
#include "recorder.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

static void check(bool good, const char *what)
{
    if (good)
        return;
    perror(what);
    exit(EXIT_FAILURE);
}

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int connect_to(const char *port)
{
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port)), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;

    check(connect(fd, (const struct sockaddr *)&address, sizeof address) == 0, "connect");
    check(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0, "TCP_NODELAY");
    return fd;
}

static void send_all(int fd, const char *bytes, size_t len)
{
    while (len > 0) {
        const ssize_t n = send(fd, bytes, len, 0);
        check(n > 0, "send");
        bytes += n;
        len -= (size_t)n;
    }
}

/* Reads until no more than `ahead` bytes of answers are to come. */
static void receive(int fd, uint64_t *to_come, uint64_t ahead)
{
    static char answers[(64 << 10) + 1];

    while (*to_come > ahead) {
        const ssize_t n = recv(fd, answers, sizeof answers - 1, 0);
        check(n >= 0, "recv");
        if (n == 0 || (uint64_t)n > *to_come) {
            fprintf(stderr, "replay: %s; last: %.60s\n", n == 0 ? "the server hung up" : "too many answers", answers);
            exit(EXIT_FAILURE);
        }
        *to_come -= (uint64_t)n;
    }
}

/* Sends the recording once; the calls in it. */
static unsigned replay(int fd, const struct pipeline *pipelines, uint64_t n, bool stream, uint64_t *to_come)
{
    const char *requests = (const char *)(pipelines + n);
    unsigned calls = 0;

    for (uint64_t i = 0; i < n; i++) {
        send_all(fd, requests, pipelines[i].request_bytes);
        requests += pipelines[i].request_bytes;
        *to_come += pipelines[i].reply_bytes;
        receive(fd, to_come, pipelines[i].waits && !stream ? 0 : pipelines[i].reply_bytes);
        calls += pipelines[i].ends_call;
    }
    return calls;
}

/* The pipelines, with the requests behind them. */
static struct pipeline *load(const char *path, uint64_t *n)
{
    FILE *file = fopen(path, "rb");

    check(file != NULL && fseek(file, 0, SEEK_END) == 0, path);
    const size_t size = (size_t)ftell(file) - sizeof *n;
    rewind(file);
    struct pipeline *pipelines = malloc(size);
    check(pipelines != NULL && fread(n, sizeof *n, 1, file) == 1 && fread(pipelines, 1, size, file) == size, path);
    fclose(file);
    return pipelines;
}

int main(int argc, char **argv)
{
    uint64_t to_come = 0, n = 0, calls = 0;

    check(argc == 5, "usage: replay PORT RECORDING SECONDS calls|stream");
    struct pipeline *pipelines = load(argv[2], &n);
    const bool stream = strcmp(argv[4], "stream") == 0;
    const int fd = connect_to(argv[1]);
    const double begin = now(), until = begin + atof(argv[3]);
    do
        calls += replay(fd, pipelines, n, stream, &to_come);
    while (now() < until);
    receive(fd, &to_come, 0);
    printf("%.3f\n", (double)calls / (now() - begin));
    free(pipelines);
    return EXIT_SUCCESS;
}
