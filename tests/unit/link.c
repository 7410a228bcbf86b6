/* link.c: a store's link, by the peers of its connections. So the cost model knows how much bytes cost. No server. */
#include "net/flights/setup.h"
#include "support/test.h"

#include <arpa/inet.h>
#include <math.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

/* UDP asks nobody: the peer is only noted. */
static int socket_to_v4(const char *host)
{
    struct sockaddr_in peer = {.sin_family = AF_INET, .sin_port = htons(9)};
    const int fd = socket(AF_INET, SOCK_DGRAM, 0);

    assert_int_equal(inet_pton(AF_INET, host, &peer.sin_addr), 1);
    (void)connect(fd, (struct sockaddr *)&peer, sizeof peer); /* without a route it has no peer */
    return fd;
}

/* -1: this machine has no IPv6. */
static int socket_to_v6(const char *host)
{
    struct sockaddr_in6 peer = {.sin6_family = AF_INET6, .sin6_port = htons(9)};
    const int fd = socket(AF_INET6, SOCK_DGRAM, 0);

    assert_int_equal(inet_pton(AF_INET6, host, &peer.sin6_addr), 1);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&peer, sizeof peer) == 0)
        return fd;
    (void)close(fd);
    return -1;
}

static int socket_to_unix(void)
{
    int pair[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    assert_int_equal(close(pair[1]), 0);
    return pair[0];
}

static void close_nothing(struct carrier *c, struct node *node)
{
}

static const struct pipe_class no_pipes = {.close = close_nothing};
static struct carrier carrier;

/* The carrier of a store that nobody has connected. */
static struct carrier *carrier_of(const char *uri)
{
    struct store_settings *settings = NULL;
    struct error error;

    assert_ok(settings_make(&settings, uri, NULL, &error), NULL);
    carrier = (struct carrier){0};
    assert_true(carrier_make(&carrier, settings, &no_pipes));
    return &carrier;
}

static void end(void)
{
    carrier_free(&carrier);
    settings_free(carrier.store.base.settings);
}

static double note(struct carrier *c, int fd)
{
    carrier_note_link(c, fd);
    (void)close(fd);
    return c->store.server.cost.link_mb_s;
}

static void to_this_machine_it_is_faster(void **state)
{
    struct carrier *c = carrier_of("redis://somewhere");
    const int v6 = socket_to_v6("::1");

    assert_true(note(c, socket_to_unix()) == COST_LINK_HERE_MB_S);
    assert_true(note(c, socket_to_v4("127.0.0.1")) == COST_LINK_HERE_MB_S);
    assert_true(note(c, socket_to_v4("127.8.0.2")) == COST_LINK_HERE_MB_S);
    if (v6 >= 0)
        assert_true(note(c, v6) == COST_LINK_HERE_MB_S);
    end();
}

static void the_slowest_connection_counts(void **state)
{
    struct carrier *c = carrier_of("redis://somewhere");

    assert_true(note(c, socket_to_v4("192.0.2.77")) == COST_LINK_MB_S); /* an address for examples */
    assert_true(note(c, socket_to_unix()) == COST_LINK_MB_S);
    end();
    assert_true(note(carrier_of("redis://somewhere"), -1) == COST_LINK_MB_S);
    end();
}

static void the_callers_word_holds(void **state)
{
    assert_true(note(carrier_of("redis://somewhere?link=7m"), socket_to_unix()) == 7);
    end();
    assert_true(note(carrier_of("redis://somewhere?link=20g"), socket_to_v4("192.0.2.77")) == 20000);
    end();
}

/* By tests and the benchmark, so that no bitmap pays. */
static void what_was_forced_stays(void **state)
{
    struct carrier *c = carrier_of("redis://somewhere");

    c->store.server.cost.link_mb_s = NAN;
    assert_true(isnan(note(c, socket_to_v4("192.0.2.77"))));
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(to_this_machine_it_is_faster),
        cmocka_unit_test(the_slowest_connection_counts),
        cmocka_unit_test(the_callers_word_holds),
        cmocka_unit_test(what_was_forced_stays),
    };

    return cmocka_run_group_tests_name("unit: link", tests, NULL, NULL);
}
