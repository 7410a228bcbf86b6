/* connection.h: one pipe to one Redis: whole buffers of commands in, answers
 * out, in order.
 *
 * Wraps a hiredis context, ours or the caller's. What it adds: deadlines,
 * reconnecting, no SIGPIPE, a bound on what a server may send, and the promise
 * that a pipe which has lost count of its answers is never used again.
 *
 * One call of the library is one conversation: enter, send and receive, leave.
 * The first thing that goes wrong in it becomes its status; after an error
 * from the server the rest of the answers are still received, so that nothing
 * is left in the pipe, and after the pipe's death the functions do nothing.
 * So callers write down the conversation and ask for its status at the end. */
#ifndef HIBLOOM_CONNECTION_H
#define HIBLOOM_CONNECTION_H

#include "resp/command.h"
#include "base/error.h"
#include "resp/reply.h"
#include "net/uri.h"

struct connection {
    struct error *error;   /* of the store it belongs to */
    hibloom_status status; /* of the conversation so far */
    redisContext *context; /* NULL: none at the moment */
    bool borrowed;
    bool alive;     /* answers can still be received in this conversation */
    struct uri uri; /* to make it again; not if borrowed */
    uint32_t connect_timeout_ms, command_timeout_ms; /* 0 if borrowed */
    uint64_t sent_ms;                                /* when the last commands went out */
    struct argument secret;                          /* what is sent and must not come back in an error's words */
    struct reply reply;                              /* the last one received */
    redisReplyObjectFunctions *their_functions;      /* a borrowed reader's own, while ours are in */
    void *their_privdata;
};

/* Begins a conversation, making the connection if there is none; OK, or leave
 * need not be called. */
hibloom_status connection_enter(struct connection *);

/* Sends all of the commands and empties their buffer. */
void connection_send(struct connection *, struct commands *);

/* Receives the next answer. NULL: it was an error, or none came. */
const struct reply *connection_receive(struct connection *);

/* The same for an answer that must be of one type; anything else is EPROTO. A
 * string's bytes are written to `out`, and its length to `len`, which must not
 * be more than `room`. */
bool connection_receive_integer(struct connection *, long long *out);
bool connection_receive_string(struct connection *, unsigned char *out, size_t room, size_t *len);
bool connection_receive_status(struct connection *);

/* Notes a failure that the caller has found, unless there has been one. */
__attribute__((format(printf, 3, 4)))
void connection_fail(struct connection *, hibloom_status status, const char *format, ...);
void connection_unexpected(struct connection *); /* EPROTO */

/* Takes back a failure that the caller has noted, not the connection. */
void connection_retract(struct connection *);

/* Ends the conversation and says how it went. */
hibloom_status connection_leave(struct connection *);

/* Closes it unless borrowed, and forgets how to make it. */
void connection_close(struct connection *);

#endif
