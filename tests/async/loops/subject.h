/* A store on a loop, and what its calls have answered. Each test program runs its
 * tests once a loop: see run_on_each_loop. */
#ifndef HIBLOOM_TEST_ASYNC_SUBJECT_H
#define HIBLOOM_TEST_ASYNC_SUBJECT_H

#include "loops.h"
#include "support/redis_server.h"

#include <hiredis/hiredis.h>

#include <stdlib.h>
#include <string.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

/* A call, and what came of it. */
struct outcome {
    hibloom_status status;
    unsigned calls; /* of its function */
    size_t n;
    bool *answers; /* copied to here, if it is not NULL */
    hibloom_async_filter *filter;
    hibloom_info info;
};

extern const struct loop_class *loop_class; /* of this round */
extern bool within;                         /* a call of the library: nothing may be called back */

void on_opened(hibloom_status status, hibloom_async_filter *filter, void *outcome);
void on_answered(hibloom_status status, const bool *answers, size_t n, void *outcome);
void on_counted(hibloom_status status, const hibloom_info *info, void *outcome);
void on_done(hibloom_status status, void *outcome);

/* The same call, within which nothing may be called back. */
#define NOTHING_WITHIN(call) (within = true, nothing_within(call))
hibloom_status nothing_within(hibloom_status status);

/* Turns the loop until all are answered, for a minute at most; ticks, unless the store is NULL. */
void await_all(void *loop, hibloom_async *async, const struct outcome *outcomes, size_t n);
void await(void *loop, const struct outcome *outcome);

/* Items of four bytes: 0, 1, 2 ..., which lie in `numbers`. */
void number_items(hibloom_item *items, uint32_t *numbers, uint32_t n);

hibloom_async *async_store(void *loop, const char *uri, const hibloom_setup *setup);
hibloom_async_filter *async_filter(void *loop, hibloom_async *async, const char *name, const char *text);

/* Turns it a few times more: what is closed goes, and what may not be called is not. */
void close_loop(void *loop);

int run_on_each_loop(const struct CMUnitTest *tests, size_t n, CMFixtureFunction set_up, CMFixtureFunction tear_down);

#endif
