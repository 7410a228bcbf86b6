/* What an event loop makes of the same calls: batches with several calls on their way against blocking calls, and
 * single look-ups with many on their way against one. How much the latter can gain at most on this machine, hiredis
 * alone shows: it sends such commands, and looks at no answer. All on one server, by turns. */
#include "bench.h"

#include "../support/redis_server.h"
#include "base/store.h"
#include "spec/spec.h"

#include <hibloom/async.h>

#include <event2/event.h>
#include <hiredis/async.h>
#include <hibloom/adapters/libevent.h>
#include <hiredis/adapters/libevent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 9, BATCH = 1000, SEVERAL = 4, MANY = 256, ITEMS = 20 * BATCH };

enum who { OURS, HIREDIS };

static const struct trial {
    const char *name;
    enum bench_operation operation;
    size_t batch, in_flight; /* calls; 0: blocking */
    int layout;
    enum who who;
} trials[] = {
    {"add", BENCH_ADD, BATCH, 0, 0, OURS},
    {"add", BENCH_ADD, BATCH, SEVERAL, 0, OURS},
    {"is new?", BENCH_ADD_NEW, BATCH, 0, 0, OURS},
    {"is new?", BENCH_ADD_NEW, BATCH, SEVERAL, 0, OURS},
    {"look up", BENCH_LOOK_UP, BATCH, 0, 0, OURS},
    {"look up", BENCH_LOOK_UP, BATCH, SEVERAL, 0, OURS},
    {"look up", BENCH_LOOK_UP, 1, 0, 0, OURS},
    {"look up", BENCH_LOOK_UP, 1, 1, 0, OURS},
    {"look up", BENCH_LOOK_UP, 1, MANY, 0, OURS},
    {"hiredis alone", BENCH_LOOK_UP, 1, 1, 0, HIREDIS},
    {"hiredis alone", BENCH_LOOK_UP, 1, MANY, 0, HIREDIS},
    {"blocked look up", BENCH_LOOK_UP, BATCH, 0, 1, OURS},
    {"blocked look up", BENCH_LOOK_UP, BATCH, SEVERAL, 1, OURS},
    {"blocked look up", BENCH_LOOK_UP, 1, 0, 1, OURS},
    {"blocked look up", BENCH_LOOK_UP, 1, 1, 1, OURS},
    {"blocked look up", BENCH_LOOK_UP, 1, MANY, 1, OURS},
    {"blocked hiredis alone", BENCH_LOOK_UP, 1, 1, 1, HIREDIS},
    {"blocked hiredis alone", BENCH_LOOK_UP, 1, MANY, 1, HIREDIS},
};

enum { TRIALS = sizeof trials / sizeof *trials, LAYOUTS = 2 };

static const char *const layouts[LAYOUTS] = {"", " layout=blocked"};

struct subject {
    struct bench_work work; /* of the blocking calls; its filter is the loop's, too */
    struct event_base *loop;
    hibloom_store *store;
    hibloom *filter;
    bool answers[BATCH]; /* of the last call to be answered */
    size_t in_flight, done;
    double until;
    void (*submit)(struct subject *);
    redisAsyncContext *hiredis;
    char name[16];
    unsigned long long bytes; /* of the filter's key */
};

/* ---- The calls on the loop ------------------------------------------------------------ */

static void must(hibloom_status status, const struct subject *subject)
{
    if (status != HIBLOOM_OK)
        bench_fail(hibloom_store_error(subject->store));
}

static void on_opened(hibloom_status status, void *data)
{
    struct subject *subject = data;

    must(status, subject);
    event_base_loopbreak(subject->loop);
}

/* Each answer makes room for the next call, until it is time. */
static void go_on(struct subject *subject, size_t n)
{
    subject->in_flight--;
    subject->done += n;
    if (bench_now() < subject->until)
        subject->submit(subject);
    else if (subject->in_flight == 0)
        event_base_loopbreak(subject->loop);
}

static void on_done(hibloom_status status, void *data)
{
    struct subject *subject = data;

    must(status, subject);
    go_on(subject, subject->work.batch);
}

static void submit(struct subject *subject)
{
    const struct bench_work *work = &subject->work;
    const hibloom_item *items = work->items + (subject->done + subject->in_flight * work->batch) % work->n;

    subject->in_flight++;
    must(work->operation == BENCH_LOOK_UP
             ? hibloom_async_contains_many(subject->filter, items, work->batch, subject->answers, on_done, subject)
             : hibloom_async_add_many(subject->filter, items, work->batch,
                                      work->operation == BENCH_ADD_NEW ? subject->answers : NULL, on_done, subject),
         subject);
}

/* ---- hiredis alone ----------------------------------------------------------------------- */

static void on_object(redisAsyncContext *hiredis, void *object, void *data)
{
    const redisReply *reply = object;

    if (reply == NULL || reply->type == REDIS_REPLY_ERROR)
        bench_fail("hiredis alone has lost its connection");
    go_on(data, 1);
}

static size_t write_getrange(char *out, size_t room, const char *name, unsigned long long from, unsigned long long to)
{
    char digits[2][24];
    const int lens[2] = {snprintf(digits[0], sizeof digits[0], "%llu", from),
                         snprintf(digits[1], sizeof digits[1], "%llu", to)};

    return (size_t)snprintf(out, room, "*4\r\n$8\r\nGETRANGE\r\n$%zu\r\n%s\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n", strlen(name),
                            name, lens[0], digits[0], lens[1], digits[1]);
}

static size_t write_getbit(char *out, size_t room, const char *name, unsigned long long bit)
{
    char digits[24];
    const int len = snprintf(digits, sizeof digits, "%llu", bit);

    return (size_t)snprintf(out, room, "*3\r\n$6\r\nGETBIT\r\n$%zu\r\n%s\r\n$%d\r\n%s\r\n", strlen(name), name, len,
                            digits);
}

/* What a look-up sends: of the filter's bits some, and the trailer at its end. Only the last answer calls back. */
static void submit_hiredis(struct subject *subject)
{
    static uint64_t random = 1;
    const struct spec *spec = &subject->work.filter->spec;
    const bool blocked = spec->layout == LAYOUT_BLOCKED;
    char command[256];
    size_t len;

    subject->in_flight++;
    for (uint32_t i = 0; i < (blocked ? 1 : spec->hashes); i++) {
        random = random * 6364136223846793005u + 1442695040888963407u; /* Knuth, MMIX */
        const unsigned long long bit = (random >> 16) % spec->bits, byte = bit / 512 * 64;
        len = blocked ? write_getrange(command, sizeof command, subject->name, byte, byte + 63)
                      : write_getbit(command, sizeof command, subject->name, bit);
        redisAsyncFormattedCommand(subject->hiredis, NULL, NULL, command, len);
    }
    len = write_getrange(command, sizeof command, subject->name, subject->bytes - 92, subject->bytes - 1);
    redisAsyncFormattedCommand(subject->hiredis, on_object, subject, command, len);
}

/* ---- Measuring --------------------------------------------------------------------------- */

/* As bench_do, with so many calls on their way. Their last answers count, and are waited for. */
static double run_loop(struct subject *subject, size_t in_flight, double seconds)
{
    subject->done = 0;
    subject->until = bench_now() + seconds;
    for (size_t i = 0; i < in_flight; i++)
        subject->submit(subject);
    event_base_dispatch(subject->loop);
    return (double)subject->done;
}

static void subject_open(struct subject *subject, int layout, struct redisContext *redis)
{
    char text[96];

    *subject = (struct subject){.loop = event_base_new(), .submit = submit};
    snprintf(subject->name, sizeof subject->name, "async%d", layout);
    snprintf(text, sizeof text, "capacity=%llu error=0.01 segments=1 seed=1%s", (unsigned long long)bench_capacity(),
             layouts[layout]);
    subject->work.store = bench_store(NULL, "setbit");
    subject->work.filter = bench_open(subject->work.store, subject->name, text);
    bench_load(subject->work.filter, bench_capacity() / 2);
    subject->bytes = (unsigned long long)bench_command(redis, "STRLEN %s", subject->name);
    const hibloom_loop loop = hibloom_libevent(subject->loop);
    must(hibloom_async_connect(&subject->store, with_options(bench_uri(), "command_timeout=10min"), NULL, &loop),
         subject);
    must(hibloom_async_open(&subject->filter, subject->store, subject->name,
                            hibloom_secret_spec_of(subject->work.filter), on_opened, subject),
         subject);
    event_base_dispatch(subject->loop);
    subject->hiredis = redisAsyncConnect("127.0.0.1", redis_server_port(bench_server()));
    if (subject->hiredis == NULL || redisLibeventAttach(subject->hiredis, subject->loop) != REDIS_OK)
        bench_fail("no connection for hiredis alone");
}

/* Before anything is timed: both give the same answers, and half of them are yes. */
static void check(struct subject *subject, const hibloom_item *questions)
{
    bool blocking[BATCH];

    subject->work.items = questions;
    subject->work.n = subject->work.batch = BATCH;
    subject->work.operation = BENCH_LOOK_UP;
    bench_must(hibloom_contains_many(subject->work.filter, questions, BATCH, blocking), subject->work.store);
    (void)run_loop(subject, 1, 0.0);
    if (memcmp(blocking, subject->answers, sizeof blocking) != 0 || !blocking[0])
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
    subject->submit = trial->who == OURS ? submit : submit_hiredis;
    const struct bench_clock begin = bench_clock_read(redis);
    const double done = trial->in_flight == 0 ? bench_do(&subject->work, seconds).items
                                              : run_loop(subject, trial->in_flight, seconds);
    const struct bench_clock end = bench_clock_read(redis);
    printf("%s\t%zu\t%zu\t%d\t%.0f\t%.4f\t%.4f\n", trial->name, trial->batch, trial->in_flight, round,
           done / (end.wall - begin.wall), (end.client - begin.client) / done * 1e6,
           (end.server - begin.server) / done * 1e6);
}

static void subject_close(struct subject *subject)
{
    redisAsyncFree(subject->hiredis);
    hibloom_close(subject->filter);
    hibloom_store_free(subject->store);
    hibloom_close(subject->work.filter);
    hibloom_store_free(subject->work.store);
    event_base_free(subject->loop);
}

void bench_async(void)
{
    const uint64_t half = bench_capacity() / 2;
    hibloom_item *news = bench_uids(half, ITEMS), *questions = bench_questions(half, 2 * half, ITEMS);
    struct redisContext *redis = bench_redis_unix();
    struct subject subjects[LAYOUTS];

    for (int layout = 0; layout < LAYOUTS; layout++) {
        subject_open(&subjects[layout], layout, redis);
        check(&subjects[layout], questions);
    }
    puts("operation\tbatch\tin_flight\tround\titems_per_s\tclient_us\tserver_us");
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < TRIALS; i++) { /* forth and back: of two that are compared each is the first at times */
            const struct trial *trial = &trials[round % 2 == 0 ? i : TRIALS - 1 - i];
            measure(&subjects[trial->layout], trial, trial->operation == BENCH_LOOK_UP ? questions : news, redis,
                    round);
        }
    for (int layout = 0; layout < LAYOUTS; layout++)
        subject_close(&subjects[layout]);
    redisFree(redis);
    free(news);
    free(questions);
}
