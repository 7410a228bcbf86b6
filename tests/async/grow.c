/* Growing filters, and sliding windows, on an event loop: calls that are on their way at once are as processes that
 * race, and each function is called once, from the loop. */
#include "loops/subject.h"

/* Twice so many calls at once; and more items than five links of the smallest filter have room for. */
enum { CALLS = 30, EACH = 50, ITEMS = CALLS * EACH };

static uint32_t numbers[ITEMS];
static hibloom_item items[ITEMS];
static bool answers[2 * ITEMS];
static struct outcome outcomes[2 * CALLS];

static int set_up(void **state)
{
    signal(SIGPIPE, SIG_IGN);
    number_items(items, numbers, ITEMS);
    return 0;
}

static void wait_for_all(void *loop, hibloom_async *async, size_t n)
{
    await_all(loop, async, outcomes, n);
    for (size_t i = 0; i < n; i++)
        assert_true(outcomes[i].status == HIBLOOM_OK && outcomes[i].calls == 1);
}

/* All items twice, all calls at once. Where that is slow each loop has one of the filters. */
static void each_item_is_new_to_one_of_the_calls_at_once(void **state)
{
    static const char *const texts[] = {"capacity=30 error=1e-9 growth=2",
                                        "capacity=30 error=1e-9 growth=3 segments=3 hash=siphash",
                                        "capacity=3000 error=1e-9 window=86400 slices=5"};

    const size_t calls = test_is_slow() ? CALLS * 2 / 3 : CALLS, n = calls * EACH;
    static size_t turn;
    const size_t first = test_is_slow() ? turn++ % 3 : 0, last = test_is_slow() ? first : 2;

    for (size_t t = first; t <= last; t++) {
        char name[TEST_NAME_SIZE];
        void *loop = loop_class->open();
        hibloom_async *async = async_store(loop, test_uri(), NULL);
        hibloom_async_filter *filter = async_filter(loop, async, test_name(name), texts[t]);
        struct redisContext *redis = test_redis();
        struct outcome done = {0};

        memset(outcomes, 0, sizeof outcomes);
        for (size_t i = 0; i < 2 * calls; i++) {
            outcomes[i].answers = answers + i * EACH;
            assert_ok(NOTHING_WITHIN(
                          hibloom_async_add(filter, items + i % calls * EACH, EACH, true, on_answered, &outcomes[i])),
                      NULL);
        }
        wait_for_all(loop, async, 2 * calls);
        for (size_t i = 0; i < n; i++)
            assert_int_equal(answers[i] + answers[n + i], 1);
        memset(outcomes, 0, sizeof outcomes);
        for (size_t i = 0; i < calls; i++) {
            outcomes[i].answers = answers + i * EACH;
            assert_ok(hibloom_async_contains(filter, items + i * EACH, EACH, on_answered, &outcomes[i]), NULL);
        }
        wait_for_all(loop, async, calls);
        assert_int_equal(test_count_true(answers, n), n);
        assert_ok(hibloom_async_get_info(filter, on_counted, &done), NULL);
        await(loop, &done);
        assert_true(done.info.keys >= 6 && done.info.keys <= 24 && done.info.estimated_items > (double)n * 0.9);
        print_message("%u keys\n", done.info.keys);
        done = (struct outcome){0};
        assert_ok(hibloom_async_expire(filter, 1000, on_done, &done), NULL);
        await(loop, &done);
        assert_true(test_command(redis, "TTL %s:+1%s", name, t == 1 ? ":2" : "") > 900);
        done = (struct outcome){0};
        assert_ok(hibloom_async_contains(filter, items, 0, on_answered, &done), NULL);
        await(loop, &done);
        done = (struct outcome){0};
        assert_ok(hibloom_async_clear(filter, on_done, &done), NULL);
        await(loop, &done);
        memset(outcomes, 0, sizeof outcomes);
        outcomes[0].answers = answers;
        assert_ok(hibloom_async_contains(filter, items, n, on_answered, outcomes), NULL);
        wait_for_all(loop, async, 1);
        assert_int_equal(test_count_true(answers, n), 0);
        done = (struct outcome){0};
        assert_ok(hibloom_async_drop(filter, on_done, &done), NULL);
        await(loop, &done);
        assert_int_equal(test_command(redis, "EXISTS %s:+1 %s:+1:0 %s %s:0", name, name, name, name), 0);
        redisFree(redis);
        hibloom_async_free(async);
        close_loop(loop);
    }
}

/* At whatever moment it is closed, or its store is freed. */
static void it_may_be_closed_while_it_grows(void **state)
{
    for (int turns = 0; turns < 24; turns++) {
        char name[TEST_NAME_SIZE];

        close_after(turns, test_uri(), test_name(name), "capacity=10 error=1e-6 growth=2", items, 40);
    }
}

/* What lies where a link has to be may be late bits, which are waited for: nothing is on its way then. */
static void it_may_be_closed_while_it_waits_for_a_link(void **state)
{
    hibloom_store *store = test_store(NULL);
    struct redisContext *redis = test_redis();
    unsigned waited = 0;

    for (int turns = 1; turns < 13; turns++) {
        char name[TEST_NAME_SIZE];
        void *loop = loop_class->open();
        hibloom_async *async = async_store(loop, test_uri(), NULL);
        hibloom_async_filter *filter = async_filter(loop, async, test_name(name), "capacity=10 error=1e-6 growth=2");
        hibloom *other = NULL;

        hibloom_async_tick(async); /* who never ticks has no pauses: one turn may then see all tries */
        assert_ok(hibloom_open(&other, store, name, NULL), store);
        assert_ok(hibloom_add_many(other, items, 40, NULL), store); /* of which the handle has not heard */
        hibloom_close(other);
        test_command(redis, "SET %s:+1 late", name);
        memset(outcomes, 0, sizeof outcomes);
        assert_ok(hibloom_async_contains(filter, items + 100, 1, on_answered, &outcomes[0]), NULL);
        assert_ok(hibloom_async_add(filter, items, 40, true, on_answered, &outcomes[1]), NULL);
        for (int i = 0; i < turns; i++) {
            loop_class->turn(loop);
            hibloom_async_tick(async);
        }
        waited += outcomes[0].calls + outcomes[1].calls == 0;
        if (turns % 2 == 0)
            hibloom_async_close(filter);
        hibloom_async_free(async);
        for (size_t i = 0; i < 2; i++)
            assert_true(outcomes[i].calls == 1 && outcomes[i].status != HIBLOOM_OK);
        close_loop(loop);
        assert_int_equal(test_command(redis, "DEL %s:+1", name), 1);
        assert_ok(hibloom_delete(store, name), store);
    }
    assert_true(waited > 0);
    redisFree(redis);
    hibloom_store_free(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_item_is_new_to_one_of_the_calls_at_once),
        cmocka_unit_test(it_may_be_closed_while_it_grows),
        cmocka_unit_test(it_may_be_closed_while_it_waits_for_a_link),
    };

    return run_on_each_loop(tests, sizeof tests / sizeof *tests, set_up, NULL);
}
