/* A store on a loop, and what its calls have answered. Each test program runs its
 * tests once a loop: see run_on_each_loop. SIGPIPE has its default action. */
#ifndef HIBLOOM_TEST_ASYNC_SUBJECT_H
#define HIBLOOM_TEST_ASYNC_SUBJECT_H

#include "loops.h"
#include "support/redis_server.h"

#include <hiredis/hiredis.h>

#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <unistd.h>

/* A call, and what came of it. */
struct outcome {
    hibloom_status status;
    unsigned calls; /* of its function */
};

extern const struct loop_class *loop_class; /* of this round */
extern bool within;                         /* a call of the library: nothing may be called back */

void on_done(hibloom_status status, void *outcome);

/* The same call, within which nothing may be called back. */
#define NOTHING_WITHIN(call) (within = true, nothing_within(call))
hibloom_status nothing_within(hibloom_status status);

/* Turns the loop until all are answered, for a minute at most. */
void await_all(void *loop, const struct outcome *outcomes, size_t n);
void await(void *loop, const struct outcome *outcome);

/* Makes the call, whose last argument is &outcome, within which nothing may be called back; waits for it. Returns its
 * status. */
#define AWAIT(loop, o, call) (*(o) = (struct outcome){0}, await_call((loop), (o), NOTHING_WITHIN(call)))
hibloom_status await_call(void *loop, const struct outcome *outcome, hibloom_status accepted);

/* Items of four bytes: 0, 1, 2 ..., which lie in `numbers`. */
void number_items(hibloom_item *items, uint32_t *numbers, uint32_t n);

hibloom_store *async_store(void *loop, const char *uri, const hibloom_setup *setup);
hibloom *async_filter(void *loop, hibloom_store *store, const char *name, const char *text);

/* Turns it a few times more: what is closed goes, and what may not be called is not. */
void close_loop(void *loop);
void end_all(void *loop, hibloom_store *store, hibloom *filter); /* closes all three, the filter behind the store */

/* The first so many of four: hiredis' adapters are for three. */
int run_on_loops(size_t loops, const struct CMUnitTest *tests, size_t n, CMFixtureFunction set_up,
                 CMFixtureFunction tear_down);
#define run_on_each_loop(...) run_on_loops(4, __VA_ARGS__)

#endif
