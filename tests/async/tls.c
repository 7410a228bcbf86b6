/* TLS on event loops: a filter works as without it, who is not trusted is refused with words, a handshake that stands
 * still ends in time, and a connection that is cut anywhere is made anew. */
#include "loops/subject.h"
#include "support/served.h"
#include "support/tls_front.h"
#include "spec/spec.h"

#ifdef HIBLOOM_TLS

enum { CALLS = 500 };

static const char text[] = "capacity=10000 error=0.0001 seed=5";

static uint32_t numbers[CALLS];
static struct outcome outcomes[CALLS];
static bool found[CALLS];

static int set_up(void **state)
{
    for (uint32_t i = 0; i < CALLS; i++)
        numbers[i] = i;
    return tls_set_up(state);
}

enum { RETRY_MS = 20000 };

static const char *patient(const char *uri)
{
    return with_options(uri, "retry=%dms&command_timeout=2s&accept_restarts=yes", RETRY_MS);
}

static const char *trusting(const char *uri)
{
    return with_options(patient(uri), "cacert=%s", certificates->ca);
}

/* All at once, each item in a call of its own. */
static void begin_all(hibloom *filter, bool adds)
{
    memset(outcomes, 0, sizeof outcomes);
    memset(found, 0, sizeof found);
    for (size_t i = 0; i < CALLS; i++) {
        const uint32_t *item = &numbers[i];
        assert_ok(
            NOTHING_WITHIN(adds ? hibloom_async_add(filter, item, sizeof *item, &found[i], on_done, &outcomes[i])
                                : hibloom_async_contains(filter, item, sizeof *item, &found[i], on_done, &outcomes[i])),
            NULL);
    }
}

static void await_ok(void *loop, hibloom_store *async)
{
    await_all(loop, outcomes, CALLS);
    for (size_t i = 0; i < CALLS; i++) {
        if (outcomes[i].status != HIBLOOM_OK)
            print_error("%s\n", hibloom_store_error(async));
        assert_int_equal(outcomes[i].status, HIBLOOM_OK);
    }
}

static void drop(void *loop, hibloom_store *async, hibloom *filter)
{
    struct outcome dropped;

    assert_ok(AWAIT(loop, &dropped, hibloom_async_drop(filter, on_done, &dropped)), async);
    hibloom_close(filter);
}

static void assert_each_once(void)
{
    for (size_t i = 0; i < CALLS; i++)
        assert_int_equal(outcomes[i].calls, 1);
}

static void a_filter_does_over_tls_what_it_does_without(void **state)
{
    void *loop = loop_class->open();
    hibloom_store *async = async_store(loop, trusting(redis_server_uri(tls_server)), NULL);
    hibloom *filter = async_filter(loop, async, TEST_NAME, text);

    for (int i = 0; i < 3; i++) { /* looks, adds, looks */
        begin_all(filter, i == 1);
        await_ok(loop, async);
        assert_null(memchr(found, i == 0, CALLS));
    }
    drop(loop, async, filter);
    end_all(loop, async, NULL);
    assert_each_once();
}

/* The first call fails so, once, and its words have these in them. */
static void assert_refused(const char *uri, hibloom_status expected, const char *words)
{
    void *loop = loop_class->open();
    hibloom_store *async = async_store(loop, uri, NULL);
    struct outcome opened = {0};
    hibloom *filter;

    assert_ok(NOTHING_WITHIN(hibloom_async_open(&filter, async, "f", NULL, on_done, &opened)), async);
    await(loop, &opened);
    if (opened.status != expected || strstr(hibloom_store_error(async), words) == NULL)
        fail_msg("%s: %s: \"%s\"", loop_class->name, hibloom_strerror(opened.status), hibloom_store_error(async));
    end_all(loop, async, NULL);
    assert_int_equal(opened.calls, 1);
}

/* At once, however patient the caller is. */
static void who_is_not_trusted_is_refused_with_words(void **state)
{
    const uint64_t before = test_now_ms();

    assert_refused(with_options(patient(redis_server_uri(tls_server)), "cacert=%s", certificates->unknown_ca),
                   HIBLOOM_EIO, "self-signed certificate in certificate chain");
    assert_refused(with_options(trusting(redis_server_uri(tls_server)), "sni=wrong.example"), HIBLOOM_EIO,
                   "hostname mismatch");
    assert_true(test_now_ms() - before < RETRY_MS);
}

static const char *uri_of(const struct tls_front *front)
{
    static char uri[64];

    snprintf(uri, sizeof uri, "rediss://127.0.0.1:%d", tls_front_port(front));
    return uri;
}

static void a_handshake_that_stands_still_ends_in_time(void **state)
{
    struct tls_front *front = tls_front_start(&certificates->server, redis_server_socket(tls_server));
    const uint64_t before = test_now_ms();

    tls_front_fault(front, TLS_FAULT_HOLD, 10);
    assert_refused(with_options(uri_of(front), "connect_timeout=300ms&cacert=%s", certificates->ca), HIBLOOM_ETIMEDOUT,
                   "");
    assert_in_range(test_now_ms() - before, 200, 10000);
    tls_front_stop(front);
}

/* At places spread over the handshake, the greeting and the opening of a filter. */
static void a_connection_that_is_cut_anywhere_is_made_anew(void **state)
{
    struct tls_front *front = tls_front_start(&certificates->server, redis_server_socket(tls_server));

    for (size_t after = 0, all = 40000; after < all; after += 1 + all / 12) {
        void *loop = loop_class->open();
        tls_front_fault(front, after > 0 ? TLS_FAULT_CUT : TLS_FAULT_NONE, after);
        hibloom_store *async = async_store(loop, trusting(uri_of(front)), NULL);
        struct outcome opened = {0};
        hibloom *filter = NULL;
        const struct spec spec = test_spec(text);
        assert_ok(hibloom_async_open(&filter, async, TEST_NAME, test_text(&spec), on_done, &opened), async);
        for (int i = 0; i < 100 && opened.calls == 0; i++, test_sleep_ms(1))
            loop_class->turn(loop);
        tls_front_fault(front, TLS_FAULT_NONE, 0);
        await(loop, &opened);
        assert_int_equal(opened.status, HIBLOOM_OK);
        all = after == 0 ? tls_front_sent(front) : all;
        begin_all(filter, true);
        await_ok(loop, async);
        begin_all(filter, false);
        await_ok(loop, async);
        assert_null(memchr(found, false, CALLS));
        drop(loop, async, filter);
        end_all(loop, async, NULL);
        assert_each_once();
    }
    tls_front_stop(front);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_filter_does_over_tls_what_it_does_without),
        cmocka_unit_test(who_is_not_trusted_is_refused_with_words),
        cmocka_unit_test(a_handshake_that_stands_still_ends_in_time),
        cmocka_unit_test(a_connection_that_is_cut_anywhere_is_made_anew),
    };

    return run_on_each_loop(tests, sizeof tests / sizeof *tests, set_up, tls_tear_down);
}

#else

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(tls_is_missing)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
