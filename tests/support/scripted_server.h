/* A server that does what its script says, for the answers and silences that
 * a real Redis does not give on demand. It plays its script in a thread of its
 * own, and what it heard can be looked at.
 *
 *     static const struct script_step script[] = {
 *         SCRIPT_ACCEPT, SCRIPT_READ(1), SCRIPT_SEND("-ERR no\r\n"), SCRIPT_CLOSE, SCRIPT_END
 *     };
 *
 * At the end of the script the connection stays open and is not answered; once
 * it is closed, by whichever side, the script begins anew, so that who tries
 * again finds the same. No step outlives scripted_server_stop. */
#ifndef HIBLOOM_TEST_SCRIPTED_SERVER_H
#define HIBLOOM_TEST_SCRIPTED_SERVER_H

#include <stdbool.h>
#include <stddef.h>

enum script_action {
    SCRIPT_DO_END,
    SCRIPT_DO_ACCEPT,
    SCRIPT_DO_READ,
    SCRIPT_DO_SEND,
    SCRIPT_DO_REPEAT,
    SCRIPT_DO_PACE,
    SCRIPT_DO_ANSWER,
    SCRIPT_DO_CLOSE
};

struct script_step {
    enum script_action action;
    const char *bytes;
    size_t len;
    unsigned count; /* of commands, or milliseconds before each byte, or before all of them at once */
};

/* clang-format off */
#define SCRIPT_ACCEPT { SCRIPT_DO_ACCEPT, NULL, 0, 0 }
#define SCRIPT_READ(commands) { SCRIPT_DO_READ, NULL, 0, (commands) } /* that many, whole */
#define SCRIPT_SEND(literal) { SCRIPT_DO_SEND, "" literal, sizeof(literal) - 1, 0 }
#define SCRIPT_DRIP(literal, ms) { SCRIPT_DO_SEND, "" literal, sizeof(literal) - 1, (ms) }     /* byte by byte */
#define SCRIPT_REPEAT(literal, ms) { SCRIPT_DO_REPEAT, "" literal, sizeof(literal) - 1, (ms) } /* for ever */
#define SCRIPT_ANSWER(literal) { SCRIPT_DO_ANSWER, "" literal, sizeof(literal) - 1, 0 } /* to each command to come */
#define SCRIPT_CLOSE { SCRIPT_DO_CLOSE, NULL, 0, 0 }
#define SCRIPT_END { SCRIPT_DO_END, NULL, 0, 0 }
/* clang-format on */

/* Lets in a store that has nothing to say but the last command of a greeting, INFO
 * server. Which run of a server this is, it does not tell. */
#define WELCOME "$0\r\n\r\n"
#define SCRIPT_WELCOME SCRIPT_ACCEPT, SCRIPT_READ(1), SCRIPT_SEND(WELCOME)

/* Lets a bare bitmap be joined: no filter is at either place of its name; then
 * what its guard hears, of one that is not there or is. */
#define SCRIPT_JOIN(guard) SCRIPT_READ(2), SCRIPT_SEND("$0\r\n\r\n$0\r\n\r\n"), SCRIPT_READ(2), SCRIPT_SEND(guard)
#define ABSENT ":0\r\n$0\r\n\r\n"
#define THERE ":131072\r\n$8\r\n\1\1\1\1\1\1\1\1\r\n"

struct scripted_server;

/* On a Unix socket. The script must outlive the server. */
struct scripted_server *scripted_server_start(const struct script_step *script);

/* On a free port of "127.0.0.1" or "::1"; NULL where this machine lacks it. */
struct scripted_server *scripted_server_start_tcp(const struct script_step *script, const char *host);

const char *scripted_server_uri(const struct scripted_server *server);    /* unix://... or redis://... */
const char *scripted_server_socket(const struct scripted_server *server); /* the path; NULL on a port */
int scripted_server_port(const struct scripted_server *server);           /* 0 on a Unix socket */

/* All bytes heard so far and their number; the copy is the caller's to free. */
char *scripted_server_heard(struct scripted_server *server, size_t *len);

void scripted_server_stop(struct scripted_server *server); /* accepts NULL */

#endif
