/* Counting filters when an answer is lost: a remove is carried out once at most, also
 * late; an add twice at most, and never not at all. A proxy before a real server cuts. */
#include "support/items.h"
#include "support/proxied.h"
#include "support/test.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>

enum { ITEMS = 12, TIMES = 3, TIMEOUT_MS = 300, RETRY_MS = 5000 };

static const char *const texts[] = {"capacity=1000 error=0.0000001 counters=4 seed=1",
                                    "capacity=1000 error=0.0000001 counters=4 segments=3 seed=2"};

static hibloom_store *direct;
static hibloom_item *items;
static bool armed; /* the next try of a call is to come through */

static int set_up(void **state)
{
    (void)proxied_set_up(state);
    direct = test_connect(redis_server_uri(server), NULL);
    items = items_new("item", ITEMS);
    return 0;
}

static int tear_down(void **state)
{
    items_free(items);
    hibloom_store_free(direct);
    return proxied_tear_down(state);
}

static void on_log(hibloom_log_level level, const char *line, void *data)
{
    if (armed && strstr(line, "trying again") != NULL)
        proxy_answer(proxy, NULL);
}

static hibloom_store *connect_proxy(uint32_t retry_ms)
{
    hibloom_connect_options options = HIBLOOM_CONNECT_OPTIONS_INIT;

    options.retry_ms = retry_ms;
    options.command_timeout_ms = TIMEOUT_MS * (test_is_slow() ? 10 : 1);
    options.on_log = on_log;
    return test_connect(proxy_uri(proxy), &options);
}

/* Each item so many times, and nothing else. */
static void fill(hibloom *filter, unsigned times)
{
    assert_ok(hibloom_clear(filter), direct);
    for (unsigned i = 0; i < times; i++)
        assert_ok(hibloom_add_many(filter, items, ITEMS, NULL), direct);
}

/* How often an item is in. Changes it. */
static unsigned count_item(hibloom *filter, const hibloom_item *item)
{
    bool was_in = true;
    unsigned times = 0;

    for (; was_in && times < 16; times += was_in)
        assert_ok(hibloom_remove(filter, item->data, item->len, &was_in), direct);
    return times;
}

/* All that came through was carried out once. */
static void assert_removed_once(hibloom *filter, hibloom_status status, const bool *was_in)
{
    for (size_t i = 0; i < ITEMS; i++) {
        const unsigned times = count_item(filter, &items[i]);
        if (status == HIBLOOM_OK)
            assert_true(was_in[i] && times == TIMES - 1);
        else
            assert_in_range(times, TIMES - 1, TIMES);
    }
}

/* ---- Cut ------------------------------------------------------------------------ */

static void assert_in_doubt(hibloom_store *store, hibloom_status status)
{
    assert_true(status == HIBLOOM_EIO || status == HIBLOOM_ETIMEDOUT);
    assert_non_null(strstr(hibloom_store_error(store), "is not sent again"));
}

/* Whether the fault came. */
static bool remove_with_fault(hibloom *filter, hibloom_store *store, const char *text, enum proxy_way way,
                              uint64_t place, void (*fault)(struct proxy *, enum proxy_way, uint64_t))
{
    hibloom *proxied = test_open(store, "seen", text);
    const unsigned connections = proxy_connections(proxy);
    bool was_in[ITEMS], found;

    fault(proxy, way, place);
    const hibloom_status status = hibloom_remove_many(proxied, items, ITEMS, was_in);
    proxy_heal(proxy);
    if (status != HIBLOOM_OK)
        assert_in_doubt(store, status);
    assert_ok(hibloom_contains(proxied, "never", 5, &found), store);
    assert_false(found);
    const bool came = status != HIBLOOM_OK || proxy_connections(proxy) != connections;
    hibloom_close(proxied);
    test_command(redis, "PING"); /* behind what was on its way */
    assert_removed_once(filter, status, was_in);
    return came;
}

static void cut_everywhere(enum proxy_way way, uint64_t stride)
{
    for (size_t t = 0; t < 2; t++) {
        hibloom_store *store = connect_proxy(RETRY_MS);
        hibloom *filter = test_open(direct, "seen", texts[t]);
        uint64_t place = 0;
        bool came = true;
        for (; came; place += stride) {
            fill(filter, TIMES);
            came = remove_with_fault(filter, store, texts[t], way, place, proxy_cut);
        }
        assert_true(place > 2 * stride);
        assert_ok(hibloom_drop(filter), direct);
        hibloom_close(filter);
        hibloom_store_free(store);
    }
}

static void a_remove_whose_answer_is_cut_is_not_sent_again(void **state)
{
    (void)state;
    cut_everywhere(PROXY_REPLIES, 3);
}

static void a_remove_that_is_cut_is_not_sent_again(void **state)
{
    (void)state;
    cut_everywhere(PROXY_REQUESTS, test_is_slow() ? 701 : 97);
}

static void a_remove_without_an_answer_is_not_sent_again(void **state)
{
    (void)state;
    hibloom_store *store = connect_proxy(RETRY_MS);
    hibloom *filter = test_open(direct, "seen", texts[0]);

    fill(filter, TIMES);
    assert_true(remove_with_fault(filter, store, texts[0], PROXY_REPLIES, 0, proxy_hold));
    fill(filter, TIMES);
    assert_true(remove_with_fault(filter, store, texts[0], PROXY_REQUESTS, 100, proxy_hold));
    assert_ok(hibloom_drop(filter), direct);
    hibloom_close(filter);
    hibloom_store_free(store);
}

/* The server stands still, and takes the remove long after the call has failed. */
static void a_late_remove_is_carried_out_once(void **state)
{
    (void)state;
    hibloom_connect_options options = HIBLOOM_CONNECT_OPTIONS_INIT;
    bool was_in[ITEMS];

    options.retry_ms = RETRY_MS;
    options.command_timeout_ms = TIMEOUT_MS;
    hibloom_store *store = test_connect(redis_server_uri(server), &options);
    hibloom *filter = test_open(direct, "seen", texts[0]);
    fill(filter, TIMES);
    hibloom *same = test_open(store, "seen", texts[0]);
    redis_server_pause(server);
    const hibloom_status status = hibloom_remove_many(same, items, ITEMS, was_in);
    assert_in_doubt(store, status);
    redis_server_resume(server);
    test_command(redis, "PING");
    for (size_t i = 0; i < ITEMS; i++)
        assert_int_equal(count_item(filter, &items[i]), TIMES - 1);
    hibloom_close(same);
    hibloom_store_free(store);
    assert_ok(hibloom_drop(filter), direct);
    hibloom_close(filter);
}

/* The handle does not know of the clear yet, and neither does a remove that comes late. */
static void a_remove_from_before_a_clear_does_nothing(void **state)
{
    (void)state;
    for (size_t t = 0; t < 2; t++) {
        hibloom_store *store = connect_proxy(0);
        hibloom *filter = test_open(direct, "seen", texts[t]), *stale = test_open(store, "seen", texts[t]);
        const hibloom_item *item = &items[t];
        bool was_in = true;
        fill(filter, TIMES);
        assert_ok(hibloom_contains(stale, item->data, item->len, &was_in), store);
        proxy_mark(proxy);
        assert_ok(hibloom_remove(stale, item->data, item->len, &was_in), store);
        const uint64_t bytes = proxy_bytes(proxy, PROXY_REQUESTS);
        fill(filter, TIMES);
        proxy_hold(proxy, PROXY_REQUESTS, bytes); /* of the second sending */
        assert_in_doubt(store, hibloom_remove(stale, item->data, item->len, &was_in));
        proxy_heal(proxy);
        assert_int_equal(count_item(filter, item), TIMES); /* the first one has done nothing */
        fill(filter, TIMES);
        bool all[ITEMS];
        assert_ok(hibloom_remove_many(stale, items, ITEMS, all), store);
        assert_removed_once(filter, HIBLOOM_OK, all);
        hibloom_close(stale);
        hibloom_store_free(store);
        assert_ok(hibloom_drop(filter), direct);
        hibloom_close(filter);
    }
}

/* ---- Refused, and adds ------------------------------------------------------------- */

static void a_remove_that_is_refused_for_now_is_tried_again(void **state)
{
    static const char *const refusals[] = {"-LOADING Redis is loading the dataset in memory\r\n",
                                           "-OOM command not allowed when used memory > 'maxmemory'.\r\n",
                                           "-READONLY You can't write against a read only replica.\r\n",
                                           "-BUSY Redis is busy running a script.\r\n"};
    (void)state;
    for (size_t r = 0; r < 4; r++) {
        hibloom_store *store = connect_proxy(RETRY_MS);
        hibloom *filter = test_open(direct, "seen", texts[r % 2]), *proxied = test_open(store, "seen", texts[r % 2]);
        bool was_in[ITEMS];
        fill(filter, TIMES);
        armed = true;
        proxy_answer(proxy, refusals[r]);
        const hibloom_status status = hibloom_remove_many(proxied, items, ITEMS, was_in);
        armed = false;
        assert_ok(status, store);
        assert_removed_once(filter, status, was_in);
        hibloom_close(proxied);
        hibloom_store_free(store);
        assert_ok(hibloom_drop(filter), direct);
        hibloom_close(filter);
    }
}

static void an_add_whose_answer_is_lost_is_sent_again(void **state)
{
    (void)state;
    for (size_t t = 0; t < 2; t++) {
        hibloom_store *store = connect_proxy(RETRY_MS);
        hibloom *filter = test_open(direct, "seen", texts[t]), *proxied = test_open(store, "seen", texts[t]);
        for (uint64_t place = 0; place < 40; place += 5) {
            bool is_new[ITEMS];
            fill(filter, 0);
            proxy_cut(proxy, PROXY_REPLIES, place);
            assert_ok(hibloom_add_many(proxied, items, ITEMS, is_new), store);
            proxy_heal(proxy);
            for (size_t i = 0; i < ITEMS; i++) {
                assert_true(is_new[i]);
                assert_in_range(count_item(filter, &items[i]), 1, 2);
            }
        }
        hibloom_close(proxied);
        hibloom_store_free(store);
        assert_ok(hibloom_drop(filter), direct);
        hibloom_close(filter);
    }
}

/* Adds wait for replicas, of which there are none; a remove that replicas lack does no harm. */
static void a_remove_does_not_wait_for_replicas(void **state)
{
    hibloom_connect_options options = HIBLOOM_CONNECT_OPTIONS_INIT;
    bool was_in[ITEMS];

    (void)state;
    options.min_replicas = 1;
    options.replicas_ms = 100;
    hibloom_store *store = test_connect(redis_server_uri(server), &options);
    hibloom *filter = test_open(direct, "seen", texts[0]), *same = test_open(store, "seen", texts[0]);
    fill(filter, TIMES);
    assert_status(hibloom_add_many(same, items, ITEMS, NULL), HIBLOOM_EUNAVAILABLE, store);
    assert_ok(hibloom_remove_many(same, items, ITEMS, was_in), store);
    for (size_t i = 0; i < ITEMS; i++)
        assert_true(was_in[i] && count_item(filter, &items[i]) == TIMES);
    hibloom_close(same);
    hibloom_store_free(store);
    assert_ok(hibloom_drop(filter), direct);
    hibloom_close(filter);
}

static struct redis_server *forgetful;

static void on_log_restart(hibloom_log_level level, const char *line, void *data)
{
    if (strstr(line, "trying again") != NULL)
        redis_server_restart(forgetful);
}

/* It comes back with what it had before the last add. To remove that would be a wrong remove. */
static void a_remove_does_not_go_on_at_a_server_that_forgot(void **state)
{
    hibloom_connect_options options = HIBLOOM_CONNECT_OPTIONS_INIT;
    bool was_in = true;

    (void)state;
    options.retry_ms = RETRY_MS;
    options.on_log = on_log_restart;
    forgetful = redis_server_start(NULL);
    hibloom_store *store = test_connect(redis_server_uri(forgetful), &options);
    hibloom *filter = test_open(store, "seen", texts[0]);
    freeReplyObject(redis_server_must(forgetful, "SAVE"));
    assert_ok(hibloom_add(filter, "forgotten", 9, NULL), store);
    freeReplyObject(redis_server_must(forgetful, "CONFIG SET maxmemory 1"));
    assert_status(hibloom_remove(filter, "forgotten", 9, &was_in), HIBLOOM_ELOST, store);
    assert_ok(hibloom_remove(filter, "forgotten", 9, &was_in), store);
    assert_false(was_in);
    hibloom_close(filter);
    hibloom_store_free(store);
    redis_server_stop(forgetful);
}

/* What a call takes is said in words that hold no item. */
static void a_refusal_is_in_words(void **state)
{
    hibloom_store *store = connect_proxy(0);
    hibloom *filter = test_open(direct, "seen", texts[0]), *proxied = test_open(store, "seen", texts[0]);
    bool was_in = true;

    (void)state;
    proxy_answer(proxy, "-NOPERM this user has no permissions to run the 'eval' command\r\n");
    assert_status(hibloom_remove(proxied, "secret", 6, &was_in), HIBLOOM_EDENIED, store);
    assert_true(was_in);
    assert_non_null(strstr(hibloom_store_error(store), "eval"));
    assert_null(strstr(hibloom_store_error(store), "secret"));
    proxy_answer(proxy, "$3\r\n101\r\n");
    assert_status(hibloom_remove(proxied, "secret", 6, &was_in), HIBLOOM_EPROTO, store);
    proxy_answer(proxy, "*0\r\n");
    assert_status(hibloom_add(proxied, "secret", 6, &was_in), HIBLOOM_EPROTO, store);
    proxy_answer(proxy, NULL);
    hibloom_close(proxied);
    hibloom_store_free(store);
    assert_ok(hibloom_drop(filter), direct);
    hibloom_close(filter);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_remove_whose_answer_is_cut_is_not_sent_again),
        cmocka_unit_test(a_remove_that_is_cut_is_not_sent_again),
        cmocka_unit_test(a_remove_without_an_answer_is_not_sent_again),
        cmocka_unit_test(a_late_remove_is_carried_out_once),
        cmocka_unit_test(a_remove_from_before_a_clear_does_nothing),
        cmocka_unit_test(a_remove_that_is_refused_for_now_is_tried_again),
        cmocka_unit_test(an_add_whose_answer_is_lost_is_sent_again),
        cmocka_unit_test(a_remove_does_not_wait_for_replicas),
        cmocka_unit_test(a_remove_does_not_go_on_at_a_server_that_forgot),
        cmocka_unit_test(a_refusal_is_in_words),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
