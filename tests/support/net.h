/* What the servers of the tests share: a socket to listen on, and a thread that can be told to end whatever it waits
 * for, so that no fault in a test leaves the program hanging. */
#ifndef HIBLOOM_TEST_NET_H
#define HIBLOOM_TEST_NET_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

/* ---- Listening --------------------------------------------------------------- */

struct listener {
    int fd;
    int port;   /* 0 on a Unix socket */
    char *dir;  /* NULL on a port */
    char *path; /* of the Unix socket; NULL on a port */
    char *uri;  /* "unix:///path" or "redis://host:port" */
};

void listener_open_unix(struct listener *listener); /* in a temporary directory */

/* On a free port of "127.0.0.1" or "::1"; false where this machine lacks it. */
bool listener_open_tcp(struct listener *listener, const char *host);

void listener_close(struct listener *listener);

/* ---- The thread --------------------------------------------------------------- */

struct worker {
    pthread_t thread;
    int stop; /* an eventfd: readable once the thread is to end */
};

void worker_start(struct worker *worker, void *(*run)(void *), void *argument);
void worker_stop(struct worker *worker); /* tells it to end, and waits until it has */

/* Sleeps until the worker is told to end, false then, or the time is over. */
bool worker_sleep(const struct worker *worker, unsigned microseconds);

/* Waits until fd can be read; false once the worker is to end. */
bool worker_wait_readable(const struct worker *worker, int fd);

/* Sends all of it, and raises no SIGPIPE; false if the peer is gone or the worker is to end. */
bool worker_send(const struct worker *worker, int fd, const char *bytes, size_t len);

/* ---- Bytes -------------------------------------------------------------------- */

struct bytes {
    char *data;
    size_t len;
};

void bytes_append(struct bytes *bytes, const char *data, size_t len);
void bytes_consume(struct bytes *bytes, size_t len); /* from its front */
void bytes_clear(struct bytes *bytes);               /* and frees */

/* Reads what there is and appends it; false at the end or an error. */
bool bytes_read(struct bytes *bytes, int fd);

#endif
