/* What is pending when the filter or the store ends. Each call's function is called once. */
#include "loops/subject.h"
#include "spec/spec.h"

#define CALLS 2000u

static const char text[] = "capacity=100000 error=0.01";
static uint32_t numbers[CALLS];

static int set_up(void **state)
{
    signal(SIGPIPE, SIG_IGN);
    for (uint32_t i = 0; i < CALLS; i++)
        numbers[i] = i;
    return 0;
}

static hibloom_item item(size_t i)
{
    return (hibloom_item){&numbers[i % CALLS], sizeof *numbers};
}

static void ask(hibloom_async_filter *filter, struct outcome *outcomes, size_t n)
{
    memset(outcomes, 0, n * sizeof *outcomes);
    for (size_t i = 0; i < n; i++) {
        const hibloom_item one = item(i);
        assert_ok(NOTHING_WITHIN(hibloom_async_contains(filter, &one, 1, on_answered, &outcomes[i])), NULL);
    }
}

static size_t count_with(const struct outcome *outcomes, size_t n, hibloom_status status)
{
    size_t count = 0;

    for (size_t i = 0; i < n; i++) {
        assert_int_equal(outcomes[i].calls, 1);
        count += outcomes[i].status == status;
    }
    return count;
}

static void turn(void *loop, hibloom_async *async, uint64_t ms)
{
    for (const uint64_t until = test_now_ms() + ms; test_now_ms() < until; usleep(100)) {
        loop_class->turn(loop);
        if (async != NULL)
            hibloom_async_tick(async);
    }
}

/* ---- The server ------------------------------------------------------------------- */

static struct outcome outcomes[CALLS];

/* The libuv adapter of hiredis 0.14 passes over errors of a socket: only a tick finds them. */
static bool hears_errors(void)
{
    return HIREDIS_MAJOR > 0 || loop_class != &loop_libuv;
}

/* Nobody ticks, so nobody would come back. */
static void where_nobody_ticks_no_call_waits_for_ever(void **state)
{
    if (!hears_errors())
        skip();
    struct redis_server *server = redis_server_start_tcp(NULL);
    void *loop = loop_class->open();
    const char *const uris[] = {redis_server_uri(server), redis_server_socket(server)};
    char uri[300];

    for (int i = 0; i < 2; i++) {
        snprintf(uri, sizeof uri, "%s%s", i == 0 ? "" : "unix://", uris[i]);
        hibloom_async *async = async_store(loop, with_options(uri, "retry=20s&accept_restarts=yes&command_timeout=2s"),
                                           NULL);
        hibloom_async_filter *filter = async_filter(loop, async, "f", text);
        redis_server_pause(server);
        ask(filter, outcomes, CALLS);
        turn(loop, NULL, 20);
        redis_server_kill(server);
        const uint64_t before = test_now_ms();
        await_all(loop, NULL, outcomes, CALLS);
        assert_true(test_now_ms() - before < 10000); /* retry_ms is twice that */
        assert_int_equal(count_with(outcomes, CALLS, HIBLOOM_EIO), CALLS);
        hibloom_async_free(async);
        redis_server_restart(server);
    }
    close_loop(loop);
    redis_server_stop(server);
}

/* ---- The filter, the store --------------------------------------------------------- */

static void close_calls_back_before_it_returns(void **state)
{
    char names[2][TEST_NAME_SIZE];
    void *loop = loop_class->open();
    hibloom_async *async = async_store(loop, test_uri(), NULL);
    hibloom_async_filter *filter = async_filter(loop, async, test_name(names[0]), text);
    hibloom_async_filter *other = async_filter(loop, async, test_name(names[1]), text);
    static struct outcome others[CALLS];

    ask(filter, outcomes, CALLS);
    ask(other, others, CALLS);
    hibloom_async_close(filter);
    assert_int_equal(count_with(outcomes, CALLS, HIBLOOM_ECANCELED), CALLS);
    await_all(loop, NULL, others, CALLS);
    assert_int_equal(count_with(others, CALLS, HIBLOOM_OK), CALLS);
    assert_int_equal(count_with(outcomes, CALLS, HIBLOOM_ECANCELED), CALLS);
    hibloom_async_free(async);
    close_loop(loop);
}

/* Nothing of it was sent: the connection is still being made. */
static void free_calls_back_before_it_returns(void **state)
{
    char name[TEST_NAME_SIZE];
    void *loop = loop_class->open();
    struct outcome opened[3] = {0};

    for (int turns = 0; turns < 3; turns++) {
        hibloom_async *async = async_store(loop, test_uri(), NULL);
        const struct spec spec = test_spec(text);
        assert_ok(
            NOTHING_WITHIN(hibloom_async_open(async, test_name(name), test_text(&spec), on_opened, &opened[turns])),
            NULL);
        for (int i = 0; i < turns; i++)
            loop_class->turn(loop);
        hibloom_async_free(async);
        assert_int_equal(opened[turns].calls, 1);
    }
    assert_int_equal(opened[0].status, HIBLOOM_ECANCELED);
    hibloom_async *async = async_store(loop, test_uri(), NULL);
    ask(async_filter(loop, async, test_name(name), text), outcomes, CALLS);
    turn(loop, NULL, 1);
    hibloom_async_free(async);
    for (size_t i = 0; i < CALLS; i++)
        assert_true(outcomes[i].status == HIBLOOM_OK || outcomes[i].status == HIBLOOM_ECANCELED);
    close_loop(loop);
    (void)count_with(outcomes, CALLS, HIBLOOM_OK);
}

/* ---- Within a function that is called back ------------------------------------------- */

enum deed { CLOSE, FREE, CLOSE_THEN_FREE, CALL, DEEDS };

static struct {
    enum deed deed;
    size_t at; /* which call's function does it */
    size_t called;
    hibloom_async *async;
    hibloom_async_filter *filter;
    struct outcome next;
} doer;

static void on_answered_do(hibloom_status status, const bool *answers, size_t n, void *data)
{
    on_answered(status, answers, n, data);
    if (doer.called++ != doer.at)
        return;
    const hibloom_item one = item(1);
    if (doer.deed == CALL)
        assert_ok(NOTHING_WITHIN(hibloom_async_add(doer.filter, &one, 1, true, on_answered, &doer.next)), NULL);
    if (doer.deed == CLOSE || doer.deed == CLOSE_THEN_FREE)
        hibloom_async_close(doer.filter);
    if (doer.deed == FREE || doer.deed == CLOSE_THEN_FREE)
        hibloom_async_free(doer.async);
}

static void do_within(enum deed deed, size_t at)
{
    void *loop = loop_class->open();

    memset(&doer, 0, sizeof doer);
    memset(outcomes, 0, sizeof outcomes);
    doer.deed = deed;
    doer.at = at;
    doer.async = async_store(loop, test_uri(), NULL);
    doer.filter = async_filter(loop, doer.async, TEST_NAME, text);
    for (size_t i = 0; i < 100; i++) {
        const hibloom_item one = item(i);
        assert_ok(hibloom_async_contains(doer.filter, &one, 1, on_answered_do, &outcomes[i]), NULL);
    }
    await_all(loop, NULL, outcomes, 100);
    const size_t answered = count_with(outcomes, 100, HIBLOOM_OK);
    if (deed == FREE) /* what had been answered by then is told so */
        assert_in_range(answered, at + 1, 100);
    else
        assert_int_equal(answered, deed == CALL ? 100 : at + 1);
    assert_int_equal(count_with(outcomes, 100, HIBLOOM_ECANCELED), 100 - answered);
    if (deed == CALL) {
        await(loop, &doer.next);
        assert_int_equal(doer.next.status, HIBLOOM_OK);
    }
    if (deed == CLOSE || deed == CALL)
        hibloom_async_free(doer.async);
    close_loop(loop);
}

static void all_may_be_done_within_a_function(void **state)
{
    for (enum deed deed = 0; deed < DEEDS; deed++) {
        do_within(deed, 0);
        do_within(deed, 50);
        do_within(deed, 99);
    }
}

/* Of a call that is cancelled, too: the first cancelled one frees the store. */
static void on_canceled_free(hibloom_status status, const bool *answers, size_t n, void *data)
{
    on_answered(status, answers, n, data);
    if (doer.called++ == 0)
        hibloom_async_free(doer.async);
}

static void a_store_may_be_freed_while_its_filter_is_closed(void **state)
{
    void *loop = loop_class->open();

    memset(&doer, 0, sizeof doer);
    memset(outcomes, 0, sizeof outcomes);
    doer.async = async_store(loop, test_uri(), NULL);
    doer.filter = async_filter(loop, doer.async, TEST_NAME, text);
    for (size_t i = 0; i < 100; i++) {
        const hibloom_item one = item(i);
        assert_ok(hibloom_async_contains(doer.filter, &one, 1, on_canceled_free, &outcomes[i]), NULL);
    }
    hibloom_async_close(doer.filter);
    assert_int_equal(count_with(outcomes, 100, HIBLOOM_ECANCELED), 100);
    close_loop(loop);
}

/* The server's death, too, is told within functions that free. */
static void a_store_may_be_freed_as_its_connection_dies(void **state)
{
    struct redis_server *server = redis_server_start_tcp(NULL);
    void *loop = loop_class->open();

    memset(&doer, 0, sizeof doer);
    memset(outcomes, 0, sizeof outcomes);
    doer.async = async_store(loop, redis_server_uri(server), NULL);
    doer.filter = async_filter(loop, doer.async, "f", text);
    redis_server_pause(server);
    for (size_t i = 0; i < 100; i++) {
        const hibloom_item one = item(i);
        assert_ok(hibloom_async_contains(doer.filter, &one, 1, on_canceled_free, &outcomes[i]), NULL);
    }
    turn(loop, NULL, 10);
    redis_server_kill(server);
    for (int i = 0; i < 10000 && doer.called == 0; i++) {
        turn(loop, NULL, 1);
        if (doer.called == 0)
            hibloom_async_tick(doer.async);
    }
    assert_int_equal(count_with(outcomes, 100, HIBLOOM_EIO) + count_with(outcomes, 100, HIBLOOM_ECANCELED), 100);
    close_loop(loop);
    redis_server_stop(server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(where_nobody_ticks_no_call_waits_for_ever),
        cmocka_unit_test(close_calls_back_before_it_returns),
        cmocka_unit_test(free_calls_back_before_it_returns),
        cmocka_unit_test(all_may_be_done_within_a_function),
        cmocka_unit_test(a_store_may_be_freed_while_its_filter_is_closed),
        cmocka_unit_test(a_store_may_be_freed_as_its_connection_dies),
    };

    return run_on_each_loop(tests, sizeof tests / sizeof *tests, set_up, NULL);
}
