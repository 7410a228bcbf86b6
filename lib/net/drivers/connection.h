/* connection.h: one pipe to one Redis: whole buffers of commands in, answers out, in order.
 *
 * A connection of ours never waits, but for the look-up of a host name (context.h): connection_events tells its driver
 * the events to wait for. One that is borrowed blocks, as its owner has made it.
 *
 * Wraps a hiredis context, ours or the caller's. It adds deadlines, no SIGPIPE, and a bound on
 * what a server may send. If a pipe has lost count of its answers, it is never used again.
 *
 * The cause of a pipe's death is its status, in words. After that the functions do nothing, until it is closed and
 * opened again: a loop forgets the socket before it is closed. */
#ifndef HIBLOOM_CONNECTION_H
#define HIBLOOM_CONNECTION_H

#include "net/settings.h"
#include "resp/reply.h"

struct connection {
    hibloom_status status;                 /* why it is dead; OK while it is not */
    struct error error;                    /* the same in words */
    const struct store_settings *settings; /* NULL if borrowed */
    redisContext *context;                 /* NULL: none at the moment */
    bool borrowed;
    bool alive;                                 /* answers can still be received, or it is being made */
    short opening;                              /* it is being made, and waits for these events of poll */
    struct ssl_st *ssl;                         /* in a handshake; the context's */
    uint64_t deadline;                          /* the waiting call's; 0: none */
    bool readable;                              /* there may be unread bytes; always set if borrowed */
    size_t sent;                                /* bytes of a long output buffer that have gone out */
    bool unsent;                                /* commands that were flushed wait for room in the socket */
    bool put;                                   /* commands wait to be flushed; */
    bool owed;                                  /* answers to earlier ones were to come */
    int watched;                                /* the loop's events; 0: it is new, and knows of an earlier socket */
    void *slot;                                 /* the loop's own */
    unsigned reads;                             /* of the socket until others have their turn */
    bool begun;                                 /* a part of the next answer was taken */
    uint32_t timeout_ms;                        /* for one pipeline, or for being made; 0 if borrowed */
    uint64_t sent_ms;                           /* when that time began */
    bool spared;                                /* its time was over, and answers were here */
    uint64_t late;                              /* the deadline that was over, and answers were here: of these */
    uint64_t spare;                             /* so many bytes are still read; 0: all were */
    uint64_t received;                          /* bytes */
    struct reply reply;                         /* the last one received */
    uint64_t answers;                           /* number since it was made */
    redisReplyObjectFunctions *their_functions; /* the reader's own, while ours are in */
    void *their_privdata;
};

/* Begins to make a connection to the address, or path. connection_polled goes on with it, until `opening` is 0. */
hibloom_status connection_open(struct connection *, const struct store_settings *, const char *host, unsigned port);

/* Takes over the caller's, and leaves it as it was found. */
hibloom_status connection_borrow(struct connection *);
void connection_return(struct connection *);

/* Has the server hung up since its last use, or said what nobody asked for? */
bool connection_is_alive(struct connection *);

/* Puts commands behind those that wait; sends them all, or those that go at once. */
void connection_put(struct connection *, const char *bytes, size_t len);
void connection_flush(struct connection *);

/* The time-out for what is on its way begins now. */
void connection_start_clock(struct connection *);

/* For one of ours: the events to wait for. */
struct pollfd;
struct pollfd connection_events(const struct connection *);

/* While it is being made or has answers to come: when its server, or the call, has had its time. */
uint64_t connection_due(const struct connection *);

/* Takes the events of poll. It is dead then, if its server has had its time. */
void connection_polled(struct connection *, short came);

/* Receives the next answer, an error too. NULL: it is not here yet; or, where it is no longer alive, none comes. A
 * string's bytes go to `bulk`, if that is not NULL, as far as there is room. With `object` the answer is an object of
 * hiredis instead, to be freed by freeReplyObject, and what is returned says nothing. */
struct reply *connection_receive(struct connection *, redisReply **object, void *bulk, size_t room);

/* Closes it. One that is borrowed is returned; if its owner would send our commands, it is dead for the owner. */
void connection_close(struct connection *);

#endif
