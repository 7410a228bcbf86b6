/* What is pending when the filter or the store ends. Each call's function is called once. */
#include "loops/subject.h"
#include "spec/spec.h"

#include <signal.h>

#define CALLS 10000u

static const char text[] = "capacity=100000 error=0.01";
static uint32_t numbers[CALLS];
static hibloom_item items[CALLS];

static int set_up(void **state)
{
    number_items(items, numbers, CALLS);
    return 0;
}

static bool answers[CALLS];

static void ask(hibloom *filter, struct outcome *outcomes, size_t n)
{
    memset(outcomes, 0, n * sizeof *outcomes);
    for (size_t i = 0; i < n; i++)
        assert_ok(NOTHING_WITHIN(hibloom_async_contains(filter, &numbers[i % CALLS], sizeof *numbers, &answers[i],
                                                        on_done, &outcomes[i])),
                  NULL);
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

static void turn(void *loop, uint64_t ms)
{
    for (const uint64_t until = test_now_ms() + ms; test_now_ms() < until; usleep(100))
        loop_class->turn(loop);
}

/* ---- The server ------------------------------------------------------------------- */

static struct outcome outcomes[CALLS];

/* Under many calls, of which the last ones are written to a socket without a reader: the timer may ring before the loop
 * sees that. It raises SIGPIPE, whose default action would end this test. */
static void a_server_that_dies_ends_all_calls(void **state)
{
    struct redis_server *server = redis_server_start(NULL);
    void *loop = loop_class->open();
    const char *uri = with_options(redis_server_uri(server), "retry=500ms&accept_restarts=yes&command_timeout=2s");
    hibloom_store *async = async_store(loop, uri, NULL);
    hibloom *filter = async_filter(loop, async, "f", text);

    assert_ptr_equal(signal(SIGPIPE, SIG_DFL), SIG_DFL);
    redis_server_pause(server);
    ask(filter, outcomes, CALLS / 2);
    turn(loop, 20);
    redis_server_kill(server);
    ask(filter, outcomes + CALLS / 2, CALLS / 2);
    hibloom_ready(async, -1, 0);
    await_all(loop, outcomes, CALLS);
    assert_int_equal(count_with(outcomes, CALLS, HIBLOOM_EIO), CALLS);
    end_all(loop, async, filter);
    redis_server_stop(server);
}

static int (*real_timer)(void *, int64_t, void **, hibloom_store *);
static bool timer_fails;

/* As libevent's: the earlier one has gone when the later one fails. */
static int failing_timer(void *loop, int64_t ms, void **slot, hibloom_store *store)
{
    return real_timer(loop, timer_fails ? -1 : ms, slot, store) == 0 && !timer_fails ? 0 : -1;
}

/* Answers that come while the loop stands still are read, and what was not sent by then is not sent. As a connection is made
 * there always is a call whose time is nearly over. It ends alone, and the connection goes on. */
static void calls_that_run_out_cost_no_connection(void **state)
{
    struct redis_server *server = redis_server_start(NULL);
    void *loop = loop_class->open();
    hibloom_store *async = async_store(loop, with_options(redis_server_uri(server), "retry=10s"), NULL);
    hibloom *filter = async_filter(loop, async, "f", text);
    uint64_t before = UINT64_MAX;
    unsigned until = 65, n = 0;

    hibloom_store_deadline(async, 300);
    for (unsigned sends = 0; sends < 2; sends++) {
        const uint64_t sent = test_stats(async).round_trips;
        ask(filter, outcomes, 100);
        while (sends && test_stats(async).round_trips == sent)
            loop_class->turn(loop);
        usleep(320000);
        freeReplyObject(redis_server_must(server, "PING")); /* it has answered what came before */
        await_all(loop, outcomes, 100);
        assert_int_equal(count_with(outcomes, 100, sends ? HIBLOOM_OK : HIBLOOM_ETIMEDOUT), 100);
        assert_int_equal(test_stats(async).round_trips, sent + sends);
    }
    assert_int_equal(test_stats(async).connections, 1);
    hibloom_store_deadline(async, 600);
    redis_server_kill(server);
    memset(outcomes, 0, sizeof outcomes);
    for (; n < CALLS && test_stats(async).restarts == 0; n++) {
        assert_ok(hibloom_async_contains(filter, numbers, sizeof *numbers, answers, on_done, &outcomes[n]), NULL);
        turn(loop, 10);
        assert_true(n < 80 || outcomes[n - 80].calls == 1);
        if (n == until && before == UINT64_MAX) {
            redis_server_restart(server);
            redis_server_pause(server);
            before = test_stats(async).connections;
        } else if (n > until && until == 65 && test_stats(async).connections > before) {
            until = n + 30; /* it waits for the greeting for longer than the oldest call has */
        } else if (n == until) {
            redis_server_resume(server);
        }
    }
    assert_int_equal(test_stats(async).connections, before + 1);
    end_all(loop, async, filter);
    redis_server_stop(server);
}

static void a_timer_that_failed_is_set_again(void **state)
{
    struct redis_server *server = redis_server_start(NULL);
    void *loop = loop_class->open();
    hibloom_loop functions = loop_class->functions(loop);
    hibloom_store *async = NULL;

    real_timer = functions.timer;
    functions.timer = failing_timer;
    assert_ok(hibloom_async_connect(&async, with_options(redis_server_uri(server), "command_timeout=500ms"), NULL,
                                    &functions),
              async);
    hibloom *filter = async_filter(loop, async, "f", text);
    redis_server_pause(server);
    hibloom_store_deadline(async, 10);
    timer_fails = true;
    ask(filter, outcomes, 1); /* its time is over sooner than that of the open was */
    turn(loop, 600);
    timer_fails = false;
    ask(filter, outcomes + 1, 1); /* its socket can be written to, which shows that the time is over */
    await_all(loop, outcomes, 2);
    hibloom_store_deadline(async, 0);
    ask(filter, outcomes + 2, 1); /* a new connection, on which nothing comes */
    await_all(loop, outcomes, 3);
    assert_int_equal(count_with(outcomes, 3, HIBLOOM_ETIMEDOUT), 3);
    end_all(loop, async, filter);
    redis_server_stop(server);
}

/* ---- The filter, the store --------------------------------------------------------- */

static void close_calls_back_before_it_returns(void **state)
{
    struct redis_server *server = redis_server_start(NULL);
    void *loop = loop_class->open();
    hibloom_store *async = async_store(loop, redis_server_uri(server), NULL);
    hibloom *filter = async_filter(loop, async, "f", text);
    hibloom *other = async_filter(loop, async, "g", "capacity=100000 error=0.01 segments=8");
    struct outcome others[CALLS / 2] = {0};

    freeReplyObject(redis_server_must(server, "CLIENT KILL TYPE normal SKIPME yes")); /* so all wait for a connection */
    for (size_t i = 0; i < CALLS / 2; i++) /* each has a guard ahead for several keys */
        assert_ok(hibloom_async_add_many(other, items + i, 8, NULL, on_done, &others[i]), NULL);
    ask(filter, outcomes, CALLS);
    const uint64_t before = test_now_ms();
    hibloom_close(filter);
    assert_true(test_now_ms() - before < 1000); /* the calls of others are not gone through for each */
    assert_int_equal(count_with(outcomes, CALLS, HIBLOOM_ECANCELED), CALLS);
    await_all(loop, others, CALLS / 2);
    assert_int_equal(count_with(others, CALLS / 2, HIBLOOM_OK), CALLS / 2);
    assert_int_equal(count_with(outcomes, CALLS, HIBLOOM_ECANCELED), CALLS);
    end_all(loop, async, other);
    redis_server_stop(server);
}

/* ---- Within a function that is called back ------------------------------------------- */

enum deed { CLOSE, FREE, CLOSE_THEN_FREE, FREE_THEN_CLOSE, DEEDS };

static struct {
    enum deed deed;
    size_t at; /* which call's function does it */
    size_t called;
    hibloom_store *async;
    hibloom *filter;
} doer;

static void on_done_do(hibloom_status status, void *data)
{
    on_done(status, data);
    if (doer.called++ != doer.at)
        return;
    if (doer.deed == CLOSE || doer.deed == CLOSE_THEN_FREE)
        hibloom_close(doer.filter);
    if (doer.deed == FREE || doer.deed == CLOSE_THEN_FREE || doer.deed == FREE_THEN_CLOSE)
        hibloom_store_free(doer.async);
    if (doer.deed == FREE_THEN_CLOSE)
        hibloom_close(doer.filter);
}

/* Of a hundred calls one does it as it ends. */
static void do_within(enum deed deed, size_t at)
{
    void *loop = loop_class->open();

    memset(outcomes, 0, sizeof outcomes);
    doer.deed = deed;
    doer.at = at;
    doer.called = 0;
    doer.async = async_store(loop, test_uri(), NULL);
    doer.filter = async_filter(loop, doer.async, TEST_NAME, text);
    for (size_t i = 0; i < 100; i++)
        assert_ok(hibloom_async_contains(doer.filter, &numbers[i], 4, &answers[i], on_done_do, &outcomes[i]), NULL);
    await_all(loop, outcomes, 100);
    const size_t answered = count_with(outcomes, 100, HIBLOOM_OK);
    assert_int_equal(answered, at + 1); /* also what had been answered by then */
    assert_int_equal(count_with(outcomes, 100, HIBLOOM_ECANCELED), 100 - answered);
    if (deed == CLOSE)
        hibloom_store_free(doer.async);
    if (deed == FREE)
        hibloom_close(doer.filter);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_server_that_dies_ends_all_calls), cmocka_unit_test(calls_that_run_out_cost_no_connection),
        cmocka_unit_test(a_timer_that_failed_is_set_again),  cmocka_unit_test(close_calls_back_before_it_returns),
        cmocka_unit_test(all_may_be_done_within_a_function),
    };

    return run_on_each_loop(tests, sizeof tests / sizeof *tests, set_up, NULL);
}
