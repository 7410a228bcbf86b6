/* Sliding windows on an event loop, while periods pass: the server's clock runs fast (tests/support/stepped.h). Calls that
 * are on their way at once on one handle, and on another, are as processes that race. */
#include "loops/subject.h"
#include "support/stepped.h"

#define NAME "slides"
#define TEXT "capacity=100000 error=1e-9 window=1000 slices=2"

enum { CALLS = 10, EACH = 4, ROUND = CALLS * EACH, ROUNDS = 40, SPEED = 1500 };

static struct stepped_clock *server_clock;
static struct redis_server *server;
static uint32_t numbers[ROUND * ROUNDS];
static hibloom_item items[ROUND * ROUNDS];
static bool answers[2 * ROUND];
static struct outcome outcomes[2 * CALLS];

static const uint64_t window_us = 1000 * UINT64_C(1000000);

static void await_round(void *loop, hibloom_async *async, size_t n)
{
    await_all(loop, async, outcomes, n);
    for (size_t i = 0; i < n; i++)
        if (outcomes[i].status != HIBLOOM_OK || outcomes[i].calls != 1)
            fail_msg("call %zu: %u times, %s: %s", i, outcomes[i].calls, hibloom_strerror(outcomes[i].status),
                     hibloom_async_error(async));
}

/* All items of a round by both handles at once: one of them is told, if the window is not over before all are in. */
static void add_round(void *loop, hibloom_async *async, hibloom_async_filter *const handles[2], size_t first,
                      uint64_t since_us)
{
    memset(outcomes, 0, sizeof outcomes);
    for (size_t i = 0; i < 2 * CALLS; i++) {
        outcomes[i].answers = answers + i * EACH;
        assert_ok(hibloom_async_add(handles[i / CALLS], items + first + i % CALLS * EACH, EACH, true, on_answered,
                                    &outcomes[i]),
                  NULL);
    }
    await_round(loop, async, 2 * CALLS);
    const bool in_time = stepped_now_us(server_clock) <= since_us + window_us;
    for (size_t i = 0; i < ROUND; i++)
        assert_in_range(answers[i] + answers[ROUND + i], 1, in_time ? 1 : 2);
}

/* What was added at that time is found, if the window is not over. */
static bool look_for_round(void *loop, hibloom_async *async, hibloom_async_filter *const handles[2], size_t first,
                           uint64_t since_us)
{
    memset(outcomes, 0, sizeof outcomes);
    for (size_t i = 0; i < CALLS; i++) {
        outcomes[i].answers = answers + i * EACH;
        assert_ok(hibloom_async_contains(handles[i % 2], items + first + i * EACH, EACH, on_answered, &outcomes[i]),
                  NULL);
    }
    await_round(loop, async, CALLS);
    if (stepped_now_us(server_clock) > since_us + window_us)
        return false;
    assert_int_equal(test_count_true(answers, ROUND), ROUND);
    return true;
}

static void each_item_is_new_once_and_found_as_periods_pass(void **state)
{
    void *loop = loop_class->open();
    hibloom_async *async = async_store(loop, redis_server_uri(server), NULL);
    hibloom_async_filter *const handles[] = {async_filter(loop, async, NAME, TEXT),
                                             async_filter(loop, async, NAME, TEXT)};
    const size_t rounds = test_is_slow() ? ROUNDS / 3 : ROUNDS;
    struct outcome done = {0};
    uint64_t since[ROUNDS];
    size_t looked = 0;

    for (size_t r = 0; r < rounds; r++) {
        since[r] = stepped_now_us(server_clock);
        add_round(loop, async, handles, r * ROUND, since[r]);
        for (size_t before = 0; before <= r && before < 12; before += 2)
            looked += look_for_round(loop, async, handles, (r - before) * ROUND, since[r - before]);
        test_sleep_ms(10);
    }
    assert_true(looked > 0);
    assert_ok(hibloom_async_drop(handles[0], on_done, &done), NULL);
    await(loop, &done);
    hibloom_async_free(async);
    close_loop(loop);
}

/* At whatever moment: while it looks, sets, or asks the clock. */
static void it_may_be_closed_at_any_moment(void **state)
{
    for (int turns = 0; turns < 16; turns++)
        close_after(turns, redis_server_uri(server), NAME, TEXT, items, ROUND);
    struct redisContext *redis = redis_server_connect(server);
    test_command(redis, "FLUSHALL");
    redisFree(redis);
}

static int set_up(void **state)
{
    signal(SIGPIPE, SIG_IGN);
    number_items(items, numbers, ROUND * ROUNDS);
    if (server != NULL) /* of another loop's round */
        return 0;
    server = stepped_server_start(&server_clock, redis_server_start_tcp);
    stepped_run(server_clock, test_is_slow() ? SPEED / 5 : SPEED);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_item_is_new_once_and_found_as_periods_pass),
        cmocka_unit_test(it_may_be_closed_at_any_moment),
    };
    const int failed = run_on_each_loop(tests, sizeof tests / sizeof *tests, set_up, NULL);

    redis_server_stop(server);
    stepped_free(server_clock);
    return failed;
}
