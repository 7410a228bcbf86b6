/* The near cache, and calls that go by whole bitmaps, on an event loop: the answers are
 * those of the blocking calls, and each function is called once, from the loop. */
#include "loops/subject.h"

enum { ITEMS = 20000 };

static uint32_t numbers[ITEMS];
static hibloom_item items[ITEMS];
static bool answers[ITEMS];

static int set_up(void **state)
{
    signal(SIGPIPE, SIG_IGN);
    number_items(items, numbers, ITEMS);
    return 0;
}

/* Adds (is_new) or asks, and waits: what is true of how many. */
static size_t run(void *loop, hibloom_async_filter *filter, size_t n, bool adds)
{
    struct outcome outcome = {.answers = answers};
    hibloom_status status;

    memset(answers, 0, sizeof answers);
    if (adds)
        status = NOTHING_WITHIN(hibloom_async_add(filter, items, n, true, on_answered, &outcome));
    else
        status = NOTHING_WITHIN(hibloom_async_contains(filter, items, n, on_answered, &outcome));
    assert_ok(status, NULL);
    await(loop, &outcome);
    assert_int_equal(outcome.status, HIBLOOM_OK);
    assert_int_equal(outcome.calls, 1);
    return test_count_true(answers, n);
}

static void what_is_known_is_answered_behind_a_guard(void **state)
{
    enum { FEW = 50 };
    char name[TEST_NAME_SIZE];
    void *loop = loop_class->open();
    hibloom_async *async = async_store(loop, test_uri(), NULL);
    hibloom_async_filter *filter = async_filter(loop, async, test_name(name), "capacity=100000 error=1e-9 seed=5eed");
    hibloom_store *store = test_store(NULL);
    hibloom *other;
    struct redisContext *redis = test_redis();
    const char *bits = "bitfield", *bit = "getbit";

    assert_ok(hibloom_open(&other, store, name, NULL), store);
    assert_ok(hibloom_async_near_cache(filter), NULL);
    assert_int_equal(run(loop, filter, FEW, true), FEW);
    const long long sent = redis_server_calls_of(redis, bits), asked = redis_server_calls_of(redis, bit);
    assert_int_equal(run(loop, filter, FEW, true), 0);
    assert_int_equal(run(loop, filter, FEW, false), FEW);
    assert_int_equal(redis_server_calls_of(redis, bits), sent + 1); /* of the add: would it have been taken? */
    assert_int_equal(redis_server_calls_of(redis, bit), asked);
    assert_ok(hibloom_clear(other), store);
    assert_int_equal(run(loop, filter, FEW, false), 0);
    assert_int_equal(run(loop, filter, FEW, true), FEW);
    assert_ok(hibloom_drop(other), store);
    struct outcome gone = {0};
    assert_ok(hibloom_async_contains(filter, items, FEW, on_answered, &gone), NULL);
    await(loop, &gone);
    assert_int_equal(gone.status, HIBLOOM_ENOTFOUND);
    redisFree(redis);
    hibloom_close(other);
    hibloom_store_free(store);
    hibloom_async_free(async);
    close_loop(loop);
}

/* Several at once, which learn and forget beside each other. */
static void pending_calls_do_not_disturb_each_other(void **state)
{
    enum { CALLS = 200, EACH = ITEMS / CALLS };
    char name[TEST_NAME_SIZE];
    void *loop = loop_class->open();
    hibloom_async *async = async_store(loop, test_uri(), NULL);
    hibloom_async_filter *filter = async_filter(loop, async, test_name(name), "capacity=100000 error=1e-9 segments=5");
    static struct outcome outcomes[CALLS];
    struct outcome dropped = {0};

    assert_ok(hibloom_async_near_cache(filter), NULL);
    for (int round = 0; round < 4; round++) {
        memset(outcomes, 0, sizeof outcomes);
        memset(answers, 0, sizeof answers);
        for (size_t i = 0; i < CALLS; i++) {
            outcomes[i].answers = answers + i * EACH;
            assert_ok(round == 0 ? hibloom_async_add(filter, items + i * EACH, EACH, true, on_answered, &outcomes[i])
                                 : hibloom_async_contains(filter, items + i * EACH, EACH, on_answered, &outcomes[i]),
                      NULL);
        }
        if (round == 2)
            assert_ok(hibloom_async_clear(filter, on_done, &dropped), NULL);
        await_all(loop, async, outcomes, CALLS);
        for (size_t i = 0; i < CALLS; i++)
            assert_true(outcomes[i].status == HIBLOOM_OK && outcomes[i].calls == 1);
        if (round < 2)
            assert_int_equal(test_count_true(answers, ITEMS), ITEMS);
        if (round == 2)
            await(loop, &dropped);
        if (round == 3)
            assert_int_equal(test_count_true(answers, ITEMS), 0);
    }
    assert_ok(hibloom_async_drop(filter, on_done, &dropped), NULL);
    await_all(loop, async, &dropped, 1);
    hibloom_async_free(async);
    close_loop(loop);
}

static void a_large_call_goes_by_whole_bitmaps(void **state)
{
    char name[TEST_NAME_SIZE];
    void *loop = loop_class->open();
    hibloom_async *async = async_store(loop, test_uri(), NULL);
    hibloom_async_filter *filter = async_filter(loop, async, test_name(name), "capacity=100000 error=1e-9");
    struct redisContext *redis = test_redis();
    struct outcome added = {0}, dropped = {0};

    const long long sent = redis_server_calls_of(redis, "setbit") + redis_server_calls_of(redis, "getbit");
    assert_ok(NOTHING_WITHIN(hibloom_async_add(filter, items, ITEMS / 2, false, on_answered, &added)), NULL);
    await(loop, &added);
    assert_int_equal(added.status, HIBLOOM_OK);
    assert_int_equal(run(loop, filter, ITEMS, false), ITEMS / 2);
    assert_int_equal(redis_server_calls_of(redis, "setbit") + redis_server_calls_of(redis, "getbit"), sent);
    assert_int_equal(run(loop, filter, ITEMS, true), ITEMS / 2);
    assert_ok(hibloom_async_drop(filter, on_done, &dropped), NULL);
    await(loop, &dropped);
    redisFree(redis);
    hibloom_async_free(async);
    close_loop(loop);
}

/* In the middle of a large call: its function is called, and nothing is left behind. */
static void a_large_call_may_be_given_up(void **state)
{
    char name[TEST_NAME_SIZE];

    test_name(name);
    for (int by_close = 0; by_close < 2; by_close++)
        for (unsigned turns = 0; turns < 6; turns++) {
            void *loop = loop_class->open();
            hibloom_async *async = async_store(loop, test_uri(), NULL);
            hibloom_async_filter *filter = async_filter(loop, async, name, "capacity=100000 error=1e-9 seed=5eed");
            struct outcome outcomes[3] = {{0}};
            assert_ok(hibloom_async_add(filter, items, ITEMS, false, on_answered, &outcomes[0]), NULL);
            assert_ok(hibloom_async_contains(filter, items, ITEMS, on_answered, &outcomes[1]), NULL);
            assert_ok(hibloom_async_add(filter, items, ITEMS, true, on_answered, &outcomes[2]), NULL);
            for (unsigned turn = 0; turn < turns; turn++)
                loop_class->turn(loop);
            if (by_close)
                hibloom_async_close(filter);
            hibloom_async_free(async);
            for (size_t i = 0; i < 3; i++)
                assert_int_equal(outcomes[i].calls, 1);
            close_loop(loop);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_known_is_answered_behind_a_guard),
        cmocka_unit_test(pending_calls_do_not_disturb_each_other),
        cmocka_unit_test(a_large_call_goes_by_whole_bitmaps),
        cmocka_unit_test(a_large_call_may_be_given_up),
    };

    return run_on_each_loop(tests, sizeof tests / sizeof *tests, set_up, NULL);
}
