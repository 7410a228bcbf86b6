/* Which of these items are new? With libevent: no call waits, the loop calls back.
 *
 *     cc -o async_libevent async_libevent.c $(pkg-config --cflags --libs hibloom hiredis libevent_core)
 *     ./async_libevent URI NAME ITEM...
 *
 * async_libuv.c and async_libev.c do the same with those loops. */
#include <hibloom/async.h>

#include <event2/event.h>
#include <hiredis/adapters/libevent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct program {
    struct event_base *loop;
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
    event_base_loopbreak(program->loop);
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
    return redisLibeventAttach(connection, loop);
}

/* Time-outs and retries are in time only if somebody tells the time. */
static void on_tick(evutil_socket_t none, short what, void *data)
{
    hibloom_async_tick(data);
    (void)none;
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
    struct event *ticks = event_new(program->loop, -1, EV_PERSIST, on_tick, program->store);
    event_add(ticks, &(struct timeval){.tv_usec = 20000});
    event_base_dispatch(program->loop);
    event_free(ticks);
}

int main(int argc, char **argv)
{
    struct program program = {.loop = event_base_new(), .items = argv + 3};

    if (argc < 4 || program.loop == NULL) {
        fprintf(stderr, "usage: %s URI NAME ITEM...\n", argv[0]);
        return EXIT_FAILURE;
    }
    signal(SIGPIPE, SIG_IGN); /* hiredis writes to servers that may be dead */
    run(&program, argv[1], argv[2]);
    hibloom_async_free(program.store); /* closes the filter, and calls back what is pending */
    event_base_free(program.loop);
    return program.result;
}
