/* Which of these items are new? With libuv: no call waits, the loop calls back.
 *
 *     cc -o async_libuv async_libuv.c $(pkg-config --cflags --libs hibloom libuv)   # uv.h needs gnu11, not c11
 *     ./async_libuv URI NAME ITEM...
 *
 * async_libevent.c and async_libev.c do the same with those loops; async_poll.c brings its own. */
#include <hibloom/adapters/libuv.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ITEMS_MAX 100

struct program {
    uv_loop_t *loop;
    hibloom_store *store;
    hibloom *seen;
    hibloom_item items[ITEMS_MAX];
    bool is_new[ITEMS_MAX];
    size_t n;
    hibloom_status status;
};

/* The last call has ended, or one has failed. */
static void on_end(hibloom_status status, void *data)
{
    struct program *program = data;

    program->status = status;
    for (size_t i = 0; status == HIBLOOM_OK && i < program->n; i++)
        printf("%s %s\n", program->is_new[i] ? "new " : "seen", (const char *)program->items[i].data);
    if (status != HIBLOOM_OK)
        fprintf(stderr, "%s: %s\n", hibloom_strerror(status), hibloom_store_error(program->store));
    uv_stop(program->loop);
}

/* A call that is refused does not call back. */
static void on_open(hibloom_status status, void *data)
{
    struct program *program = data;

    if (status == HIBLOOM_OK)
        status = hibloom_async_add_many(program->seen, program->items, program->n, program->is_new, on_end, program);
    if (status != HIBLOOM_OK)
        on_end(status, program);
}

int main(int argc, char **argv)
{
    struct program program = {.loop = uv_default_loop(), .n = argc > 3 ? (size_t)argc - 3 : 0};

    if (program.loop == NULL || program.n == 0 || program.n > ITEMS_MAX) {
        fprintf(stderr, "usage: %s URI NAME ITEM...\n", argv[0]);
        return EXIT_FAILURE;
    }
    for (size_t i = 0; i < program.n; i++)
        program.items[i] = (hibloom_item){argv[i + 3], strlen(argv[i + 3])};
    const hibloom_loop loop = hibloom_libuv(program.loop);
    hibloom_status status = hibloom_async_connect(&program.store, argv[1], NULL, &loop);
    if (status == HIBLOOM_OK)
        status = hibloom_async_open(&program.seen, program.store, argv[2], "capacity=1M error=0.001", on_open,
                                    &program);
    if (status == HIBLOOM_OK)
        uv_run(program.loop, UV_RUN_DEFAULT);
    else
        on_end(status, &program);
    hibloom_close(program.seen);
    hibloom_store_free(program.store);              /* calls back what is pending */
    while (uv_loop_close(program.loop) == UV_EBUSY) /* until the store's handles are closed */
        uv_run(program.loop, UV_RUN_NOWAIT);
    return program.status == HIBLOOM_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
