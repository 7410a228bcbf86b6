/* Starting and ending real Redis servers. See redis_server.h. */
#include "redis_server.h"

#include "base/clock.h"
#include "certificates.h"
#include "temp_dir.h"

#include <arpa/inet.h>
#include <hiredis/hiredis.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ARGS_MAX = 96, START_TRIES = 20, RESTART_STEP_MS = 100, WAIT_STEP_MS = 5, WAIT_STEPS = 4000 };
enum { ANSWER_S = 10, CONDITION_MS = 60000, CONDITION_STEP_MS = 20, CUT_OFF_MS = 200 };

/* Below the range that systems take the ports of outgoing connections from:
 * else such a connection may hold the port of a server that is to restart. */
enum { FIRST_PORT = 12000, PORTS = 20000 };

enum kind { ON_SOCKET, ON_PORT, CLUSTER_NODE, SENTINEL };

struct redis_server {
    struct redis_server *next;
    pid_t owner; /* a child of the test has this list too, but no say over it */
    pid_t pid;   /* 0 when it does not run */
    enum kind kind;
    const struct certificate *certificate; /* NULL: no TLS */
    int port, bus_port;                    /* 0: it has none */
    char *dir, *socket, *log, *uri;
    char *sentinel_file; /* where a Sentinel keeps what it knows */
    char port_text[8], bus_port_text[8];
    size_t args_len;
    const char *args[ARGS_MAX];
};

static struct redis_server *running; /* all that were not stopped yet */

_Noreturn void redis_server_give_up(const struct redis_server *server, const char *what)
{
    char line[512];
    FILE *log = fopen(server->log, "r");

    fprintf(stderr, "redis-server: %s; its log:\n", what);
    while (log != NULL && fgets(line, sizeof line, log) != NULL)
        fputs(line, stderr);
    if (log != NULL)
        fclose(log);
    exit(EXIT_FAILURE);
}

static void sleep_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_sec = 0, .tv_nsec = ms * 1000000L}, NULL); /* less than a second */
}

/* A port that nobody has at this moment. Somebody may take it before the server does, so the caller tries again. */
static int free_port(void)
{
    for (int i = 0; i < PORTS; i++) {
        struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        unsigned chance = 0;
        bool is_free;

        if (fd < 0 || getentropy(&chance, sizeof chance) != 0)
            break;
        address.sin_port = htons((uint16_t)(FIRST_PORT + chance % PORTS));
        is_free = bind(fd, (struct sockaddr *)&address, sizeof address) == 0;
        close(fd);
        if (is_free)
            return ntohs(address.sin_port);
    }
    perror("a free port");
    exit(EXIT_FAILURE);
}

static void run_child(const struct redis_server *server)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() == server->owner) /* else the parent died before the line above */
        execvp(server->args[0], (char *const *)(const void *)server->args);
    _exit(127);
}

const char *redis_server_password(const struct redis_server *server)
{
    const char *password = NULL;

    for (size_t i = 0; i + 1 < server->args_len; i++)
        if (strcmp(server->args[i], "--requirepass") == 0)
            password = server->args[i + 1];
    return password;
}

static redisReply *ask_unguarded(const struct redis_server *server, const char *format, va_list arguments)
{
    const struct timeval patience = {.tv_sec = ANSWER_S, .tv_usec = 0};
    const char *password = redis_server_password(server);
    redisContext *context = redisConnectUnixWithTimeout(server->socket, patience);
    redisReply *reply = NULL;

    if (context != NULL && context->err == 0 && redisSetTimeout(context, patience) == REDIS_OK) {
        if (password != NULL)
            freeReplyObject(redisCommand(context, "AUTH %s", password));
        reply = redisvCommand(context, format, arguments);
    }
    redisFree(context);
    return reply;
}

/* A Sentinel has a server close all connections when its role changes, and one
 * that is killed closes them too: SIGPIPE must not end the program. */
static redisReply *ask(const struct redis_server *server, const char *format, va_list arguments)
{
    const struct timespec at_once = {.tv_sec = 0, .tv_nsec = 0};
    sigset_t pipe, pending, before;
    redisReply *reply;

    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    sigpending(&pending);
    pthread_sigmask(SIG_BLOCK, &pipe, &before);
    reply = ask_unguarded(server, format, arguments);
    if (!sigismember(&pending, SIGPIPE))
        sigtimedwait(&pipe, NULL, &at_once);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return reply;
}

struct redisReply *redis_server_ask(const struct redis_server *server, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    redisReply *reply = ask(server, format, arguments);
    va_end(arguments);
    return reply;
}

struct redisReply *redis_server_must(const struct redis_server *server, const char *format, ...)
{
    va_list arguments;
    redisReply *reply;
    char what[256];

    va_start(arguments, format);
    reply = ask(server, format, arguments);
    va_end(arguments);
    if (reply != NULL && reply->type != REDIS_REPLY_ERROR)
        return reply;
    snprintf(what, sizeof what, "%s: %s", format, reply != NULL ? reply->str : "no answer");
    redis_server_give_up(server, what);
}

bool redis_server_says(const struct redis_server *server, const char *command, const char *words)
{
    redisReply *reply = redis_server_ask(server, command);
    const bool says = reply != NULL && reply->type == REDIS_REPLY_STRING && strstr(reply->str, words) != NULL;

    freeReplyObject(reply);
    return says;
}

long long redis_server_calls_of(struct redisContext *redis, const char *command)
{
    redisReply *reply = redisCommand(redis, "INFO commandstats");
    char key[64];

    snprintf(key, sizeof key, "cmdstat_%s:calls=", command);
    if (reply == NULL || reply->type != REDIS_REPLY_STRING) {
        fprintf(stderr, "INFO commandstats was not answered\n");
        exit(EXIT_FAILURE);
    }
    const char *line = strstr(reply->str, key);
    const long long calls = line != NULL ? atoll(line + strlen(key)) : 0;
    freeReplyObject(reply);
    return calls;
}

bool redis_server_is_in_sync(const struct redis_server *server)
{
    redisReply *reply = redis_server_ask(server, "INFO replication");
    const char *text = reply != NULL && reply->type == REDIS_REPLY_STRING ? reply->str : "";
    char *file = temp_dir_path(server->dir, "dump.rdb");
    bool is_in_sync = access(file, F_OK) != 0; /* a restart would load it */

    if (strstr(text, "role:master") != NULL)
        is_in_sync = is_in_sync && strstr(text, "state=wait_bgsave") == NULL && strstr(text, "state=send_bulk") == NULL;
    else
        is_in_sync = is_in_sync && strstr(text, "master_link_status:up") != NULL;
    free(file);
    freeReplyObject(reply);
    return is_in_sync;
}

void redis_server_wait(const struct redis_server *server, redis_server_condition *is_so, const void *argument,
                       const char *what)
{
    const uint64_t end_ms = clock_now_ms() + CONDITION_MS;

    while (!is_so(argument)) {
        if (clock_now_ms() > end_ms)
            redis_server_give_up(server, what);
        sleep_ms(CONDITION_STEP_MS);
    }
}

static int answers(const struct redis_server *server)
{
    redisReply *reply = redis_server_ask(server, "PING");
    /* One that refuses the password, or wants one that nobody gave, answers too. */
    const int ready = reply != NULL && strncmp(reply->str, "LOADING", 7) != 0;

    freeReplyObject(reply);
    return ready;
}

/* Starts the process and waits for it; 0 when it ended instead. */
static int launch(struct redis_server *server)
{
    unlink(server->socket); /* a killed one leaves it behind */
    server->pid = fork();
    if (server->pid == 0)
        run_child(server);
    if (server->pid < 0)
        redis_server_give_up(server, "cannot fork");
    for (int i = 0; i < WAIT_STEPS; i++) {
        if (answers(server))
            return 1;
        if (waitpid(server->pid, NULL, WNOHANG) == server->pid) {
            server->pid = 0;
            return 0;
        }
        sleep_ms(WAIT_STEP_MS);
    }
    redis_server_give_up(server, "does not answer");
}

static void add_args(struct redis_server *server, const char *const args[])
{
    for (size_t i = 0; args != NULL && args[i] != NULL; i++) {
        if (server->args_len + 1 == ARGS_MAX)
            redis_server_give_up(server, "too many arguments");
        server->args[server->args_len++] = args[i];
    }
    server->args[server->args_len] = NULL;
}

#define ADD(server, ...) add_args((server), (const char *const[]){__VA_ARGS__, NULL})

static void add_tls_args(struct redis_server *server, const struct certificate *certificate)
{
    ADD(server, "--port", "0", "--tls-port", server->port_text);
    ADD(server, "--tls-cert-file", certificate->cert, "--tls-key-file", certificate->key);
    ADD(server, "--tls-ca-cert-file", certificate->ca, "--tls-auth-clients", "no");
    ADD(server, "--tls-replication", "yes", "--tls-cluster", "yes");
}

static void set_args(struct redis_server *server, const char *const extra_args[])
{
    server->args_len = 0;
    const char *other = getenv("HIBLOOM_TEST_SERVER"); /* valkey-server */
    ADD(server, other != NULL ? other : "redis-server");
    if (server->kind == SENTINEL)
        ADD(server, server->sentinel_file, "--sentinel");
    else /* A replica gets its data at once and by way of a file, as without one it gets
          * nothing new in the first second. The file is gone soon after. */
        ADD(server, "--repl-diskless-sync", "no", "--rdb-del-sync-files", "yes");
    ADD(server, "--bind", "127.0.0.1", "--unixsocket", server->socket, "--dir", server->dir);
    ADD(server, "--logfile", server->log, "--save", "", "--appendonly", "no", "--daemonize", "no");
    if (server->certificate == NULL)
        ADD(server, "--port", server->port_text);
    else
        add_tls_args(server, server->certificate);
    if (server->kind == CLUSTER_NODE) {
        ADD(server, "--cluster-enabled", "yes", "--cluster-port", server->bus_port_text);
        /* A dead primary is noticed soon; its replica takes over however old its data is, and stays in its shard. */
        ADD(server, "--cluster-node-timeout", "1000", "--cluster-replica-validity-factor", "0");
        ADD(server, "--cluster-allow-replica-migration", "no");
    }
    add_args(server, extra_args);
}

static void set_ports(struct redis_server *server)
{
    char uri[160];

    server->port = server->kind != ON_SOCKET ? free_port() : 0;
    server->bus_port = server->kind == CLUSTER_NODE ? free_port() : 0;
    snprintf(server->port_text, sizeof server->port_text, "%d", server->port);
    snprintf(server->bus_port_text, sizeof server->bus_port_text, "%d", server->bus_port);
    if (server->port != 0)
        snprintf(uri, sizeof uri, "%s://127.0.0.1:%d", server->certificate != NULL ? "rediss" : "redis", server->port);
    else
        snprintf(uri, sizeof uri, "unix://%s", server->socket);
    free(server->uri);
    server->uri = strdup(uri);
}

/* Empty: it is told by commands whom to watch, and writes that here. */
static void make_sentinel_file(struct redis_server *server)
{
    FILE *file;

    server->sentinel_file = temp_dir_path(server->dir, "sentinel.conf");
    file = fopen(server->sentinel_file, "w");
    if (file == NULL || fclose(file) != 0)
        redis_server_give_up(server, "cannot write its file");
}

/* In a forked child of the test this does nothing: the servers are its parent's. */
static void stop_all(void)
{
    while (running != NULL && running->owner == getpid())
        redis_server_stop(running);
}

static struct redis_server *start(enum kind kind, const struct certificate *certificate, const char *const extra_args[])
{
    static int at_exit;
    struct redis_server *server = calloc(1, sizeof *server);

    if (server == NULL)
        abort();
    server->owner = getpid();
    server->kind = kind;
    server->certificate = certificate;
    server->dir = temp_dir_make();
    if (!at_exit) /* after the directories' own handler, so that it runs before it */
        at_exit = atexit(stop_all) == 0;
    server->socket = temp_dir_path(server->dir, "redis.sock");
    server->log = temp_dir_path(server->dir, "log");
    server->next = running;
    running = server;
    if (kind == SENTINEL)
        make_sentinel_file(server);
    for (int i = 0; i < START_TRIES; i++) {
        set_ports(server);
        set_args(server, extra_args);
        if (launch(server))
            return server;
    }
    redis_server_give_up(server, "does not start");
}

struct redis_server *redis_server_start(const char *const extra_args[])
{
    return start(ON_SOCKET, NULL, extra_args);
}

struct redis_server *redis_server_start_tcp(const char *const extra_args[])
{
    return start(ON_PORT, NULL, extra_args);
}

struct redis_server *redis_server_start_tls(const struct certificate *certificate, const char *const extra_args[])
{
    return start(ON_PORT, certificate, extra_args);
}

struct redis_server *redis_server_start_node(const struct certificate *certificate, const char *const extra_args[])
{
    return start(CLUSTER_NODE, certificate, extra_args);
}

struct redis_server *redis_server_start_sentinel(const struct certificate *certificate, const char *const extra_args[])
{
    return start(SENTINEL, certificate, extra_args);
}

const char *redis_server_uri(const struct redis_server *server)
{
    return server->uri;
}

int redis_server_port(const struct redis_server *server)
{
    return server->port;
}

int redis_server_bus_port(const struct redis_server *server)
{
    return server->bus_port;
}

const char *redis_server_socket(const struct redis_server *server)
{
    return server->socket;
}

const char *redis_server_dir(const struct redis_server *server)
{
    return server->dir;
}

int redis_server_pid(const struct redis_server *server)
{
    return (int)server->pid;
}

bool redis_server_runs(const struct redis_server *server)
{
    char path[32], state = 'X';
    FILE *file;

    snprintf(path, sizeof path, "/proc/%d/stat", redis_server_pid(server));
    file = server->pid != 0 ? fopen(path, "r") : NULL;
    if (file == NULL)
        return false;
    /* Its name has no ')' in it. */
    if (fscanf(file, "%*d %*[^)]) %c", &state) != 1)
        state = 'X';
    fclose(file);
    return strchr("TtZX", state) == NULL;
}

struct redisContext *redis_server_connect(const struct redis_server *server)
{
    redisContext *context = redisConnectUnix(server->socket);

    if (context == NULL || context->err != 0)
        redis_server_give_up(server, "cannot be connected to");
    return context;
}

static void send_signal(const struct redis_server *server, int signal_number)
{
    /* kill(0) would reach every process of the group, the test included. */
    if (server->pid > 0)
        kill(server->pid, signal_number);
}

void redis_server_kill(struct redis_server *server)
{
    send_signal(server, SIGKILL);
    if (server->pid > 0)
        waitpid(server->pid, NULL, 0);
    server->pid = 0;
}

void redis_server_pause(struct redis_server *server)
{
    send_signal(server, SIGSTOP);
    /* Not until it has stopped: it might still answer what comes next. */
    if (server->pid > 0)
        waitpid(server->pid, NULL, WUNTRACED);
}

void redis_server_resume(struct redis_server *server)
{
    send_signal(server, SIGCONT);
}

void redis_server_cut_off(struct redis_server *primary, struct redis_server *replica)
{
    redis_server_pause(replica);
    freeReplyObject(redis_server_must(primary, "CLIENT KILL TYPE replica"));
    sleep_ms(CUT_OFF_MS);
}

void redis_server_restart(struct redis_server *server)
{
    redis_server_kill(server);
    for (int i = 0; i < START_TRIES; i++) { /* somebody may have tried whether its port is free */
        if (launch(server))
            return;
        sleep_ms(RESTART_STEP_MS);
    }
    redis_server_give_up(server, "does not restart");
}

void redis_server_stop(struct redis_server *server)
{
    struct redis_server **link = &running;

    if (server == NULL)
        return;
    while (*link != server)
        link = &(*link)->next;
    *link = server->next;
    redis_server_kill(server); /* it has nothing to save */
    temp_dir_remove(server->dir);
    free(server->socket);
    free(server->log);
    free(server->sentinel_file);
    free(server->uri);
    free(server);
}
