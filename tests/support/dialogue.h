/* A dialogue that faults are committed on: a store is connected, two filters are
 * opened, filled, asked, counted, merged, cleared and dropped. What is in is compared
 * with what should be.
 *
 * A call that fails is made again on the same store, and then has to work. */
#ifndef HIBLOOM_TEST_DIALOGUE_H
#define HIBLOOM_TEST_DIALOGUE_H

#include "test.h"

struct dialogue {
    const char *uri;
    char options[160];                   /* behind the URI */
    struct redisContext *server;         /* a plain connection to it */
    const char *what;                    /* is committed, for the message of a failure */
    uint64_t place;                      /* and where */
    void (*enter)(void), (*leave)(void); /* around each call of the library */
    /* Whether a call may fail so, for the so-manyth time in this dialogue. */
    bool (*may_fail)(const struct dialogue *, hibloom_status, unsigned failures);
    unsigned failures;
};

/* Holds it. What each call promises is asserted, and that no key is left behind. */
void dialogue_hold(struct dialogue *dialogue);

#endif
