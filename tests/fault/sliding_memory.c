/* A sliding window where memory runs out: each allocation of the library fails once, while items are added and asked for,
 * and periods pass (the server's clock steps). The call says ENOMEM, or has done without; what was OK is in, the store goes
 * on, and nothing is left allocated. See fault/memory, which does this with filters of other kinds. In Redis it is one
 * allocation of four; with EVERY_ALLOCATION=1 each of them. */
#include "support/failing_memory.h"
#include "support/redis_server.h"
#include "support/stepped.h"
#include "support/test.h"
#include "spec/spec.h"

enum { PERIOD_S = 500, START = 4000000, ITEMS = 6 };

static struct stepped_clock *server_clock;
static struct redis_server *server;
static const unsigned numbers[ITEMS] = {0, 1, 2, 3, 4, 5};
static hibloom_item items[ITEMS];
static bool answers[ITEMS];

static void set_period(int period)
{
    const int64_t now = (int64_t)stepped_now_us(server_clock) - stepped_ahead(server_clock) * 1000;

    stepped_set(server_clock, ((int64_t)START + period) * PERIOD_S * 1000 + 10 - now / 1000);
}

static bool tried(hibloom_status status)
{
    assert_int_equal(status, failed ? HIBLOOM_ENOMEM : HIBLOOM_OK);
    return status == HIBLOOM_OK;
}

/* Two items more each time. All are added again before they are forgotten, as in Redis the clock steps on. */
static void use(hibloom *filter)
{
    hibloom_info info;

    for (unsigned period = 0; period < 3; period++) {
        set_period((int)period * 2);
        if (!tried(hibloom_add(filter, items[period * 2].data, items[period * 2].len, answers)))
            return;
        assert_true(answers[0]);
        if (!tried(hibloom_add(filter, items[period * 2 + 1].data, items[period * 2 + 1].len, NULL)) ||
            !tried(hibloom_contains_many(filter, items, ITEMS, answers)))
            return;
        for (unsigned i = 0; i < ITEMS; i++)
            assert_int_equal(answers[i], i / 2 <= period);
        if (!tried(hibloom_add_many(filter, items, (period + 1) * 2, answers)))
            return;
        assert_false(answers[period * 2] || answers[period * 2 + 1]);
        if (period > 0)
            assert_false(answers[period * 2 - 1]);
    }
    (void)(tried(hibloom_get_info(filter, &info, sizeof info)) && tried(hibloom_expire(filter, 1000000)) &&
           tried(hibloom_clear(filter)));
}

static void live_once(const char *uri, const char *text)
{
    static const char *const by_commands[] = {"link", "1000mb", NULL}; /* without memory for bitmaps a call does so */
    hibloom_store *store = NULL;
    hibloom *filter = NULL, *other = NULL;

    set_period(0);
    if (!tried(hibloom_connect(&store, uri, &(hibloom_setup){sizeof(hibloom_setup), .options = by_commands})))
        return;
    if (tried(hibloom_open(&filter, store, "slides", text)))
        use(filter);
    if (!failed && tried(hibloom_open(&other, store, "slides", NULL)))
        (void)tried(hibloom_contains(other, "x", 1, answers));
    if (!failed)
        (void)tried(hibloom_drop(filter));
    countdown = 0; /* there is memory again */
    failed = false;
    hibloom_close(other);
    hibloom_close(filter);
    assert_ok(hibloom_open(&filter, store, "slides", text), store);
    assert_ok(hibloom_add(filter, "x", 1, NULL), store);
    assert_ok(hibloom_contains(filter, "x", 1, answers), store);
    assert_true(answers[0]);
    assert_dropped(filter, store);
    hibloom_store_free(store);
}

static void every_allocation_may_fail(const char *uri, const char *text)
{
    const int step = getenv("EVERY_ALLOCATION") != NULL || uri[0] == 'm' ? 1 : test_is_slow() ? 13 : 4;
    int n = 0;

    if (!REPLACED)
        skip();
    live_once(uri, text); /* what the C library allocates once and keeps */
    do {
        const long before = live;
        failed = reached = false;
        countdown = n += step;
        live_once(uri, text);
        countdown = 0;
        assert_int_equal(live, before);
        assert_in_range(n, 1, 4000);
    } while (reached);
    print_message("%s: %d allocations\n", text, n);
    assert_true(n > 18);
}

static void in_redis(void **state)
{
    every_allocation_may_fail(redis_server_uri(server), "capacity=100 error=1e-9 window=1000s slices=2 segments=2");
}

static void in_memory(void **state)
{
    every_allocation_may_fail("memory:", "capacity=100 error=1e-9 window=1000s slices=2");
}

static int set_up(void **state)
{
    for (int i = 0; i < ITEMS; i++)
        items[i] = (hibloom_item){&numbers[i], sizeof numbers[i]};
    server = stepped_server_start(&server_clock, redis_server_start);
    return 0;
}

static int tear_down(void **state)
{
    redis_server_stop(server);
    stepped_free(server_clock);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_redis),
        cmocka_unit_test(in_memory),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
