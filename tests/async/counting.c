/* Counting filters on event loops: answers as those of blocking calls; and a remove that
 * is on its way when its connection dies is not sent again. */
#include "loops/subject.h"

enum { ITEMS = 3000, CALLS = 200 };

static uint32_t numbers[ITEMS];
static hibloom_item items[ITEMS];

static const char *const texts[] = {"capacity=2000 error=0.01 seed=5 counters=4",
                                    "capacity=2000 error=0.01 seed=5 counters=2 segments=7"};

static int set_up(void **state)
{
    signal(SIGPIPE, SIG_IGN);
    number_items(items, numbers, ITEMS);
    return 0;
}

/* One after the other, so each has one answer. */
static void counters_are_those_of_blocking_calls(void **state)
{
    static bool expected[ITEMS], answers[ITEMS];
    void *loop = loop_class->open();
    hibloom_async *async = async_store(loop, test_uri(), NULL);
    hibloom_store *memory;

    assert_ok(hibloom_memory(&memory), NULL);
    for (size_t t = 0; t < 2; t++) {
        char name[TEST_NAME_SIZE];
        hibloom *filter = test_open(memory, test_name(name), texts[t]);
        hibloom_async_filter *other = async_filter(loop, async, name, texts[t]);
        struct outcome counted = {0};
        hibloom_info info;
        for (size_t step = 0, n; step < 12; step++) {
            struct outcome done = {.answers = answers};
            const size_t from = step * 137;
            n = step % 3 == 2 ? 1 : 900;
            if (step % 2 == 0) {
                assert_ok(hibloom_add_many(filter, items + from, n, expected), memory);
                assert_ok(NOTHING_WITHIN(hibloom_async_add(other, items + from, n, true, on_answered, &done)), NULL);
            } else {
                assert_ok(hibloom_remove_many(filter, items + from, n, expected), memory);
                assert_ok(NOTHING_WITHIN(hibloom_async_remove(other, items + from, n, on_answered, &done)), NULL);
            }
            await(loop, &done);
            assert_true(done.status == HIBLOOM_OK && done.n == n);
            assert_memory_equal(expected, answers, n);
        }
        assert_ok(hibloom_get_info(filter, &info), memory);
        assert_ok(hibloom_async_get_info(other, on_counted, &counted), NULL);
        await(loop, &counted);
        assert_int_equal(counted.info.bits_set, info.bits_set);
        assert_true(counted.info.estimated_items == info.estimated_items);
        assert_ok(hibloom_drop(filter), memory);
        hibloom_close(filter);
        hibloom_async_close(other);
    }
    hibloom_store_free(memory);
    hibloom_async_free(async);
    close_loop(loop);
}

static void only_counters_can_remove(void **state)
{
    char name[TEST_NAME_SIZE], other[TEST_NAME_SIZE];
    void *loop = loop_class->open();
    hibloom_async *async = async_store(loop, test_uri(), NULL);
    hibloom_async_filter *plain = async_filter(loop, async, test_name(name), "capacity=2000 error=0.01");
    hibloom_async_filter *filter = async_filter(loop, async, test_name(other), texts[0]);
    struct outcome never = {0}, none = {0}, closed[2] = {0};

    assert_int_equal(hibloom_async_remove(plain, items, 1, on_answered, &never), HIBLOOM_ENOTSUP);
    assert_int_equal(hibloom_async_remove(plain, items, 0, on_answered, &never), HIBLOOM_ENOTSUP);
    assert_non_null(strstr(hibloom_async_error(async), "counters="));
    assert_int_equal(hibloom_async_near_cache(filter), HIBLOOM_ENOTSUP);
    assert_ok(NOTHING_WITHIN(hibloom_async_remove(filter, items, 0, on_answered, &none)), NULL);
    await(loop, &none);
    assert_true(none.status == HIBLOOM_OK && none.n == 0);
    assert_ok(hibloom_async_remove(filter, items, 10, on_answered, &closed[0]), NULL);
    assert_ok(hibloom_async_get_info(filter, on_counted, &closed[1]), NULL);
    hibloom_async_close(filter);
    assert_true(closed[0].status == HIBLOOM_ECANCELED && closed[1].status == HIBLOOM_ECANCELED);
    hibloom_async_close(plain);
    hibloom_async_free(async);
    close_loop(loop);
    assert_int_equal(never.calls, 0);
}

/* How often an item is in; it is taken out. */
static unsigned count_item(hibloom *filter, const hibloom_item *item, hibloom_store *store)
{
    unsigned times = 0;

    for (bool was_in = true; was_in && times < 16; times += was_in)
        assert_ok(hibloom_remove(filter, item->data, item->len, &was_in), store);
    return times;
}

static void a_remove_that_is_lost_is_not_sent_again(void **state)
{
    static struct outcome outcomes[CALLS];
    const hibloom_connect_options patient = {.size = sizeof patient, .retry_ms = 20000};
    struct redis_server *server = redis_server_start(NULL);
    void *loop = loop_class->open();
    hibloom_async *async = async_store(loop, redis_server_uri(server), &patient);
    hibloom_async_filter *filter = async_filter(loop, async, "f", "capacity=2000 error=1e-9 counters=4");
    hibloom_store *store = test_connect(redis_server_uri(server), NULL);
    hibloom *same = NULL;
    size_t lost = 0;

    assert_ok(hibloom_open(&same, store, "f", NULL), store);
    for (int i = 0; i < 3; i++)
        assert_ok(hibloom_add_many(same, items, CALLS, NULL), store);
    memset(outcomes, 0, sizeof outcomes);
    redis_server_pause(server); /* half of them is on its way when the connection dies */
    for (size_t i = 0; i < CALLS / 2; i++)
        assert_ok(hibloom_async_remove(filter, items + i, 1, on_answered, &outcomes[i]), NULL);
    for (int i = 0; i < 20; i++, usleep(1000))
        loop_class->turn(loop);
    redis_server_resume(server);
    freeReplyObject(redis_server_must(server, "CLIENT KILL TYPE normal SKIPME yes"));
    await_all(loop, async, outcomes, CALLS / 2);
    for (size_t i = CALLS / 2; i < CALLS; i++)
        assert_ok(hibloom_async_remove(filter, items + i, 1, on_answered, &outcomes[i]), NULL);
    await_all(loop, async, outcomes, CALLS);
    hibloom_close(same);
    hibloom_store_free(store);
    store = test_connect(redis_server_uri(server), NULL);
    same = NULL;
    assert_ok(hibloom_open(&same, store, "f", NULL), store);
    for (size_t i = 0; i < CALLS; i++) {
        const unsigned times = count_item(same, &items[i], store);
        assert_true(outcomes[i].status == HIBLOOM_OK || outcomes[i].status == HIBLOOM_EIO);
        assert_in_range(times, 2, outcomes[i].status == HIBLOOM_OK ? 2 : 3);
        lost += outcomes[i].status != HIBLOOM_OK;
    }
    print_message("%zu of %d failed\n", lost, CALLS);
    hibloom_close(same);
    hibloom_store_free(store);
    hibloom_async_free(async);
    close_loop(loop);
    redis_server_stop(server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counters_are_those_of_blocking_calls),
        cmocka_unit_test(only_counters_can_remove),
        cmocka_unit_test(a_remove_that_is_lost_is_not_sent_again),
    };

    return run_on_each_loop(tests, sizeof tests / sizeof *tests, set_up, NULL);
}
