/* What an event loop makes of the same calls: batches with several calls on
 * their way against blocking calls, and single look-ups with many on their way
 * against one. All on one filter and one server, and by turns. */
#include "bench.h"

#include <hibloom/async.h>

#include <event2/event.h>
#include <hiredis/adapters/libevent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 9, BATCH = 1000, SEVERAL = 4, MANY = 256, ITEMS = 20 * BATCH };

static const struct trial {
    const char *name;
    enum bench_operation operation;
    size_t batch, in_flight; /* calls; 0: blocking */
} trials[] = {
    {"add", BENCH_ADD, BATCH, 0},         {"add", BENCH_ADD, BATCH, SEVERAL},
    {"is new?", BENCH_ADD_NEW, BATCH, 0}, {"is new?", BENCH_ADD_NEW, BATCH, SEVERAL},
    {"look up", BENCH_LOOK_UP, BATCH, 0}, {"look up", BENCH_LOOK_UP, BATCH, SEVERAL},
    {"look up", BENCH_LOOK_UP, 1, 0},     {"look up", BENCH_LOOK_UP, 1, 1},
    {"look up", BENCH_LOOK_UP, 1, MANY},
};

enum { TRIALS = sizeof trials / sizeof *trials };

struct subject {
    struct bench_work work; /* of the blocking calls; its filter is the loop's, too */
    struct event_base *loop;
    hibloom_async *store;
    hibloom_async_filter *filter;
    bool *answers; /* where they are copied to, if not NULL */
    size_t in_flight, done;
    double until;
};

/* ---- The calls on the loop ------------------------------------------------------------ */

static int attach(struct redisAsyncContext *connection, void *loop)
{
    return redisLibeventAttach(connection, loop);
}

static void must(hibloom_status status, const struct subject *subject)
{
    if (status != HIBLOOM_OK)
        bench_fail(hibloom_async_error(subject->store));
}

static void on_opened(hibloom_status status, hibloom_async_filter *filter, void *data)
{
    struct subject *subject = data;

    must(status, subject);
    subject->filter = filter;
    event_base_loopbreak(subject->loop);
}

static void submit(struct subject *subject);

/* Each answer makes room for the next call, until it is time. */
static void on_answered(hibloom_status status, const bool *answers, size_t n, void *data)
{
    struct subject *subject = data;

    must(status, subject);
    if (subject->answers != NULL)
        memcpy(subject->answers, answers, n * sizeof *answers);
    subject->in_flight--;
    subject->done += n;
    if (bench_now() < subject->until)
        submit(subject);
    else if (subject->in_flight == 0)
        event_base_loopbreak(subject->loop);
}

static void submit(struct subject *subject)
{
    const struct bench_work *work = &subject->work;
    const hibloom_item *items = work->items + (subject->done + subject->in_flight * work->batch) % work->n;

    subject->in_flight++;
    must(work->operation == BENCH_LOOK_UP
             ? hibloom_async_contains(subject->filter, items, work->batch, on_answered, subject)
             : hibloom_async_add(subject->filter, items, work->batch, work->operation == BENCH_ADD_NEW, on_answered,
                                 subject),
         subject);
}

/* As bench_do, with so many calls on their way. Their last answers count, and are waited for. */
static double run_loop(struct subject *subject, size_t in_flight, double seconds)
{
    subject->done = 0;
    subject->until = bench_now() + seconds;
    for (size_t i = 0; i < in_flight; i++)
        submit(subject);
    event_base_dispatch(subject->loop);
    return (double)subject->done;
}

/* ---- Measuring --------------------------------------------------------------------------- */

static void subject_open(struct subject *subject)
{
    const hibloom_connect_options options = {.command_timeout_ms = 600000}; /* as bench_store */
    char text[64];

    *subject = (struct subject){.loop = event_base_new()};
    snprintf(text, sizeof text, "capacity=%llu error=0.01 segments=1 seed=1", (unsigned long long)bench_capacity());
    subject->work.store = bench_store(NULL, HIBLOOM_COMMANDS_SETBIT);
    subject->work.filter = bench_open(subject->work.store, "async", text);
    bench_load(subject->work.filter, bench_capacity() / 2);
    must(hibloom_async_connect(&subject->store, bench_uri(), &options, attach, subject->loop), subject);
    must(hibloom_async_open(subject->store, "async", hibloom_spec_of(subject->work.filter), on_opened, subject),
         subject);
    event_base_dispatch(subject->loop);
}

/* Before anything is timed: both give the same answers, and half of them are yes. */
static void check(struct subject *subject, const hibloom_item *questions)
{
    bool blocking[BATCH], async[BATCH];

    subject->work.items = questions;
    subject->work.n = subject->work.batch = BATCH;
    subject->work.operation = BENCH_LOOK_UP;
    bench_must(hibloom_contains_many(subject->work.filter, questions, BATCH, blocking), subject->work.store);
    subject->answers = async;
    (void)run_loop(subject, 1, 0.0);
    subject->answers = NULL;
    if (memcmp(blocking, async, sizeof async) != 0 || !async[0])
        bench_fail("the calls on the loop answer otherwise than those that block");
}

static void measure(struct subject *subject, const struct trial *trial, const hibloom_item *items,
                    struct redisContext *redis, int round)
{
    const double seconds = bench_scaled_seconds(0.2);

    subject->work.items = items;
    subject->work.n = ITEMS;
    subject->work.batch = trial->batch;
    subject->work.operation = trial->operation;
    const struct bench_clock begin = bench_clock_read(redis);
    const double done = trial->in_flight == 0 ? bench_do(&subject->work, seconds).items
                                              : run_loop(subject, trial->in_flight, seconds);
    const struct bench_clock end = bench_clock_read(redis);
    printf("%s\t%zu\t%zu\t%d\t%.0f\t%.4f\t%.4f\n", trial->name, trial->batch, trial->in_flight, round,
           done / (end.wall - begin.wall), (end.client - begin.client) / done * 1e6,
           (end.server - begin.server) / done * 1e6);
}

void bench_async(void)
{
    const uint64_t half = bench_capacity() / 2;
    hibloom_item *news = bench_uids(half, ITEMS), *questions = bench_questions(half, 2 * half, ITEMS);
    struct redisContext *redis = bench_redis_unix();
    struct subject subject;

    subject_open(&subject);
    check(&subject, questions);
    puts("operation\tbatch\tin_flight\tround\titems_per_s\tclient_us\tserver_us");
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < TRIALS; i++) { /* forth and back: of two that are compared each is the first at times */
            const struct trial *trial = &trials[round % 2 == 0 ? i : TRIALS - 1 - i];
            measure(&subject, trial, trial->operation == BENCH_LOOK_UP ? questions : news, redis, round);
        }
    hibloom_async_close(subject.filter);
    hibloom_async_free(subject.store);
    hibloom_close(subject.work.filter);
    hibloom_store_free(subject.work.store);
    event_base_free(subject.loop);
    redisFree(redis);
    free(news);
    free(questions);
}
