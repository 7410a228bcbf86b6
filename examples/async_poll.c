/* Which of these items are new? With a loop of our own, of poll(): no call waits, the loop calls back.
 *
 *     cc -o async_poll async_poll.c $(pkg-config --cflags --libs hibloom)
 *     ./async_poll URI NAME ITEM...
 *
 * async_libevent.c, async_libuv.c and async_libev.c do the same with those loops. */
#include <hibloom/async.h>

#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- A loop of poll(), for one store: all that hibloom asks of a loop ------------------- */

enum { SOCKETS = 1024 };

struct loop {
    struct pollfd sockets[SOCKETS];
    nfds_t count;
    int64_t rings_ms; /* the timer; below 0: it does not */
    bool over;
};

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static nfds_t find(const struct loop *loop, int fd)
{
    nfds_t i = 0;

    while (i < loop->count && loop->sockets[i].fd != fd)
        i++;
    return i;
}

static int watch(void *data, int fd, int events, void **slot, hibloom_store *store)
{
    struct loop *loop = data;
    const nfds_t i = find(loop, fd);

    if (i == SOCKETS)
        return -1;
    loop->count += i == loop->count;
    loop->sockets[i].fd = fd;
    loop->sockets[i].events = (short)((events & HIBLOOM_READ ? POLLIN : 0) | (events & HIBLOOM_WRITE ? POLLOUT : 0));
    if (events == 0)
        loop->sockets[i] = loop->sockets[--loop->count];
    (void)slot;
    (void)store;
    return 0;
}

static int set_timer(void *data, int64_t ms, void **slot, hibloom_store *store)
{
    ((struct loop *)data)->rings_ms = ms < 0 ? -1 : now_ms() + ms;
    (void)slot;
    (void)store;
    return 0;
}

/* An event may change what is watched: each socket is looked for again. */
static void handle(struct loop *loop, hibloom_store *store, const struct pollfd *ready)
{
    const short came = ready->revents & (POLLERR | POLLHUP) ? ready->events : ready->revents;

    if (ready->revents != 0 && find(loop, ready->fd) < loop->count)
        hibloom_ready(store, ready->fd, (came & POLLIN ? HIBLOOM_READ : 0) | (came & POLLOUT ? HIBLOOM_WRITE : 0));
}

static void run_loop(struct loop *loop, hibloom_store *store)
{
    static struct pollfd ready[SOCKETS];

    while (!loop->over) {
        const int64_t left = loop->rings_ms < 0 ? -1 : loop->rings_ms - now_ms();
        const nfds_t count = loop->count;
        memcpy(ready, loop->sockets, sizeof ready);
        if (poll(ready, count, left < 0 && loop->rings_ms >= 0 ? 0 : (int)left) > 0)
            for (nfds_t i = 0; i < count; i++)
                handle(loop, store, &ready[i]);
        if (loop->rings_ms >= 0 && now_ms() >= loop->rings_ms) {
            loop->rings_ms = -1;
            hibloom_ready(store, -1, 0);
        }
    }
}

/* ---- The program ------------------------------------------------------------------------ */

struct program {
    struct loop loop;
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
    program->loop.over = true;
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
    const hibloom_loop loop = {sizeof loop, &program->loop, watch, set_timer};
    hibloom_spec spec;
    hibloom_status status = hibloom_async_connect(&program->store, uri, &options, &loop);

    if (status == HIBLOOM_OK)
        status = hibloom_spec_for(&spec, 1000000, 0.001);
    if (status == HIBLOOM_OK)
        status = hibloom_async_open(&program->seen, program->store, name, &spec, on_opened, program);
    if (status == HIBLOOM_OK)
        run_loop(&program->loop, program->store);
    else
        stop(program, name, status);
}

int main(int argc, char **argv)
{
    struct program program = {.loop = {.rings_ms = -1}, .items = argv + 3};

    if (argc < 4) {
        fprintf(stderr, "usage: %s URI NAME ITEM...\n", argv[0]);
        return EXIT_FAILURE;
    }
    run(&program, argv[1], argv[2]);
    hibloom_close(program.seen);
    hibloom_store_free(program.store); /* calls what is pending: ECANCELED */
    return program.result;
}
