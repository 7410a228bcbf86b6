/* The connection is cut at one place after the other while a filter is made, grows, is asked and is
 * removed: what was acknowledged is in, each call works when it is made again, and no key is left. */
#include "support/items.h"
#include "support/proxied.h"
#include "support/record.h"

#include <hiredis/hiredis.h>
#include <string.h>

#define NAME "grows"

enum { ITEMS = 40, STEP = 4001 };

static hibloom_item *items;

/* Made again once, if it has failed of the cut. */
#define TWICE(call) \
    do { \
        hibloom_status status_ = (call); \
        if (status_ == HIBLOOM_EIO) \
            status_ = (call); \
        assert_ok(status_, store); \
    } while (0)

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
    bool answers[ITEMS];
    hibloom_info info;

    options.retry_ms = retry_ms;
    hibloom_status status = hibloom_connect(&store, proxy_uri(proxy), &options);
    if (status == HIBLOOM_EIO) {
        hibloom_store_free(store);
        status = hibloom_connect(&store, proxy_uri(proxy), &options);
    }
    assert_ok(status, store);
    TWICE(hibloom_open(&filter, store, NAME, &spec));
    for (size_t i = 0; i < ITEMS; i += ITEMS / 4) {
        TWICE(hibloom_add_many(filter, items + i, ITEMS / 4, answers));
        if (other == NULL)
            assert_ok(hibloom_open(&other, direct, NAME, NULL), direct);
        assert_ok(hibloom_contains_many(other, items, i + ITEMS / 4, answers), direct);
        assert_null(memchr(answers, false, i + ITEMS / 4));
    }
    TWICE(hibloom_contains_many(filter, items, ITEMS, answers));
    assert_null(memchr(answers, false, ITEMS));
    TWICE(hibloom_expire(filter, 1000));
    TWICE(hibloom_get_info(filter, &info));
    assert_true(info.ttl_ms > 900000);
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
    const uint64_t step = STEP * (test_is_slow() ? 5 : 1);

    assert_true(proxied_cut_everywhere(way, way == PROXY_REQUESTS ? step : step / 5 + 1, hold,
                                       &(struct held){text, retry_ms}) > 5);
}

static void nothing_is_lost_wherever_it_is_cut(void **state)
{
    cut_everywhere("capacity=8 error=1e-9 growth=2", PROXY_REQUESTS, 0);
    cut_everywhere("capacity=8 error=1e-9 growth=2", PROXY_REPLIES, 0);
    cut_everywhere("capacity=12 error=1e-9 growth=3 segments=2", PROXY_REQUESTS, 4000);
    cut_everywhere("capacity=12 error=1e-9 growth=3 segments=2", PROXY_REPLIES, 4000);
}

static int set_up(void **state)
{
    items = items_new("in", ITEMS);
    return proxied_set_up(state);
}

static int tear_down(void **state)
{
    items_free(items);
    return proxied_tear_down(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(nothing_is_lost_wherever_it_is_cut, served_leave_nothing),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
