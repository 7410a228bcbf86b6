/* Which of these items are new? With a loop of one's own: some 60 lines with poll().
 *
 *     cc -o async_poll async_poll.c $(pkg-config --cflags --libs hibloom)
 *     ./async_poll URI NAME ITEM...
 *
 * A loop gives the library two functions, watch and timer, and calls hibloom_ready. hibloom/adapters has them for
 * libevent, libuv and libev. */
#define _POSIX_C_SOURCE 200809L /* for clock_gettime. NOLINT: POSIX has the name */
#include <hibloom/async.h>

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- The loop ----------------------------------------------------------------------------- */

#define FDS 64 /* the store has one a server */

struct loop {
    struct pollfd fds[FDS]; /* fd -1: free */
    hibloom_store *store;
    int64_t due; /* of the timer; -1: none */
    bool stop;
};

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* *slot is where fd stands. */
static int watch(void *data, int fd, int events, void **slot, hibloom_store *store)
{
    struct loop *loop = data;
    struct pollfd *at = *slot;

    for (int i = 0; at == NULL && i < FDS; i++)
        if (loop->fds[i].fd < 0)
            at = &loop->fds[i];
    if (at == NULL)
        return -1;
    /* revents is 0: what was seen for an earlier fd here, or for other events, counts no longer */
    *at = (struct pollfd){
        .fd = events != 0 ? fd : -1,
        .events = (short)((events & HIBLOOM_READ ? POLLIN : 0) | (events & HIBLOOM_WRITE ? POLLOUT : 0))};
    *slot = events != 0 ? at : NULL;
    loop->store = store;
    return 0;
}

static int timer(void *data, int64_t ms, void **slot, hibloom_store *store)
{
    struct loop *loop = data;

    loop->due = ms < 0 ? -1 : now_ms() + ms;
    loop->store = store;
    (void)slot;
    return 0;
}

/* Any call of hibloom_ready may call watch and timer, and free the store. */
static void run(struct loop *loop)
{
    while (!loop->stop) {
        const int64_t left = loop->due < 0 ? -1 : loop->due - now_ms();
        poll(loop->fds, FDS, loop->due < 0 ? -1 : left < 0 ? 0 : left > 60000 ? 60000 : (int)left);
        for (int i = 0; i < FDS; i++) {
            const int seen = loop->fds[i].revents, failed = seen & (POLLERR | POLLHUP | POLLNVAL);
            const int ready = (seen & POLLIN ? HIBLOOM_READ : 0) | (seen & POLLOUT ? HIBLOOM_WRITE : 0) |
                              (failed != 0 ? HIBLOOM_READ | HIBLOOM_WRITE : 0);
            if (ready != 0)
                hibloom_ready(loop->store, loop->fds[i].fd, ready);
        }
        if (loop->due >= 0 && loop->due <= now_ms()) {
            loop->due = -1;
            hibloom_ready(loop->store, -1, 0);
        }
    }
}

/* ---- The program, as async_libevent.c has it ------------------------------------------------- */

#define ITEMS_MAX 100

struct program {
    struct loop loop;
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
    program->loop.stop = true;
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
    struct program program = {.loop.due = -1, .n = argc > 3 ? (size_t)argc - 3 : 0};

    if (program.n == 0 || program.n > ITEMS_MAX) {
        fprintf(stderr, "usage: %s URI NAME ITEM...\n", argv[0]);
        return EXIT_FAILURE;
    }
    for (int i = 0; i < FDS; i++)
        program.loop.fds[i].fd = -1;
    for (size_t i = 0; i < program.n; i++)
        program.items[i] = (hibloom_item){argv[i + 3], strlen(argv[i + 3])};
    const hibloom_loop loop = {sizeof loop, &program.loop, watch, timer};
    hibloom_status status = hibloom_async_connect(&program.store, argv[1], NULL, &loop);
    if (status == HIBLOOM_OK)
        status = hibloom_async_open(&program.seen, program.store, argv[2], "capacity=1M error=0.001", on_open,
                                    &program);
    if (status == HIBLOOM_OK)
        run(&program.loop);
    else
        on_end(status, &program);
    hibloom_close(program.seen);
    hibloom_store_free(program.store); /* calls back what is pending */
    return program.status == HIBLOOM_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
