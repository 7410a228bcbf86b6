/* Starting and ending real Redis servers. See redis_server.h. */
#include "redis_server.h"

#include "temp_dir.h"

#include <arpa/inet.h>
#include <hiredis/hiredis.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ARGS_MAX = 64, START_TRIES = 5, WAIT_STEP_MS = 5, WAIT_STEPS = 4000 };

struct redis_server {
    struct redis_server *next;
    pid_t owner; /* a child of the test has this list too, but no say over it */
    pid_t pid;   /* 0 when it does not run */
    int port;
    char *dir, *socket, *log, *uri;
    char port_text[8];
    const char *args[ARGS_MAX];
};

static struct redis_server *running; /* all that were not stopped yet */

static void give_up(const struct redis_server *server, const char *what)
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

/* A port that nobody has at this moment. Somebody may take it before the
 * server does, so the caller tries again. */
static int free_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    int port = 0;

    if (fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address) == 0 &&
        getsockname(fd, (struct sockaddr *)&address, &length) == 0)
        port = ntohs(address.sin_port);
    if (fd >= 0)
        close(fd);
    if (port == 0) {
        perror("a free port");
        exit(EXIT_FAILURE);
    }
    return port;
}

static void run_child(const struct redis_server *server)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() == server->owner) /* else the parent died before the line above */
        execvp(server->args[0], (char *const *)(const void *)server->args);
    _exit(127);
}

static int answers(const struct redis_server *server)
{
    struct timeval patience = {.tv_sec = 1, .tv_usec = 0};
    redisContext *context = redisConnectUnixWithTimeout(server->socket, patience);
    redisReply *reply = NULL;
    int ready;

    if (context != NULL && context->err == 0 && redisSetTimeout(context, patience) == REDIS_OK)
        reply = redisCommand(context, "PING");
    /* A server with a password answers too: that it wants one. */
    ready = reply != NULL && strncmp(reply->str, "LOADING", 7) != 0;
    if (reply != NULL)
        freeReplyObject(reply);
    redisFree(context);
    return ready;
}

/* Starts the process and waits for it; 0 when it ended instead. */
static int launch(struct redis_server *server)
{
    const struct timespec step = {.tv_sec = 0, .tv_nsec = WAIT_STEP_MS * 1000000L};

    unlink(server->socket); /* a killed one leaves it behind */
    server->pid = fork();
    if (server->pid == 0)
        run_child(server);
    if (server->pid < 0)
        give_up(server, "cannot fork");
    for (int i = 0; i < WAIT_STEPS; i++) {
        if (answers(server))
            return 1;
        if (waitpid(server->pid, NULL, WNOHANG) == server->pid) {
            server->pid = 0;
            return 0;
        }
        nanosleep(&step, NULL);
    }
    give_up(server, "does not answer");
    return 0;
}

static void set_args(struct redis_server *server, const char *const extra_args[])
{
    const char *const fixed[] = {
        "redis-server",
        "--port",
        server->port_text,
        "--bind",
        "127.0.0.1",
        "--unixsocket",
        server->socket,
        "--dir",
        server->dir,
        "--logfile",
        server->log,
        "--save",
        "",
        "--appendonly",
        "no",
        "--daemonize",
        "no",
    };
    size_t n = sizeof fixed / sizeof fixed[0];

    memcpy(server->args, fixed, sizeof fixed);
    for (size_t i = 0; extra_args != NULL && extra_args[i] != NULL; i++) {
        if (n + 1 == ARGS_MAX)
            give_up(server, "too many arguments");
        server->args[n++] = extra_args[i];
    }
    server->args[n] = NULL;
}

static void set_port(struct redis_server *server, int port)
{
    char uri[160];

    server->port = port;
    snprintf(server->port_text, sizeof server->port_text, "%d", port);
    if (port != 0)
        snprintf(uri, sizeof uri, "redis://127.0.0.1:%d", port);
    else
        snprintf(uri, sizeof uri, "unix://%s", server->socket);
    free(server->uri);
    server->uri = strdup(uri);
}

/* In a forked child of the test this does nothing: the servers are its
 * parent's. */
static void stop_all(void)
{
    while (running != NULL && running->owner == getpid())
        redis_server_stop(running);
}

static struct redis_server *start(const char *const extra_args[], int with_port)
{
    static int at_exit;
    struct redis_server *server = calloc(1, sizeof *server);

    if (server == NULL)
        abort();
    server->owner = getpid();
    server->dir = temp_dir_make();
    if (!at_exit) /* after the directories' own handler, so that it runs before it */
        at_exit = atexit(stop_all) == 0;
    server->socket = temp_dir_path(server->dir, "redis.sock");
    server->log = temp_dir_path(server->dir, "log");
    server->next = running;
    running = server;
    for (int i = 0; i < START_TRIES; i++) {
        set_port(server, with_port ? free_port() : 0);
        set_args(server, extra_args);
        if (launch(server))
            return server;
    }
    give_up(server, "does not start");
    return NULL;
}

struct redis_server *redis_server_start(const char *const extra_args[])
{
    return start(extra_args, 0);
}

struct redis_server *redis_server_start_tcp(const char *const extra_args[])
{
    return start(extra_args, 1);
}

const char *redis_server_uri(const struct redis_server *server)
{
    return server->uri;
}

int redis_server_port(const struct redis_server *server)
{
    return server->port;
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

struct redisContext *redis_server_connect(const struct redis_server *server)
{
    redisContext *context = redisConnectUnix(server->socket);

    if (context == NULL || context->err != 0)
        give_up(server, "cannot be connected to");
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

void redis_server_restart(struct redis_server *server)
{
    redis_server_kill(server);
    if (!launch(server))
        give_up(server, "does not restart");
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
    free(server->uri);
    free(server);
}
