/* The connection to a sliding window is cut at one place after the other, and its replies are altered one after the other,
 * while items are added, periods pass (the server's clock steps), slices are emptied, and items are asked for: what was
 * acknowledged is found, with retry_ms it is new to its caller, and no call hangs. CUT_STEP=1 visits every byte. */
#include "support/items.h"
#include "support/proxied.h"
#include "support/record.h"
#include "support/stepped.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME "slides"
#define TEXT "capacity=100 error=1e-9 window=1000 slices=2"

enum { EACH = 4 /* of the nonsense, at a reply */, ITEMS = 12, PART = 3, PERIOD_S = 500, START = 4000000, STEP = 1511 };

static struct stepped_clock *server_clock;
static hibloom_item *items;

static void set_period(int period)
{
    const int64_t now = (int64_t)stepped_now_us(server_clock) - stepped_ahead(server_clock) * 1000;

    stepped_set(server_clock, ((int64_t)START + period) * PERIOD_S * 1000 + 10 - now / 1000);
}

/* ---- Cut --------------------------------------------------------------------------------- */

/* Made again once, if it has failed of the cut; then `again` is set. */
#define TWICE(call) \
    do { \
        hibloom_status status_ = (call); \
        again = status_ == HIBLOOM_EIO; \
        assert_true(!again || retry_ms == 0); \
        if (again) \
            status_ = (call); \
        assert_ok(status_, store); \
    } while (0)

/* All that was added in this period and the SLICES before is in, by another handle; what came before is not. */
static void check(hibloom *other, hibloom_store *direct, int period)
{
    bool found[ITEMS];

    assert_ok(hibloom_contains_many(other, items, ITEMS, found), direct);
    for (int i = 0; i < ITEMS; i++)
        assert_true(found[i] == (i / PART <= period && i / PART >= period - 2));
}

/* A filter, and how long calls on it are tried again. */
struct held {
    const char *text;
    uint32_t retry_ms;
};

static void hold(const void *of)
{
    const struct held *held = of;
    const char *text = held->text;
    const uint32_t retry_ms = held->retry_ms;
    hibloom_connect_options options = HIBLOOM_CONNECT_OPTIONS_INIT;
    const hibloom_spec spec = test_spec(text);
    hibloom_store *direct = test_connect(redis_server_uri(server), NULL), *store = NULL;
    hibloom *filter = NULL, *other = NULL;
    bool answers[ITEMS], again;

    options.retry_ms = retry_ms;
    set_period(0);
    hibloom_status status = hibloom_connect(&store, proxy_uri(proxy), &options);
    if (status == HIBLOOM_EIO) {
        hibloom_store_free(store);
        status = hibloom_connect(&store, proxy_uri(proxy), &options);
    }
    assert_ok(status, store);
    TWICE(hibloom_open(&filter, store, NAME, &spec));
    assert_ok(hibloom_open(&other, direct, NAME, NULL), direct);
    for (int period = 0; period * PART < ITEMS; period++) {
        set_period(period);
        TWICE(hibloom_add_many(filter, items + period * PART, PART - 1, answers));
        for (int i = 0; i < PART - 1; i++)
            assert_true(answers[i] || again);
        TWICE(hibloom_add(filter, items[period * PART + 2].data, items[period * PART + 2].len, NULL));
        check(other, direct, period);
        TWICE(hibloom_contains_many(filter, items, ITEMS, answers));
        for (int i = 0; i < ITEMS; i++)
            assert_true(answers[i] == (i / PART <= period && i / PART >= period - 2));
    }
    TWICE(hibloom_clear(filter));
    assert_ok(hibloom_contains_many(other, items, ITEMS, answers), direct);
    assert_null(memchr(answers, true, ITEMS));
    status = hibloom_drop(filter);
    if (status == HIBLOOM_EIO) { /* it may be done */
        status = hibloom_drop(filter);
        status = status == HIBLOOM_ENOTFOUND ? HIBLOOM_OK : status;
    }
    assert_ok(status, store);
    assert_int_equal(keys_with(redis, NAME), 0);
    hibloom_close(other);
    hibloom_close(filter);
    hibloom_store_free(direct);
    hibloom_store_free(store);
}

static void cut_everywhere(const char *text, enum proxy_way way, uint32_t retry_ms)
{
    const char *chosen = getenv("CUT_STEP");
    const uint64_t step = STEP * (test_is_slow() ? 8 : 1);

    assert_true(proxied_cut_everywhere(way,
                                       chosen != NULL          ? strtoull(chosen, NULL, 10)
                                       : way == PROXY_REQUESTS ? step * 4
                                                               : step,
                                       hold, &(struct held){text, retry_ms}) > 3);
}

static void nothing_is_lost_wherever_it_is_cut(void **state)
{
    cut_everywhere(TEXT, PROXY_REQUESTS, 0);
    cut_everywhere(TEXT, PROXY_REPLIES, 0);
    cut_everywhere(TEXT " segments=2", PROXY_REQUESTS, 4000);
    cut_everywhere(TEXT " segments=2", PROXY_REPLIES, 4000);
}

/* ---- Altered ------------------------------------------------------------------------------------ */

static const char *const nonsense[] = {
    "-ERR no\r\n",
    "+late\r\n",
    "+1 \r\n",
    "+1 0\r\n",
    "+99999999999999999999 0\r\n",
    "+QUEUED\r\n",
    ":-5\r\n",
    ":7\r\n",
    "$-1\r\n",
    "$3\r\n101\r\n",
    "*0\r\n",
    "*2\r\n$1\r\n0\r\n$1\r\n0\r\n",
    "*2\r\n$10\r\n9999999999\r\n$1\r\n0\r\n",
    "*2\r\n$10\r\n1795348800\r\n$7\r\n1000000\r\n",
    "*1\r\n$10\r\n1795348800\r\n",
};

/* A call that says it has gone well has. */
static void alter(hibloom *filter, hibloom_store *store, hibloom *other, hibloom_store *direct, int kind)
{
    char item[32];
    static unsigned n;
    bool found = true, is_new;
    hibloom_status status;

    const size_t len = (size_t)snprintf(item, sizeof item, "altered %u", n++);
    if (kind == 2)
        status = hibloom_contains(filter, "in", 2, &found);
    else
        status = hibloom_add(filter, item, len, kind == 0 ? &is_new : NULL);
    if (status == HIBLOOM_OK && kind < 2)
        assert_ok(hibloom_contains(other, item, len, &found), direct);
    if (status == HIBLOOM_OK)
        assert_true(found);
    else
        assert_string_not_equal(hibloom_store_error(store), "");
    proxy_heal(proxy);
    found = false;
    assert_ok(hibloom_contains(filter, "in", 2, &found), store); /* it goes on */
    assert_true(found);
}

static void an_altered_reply_is_an_error_or_does_no_harm(void **state)
{
    hibloom_store *store = test_connect(proxy_uri(proxy), NULL), *direct = test_connect(redis_server_uri(server), NULL);
    hibloom *filter = test_open(store, NAME, TEXT), *other = test_open(direct, NAME, TEXT);
    unsigned altered = 0;

    set_period(0);
    assert_ok(hibloom_add(filter, "in", 2, NULL), store);
    for (int kind = 0; kind < 3; kind++) {
        proxy_mark(proxy);
        alter(filter, store, other, direct, kind);
        const uint64_t replies = proxy_values(proxy, PROXY_REPLIES);
        for (uint64_t at = 0; at < replies; at += test_is_slow() ? 5 : 1)
            for (size_t i = at % EACH; i < sizeof nonsense / sizeof *nonsense; i += EACH, altered++) {
                proxy_replace(proxy, at, 1, nonsense[i]);
                alter(filter, store, other, direct, kind);
            }
    }
    print_message("%u altered replies\n", altered);
    assert_true(altered > 100);
    assert_ok(hibloom_drop(filter), store);
    hibloom_close(other);
    hibloom_close(filter);
    hibloom_store_free(direct);
    hibloom_store_free(store);
}

static int set_up(void **state)
{
    items = items_new("in", ITEMS);
    server = stepped_server_start(&server_clock, redis_server_start_tcp);
    return proxied_set_up(state);
}

static int tear_down(void **state)
{
    items_free(items);
    (void)proxied_tear_down(state);
    stepped_free(server_clock);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(nothing_is_lost_wherever_it_is_cut, served_leave_nothing),
        cmocka_unit_test_teardown(an_altered_reply_is_an_error_or_does_no_harm, served_leave_nothing),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
