/* A service on an event loop, with a filter in a cluster, that goes on through a failover. Each line of standard input
 * is an item. The answer is "new ITEM", "seen ITEM" or "failed ITEM". The lines that are there make one call.
 *
 *     cc -o service service.c $(pkg-config --cflags --libs hibloom libevent_core)
 *     tail -F items | ./service 'redis+cluster://127.0.0.1:7000?retry=30s' NAME
 *
 *   a connection is lost, a server is busy  The library tries again for 30 s (retry=).
 *   ELOST: another server took over         It may lack what was added last. This call added nothing. The service adds
 *                                           its last items again, then those of this call.
 *   ECORRUPT: a part of the filter is lost  hibloom_async_repair makes that part again, empty; then as below. Some items of
 *                                           the call may be in, so it says "new" of all.
 *   another 4x: the filter is gone          hibloom_async_reopen opens what is there, or makes it; then as with ELOST. */
#include <hibloom/adapters/libevent.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <stdio.h>
#include <stdlib.h>

#define BATCH 1000
#define RECENT 10000 /* items to add again: more than come while a replica lags behind */
#define ATTEMPTS 10

struct service {
    struct event_base *loop;
    struct bufferevent *in;
    hibloom_store *store;
    hibloom *seen;
    const char *name;
    hibloom_item lines[BATCH], recent[RECENT]; /* of this call; and answered before it, in a ring */
    bool is_new[BATCH], in_doubt, ended, failed;
    size_t n, answered;
    int attempts;
};

static void on_added(hibloom_status status, void *data);

/* ---- Steps: each begins the next one. A call that is refused does not call back ----------------- */

static void add(hibloom_status status, void *data)
{
    struct service *s = data;

    if (status == HIBLOOM_OK)
        status = hibloom_async_add_many(s->seen, s->lines, s->n, s->is_new, on_added, s);
    if (status != HIBLOOM_OK)
        on_added(status, s);
}

static void add_recent(hibloom_status status, void *data)
{
    struct service *s = data;

    if (status == HIBLOOM_OK)
        status = hibloom_async_add_many(s->seen, s->recent, s->answered < RECENT ? s->answered : RECENT, NULL, add, s);
    if (status != HIBLOOM_OK)
        on_added(status, s);
}

static void reopen(hibloom_status status, void *data)
{
    struct service *s = data;

    if (status == HIBLOOM_OK)
        status = hibloom_async_reopen(s->seen, add_recent, s);
    if (status != HIBLOOM_OK)
        on_added(status, s);
}

static void repair(hibloom_status status, void *data)
{
    struct service *s = data;

    if (status == HIBLOOM_OK)
        status = hibloom_async_repair(s->store, s->name, reopen, s);
    if (status != HIBLOOM_OK)
        on_added(status, s);
}

/* ---- Lines -------------------------------------------------------------------------------------- */

/* No line is read while a call is pending, so memory is bounded. */
static void take_lines(struct bufferevent *in, void *data)
{
    struct service *s = data;

    bufferevent_disable(in, EV_READ);
    for (char *line; s->n < BATCH; s->n++) {
        size_t len;
        if ((line = evbuffer_readln(bufferevent_get_input(in), &len, EVBUFFER_EOL_LF)) == NULL)
            break;
        s->lines[s->n] = (hibloom_item){line, len};
    }
    if (s->n > 0)
        add(HIBLOOM_OK, s);
    else if (s->ended)
        event_base_loopbreak(s->loop);
    else
        bufferevent_enable(in, EV_READ);
}

static void on_added(hibloom_status status, void *data)
{
    struct service *s = data;

    if (status != HIBLOOM_OK)
        fprintf(stderr, "service: %s: %s\n", hibloom_strerror(status), hibloom_store_error(s->store));
    s->in_doubt = s->in_doubt || status == HIBLOOM_ECORRUPT;
    if (status >= HIBLOOM_ENOTFOUND && s->attempts++ < ATTEMPTS) {
        (status == HIBLOOM_ELOST ? add_recent : status == HIBLOOM_ECORRUPT ? repair : reopen)(HIBLOOM_OK, s);
        return;
    }
    for (size_t i = 0; i < s->n; i++, s->answered++) {
        printf("%s %.*s\n",
               status != HIBLOOM_OK          ? "failed"
               : s->is_new[i] || s->in_doubt ? "new"
                                             : "seen",
               (int)s->lines[i].len, (const char *)s->lines[i].data);
        free((void *)s->recent[s->answered % RECENT].data);
        s->recent[s->answered % RECENT] = s->lines[i];
    }
    fflush(stdout);
    s->failed = s->failed || status != HIBLOOM_OK;
    s->attempts = 0;
    s->in_doubt = false;
    s->n = 0;
    take_lines(s->in, s);
}

static void on_end(struct bufferevent *in, short what, void *data)
{
    struct service *s = data;

    s->ended = true;
    take_lines(in, s);
    (void)what;
}

static void on_open(hibloom_status status, void *data)
{
    struct service *s = data;

    if (status == HIBLOOM_OK) {
        bufferevent_enable(s->in, EV_READ);
        return;
    }
    fprintf(stderr, "service: %s: %s\n", hibloom_strerror(status), hibloom_store_error(s->store));
    s->failed = true;
    event_base_loopbreak(s->loop);
}

int main(int argc, char **argv)
{
    static struct service s;

    s.loop = event_base_new();
    s.in = s.loop != NULL ? bufferevent_socket_new(s.loop, 0, 0) : NULL;
    if (argc != 3 || s.in == NULL) {
        fprintf(stderr, "usage: %s URI NAME\n", argv[0]);
        return EXIT_FAILURE;
    }
    s.name = argv[2];
    evutil_make_socket_nonblocking(0);
    bufferevent_setcb(s.in, take_lines, NULL, on_end, &s);
    const hibloom_loop loop = hibloom_libevent(s.loop);
    hibloom_status status = hibloom_async_connect(&s.store, argv[1], NULL, &loop);
    if (status == HIBLOOM_OK)
        status = hibloom_async_open(&s.seen, s.store, s.name, "capacity=10M error=0.001", on_open, &s);
    if (status != HIBLOOM_OK)
        on_open(status, &s);
    event_base_dispatch(s.loop);
    hibloom_close(s.seen);
    hibloom_store_free(s.store);
    bufferevent_free(s.in);
    event_base_free(s.loop);
    for (size_t i = 0; i < RECENT; i++)
        free((void *)s.recent[i].data);
    return s.failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
