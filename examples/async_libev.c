/* Which of these items are new? With libev: no call waits, the loop calls back.
 *
 *     cc -o async_libev async_libev.c $(pkg-config --cflags --libs hibloom hiredis) -lev
 *     ./async_libev URI NAME ITEM...
 *
 * async_libevent.c and async_libuv.c do the same with those loops. */
#include <hibloom/async.h>

#include <ev.h>
#include <hiredis/adapters/libev.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct program {
    struct ev_loop *loop;
    hibloom_async *store;
    hibloom_async_filter *seen;
    char **items; /* NULL at the end */
    int left;     /* calls without an answer */
    int result;
};

struct asked { /* what a call is about */
    struct program *program;
    const char *item;
};

static void stop(struct program *program, const char *doing, hibloom_status status)
{
    if (status != HIBLOOM_OK) {
        fprintf(stderr, "%s: %s: %s\n", doing, hibloom_strerror(status), hibloom_async_error(program->store));
        program->result = EXIT_FAILURE;
    }
    ev_break(program->loop, EVBREAK_ALL);
}

static void on_answered(hibloom_status status, const bool *is_new, size_t n, void *data)
{
    struct asked *asked = data;
    struct program *program = asked->program;

    if (status == HIBLOOM_OK)
        printf("%s %s\n", *is_new ? "new " : "seen", asked->item);
    if (--program->left == 0 || status != HIBLOOM_OK)
        stop(program, asked->item, status);
    free(asked);
    (void)n;
}

/* A refused call has no function called: what it would have freed is freed here. */
static void add(struct program *program, const char *text)
{
    struct asked *asked = malloc(sizeof *asked);

    if (asked == NULL) {
        stop(program, text, HIBLOOM_ENOMEM);
        return;
    }
    *asked = (struct asked){program, text};
    const hibloom_item item = {text, strlen(text)};
    hibloom_status status = hibloom_async_add(program->seen, &item, 1, true, on_answered, asked);
    if (status == HIBLOOM_OK) {
        program->left++;
        return;
    }
    free(asked);
    stop(program, text, status);
}

static void on_opened(hibloom_status status, hibloom_async_filter *filter, void *data)
{
    struct program *program = data;

    program->seen = filter;
    if (status != HIBLOOM_OK) {
        stop(program, "open", status);
        return;
    }
    for (char **item = program->items; *item != NULL; item++)
        add(program, *item);
}

static int attach(struct redisAsyncContext *connection, void *loop)
{
    return redisLibevAttach(loop, connection);
}

/* Time-outs and retries are in time only if somebody tells the time. */
static void on_tick(struct ev_loop *loop, ev_timer *timer, int what)
{
    hibloom_async_tick(timer->data);
    (void)loop;
    (void)what;
}

static void run(struct program *program, const char *uri, const char *name)
{
    const char *const options[] = {"retry", "10s", NULL};
    const hibloom_setup setup = {.size = sizeof setup, .options = options};
    hibloom_spec spec;
    hibloom_status status = hibloom_async_connect(&program->store, uri, &setup, attach, program->loop);

    if (status == HIBLOOM_OK)
        status = hibloom_spec_for(&spec, 1000000, 0.001);
    if (status == HIBLOOM_OK)
        status = hibloom_async_open(program->store, name, &spec, on_opened, program);
    if (status != HIBLOOM_OK) {
        stop(program, name, status);
        return;
    }
    ev_timer ticks = {.data = program->store, .cb = on_tick, .at = 0.02, .repeat = 0.02};
    ev_timer_start(program->loop, &ticks);
    ev_run(program->loop, 0);
    ev_timer_stop(program->loop, &ticks);
}

int main(int argc, char **argv)
{
    struct program program = {.loop = ev_loop_new(EVFLAG_AUTO), .items = argv + 3};

    if (argc < 4 || program.loop == NULL) {
        fprintf(stderr, "usage: %s URI NAME ITEM...\n", argv[0]);
        return EXIT_FAILURE;
    }
    signal(SIGPIPE, SIG_IGN); /* hiredis writes to servers that may be dead */
    run(&program, argv[1], argv[2]);
    hibloom_async_free(program.store); /* closes the filter, and calls back what is pending */
    ev_loop_destroy(program.loop);
    return program.result;
}
