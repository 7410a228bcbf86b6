/* Which of these items are new? With libuv: no call waits, the loop calls back.
 *
 *     cc -o async_libuv async_libuv.c $(pkg-config --cflags --libs hibloom hiredis libuv)
 *     ./async_libuv URI NAME ITEM...
 *
 * async_libevent.c and async_libev.c do the same with those loops. */
#include <hibloom/async.h>

#include <hiredis/adapters/libuv.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

struct program {
    uv_loop_t *loop;
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
    uv_stop(program->loop);
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
    return redisLibuvAttach(connection, loop);
}

/* Time-outs and retries are in time only if somebody tells the time. */
static void on_tick(uv_timer_t *timer)
{
    hibloom_async_tick(timer->data);
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
    uv_timer_t ticks = {.data = program->store};
    uv_timer_init(program->loop, &ticks);
    uv_timer_start(&ticks, on_tick, 20, 20);
    uv_run(program->loop, UV_RUN_DEFAULT);
    uv_close((uv_handle_t *)&ticks, NULL);
    uv_run(program->loop, UV_RUN_NOWAIT); /* it is on this function's stack */
}

int main(int argc, char **argv)
{
    struct program program = {.loop = uv_default_loop(), .items = argv + 3};

    if (argc < 4 || program.loop == NULL) {
        fprintf(stderr, "usage: %s URI NAME ITEM...\n", argv[0]);
        return EXIT_FAILURE;
    }
    signal(SIGPIPE, SIG_IGN); /* hiredis writes to servers that may be dead */
    run(&program, argv[1], argv[2]);
    hibloom_async_free(program.store);   /* closes the filter, and calls back what is pending */
    uv_run(program.loop, UV_RUN_NOWAIT); /* what was closed goes */
    uv_loop_close(program.loop);
    return program.result;
}
