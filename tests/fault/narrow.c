/* Large calls through a proxy with sockets of 4 KB, which takes no commands while it cannot pass on answers. What a call
 * has on its way fits into the buffers of its own socket, so that proxy never stops. */
#include "support/net.h"
#include "support/served.h"
#include "support/test.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { NARROW = 4096, ITEMS = 800 };

struct narrow {
    struct worker worker;
    struct listener listener;
};

static bool pass(const struct narrow *narrow, int from, int to)
{
    char bytes[NARROW];
    const ssize_t n = read(from, bytes, sizeof bytes);

    return n > 0 && worker_send(&narrow->worker, to, bytes, (size_t)n);
}

static int open_narrow(int fd)
{
    const int bytes = NARROW;

    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes), 0);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes), 0);
    return fd;
}

static void *run(void *of)
{
    struct narrow *narrow = of;
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    strncpy(address.sun_path, redis_server_socket(server), sizeof address.sun_path - 1);
    while (worker_wait_readable(&narrow->worker, narrow->listener.fd)) {
        const int client = open_narrow(accept(narrow->listener.fd, NULL, NULL));
        const int upstream = open_narrow(socket(AF_UNIX, SOCK_STREAM, 0));
        struct pollfd fds[] = {{.fd = narrow->worker.stop, .events = POLLIN},
                               {.fd = upstream, .events = POLLIN},
                               {.fd = client, .events = POLLIN}};
        bool goes_on = connect(upstream, (struct sockaddr *)&address, sizeof address) == 0;
        while (goes_on && poll(fds, 3, -1) > 0 && fds[0].revents == 0)
            goes_on = fds[1].revents != 0 ? pass(narrow, upstream, client) : pass(narrow, client, upstream);
        close(upstream);
        close(client);
    }
    return NULL;
}

static void call_all(hibloom_store *store, const char *text)
{
    hibloom *filter = test_open(store, "narrow", text);
    uint64_t(*numbers)[1] = calloc(ITEMS, sizeof *numbers);
    hibloom_item *items = calloc(ITEMS, sizeof *items);
    bool *answers = calloc(ITEMS, sizeof *answers);

    for (uint64_t i = 0; i < ITEMS; i++) {
        numbers[i][0] = i;
        items[i] = (hibloom_item){numbers[i], sizeof numbers[i]};
    }
    assert_ok(hibloom_add_many(filter, items, ITEMS, answers), store);
    assert_ok(hibloom_contains_many(filter, items, ITEMS, answers), store);
    assert_int_equal(test_count_true(answers, ITEMS), ITEMS);
    assert_dropped(filter, store);
    free(numbers);
    free(items);
    free(answers);
}

static void large_calls_go_through_a_proxy_that_stops_while_it_cannot_write(void **state)
{
    static const char *const texts[] = {
        "capacity=800 error=1e-6",
        "capacity=800 error=1e-6 layout=blocked",
        "capacity=800 error=1e-6 window=86400 slices=4",
        "capacity=800 error=1e-6 window=86400 slices=4 layout=blocked",
        "capacity=800 error=1e-6 window=86400 slices=24",
        "capacity=800 error=1e-6 window=86400 slices=24 segments=3",
    };
    struct narrow narrow;

    listener_open_unix(&narrow.listener);
    worker_start(&narrow.worker, run, &narrow);
    hibloom_store *store = test_connect(narrow.listener.uri, NULL);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        print_message("%s\n", texts[i]);
        call_all(store, texts[i]);
    }
    hibloom_store_free(store);
    worker_stop(&narrow.worker);
    listener_close(&narrow.listener);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(large_calls_go_through_a_proxy_that_stops_while_it_cannot_write,
                                  served_leave_nothing),
    };

    return cmocka_run_group_tests(tests, served_set_up, served_tear_down);
}
