/* The server that plays a script. See scripted_server.h. */
#include "scripted_server.h"

#include "net.h"
#include "resp.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PAUSE_US = 100 }; /* before the script begins anew, lest an empty one take the processor */

struct scripted_server {
    struct worker worker;
    struct listener listener;
    const struct script_step *script;
    int peer;              /* the accepted connection, or -1 */
    struct bytes pending;  /* heard from it, and not yet a whole command */
    pthread_mutex_t mutex; /* guards heard */
    struct bytes heard;
};

static bool hear(struct scripted_server *server)
{
    size_t before = server->pending.len;
    bool more = bytes_read(&server->pending, server->peer);

    if (server->pending.len > before) {
        pthread_mutex_lock(&server->mutex);
        bytes_append(&server->heard, server->pending.data + before, server->pending.len - before);
        pthread_mutex_unlock(&server->mutex);
    }
    return more;
}

/* Takes one whole command off the peer; false when none will come. */
static bool read_command(struct scripted_server *server)
{
    size_t len;

    while ((len = resp_length(server->pending.data, server->pending.len)) == 0)
        if (!worker_wait_readable(&server->worker, server->peer) || !hear(server))
            return false;
    bytes_consume(&server->pending, len);
    return true;
}

static bool send_step(struct scripted_server *server, const struct script_step *step)
{
    if (step->count == 0)
        return worker_send(&server->worker, server->peer, step->bytes, step->len);
    for (size_t i = 0; i < step->len; i++)
        if (!worker_sleep(&server->worker, step->count * 1000) ||
            !worker_send(&server->worker, server->peer, step->bytes + i, 1))
            return false;
    return true;
}

static void hang_up(struct scripted_server *server)
{
    if (server->peer >= 0)
        close(server->peer);
    server->peer = -1;
    bytes_clear(&server->pending);
}

/* A step that fails because the peer is gone is none of the script's
 * business: it goes on, and the next ACCEPT takes the next peer. */
static void play(struct scripted_server *server, const struct script_step *step)
{
    switch (step->action) {
    case SCRIPT_DO_ACCEPT:
        hang_up(server);
        if (worker_wait_readable(&server->worker, server->listener.fd))
            server->peer = accept(server->listener.fd, NULL, NULL);
        break;
    case SCRIPT_DO_READ:
        for (unsigned i = 0; i < step->count && read_command(server); i++)
            continue;
        break;
    case SCRIPT_DO_SEND: send_step(server, step); break;
    case SCRIPT_DO_REPEAT:
        while (send_step(server, step))
            continue;
        break;
    case SCRIPT_DO_PACE:
        while (worker_sleep(&server->worker, step->count * 1000) &&
               worker_send(&server->worker, server->peer, step->bytes, step->len))
            continue;
        break;
    case SCRIPT_DO_ANSWER:
        while (read_command(server) && send_step(server, step))
            continue;
        break;
    case SCRIPT_DO_CLOSE: hang_up(server); break;
    case SCRIPT_DO_END: break;
    }
}

static void *run(void *argument)
{
    struct scripted_server *server = argument;

    do {
        for (const struct script_step *step = server->script; step->action != SCRIPT_DO_END; step++)
            play(server, step);
        /* Reads on, lest a peer that sends much is held up instead of answered by silence. */
        while (server->peer >= 0 && worker_wait_readable(&server->worker, server->peer) && hear(server))
            continue;
    } while (worker_sleep(&server->worker, PAUSE_US));
    return NULL;
}

static struct scripted_server *start(const struct script_step *script, const struct listener *listener)
{
    struct scripted_server *server = calloc(1, sizeof *server);

    if (server == NULL)
        abort();
    server->listener = *listener;
    server->script = script;
    server->peer = -1;
    bytes_append(&server->heard, "", 0); /* so that it can be copied before anything is heard */
    pthread_mutex_init(&server->mutex, NULL);
    worker_start(&server->worker, run, server);
    return server;
}

struct scripted_server *scripted_server_start(const struct script_step *script)
{
    struct listener listener;

    listener_open_unix(&listener);
    return start(script, &listener);
}

struct scripted_server *scripted_server_start_tcp(const struct script_step *script, const char *host)
{
    struct listener listener;

    return listener_open_tcp(&listener, host) ? start(script, &listener) : NULL;
}

const char *scripted_server_uri(const struct scripted_server *server)
{
    return server->listener.uri;
}

const char *scripted_server_socket(const struct scripted_server *server)
{
    return server->listener.path;
}

int scripted_server_port(const struct scripted_server *server)
{
    return server->listener.port;
}

char *scripted_server_heard(struct scripted_server *server, size_t *len)
{
    struct bytes copy = {0};

    pthread_mutex_lock(&server->mutex);
    bytes_append(&copy, server->heard.data, server->heard.len);
    pthread_mutex_unlock(&server->mutex);
    *len = copy.len;
    return copy.data;
}

void scripted_server_stop(struct scripted_server *server)
{
    if (server == NULL)
        return;
    worker_stop(&server->worker);
    hang_up(server);
    bytes_clear(&server->heard);
    listener_close(&server->listener);
    pthread_mutex_destroy(&server->mutex);
    free(server);
}
