/* cost.c: the rates that a spec is chosen by, and the sizes from which on a call goes by
 * whole bitmaps. The constants may be measured anew: what is tested holds for any that
 * are near to today's. And a store's link, by which it knows how much bytes cost. No server. */
#include "net/flights/setup.h"
#include "redis/cost.h"
#include "spec/spec.h"
#include "support/test.h"

#include <arpa/inet.h>
#include <math.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

static struct rates rates_of(const struct spec *spec, bool bitfield)
{
    struct rates rates;

    assert_ok(cost_rates(spec, bitfield, &rates), NULL);
    assert_true(rates.adds > 0 && rates.adds_new > 0 && rates.look_ups > 0);
    return rates;
}

/* So large that 1,000 items never go by whole bitmaps. */
static struct spec spec_with(enum layout layout, uint32_t hashes)
{
    return (struct spec){.bits = UINT64_C(1) << 32, .hashes = hashes, .segments = 1, .layout = layout};
}

static void each_hash_more_makes_all_but_blocked_look_ups_slower(void **state)
{
    for (int bitfield = 0; bitfield < 2; bitfield++)
        for (int layout = LAYOUT_CLASSIC; layout <= LAYOUT_BLOCKED; layout++) {
            const bool blocked = layout == LAYOUT_BLOCKED;
            struct spec spec = spec_with((enum layout)layout, 1);
            const struct rates first = rates_of(&spec, bitfield != 0);
            struct rates last = first;

            for (spec.hashes = 2; spec.hashes <= 40; spec.hashes++) {
                const struct rates rates = rates_of(&spec, bitfield != 0);

                assert_true(rates.adds < last.adds && rates.adds_new < last.adds_new);
                assert_true(blocked ? rates.look_ups == last.look_ups : rates.look_ups < last.look_ups);
                last = rates;
            }
            assert_true(last.adds < first.adds / 4 && last.adds_new < first.adds_new / 4);
            assert_true(blocked || last.look_ups < first.look_ups / 4);
        }
}

static void layouts_and_commands_are_ranked_as_they_were_measured(void **state)
{
    const struct spec classic = spec_with(LAYOUT_CLASSIC, 7), blocked = spec_with(LAYOUT_BLOCKED, 7);
    const struct spec partitioned = spec_with(LAYOUT_PARTITIONED, 7);
    const struct rates setbit = rates_of(&classic, false), bitfield = rates_of(&classic, true);

    assert_true(rates_of(&blocked, false).look_ups > 2 * setbit.look_ups);
    assert_true(rates_of(&blocked, true).look_ups > 1.5 * bitfield.look_ups);
    assert_true(bitfield.adds > setbit.adds && bitfield.look_ups > setbit.look_ups);
    assert_true(setbit.adds_new == bitfield.adds_new && bitfield.adds_new == bitfield.adds); /* always BITFIELD */
    assert_true(rates_of(&partitioned, true).adds_new < setbit.adds);
    assert_true(rates_of(&partitioned, true).look_ups < bitfield.look_ups);
}

/* From which size of a call on it is less work to go by whole bitmaps, of a server on this machine. */
static size_t crossing(const struct spec *spec, enum store_op op)
{
    const struct cost_server server = {.bitfield = false, .network_mb_s = COST_NETWORK_HERE_MB_S};
    size_t n = 1;

    while (cost_bitmaps(spec, &server, op, n) > (double)n * cost_item(spec, &server, op))
        assert_true(n++ < 10000000);
    return n;
}

static void of_12_mb_a_thousand_look_ups_and_some_thousand_adds_go_by_bitmaps(void **state)
{
    const struct spec spec = test_spec("capacity=10000000 error=0.01");
    const size_t look_ups = crossing(&spec, STORE_LOOK), adds = crossing(&spec, STORE_ADD);
    if (look_ups < 600 || look_ups > 1600)
        fail_msg("look-ups go by bitmaps from %zu on", look_ups);
    if (adds < 3000 || adds > 9000)
        fail_msg("adds go by bitmaps from %zu on", adds);
}

/* Of a small filter 1,000 items go by its bitmap, with is_new, too; but not to a window. */
static void the_rates_of_a_small_filter_are_those_of_its_bitmap(void **state)
{
    struct spec spec = test_spec("capacity=10000 error=0.01");
    const struct rates rates = rates_of(&spec, false);
    const struct cost_server server = {.network_mb_s = COST_NETWORK_MB_S};

    assert_true(rates.adds_new > 5 * rates.adds_new_sent);
    assert_true(fabs(rates.adds_new * cost_bitmaps(&spec, &server, STORE_ADD_NEW, 1000) / 1e9 - 1) < 1e-9);
    spec = test_spec("capacity=10000 error=0.01 window=1h");
    const struct rates window = rates_of(&spec, false);
    assert_true(window.adds_new == window.adds_new_sent && window.adds < rates.adds / 5);
}

static void what_is_no_spec_has_no_rates(void **state)
{
    struct spec spec = spec_with(LAYOUT_CLASSIC, 7);
    struct rates rates = {.adds = 1};

    spec.hashes = 0;
    assert_int_not_equal(cost_rates(&spec, false, &rates), HIBLOOM_OK);
    spec = (struct spec){.hashes = 7};
    assert_int_not_equal(cost_rates(&spec, false, &rates), HIBLOOM_OK);
    assert_true(rates.adds == 1); /* written on HIBLOOM_OK only */
}

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

    assert_ok(settings_make(&settings, false, uri, NULL, &error), NULL);
    carrier = (struct carrier){0};
    assert_true(setup_make(&carrier, settings, &no_pipes));
    return &carrier;
}

static void end(void)
{
    setup_free(&carrier);
    settings_free(carrier.store.base.settings);
}

static double note(struct carrier *c, int fd)
{
    setup_note_network(c, fd);
    (void)close(fd);
    return c->store.server.cost.network_mb_s;
}

static void to_this_machine_it_is_faster(void **state)
{
    struct carrier *c = carrier_of("redis://somewhere");
    const int v6 = socket_to_v6("::1");

    assert_true(note(c, socket_to_unix()) == COST_NETWORK_HERE_MB_S);
    assert_true(note(c, socket_to_v4("127.0.0.1")) == COST_NETWORK_HERE_MB_S);
    assert_true(note(c, socket_to_v4("127.8.0.2")) == COST_NETWORK_HERE_MB_S);
    if (v6 >= 0)
        assert_true(note(c, v6) == COST_NETWORK_HERE_MB_S);
    end();
}

static void the_slowest_connection_counts(void **state)
{
    struct carrier *c = carrier_of("redis://somewhere");

    assert_true(note(c, socket_to_v4("192.0.2.77")) == COST_NETWORK_MB_S); /* an address for examples */
    assert_true(note(c, socket_to_unix()) == COST_NETWORK_MB_S);
    end();
    assert_true(note(carrier_of("redis://somewhere"), -1) == COST_NETWORK_MB_S);
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

    c->store.server.cost.network_mb_s = NAN;
    assert_true(isnan(note(c, socket_to_v4("192.0.2.77"))));
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_hash_more_makes_all_but_blocked_look_ups_slower),
        cmocka_unit_test(layouts_and_commands_are_ranked_as_they_were_measured),
        cmocka_unit_test(of_12_mb_a_thousand_look_ups_and_some_thousand_adds_go_by_bitmaps),
        cmocka_unit_test(the_rates_of_a_small_filter_are_those_of_its_bitmap),
        cmocka_unit_test(what_is_no_spec_has_no_rates),
        cmocka_unit_test(to_this_machine_it_is_faster),
        cmocka_unit_test(the_slowest_connection_counts),
        cmocka_unit_test(the_callers_word_holds),
        cmocka_unit_test(what_was_forced_stays),
    };

    return cmocka_run_group_tests_name("unit: cost", tests, NULL, NULL);
}
