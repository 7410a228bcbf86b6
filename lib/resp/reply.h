/* reply.h: RESP -> one answer at a time, with no allocation.
 *
 * hiredis parses. Instead of functions that build a tree of objects it gets ones that note the
 * answer in one struct. Nothing here reads from a socket. */
#ifndef HIBLOOM_REPLY_H
#define HIBLOOM_REPLY_H

#include "base/spec.h"

#include <hiredis/hiredis.h>

/* The longest answers that are expected: k integers, and the end of a filter's
 * string. Longer strings go where the asker has room for them (bulk). */
#define REPLY_INTEGERS HIBLOOM_HASHES_MAX
#define REPLY_TEXT (SPEC_TEXT_SIZE + 256)

struct reply {
    int type;        /* REDIS_REPLY_...; ERROR also if one is nested in an array */
    size_t elements; /* of an array, not counting those of arrays in it */
    size_t count;    /* integers in it, at any depth; only REPLY_INTEGERS are kept */
    long long integers[REPLY_INTEGERS];
    size_t text_len;           /* length as sent of the string, status or error; text is cut at REPLY_TEXT */
    char text[REPLY_TEXT + 1]; /* terminated */
    unsigned char *bulk;       /* if set after a reset: where a string goes in place of text (before it is whole,
                                  anything may lie there), */
    size_t bulk_room;          /* cut to this. A string behind an integer in an array goes there, too;
                                  so do those of an array of strings, see reply_next_string */
    uint64_t asked_ns;         /* when its command was written last */
    bool repeated;             /* to a command that was sent before, which may have been carried out then, too */
    bool duplicate;            /* the task has had another one in its place, which no longer counts */
    bool by_replica;           /* the server that answered is one, which may lag behind */
    bool pushed;               /* no answer but an out-of-band push, built for the connection's owner */
    bool objects;              /* if set after a reset: all is built as a push is */
    uint64_t object_bytes;     /* of what was built so far, about */
    const redisReplyObjectFunctions *owner; /* builds a push; NULL: a push is an error here */
};

/* The functions; the reader's privdata must be the struct reply. */
extern redisReplyObjectFunctions reply_functions;

/* Empties it for the next answer. */
void reply_reset(struct reply *reply);

/* Notes what an object says that was built by hiredis' own functions. */
void reply_take_object(struct reply *reply, const redisReply *object);

/* The strings of an array lie one behind the other in bulk, text_len bytes in all. Strings above
 * REPLY_LISTED are left out. If text_len exceeds bulk_room, there was no room and none counts.
 * Gives the one at *at, which is 0 at first; false: that was the last one. */
#define REPLY_LISTED 1024u
bool reply_next_string(const unsigned char *bulk, size_t used, size_t *at, const char **text, size_t *len);

/* Takes an unfinished answer out of a reader that goes back to its owner. The owner's functions
 * would not know how to free it. */
void reply_leave(redisReader *reader);

#endif
