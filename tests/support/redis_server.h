/* A real redis-server for the tests, each with a directory and a Unix socket
 * of its own, so that tests neither need one that runs already nor touch it.
 * redis_cluster.h and sentinel.h start several of them.
 *
 * $HIBLOOM_TEST_SERVER names another program than redis-server, as valkey-server.
 * It keeps nothing on disk. It dies with the thread that started it, whatever
 * that dies of, and one that a test did not stop is stopped at exit. What goes
 * wrong here is no result of a test: the program ends with a message. */
#ifndef HIBLOOM_TEST_REDIS_SERVER_H
#define HIBLOOM_TEST_REDIS_SERVER_H

#include <stdbool.h>

struct certificate;
struct redisContext;
struct redisReply;
struct redis_server;

/* Starts one and waits until it answers. extra_args: more of its command
 * line, NULL at the end, or NULL for none, such as {"--requirepass", "x", NULL}. */
struct redis_server *redis_server_start(const char *const extra_args[]);

/* The same, listening on a free port of 127.0.0.1 as well. */
struct redis_server *redis_server_start_tcp(const char *const extra_args[]);

/* The same, where that port speaks TLS only, with this certificate; the Unix socket does not. It asks no client for a
 * certificate, unless extra_args say {"--tls-auth-clients", "yes", NULL}. The certificate outlives the server. */
struct redis_server *redis_server_start_tls(const struct certificate *certificate, const char *const extra_args[]);

/* A node of a cluster, and a Sentinel: with a port, and with TLS unless certificate is NULL. */
struct redis_server *redis_server_start_node(const struct certificate *certificate, const char *const extra_args[]);
struct redis_server *redis_server_start_sentinel(const struct certificate *certificate, const char *const extra_args[]);

/* "unix:///.../redis.sock", and of one with a port "redis://127.0.0.1:PORT", or "rediss://127.0.0.1:PORT". */
const char *redis_server_uri(const struct redis_server *server);

int redis_server_port(const struct redis_server *server);           /* 0 if it has none */
int redis_server_bus_port(const struct redis_server *server);       /* of a node of a cluster, else 0 */
const char *redis_server_socket(const struct redis_server *server); /* the path, which TCP ones have too */
const char *redis_server_dir(const struct redis_server *server);    /* where it works */

/* A plain connection to it, for checks from outside; free it with redisFree. */
struct redisContext *redis_server_connect(const struct redis_server *server);

/* One command, in hiredis' format, on a connection of its own that gives the --requirepass of extra_args. The reply, to
 * be freed with freeReplyObject, or NULL where the server does not run or does not answer within 10 s. WAIT is of no
 * use here: it waits for the writes of its own connection. */
struct redisReply *redis_server_ask(const struct redis_server *server, const char *format, ...);

/* The same, where an error or no answer ends the program. */
struct redisReply *redis_server_must(const struct redis_server *server, const char *format, ...);

/* Whether the text that answers a command has these words in it. */
bool redis_server_says(const struct redis_server *server, const char *command, const char *words);

/* How often the server at the other end has run a command. */
long long redis_server_calls_of(struct redisContext *redis, const char *command);

/* Whether it has its primary's data; of a primary: whether no replica of it
 * waits for its data. Of either: whether the file they sent it by is gone. */
bool redis_server_is_in_sync(const struct redis_server *server);

void redis_server_kill(struct redis_server *server);   /* SIGKILL, and waits; all it held is lost */
void redis_server_pause(struct redis_server *server);  /* SIGSTOP: it accepts, and answers nothing */
void redis_server_resume(struct redis_server *server); /* SIGCONT */

/* Pauses a replica: from now on it hears nothing more of its primary. Who does not wait for it loses what that still answers. */
void redis_server_cut_off(struct redis_server *primary, struct redis_server *replica);
void redis_server_restart(struct redis_server *server); /* killed if need be; same socket, port and arguments */
void redis_server_stop(struct redis_server *server);    /* ends it, removes its directory; accepts NULL */

/* Waits until this is so; after 60 s the program ends with `what` and the server's log. */
typedef bool redis_server_condition(const void *argument);
void redis_server_wait(const struct redis_server *server, redis_server_condition *is_so, const void *argument,
                       const char *what);

/* Whether its process is there and not stopped, whoever killed or stopped it. */
bool redis_server_runs(const struct redis_server *server);

/* What follows --requirepass in its arguments; NULL if nothing does. */
const char *redis_server_password(const struct redis_server *server);

/* Ends the program with these words and the server's log. */
_Noreturn void redis_server_give_up(const struct redis_server *server, const char *what);

/* Its process, for a helper process that is to kill it at a moment of its own. */
int redis_server_pid(const struct redis_server *server);

#endif
