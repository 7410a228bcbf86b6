/* The recording proxy. See recorder.h. */
#include "recorder.h"

#include "../support/net.h"
#include "../support/resp.h"
#include "bench.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CALLS_MAX = 64 };

struct recorder {
    struct listener listener;
    struct worker worker;
    int port;
    pthread_mutex_t lock; /* of what follows */
    struct bytes requests, replies;
    size_t calls, call_ends[CALLS_MAX]; /* in requests */
};

/* ---- Passing on --------------------------------------------------------------- */

/* Passes on and keeps what has come; false at the end of the connection. */
static bool pass(struct recorder *recorder, int from, int to, struct bytes *kept)
{
    pthread_mutex_lock(&recorder->lock);
    const size_t before = kept->len;
    const bool open = bytes_read(kept, from) &&
                      worker_send(&recorder->worker, to, kept->data + before, kept->len - before);
    pthread_mutex_unlock(&recorder->lock);
    return open;
}

static void *run(void *argument)
{
    struct recorder *recorder = argument;
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)recorder->port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int client = accept(recorder->listener.fd, NULL, NULL), server = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    struct pollfd fds[2] = {{.fd = client, .events = POLLIN}, {.fd = server, .events = POLLIN}};
    bool open = client >= 0 && connect(server, (const struct sockaddr *)&address, sizeof address) == 0;

    if (!open || setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0 ||
        setsockopt(server, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0)
        bench_fail("the recorder has no connection");
    while (open && poll(fds, 2, -1) > 0) {
        if (fds[0].revents != 0)
            open = pass(recorder, client, server, &recorder->requests);
        if (open && fds[1].revents != 0)
            open = pass(recorder, server, client, &recorder->replies);
    }
    close(client);
    close(server);
    return NULL;
}

struct recorder *recorder_start(int port)
{
    struct recorder *recorder = calloc(1, sizeof *recorder);

    if (recorder == NULL || !listener_open_tcp(&recorder->listener, "127.0.0.1"))
        bench_fail("the recorder cannot listen");
    recorder->port = port;
    pthread_mutex_init(&recorder->lock, NULL);
    worker_start(&recorder->worker, run, recorder);
    return recorder;
}

const char *recorder_uri(const struct recorder *recorder)
{
    return recorder->listener.uri;
}

void recorder_reset(struct recorder *recorder)
{
    pthread_mutex_lock(&recorder->lock);
    bytes_consume(&recorder->requests, recorder->requests.len);
    bytes_consume(&recorder->replies, recorder->replies.len);
    recorder->calls = 0;
    pthread_mutex_unlock(&recorder->lock);
}

void recorder_call_ends(struct recorder *recorder)
{
    if (recorder->calls == CALLS_MAX)
        bench_fail("a recording of too many calls");
    pthread_mutex_lock(&recorder->lock);
    recorder->call_ends[recorder->calls++] = recorder->requests.len;
    pthread_mutex_unlock(&recorder->lock);
}

/* ---- Writing ------------------------------------------------------------------ */

/* The next value's length, moving past it. */
static uint32_t next_length(const struct bytes *bytes, size_t *at)
{
    const size_t length = resp_length(bytes->data + *at, bytes->len - *at);

    if (length == 0)
        bench_fail("a recording that is not whole");
    *at += length;
    return (uint32_t)length;
}

/* The next pipeline: it ends in a guard, whose answer is a trailer, a string of 92
 * bytes that no other command asks for. One that is nothing but a guard was
 * waited for before anything else was sent. */
static struct pipeline next_pipeline(const struct recorder *recorder, size_t *request, size_t *reply)
{
    static const char trailer[] = "$92\r\n";
    struct pipeline pipeline = {0};
    unsigned commands = 0;
    bool is_guard = false;

    while (!is_guard) {
        is_guard = recorder->replies.len - *reply >= sizeof trailer &&
                   memcmp(recorder->replies.data + *reply, trailer, sizeof trailer - 1) == 0;
        pipeline.request_bytes += next_length(&recorder->requests, request);
        pipeline.reply_bytes += next_length(&recorder->replies, reply);
        commands++;
    }
    pipeline.waits = commands == 1;
    return pipeline;
}

/* Cuts the commands into pipelines again; the number of them. */
static uint64_t cut(const struct recorder *recorder, struct pipeline *pipelines, size_t most)
{
    size_t request = 0, reply = 0;
    uint64_t n = 0;

    for (size_t call = 0; call < recorder->calls; call++)
        while (request < recorder->call_ends[call]) {
            if (n == most)
                bench_fail("a recording of too many pipelines");
            pipelines[n] = next_pipeline(recorder, &request, &reply);
            pipelines[n].ends_call = request == recorder->call_ends[call];
            pipelines[n].waits |= pipelines[n].ends_call;
            n++;
        }
    return n;
}

void recorder_write(struct recorder *recorder, const char *path)
{
    const size_t most = recorder->requests.len / 1000 + CALLS_MAX;

    worker_stop(&recorder->worker);
    struct pipeline *pipelines = calloc(most, sizeof *pipelines);
    FILE *file = fopen(path, "wb");
    if (pipelines == NULL || file == NULL)
        bench_fail("the recording cannot be written");
    const uint64_t n = cut(recorder, pipelines, most);
    fwrite(&n, sizeof n, 1, file);
    fwrite(pipelines, sizeof *pipelines, (size_t)n, file);
    fwrite(recorder->requests.data, 1, recorder->requests.len, file);
    if (fclose(file) != 0)
        bench_fail("the recording cannot be written");
    free(pipelines);
    bytes_clear(&recorder->requests);
    bytes_clear(&recorder->replies);
    listener_close(&recorder->listener);
    pthread_mutex_destroy(&recorder->lock);
    free(recorder);
}
