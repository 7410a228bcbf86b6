/* Which of these items are new? With libuv: no call waits, the loop calls back.
 *
 *     cc -o async_libuv async_libuv.c $(pkg-config --cflags --libs hibloom libuv)
 *     ./async_libuv URI NAME ITEM...
 *
 * async_libevent.c, async_libev.c and async_poll.c do the same with those loops. */
#include <hibloom/adapters/libuv.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct program {
    uv_loop_t *loop;
    hibloom_store *store;
    hibloom *seen;
    char **items; /* NULL at the end */
    int left;     /* calls without an answer */
    int result;
};

struct asked { /* what a call is about */
    struct program *program;
    const char *item;
    bool is_new;
};

static void stop(struct program *program, const char *doing, hibloom_status status)
{
    if (status != HIBLOOM_OK) {
        fprintf(stderr, "%s: %s: %s\n", doing, hibloom_strerror(status), hibloom_store_error(program->store));
        program->result = EXIT_FAILURE;
    }
    uv_stop(program->loop);
}

static void on_answered(hibloom_status status, void *data)
{
    struct asked *asked = data;
    struct program *program = asked->program;

    if (status == HIBLOOM_OK)
        printf("%s %s\n", asked->is_new ? "new " : "seen", asked->item);
    if (--program->left == 0 || status != HIBLOOM_OK)
        stop(program, asked->item, status);
    free(asked);
}

/* If a call is refused, its function is not called: so the memory is freed here. */
static void add(struct program *program, const char *item)
{
    struct asked *asked = malloc(sizeof *asked);

    if (asked == NULL) {
        stop(program, item, HIBLOOM_ENOMEM);
        return;
    }
    *asked = (struct asked){program, item, false};
    hibloom_status status = hibloom_async_add(program->seen, item, strlen(item), &asked->is_new, on_answered, asked);
    if (status == HIBLOOM_OK) {
        program->left++;
        return;
    }
    free(asked);
    stop(program, item, status);
}

static void on_opened(hibloom_status status, void *data)
{
    struct program *program = data;

    if (status != HIBLOOM_OK) {
        stop(program, "open", status);
        return;
    }
    for (char **item = program->items; *item != NULL; item++)
        add(program, *item);
}

static void run(struct program *program, const char *uri, const char *name)
{
    const hibloom_connect_options options = {.size = sizeof options, .retry_ms = 10000};
    const hibloom_loop loop = hibloom_libuv(program->loop);
    hibloom_spec spec;
    hibloom_status status = hibloom_async_connect(&program->store, uri, &options, &loop);

    if (status == HIBLOOM_OK)
        status = hibloom_spec_for(&spec, 1000000, 0.001);
    if (status == HIBLOOM_OK)
        status = hibloom_async_open(&program->seen, program->store, name, &spec, on_opened, program);
    if (status == HIBLOOM_OK)
        uv_run(program->loop, UV_RUN_DEFAULT);
    else
        stop(program, name, status);
}

int main(int argc, char **argv)
{
    struct program program = {.loop = uv_default_loop(), .items = argv + 3};

    if (argc < 4 || program.loop == NULL) {
        fprintf(stderr, "usage: %s URI NAME ITEM...\n", argv[0]);
        return EXIT_FAILURE;
    }
    run(&program, argv[1], argv[2]);
    hibloom_close(program.seen);
    hibloom_store_free(program.store);   /* calls what is pending: ECANCELED */
    uv_run(program.loop, UV_RUN_NOWAIT); /* what was closed goes */
    uv_loop_close(program.loop);
    return program.result;
}
