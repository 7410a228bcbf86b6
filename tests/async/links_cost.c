/* What filters cost, growing ones and windows more: commands, bytes, memory, and time of a loop. Each row measures one
 * such cost, and has a limit. A pattern chooses rows: links_cost '*heap*' */
#include "loops/subject.h"
#include "support/net.h"
#include "support/served.h"
#include "base/store.h"

#include <malloc.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

enum { ITEMS = 200000, PENDING = 64, GROWTHS = 4, STEP = 500 };

static hibloom_item items[ITEMS];
static uint32_t numbers[ITEMS];
static bool answers[ITEMS];

struct row {
    const char *what;
    double (*measure)(const struct row *);
    const char *text; /* the filter's */
    size_t n;         /* items; or the links that there are, as adds are pending */
    double limit;
};

/* ---- The library's own memory ---------------------------------------------------------------------- */

static size_t held, most;

static void *note(void *memory)
{
    held += malloc_usable_size(memory);
    most = held > most ? held : most;
    return memory;
}

static void *counted_malloc(size_t size)
{
    return note(malloc(size));
}

static void *counted_calloc(size_t count, size_t size)
{
    return note(calloc(count, size));
}

static void *counted_realloc(void *old, size_t size)
{
    held -= malloc_usable_size(old);
    return note(realloc(old, size));
}

static void counted_free(void *memory)
{
    held -= malloc_usable_size(memory);
    free(memory);
}

/* ---- Calls that block ------------------------------------------------------------------------------ */

static void drop_and_free(hibloom *filter, hibloom_store *store)
{
    assert_dropped_last(filter, store);
}

static void look_up(hibloom *filter, hibloom_store *store, size_t n)
{
    assert_ok(hibloom_contains_many(filter, items, n, answers), store);
}

static double sent(const struct row *row, bool bytes)
{
    hibloom_store *store = test_connect_any_way(redis_server_uri(server), NULL);
    hibloom *filter = test_open(store, "f", row->text);
    const hibloom_stats before = test_stats(store);

    look_up(filter, store, row->n);
    const hibloom_stats after = test_stats(store);
    drop_and_free(filter, store);
    return (double)(bytes ? after.bytes_sent - before.bytes_sent : after.commands - before.commands);
}

static double commands(const struct row *row)
{
    return sent(row, false);
}

static double bytes_sent(const struct row *row)
{
    return sent(row, true);
}

/* It goes item by item, so that buffers are measured and no bitmaps. */
static double heap_of_look_ups(const struct row *row)
{
    hibloom_store *store = test_connect(redis_server_uri(server), NULL);
    hibloom *filter = test_open(store, "f", row->text);

    look_up(filter, store, 1); /* what the store keeps */
    const size_t before = most = held;
    look_up(filter, store, row->n);
    const double heap = (double)(most - before);
    drop_and_free(filter, store);
    return heap;
}

/* With is_new, without, and asked for. Behind a greeting both pipelines are written at once: so it has three tries. */
static double heap_of_batches(const struct row *row)
{
    double heap = row->limit + 1;

    for (int tries = 0; heap > row->limit && tries < 3; tries++) {
        hibloom_store *store = test_connect(redis_server_uri(server), NULL);
        hibloom *filter = test_open(store, "f", row->text);
        const size_t before = most = held;
        assert_ok(hibloom_add_many(filter, items, row->n, answers), store);
        assert_ok(hibloom_add_many(filter, items, row->n, NULL), store);
        look_up(filter, store, row->n);
        heap = (double)(most - before);
        drop_and_free(filter, store);
    }
    return heap;
}

/* Adds until the filter has that number of links. Each link has one key. */
static hibloom_info grow(hibloom *filter, hibloom_store *store, uint32_t links)
{
    hibloom_info info = {.keys = 0};

    for (size_t at = 0; info.keys < links; at += STEP) {
        assert_true(at + STEP <= ITEMS);
        assert_ok(hibloom_add_many(filter, items + at, STEP, NULL), store);
        assert_ok(hibloom_get_info(filter, &info, sizeof info), store);
    }
    assert_int_equal(info.keys, links);
    return info;
}

static double times_read(const struct row *row)
{
    hibloom_store *store = test_connect_any_way(redis_server_uri(server), NULL);
    hibloom *filter = test_open(store, "f", row->text);
    const hibloom_info info = grow(filter, store, 5);
    const uint64_t before = test_stats(store).bytes_received;

    look_up(filter, store, row->n);
    const double received = (double)(test_stats(store).bytes_received - before);
    drop_and_free(filter, store);
    return received / (double)info.bytes;
}

static double heap_of_drop(const struct row *row)
{
    hibloom_store *store = test_connect(redis_server_uri(server), NULL);
    hibloom *filter = test_open(store, "f", row->text);

    (void)grow(filter, store, 2);
    const size_t before = most = held;
    drop_and_free(filter, store);
    return (double)(most - before);
}

static double heap_of_handle(const struct row *row)
{
    hibloom_store *store = test_connect(redis_server_uri(server), NULL);
    hibloom *filter = test_open(store, "f", row->text);
    const size_t before = held;
    hibloom *twin = test_open(store, "f", row->text);
    const double heap = (double)(held - before);

    hibloom_close(twin);
    drop_and_free(filter, store);
    return heap;
}

/* By whole bitmaps: at most, or as the call has ended. */
static double heap_of_bitmaps(const struct row *row, bool at_end)
{
    hibloom_store *store = test_connect_any_way(redis_server_uri(server), NULL);
    hibloom *filter = test_open(store, "f", row->text);
    const uint64_t commands_before = test_stats(store).commands;
    const size_t before = most = held;

    assert_ok(hibloom_add_many(filter, items, row->n, NULL), store);
    look_up(filter, store, row->n);
    const double heap = (double)((at_end ? held : most) - before);
    assert_int_equal(test_count_true(answers, row->n), row->n);
    assert_true(test_stats(store).commands - commands_before < 1000);
    drop_and_free(filter, store);
    return heap;
}

static double most_of_bitmaps(const struct row *row)
{
    return heap_of_bitmaps(row, false);
}

static double rest_of_bitmaps(const struct row *row)
{
    return heap_of_bitmaps(row, true);
}

/* ---- A proxy with small buffers ------------------------------------------------------------------- */

/* In front of the server, for one connection after the other, with sockets of 4 KB. It writes before it reads on: it
 * takes no commands while it cannot pass on answers. What a call has on its way has to fit into the buffers of its own
 * socket, or both sides stand still. */
enum { NARROW = 4096 };
static struct listener front;
static struct worker worker;

static bool pass(int from, int to)
{
    char bytes[NARROW];
    const ssize_t n = read(from, bytes, sizeof bytes);

    return n > 0 && worker_send(&worker, to, bytes, (size_t)n);
}

static int make_narrow(int fd)
{
    const int bytes = NARROW;

    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes), 0);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes), 0);
    return fd;
}

static void *relay(void *unused)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    strncpy(address.sun_path, redis_server_socket(server), sizeof address.sun_path - 1);
    while (worker_wait_readable(&worker, front.fd)) {
        const int client = make_narrow(accept(front.fd, NULL, NULL));
        const int upstream = make_narrow(socket(AF_UNIX, SOCK_STREAM, 0));
        struct pollfd fds[] = {{.fd = worker.stop, .events = POLLIN},
                               {.fd = upstream, .events = POLLIN},
                               {.fd = client, .events = POLLIN}};
        bool goes_on = connect(upstream, (struct sockaddr *)&address, sizeof address) == 0;
        while (goes_on && poll(fds, 3, -1) > 0 && fds[0].revents == 0)
            goes_on = fds[1].revents != 0 ? pass(upstream, client) : pass(client, upstream);
        close(upstream);
        close(client);
    }
    return NULL;
}

/* A long name makes commands long. */
#define TEN "0123456789"
#define LONG_NAME TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN

/* Counts the calls that fail: a look-up and two adds. A call that stands still ends at its time-out. A machine with
 * other work is slow, so the time-out is long. */
static double failures(const struct row *row)
{
    hibloom_store *direct = test_connect(redis_server_uri(server), NULL);
    hibloom *same = test_open(direct, LONG_NAME, row->text);

    listener_open_unix(&front);
    worker_start(&worker, relay, NULL);
    hibloom_store *store = test_connect(with_options(front.uri, "command_timeout=20s"), NULL);
    hibloom *filter = test_open(store, LONG_NAME, row->text);
    const int failed = (hibloom_contains_many(filter, items, row->n, answers) != HIBLOOM_OK) +
                       (hibloom_add_many(filter, items, row->n, answers) != HIBLOOM_OK) +
                       (hibloom_add_many(filter, items, row->n, NULL) != HIBLOOM_OK);
    hibloom_close(filter);
    hibloom_store_free(store);
    worker_stop(&worker);
    listener_close(&front);
    drop_and_free(same, direct);
    return failed;
}

/* ---- Calls on a loop ------------------------------------------------------------------------------- */

static bool is_new;

static void begin_add(hibloom *filter, size_t at, struct outcome *outcome)
{
    *outcome = (struct outcome){.calls = 0};
    assert_int_equal(hibloom_async_add_many(filter, items + at, 1, &is_new, on_done, outcome), HIBLOOM_OK);
}

static void end_loop(void *loop, hibloom_store *async, hibloom *filter)
{
    struct outcome dropped = {.calls = 0};

    assert_int_equal(hibloom_async_drop(filter, on_done, &dropped), HIBLOOM_OK);
    await(loop, &dropped);
    assert_int_equal(dropped.status, HIBLOOM_OK);
    end_all(loop, async, filter);
}

/* By somebody else. */
static void grow_beside(const struct row *row, uint32_t links)
{
    hibloom_store *store = test_connect(redis_server_uri(server), NULL);
    hibloom *filter = test_open(store, "f", row->text);

    (void)grow(filter, store, links);
    test_close(filter, store);
}

/* At most, until the last one has its answer. */
static double heap_of_pending_add(const struct row *row)
{
    void *loop = loop_class->open();
    hibloom_store *async = async_store(loop, redis_server_uri(server), NULL);
    hibloom *filter = async_filter(loop, async, "f", row->text);
    struct outcome adds[PENDING];

    if (row->n > 1)
        grow_beside(row, (uint32_t)row->n);
    begin_add(filter, 0, &adds[0]); /* from here on the handle knows what is there */
    await(loop, &adds[0]);
    const size_t before = most = held;
    for (size_t i = 0; i < PENDING; i++)
        begin_add(filter, ITEMS - 1 - i, &adds[i]); /* new ones */
    await_all(loop, adds, PENDING);
    const double heap = (double)(most - before) / PENDING;
    end_loop(loop, async, filter);
    return heap;
}

static double cpu_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

/* Of this thread's time, in ms. */
static double longest_turn(void *loop, const struct outcome *outcome)
{
    double longest = 0.0;

    while (outcome->calls == 0) {
        const double before = cpu_ms();
        loop_class->turn(loop);
        const double took = cpu_ms() - before;
        longest = took > longest ? took : longest;
    }
    assert_int_equal(outcome->status, HIBLOOM_OK);
    return longest;
}

/* The longest turn of the loop in an add that makes a link; of several such adds the least, which no other process
 * has disturbed. */
static double ms_of_growth(const struct row *row)
{
    void *loop = loop_class->open();
    hibloom_store *async = async_store(loop, redis_server_uri(server), NULL);
    hibloom *filter = async_filter(loop, async, "f", row->text);
    long long keys = test_command(redis, "DBSIZE");
    double least = 1e9;

    for (size_t at = 0, growths = 0; growths < GROWTHS; at++) {
        struct outcome add;
        assert_true(at < ITEMS);
        begin_add(filter, at, &add);
        const double took = longest_turn(loop, &add);
        const long long now = test_command(redis, "DBSIZE");
        if (now == keys)
            continue;
        keys = now;
        growths++;
        least = took < least ? took : least;
    }
    end_loop(loop, async, filter);
    return least;
}

/* ---- The table ------------------------------------------------------------------------------------- */

#define PLAIN "capacity=1000 error=0.01"
#define GROWING PLAIN " growth=2"
#define WINDOW "capacity=100000 error=0.01 window=86400s slices=24"
#define LARGE "bits=400000000 hashes=5 segments=4"
#define LOSSLESS "capacity=800 error=1e-6"
#define SLICES LOSSLESS " window=86400s slices="

static struct row rows[] = {
    {"window, 5,000 look-ups: commands", commands, WINDOW, 5000, 125},
    {"window, 5,000 look-ups: bytes sent", bytes_sent, WINDOW, 5000, 50000},
    {"plain, long batches: heap", heap_of_batches, "capacity=200000 error=0.01", ITEMS,
     ITEMS / 8 + 620000}, /* two pipelines of commands, and a bit an item; one more would be too much */
    {"window, a look-up: heap", heap_of_look_ups, WINDOW, 1, 32 << 10},
    {"window, look-ups: heap", heap_of_look_ups, WINDOW, 4096, 3 << 19},
    {"window of segments, look-ups: heap", heap_of_look_ups, WINDOW " segments=4", 4096, 3 << 19},
    {"growing, 200,000 look-ups: times that its bits are read", times_read, "capacity=5000 error=0.01 growth=2", ITEMS,
     1.1},
    {"plain, pending add: heap", heap_of_pending_add, PLAIN " segments=1000", 1, 1536},
    {"growing, pending add: heap", heap_of_pending_add, GROWING, 3, 2 << 10},
    {"growing, pending adds grow it: heap", heap_of_pending_add, "capacity=8 error=0.01 growth=2", 1, 2000},
    {"window, pending add: heap", heap_of_pending_add, PLAIN " window=86400s slices=3", 1, 2 << 10},
    {"growing, it grows: longest turn of the loop, ms", ms_of_growth, "capacity=100 error=0.01 growth=2 layout=blocked",
     1, 1},
    {"plain, narrow proxy: failures", failures, LOSSLESS, 800, 0},
    {"blocked, narrow proxy: failures", failures, LOSSLESS " layout=blocked", 800, 0},
    {"window of 4, narrow proxy: failures", failures, SLICES "4", 300, 0},
    {"blocked window, narrow proxy: failures", failures, SLICES "4 layout=blocked", 300, 0},
    {"window of segments, narrow proxy: failures", failures, SLICES "24 segments=3", 150, 0},
    {"window of 31, narrow proxy: failures", failures, SLICES "31", 150, 0},
    {"growing, drop: heap", heap_of_drop, GROWING, 0, 2 << 10},
    {"plain, handle: heap", heap_of_handle, PLAIN, 0, 1 << 10},
    {"50 MB, whole bitmaps: heap", most_of_bitmaps, LARGE, ITEMS, 24 << 20}, /* a step's bits, some buffers */
    {"50 MB, whole bitmaps: heap that stays", rest_of_bitmaps, LARGE, ITEMS, 4 << 20},
};

static void the_limit_holds(void **state)
{
    const struct row *row = *state;
    const double value = row->measure(row);

    print_message("%.2f; limit %.2f\n", value, row->limit);
    assert_true(value <= row->limit);
}

static int set_up(void **state)
{
    assert_int_equal(hibloom_set_allocator(counted_malloc, counted_calloc, counted_realloc, counted_free), HIBLOOM_OK);
    number_items(items, numbers, ITEMS);
    return served_set_up(state);
}

int main(int argc, char **argv)
{
    struct CMUnitTest tests[COUNT(rows)];

    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    for (size_t i = 0; i < COUNT(rows); i++)
        tests[i] = (struct CMUnitTest){rows[i].what, the_limit_holds, NULL, served_leave_nothing, &rows[i]};
    return _cmocka_run_group_tests("links_cost", tests, COUNT(rows), set_up, served_tear_down);
}
