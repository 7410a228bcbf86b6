/* A real redis-server for the tests, each with a directory and a Unix socket
 * of its own, so that tests neither need one that runs already nor touch it.
 *
 * It keeps nothing on disk. It dies with the thread that started it, whatever
 * that dies of, and one that a test did not stop is stopped at exit. What goes
 * wrong here is no result of a test: the program ends with a message. */
#ifndef HIBLOOM_TEST_REDIS_SERVER_H
#define HIBLOOM_TEST_REDIS_SERVER_H

struct redisContext;
struct redis_server;

/* Starts one and waits until it answers. extra_args: more of its command
 * line, NULL at the end, or NULL for none, such as {"--requirepass", "x", NULL}. */
struct redis_server *redis_server_start(const char *const extra_args[]);

/* The same, listening on a free port of 127.0.0.1 as well. */
struct redis_server *redis_server_start_tcp(const char *const extra_args[]);

/* "unix:///.../redis.sock", and of one with a port "redis://127.0.0.1:PORT". */
const char *redis_server_uri(const struct redis_server *server);

int redis_server_port(const struct redis_server *server);           /* 0 if it has none */
const char *redis_server_socket(const struct redis_server *server); /* the path, which TCP ones have too */
const char *redis_server_dir(const struct redis_server *server);    /* where it works */

/* A plain connection to it, for checks from outside; free it with redisFree. */
struct redisContext *redis_server_connect(const struct redis_server *server);

void redis_server_kill(struct redis_server *server);    /* SIGKILL, and waits; all it held is lost */
void redis_server_pause(struct redis_server *server);   /* SIGSTOP: it accepts, and answers nothing */
void redis_server_resume(struct redis_server *server);  /* SIGCONT */
void redis_server_restart(struct redis_server *server); /* killed if need be; same socket, port and arguments */
void redis_server_stop(struct redis_server *server);    /* ends it, removes its directory; accepts NULL */

/* Its process, for a helper process that is to kill it at a moment of its own. */
int redis_server_pid(const struct redis_server *server);

#endif
