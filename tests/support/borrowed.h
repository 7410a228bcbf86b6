/* A connection that is its owner's, and lent to the library: how it was found, and that it is so again. */
#ifndef HIBLOOM_TEST_BORROWED_H
#define HIBLOOM_TEST_BORROWED_H

#include "subject.h"

#include <hiredis/hiredis.h>
#include <sys/time.h>

/* The owner's, on a Unix socket. */
redisContext *connect_owner(const char *path);

/* A subject on it; borrow_end frees the connection, too. */
void borrow_begin(struct subject *subject, redisContext *context, const struct variant *variant);
void borrow_end(struct subject *subject, redisContext *context);

struct found {
    int fd, flags;
    const void *functions;
    void *privdata;
    struct timeval receive, send;
};

struct found look_at(const redisContext *context);
void assert_as_found(const redisContext *context, const struct found *before);

/* Alive too: nothing left to be sent or read, and its owner's own commands get their own answers. */
void assert_usable(redisContext *context);

/* Attaches to a bare bitmap, on a server that lets it: SCRIPT_JOIN. */
hibloom *attach_any(hibloom_store *store);

#endif
