/* connection.h: one pipe to one Redis: whole buffers of commands in, answers
 * out, in order.
 *
 * Wraps a hiredis context, ours or the caller's. What it adds: deadlines,
 * reconnecting, no SIGPIPE, a bound on what a server may send, and the promise
 * that a pipe which has lost count of its answers is never used again.
 *
 * One call of the library enters, sends and receives, and leaves. What kills the
 * pipe is its status, in words; after that the functions do nothing. */
#ifndef HIBLOOM_CONNECTION_H
#define HIBLOOM_CONNECTION_H

#include "base/error.h"
#include "net/uri.h"
#include "resp/command.h"
#include "resp/refusal.h"
#include "resp/reply.h"

struct connection {
    hibloom_status status; /* why it is dead; OK while it is not */
    struct error error;    /* the same in words */
    redisContext *context; /* NULL: none at the moment */
    bool borrowed;
    bool alive;                                      /* answers can still be received in this call */
    struct uri uri;                                  /* to make it again; not if borrowed */
    uint32_t connect_timeout_ms, command_timeout_ms; /* 0 if borrowed */
    uint64_t sent_ms;                                /* when the last commands went out */
    struct reply reply;                              /* the last one received */
    uint64_t answers;                                /* so many since it was made */
    struct error first;                              /* the first one, if that was an error */
    redisReplyObjectFunctions *their_functions;      /* a borrowed reader's own, while ours are in */
    void *their_privdata;
};

/* Begins a call, making the connection if there is none; OK, or leave need not
 * be called. After it died within a call, this makes a new one for the same call. */
hibloom_status connection_enter(struct connection *);

/* Sends all of the commands and empties their buffer. */
void connection_send(struct connection *, struct commands *);

/* Receives the next answer, an error too. NULL: none comes any more. A string's
 * bytes go to `bulk`, if that is not NULL, as far as there is room. */
const struct reply *connection_receive(struct connection *, void *bulk, size_t room);

/* Ends the call. Confused: the answers made no sense, so the server may be
 * counting differently, too, and the pipe is closed. */
void connection_leave(struct connection *, bool confused);

/* Closes it unless borrowed, and forgets how to make it. */
void connection_close(struct connection *);

/* Whom it goes to: "host:port", "unix:///path". Returns buf. */
const char *connection_where(const struct connection *, char *buf, size_t size);

#endif
