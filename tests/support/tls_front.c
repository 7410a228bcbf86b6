/* A TLS server before a real one. See tls_front.h. */
#include "tls_front.h"

#ifdef HIBLOOM_TLS

#include "certificates.h"
#include "net.h"

#include <openssl/ssl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { DRIP_US = 20000, STEP_MS = 5 };

struct tls_front {
    struct listener listener;
    struct worker worker;
    const char *upstream;
    SSL_CTX *context;
    pthread_mutex_t lock; /* of what follows */
    char sni[256];
    bool chatter;
    enum tls_fault fault;
    size_t after, sent;
};

/* One connection. OpenSSL reads from memory and writes to it, so that each byte passes through here. */
struct session {
    struct tls_front *front;
    SSL *ssl;
    int client, server;
};

static void give_up(const char *what)
{
    fprintf(stderr, "tls_front: %s\n", what);
    exit(EXIT_FAILURE);
}

/* What passes at once, before a fault does its part; all of it where there is none. */
static size_t whole(struct tls_front *front, size_t len, enum tls_fault *fault)
{
    size_t passes = len;

    pthread_mutex_lock(&front->lock);
    *fault = front->fault;
    if (*fault != TLS_FAULT_NONE)
        passes = front->after <= front->sent ? 0 : front->after - front->sent < len ? front->after - front->sent : len;
    front->sent += passes;
    pthread_mutex_unlock(&front->lock);
    return passes;
}

/* Sends what OpenSSL wrote; false: the connection ends. */
static bool send_out(struct session *s)
{
    const struct worker *worker = &s->front->worker;
    char bytes[16384];
    enum tls_fault fault;

    for (int len; (len = BIO_read(SSL_get_wbio(s->ssl), bytes, sizeof bytes)) > 0;) {
        size_t at = whole(s->front, (size_t)len, &fault);
        if (!worker_send(worker, s->client, bytes, at))
            return false;
        if (at < (size_t)len && fault == TLS_FAULT_CUT)
            return false;
        for (; at < (size_t)len && fault == TLS_FAULT_DRIP; at++)
            if (!worker_sleep(worker, DRIP_US) || !worker_send(worker, s->client, bytes + at, 1))
                return false;
    }
    return true;
}

static bool take_from_client(struct session *s)
{
    char bytes[16384];
    const ssize_t got = recv(s->client, bytes, sizeof bytes, MSG_DONTWAIT);

    if (got <= 0 || BIO_write(SSL_get_rbio(s->ssl), bytes, (int)got) != got)
        return false;
    if (!SSL_is_init_finished(s->ssl)) {
        (void)SSL_do_handshake(s->ssl); /* what went wrong the client is told */
        const char *name = SSL_get_servername(s->ssl, TLSEXT_NAMETYPE_host_name);
        pthread_mutex_lock(&s->front->lock);
        snprintf(s->front->sni, sizeof s->front->sni, "%s", name != NULL ? name : "");
        pthread_mutex_unlock(&s->front->lock);
    }
    for (int len; SSL_is_init_finished(s->ssl) && (len = SSL_read(s->ssl, bytes, sizeof bytes)) > 0;)
        if (!worker_send(&s->front->worker, s->server, bytes, (size_t)len))
            return false;
    return true;
}

static bool take_from_server(struct session *s)
{
    char bytes[16384];
    const ssize_t got = recv(s->server, bytes, sizeof bytes, MSG_DONTWAIT);

    return got > 0 && SSL_write(s->ssl, bytes, (int)got) == got;
}

static bool send_chatter(struct session *s)
{
    bool sent = true;

    pthread_mutex_lock(&s->front->lock);
    if (s->front->chatter && SSL_is_init_finished(s->ssl)) {
        if (SSL_new_session_ticket(s->ssl) != 1 || SSL_do_handshake(s->ssl) != 1 ||
            SSL_key_update(s->ssl, SSL_KEY_UPDATE_REQUESTED) != 1 || SSL_do_handshake(s->ssl) != 1)
            give_up("no ticket or keys");
        pthread_mutex_unlock(&s->front->lock);
        sent = send_out(s);
        pthread_mutex_lock(&s->front->lock);
        s->front->chatter = false;
    }
    pthread_mutex_unlock(&s->front->lock);
    return sent;
}

static void serve(struct session *s)
{
    struct pollfd fds[] = {{.fd = s->client, .events = POLLIN},
                           {.fd = s->server, .events = POLLIN},
                           {.fd = s->front->listener.fd, .events = POLLIN},
                           {.fd = s->front->worker.stop, .events = POLLIN}};

    for (bool goes_on = true; goes_on;) {
        if (poll(fds, 4, STEP_MS) < 0 || fds[3].revents != 0 || fds[2].revents != 0)
            return;
        if (fds[0].revents != 0)
            goes_on = take_from_client(s);
        if (goes_on && fds[1].revents != 0)
            goes_on = take_from_server(s);
        goes_on = send_out(s) && goes_on && send_chatter(s);
    }
}

static int connect_upstream(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) != 0)
        give_up("the server is not there");
    return fd;
}

static void *run(void *argument)
{
    struct tls_front *front = argument;

    while (worker_wait_readable(&front->worker, front->listener.fd)) {
        struct session s = {.front = front, .client = accept4(front->listener.fd, NULL, NULL, SOCK_CLOEXEC)};
        s.server = connect_upstream(front->upstream);
        s.ssl = SSL_new(front->context);
        if (s.client < 0 || s.ssl == NULL)
            give_up("no connection");
        SSL_set_bio(s.ssl, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
        SSL_set_accept_state(s.ssl);
        pthread_mutex_lock(&front->lock);
        front->sent = 0;
        pthread_mutex_unlock(&front->lock);
        serve(&s);
        SSL_free(s.ssl);
        close(s.client);
        close(s.server);
    }
    return NULL;
}

struct tls_front *tls_front_start(const struct certificate *certificate, const char *upstream_socket)
{
    struct tls_front *front = calloc(1, sizeof *front);

    if (front == NULL || !listener_open_tcp(&front->listener, "127.0.0.1"))
        give_up("cannot listen");
    front->upstream = upstream_socket;
    front->context = SSL_CTX_new(TLS_server_method());
    if (front->context == NULL ||
        SSL_CTX_use_certificate_file(front->context, certificate->cert, SSL_FILETYPE_PEM) != 1 ||
        SSL_CTX_use_PrivateKey_file(front->context, certificate->key, SSL_FILETYPE_PEM) != 1)
        give_up("its certificate");
    pthread_mutex_init(&front->lock, NULL);
    worker_start(&front->worker, run, front);
    return front;
}

void tls_front_stop(struct tls_front *front)
{
    if (front == NULL)
        return;
    worker_stop(&front->worker);
    listener_close(&front->listener);
    SSL_CTX_free(front->context);
    pthread_mutex_destroy(&front->lock);
    free(front);
}

int tls_front_port(const struct tls_front *front)
{
    return front->listener.port;
}

const char *tls_front_sni(struct tls_front *front)
{
    return front->sni; /* the thread is done with it once the handshake is over */
}

void tls_front_chatter(struct tls_front *front)
{
    bool waits = true;

    pthread_mutex_lock(&front->lock);
    front->chatter = true;
    pthread_mutex_unlock(&front->lock);
    for (int i = 0; waits; i++) {
        if (i == 2000)
            give_up("nobody to send keys to");
        usleep(STEP_MS * 1000);
        pthread_mutex_lock(&front->lock);
        waits = front->chatter;
        pthread_mutex_unlock(&front->lock);
    }
}

void tls_front_fault(struct tls_front *front, enum tls_fault fault, size_t after)
{
    pthread_mutex_lock(&front->lock);
    front->fault = fault;
    front->after = after;
    pthread_mutex_unlock(&front->lock);
}

size_t tls_front_sent(struct tls_front *front)
{
    pthread_mutex_lock(&front->lock);
    const size_t sent = front->sent;
    pthread_mutex_unlock(&front->lock);
    return sent;
}

void tls_front_limit(struct tls_front *front)
{
    if (SSL_CTX_set_max_proto_version(front->context, TLS1_2_VERSION) != 1)
        give_up("no TLS 1.2");
}

#else

/* No test starts it where the library is built without TLS. */
typedef int tls_front_is_not_built;

#endif
