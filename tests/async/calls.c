/* Calls on an event loop: each is answered once, as the blocking one would be. */
#include "loops/subject.h"

#define ITEMS 10000u

static uint32_t numbers[ITEMS];
static hibloom_item items[ITEMS];

static int set_up(void **state)
{
    signal(SIGPIPE, SIG_IGN);
    number_items(items, numbers, ITEMS);
    return 0;
}

static const char *const texts[] = {
    "capacity=5000 error=0.01 seed=5",
    "capacity=5000 error=0.01 seed=5 layout=blocked",
    "capacity=5000 error=0.01 seed=5 segments=7",
    "capacity=5000 error=0.01 seed=5 layout=partitioned",
};

static size_t call_size(size_t i, size_t at)
{
    const size_t n = i % 3 == 0 ? 1 : i % 3 == 1 ? 20 : 1500;

    return n < ITEMS - at ? n : ITEMS - at;
}

/* One after the other: of items that collide the first is new. */
static void adds_are_answered_as_blocking_ones(void **state)
{
    static bool expected[ITEMS], is_new[ITEMS];
    void *loop = loop_class->open();
    hibloom_async *async = async_store(loop, test_uri(), NULL);
    hibloom_store *store = test_store(NULL);

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char names[2][TEST_NAME_SIZE];
        hibloom *filter = test_open(store, test_name(names[0]), texts[i]);
        hibloom_async_filter *other = async_filter(loop, async, test_name(names[1]), texts[i]);
        hibloom_info info;
        struct outcome counted = {0};

        for (size_t at = 0, n, calls = 0; at < ITEMS; at += n, calls++) {
            struct outcome added = {.answers = is_new + at};
            n = call_size(calls, at);
            assert_ok(hibloom_add_many(filter, items + at, n, expected + at), store);
            assert_ok(NOTHING_WITHIN(hibloom_async_add(other, items + at, n, true, on_answered, &added)), NULL);
            await(loop, &added);
            assert_true(added.status == HIBLOOM_OK && added.n == n);
        }
        assert_memory_equal(expected, is_new, ITEMS);
        assert_true(memchr(is_new, false, ITEMS) != NULL && memchr(is_new, true, ITEMS) != NULL);
        assert_ok(hibloom_get_info(filter, &info, sizeof info), store);
        assert_ok(hibloom_async_get_info(other, on_counted, &counted), NULL);
        await(loop, &counted);
        assert_int_equal(counted.status, HIBLOOM_OK);
        assert_int_equal(counted.info.bits_set, info.bits_set);
        assert_int_equal(counted.info.keys, info.keys);
        assert_true(counted.info.estimated_items == info.estimated_items);
        hibloom_close(filter);
        hibloom_async_close(other);
    }
    hibloom_store_free(store);
    hibloom_async_free(async);
    close_loop(loop);
}

/* As look-ups of one item each: what is done for each reply must not grow with them. That is the same
 * code on each loop, so on one of them there are many more. */
static void very_many_items_are_in_flight(void **state)
{
    const size_t n = test_is_slow() ? 5000 : loop_class == &loop_libevent ? 100000 : 20000;
    struct outcome *outcomes = calloc(n, sizeof *outcomes);
    bool *found = calloc(n, 1);
    char name[TEST_NAME_SIZE];
    void *loop = loop_class->open();
    hibloom_async *async = async_store(loop, test_uri(), NULL);
    hibloom_async_filter *filter = async_filter(loop, async, test_name(name), texts[0]);
    struct outcome added = {0};

    assert_ok(hibloom_async_add(filter, items, 1000, false, on_answered, &added), NULL);
    await(loop, &added);
    const uint64_t before = test_now_ms();
    for (size_t i = 0; i < n; i++) {
        uint32_t number = (uint32_t)(i % 1000); /* which is gone when the call is answered */
        outcomes[i].answers = found + i;
        assert_ok(hibloom_async_contains(filter, &(hibloom_item){&number, sizeof number}, 1, on_answered, &outcomes[i]),
                  NULL);
    }
    await_all(loop, NULL, outcomes, n);
    print_message("%s: %zu look-ups in flight: %u ms\n", loop_class->name, n, (unsigned)(test_now_ms() - before));
    for (size_t i = 0; i < n; i++)
        assert_true(found[i] && outcomes[i].calls == 1 && outcomes[i].status == HIBLOOM_OK);
    hibloom_async_free(async);
    close_loop(loop);
    free(found);
    free(outcomes);
}

/* Of several pipelines, of which the later ones are written when the caller's are gone. */
static void items_need_to_live_during_the_call_only(void **state)
{
    static bool expected[ITEMS], found[ITEMS];
    static uint32_t passing[ITEMS];
    static hibloom_item passing_items[ITEMS];
    char name[TEST_NAME_SIZE];
    void *loop = loop_class->open();
    hibloom_async *async = async_store(loop, test_uri(), NULL);
    hibloom_store *store = test_store(NULL);
    hibloom *filter = test_open(store, test_name(name), texts[0]);
    hibloom_async_filter *same = async_filter(loop, async, name, texts[0]);
    struct outcome asked = {.answers = found};

    assert_ok(hibloom_add_many(filter, items, ITEMS / 4, NULL), store);
    assert_ok(hibloom_contains_many(filter, items, ITEMS, expected), store);
    for (uint32_t i = 0; i < ITEMS; i++) {
        passing[i] = i;
        passing_items[i] = (hibloom_item){&passing[i], sizeof passing[i]};
    }
    assert_ok(hibloom_async_contains(same, passing_items, ITEMS, on_answered, &asked), NULL);
    memset(passing, 0xff, sizeof passing);
    memset(passing_items, 0, sizeof passing_items);
    await(loop, &asked);
    assert_memory_equal(expected, found, ITEMS);
    test_close(filter, store);
    hibloom_async_free(async);
    close_loop(loop);
}

static void past_the_limit_calls_are_refused(void **state)
{
    void *loop = loop_class->open();
    hibloom_async *async = async_store(loop, with_options(test_uri(), "in_flight=100"), NULL);
    hibloom_async_filter *filter = async_filter(loop, async, TEST_NAME, texts[0]);
    struct outcome large = {0}, refused = {0}, fits[2] = {0};

    assert_ok(hibloom_async_add(filter, items, 1000, false, on_answered, &large), NULL); /* nothing else is there */
    assert_int_equal(hibloom_async_contains(filter, items, 1, on_answered, &refused), HIBLOOM_EBUSY);
    assert_true(hibloom_is_retryable(HIBLOOM_EBUSY));
    assert_non_null(strstr(hibloom_async_error(async), "1000 items"));
    await(loop, &large);
    assert_ok(hibloom_async_contains(filter, items, 99, on_answered, &fits[0]), NULL);
    assert_int_equal(hibloom_async_contains(filter, items, 2, on_answered, &refused), HIBLOOM_EBUSY);
    assert_ok(hibloom_async_contains(filter, items, 0, on_answered, &fits[1]), NULL); /* counts as one */
    assert_int_equal(hibloom_async_clear(filter, on_done, &refused), HIBLOOM_EBUSY);
    await_all(loop, NULL, fits, 2);
    assert_true(fits[0].status == HIBLOOM_OK && fits[1].status == HIBLOOM_OK && fits[1].n == 0);
    assert_ok(hibloom_async_contains(filter, items, 100, on_answered, &refused), NULL);
    await(loop, &refused);
    assert_int_equal(refused.calls, 1);
    hibloom_async_free(async);
    close_loop(loop);
}

static void a_filter_lives_from_open_to_drop(void **state)
{
    char name[TEST_NAME_SIZE];
    void *loop = loop_class->open();
    hibloom_async *async = async_store(loop, test_uri(), NULL);
    hibloom_async_filter *filter = async_filter(loop, async, test_name(name), texts[0]);
    struct outcome added = {0}, done[3] = {0}, asked = {0}, counted = {0}, gone = {0}, opened = {0};
    bool found = true;

    assert_string_equal(hibloom_async_error(async), "");
    assert_non_null(strstr(hibloom_async_spec_of(filter), "capacity=5000 "));
    assert_ok(hibloom_async_add(filter, items, 10, false, on_answered, &added), NULL);
    await(loop, &added);
    assert_int_equal(added.status, HIBLOOM_OK);
    assert_ok(NOTHING_WITHIN(hibloom_async_expire(filter, 100000, on_done, &done[0])), NULL);
    await(loop, &done[0]);
    assert_ok(hibloom_async_get_info(filter, on_counted, &counted), NULL);
    await(loop, &counted);
    assert_true(counted.info.ttl_ms > 90000 && counted.info.ttl_ms <= 100000 && counted.info.bits_set > 10);
    assert_ok(NOTHING_WITHIN(hibloom_async_clear(filter, on_done, &done[1])), NULL);
    await(loop, &done[1]);
    asked.answers = &found;
    assert_ok(hibloom_async_contains(filter, items, 1, on_answered, &asked), NULL);
    await(loop, &asked);
    assert_false(found);
    assert_ok(NOTHING_WITHIN(hibloom_async_drop(filter, on_done, &done[2])), NULL);
    await(loop, &done[2]);
    for (int i = 0; i < 3; i++)
        assert_int_equal(done[i].status, HIBLOOM_OK);
    assert_ok(hibloom_async_contains(filter, items, 1, on_answered, &gone), NULL);
    await(loop, &gone);
    assert_int_equal(gone.status, HIBLOOM_ENOTFOUND);
    assert_non_null(strstr(hibloom_async_error(async), name));
    assert_ok(hibloom_async_open(async, name, NULL, on_opened, &opened), NULL);
    await(loop, &opened);
    assert_int_equal(opened.status, HIBLOOM_ENOTFOUND);
    hibloom_async_close(filter);
    hibloom_async_free(async);
    close_loop(loop);
}

static void what_is_wrong_is_refused(void **state)
{
    char name[TEST_NAME_SIZE];
    void *loop = loop_class->open();
    struct outcome never = {0};
    hibloom_async *none;
    hibloom_async *async = async_store(loop, test_uri(), NULL);
    hibloom_async_filter *filter = async_filter(loop, async, test_name(name), texts[0]);

    assert_int_equal(hibloom_async_connect(&none, "memory:", NULL, loop_class->attach, loop), HIBLOOM_ENOTSUP);
    assert_int_equal(hibloom_async_open(none, "x", NULL, on_opened, &never), HIBLOOM_EINVAL);
    hibloom_async_tick(none);
    hibloom_async_free(none);
    assert_int_equal(hibloom_async_connect(&none, test_uri(), NULL, NULL, loop), HIBLOOM_EINVAL);
    assert_non_null(strstr(hibloom_async_error(none), "no function"));
    hibloom_async_free(none);
    assert_int_equal(hibloom_async_borrow(&none, NULL, NULL), HIBLOOM_EINVAL);
    hibloom_async_free(none);
    assert_int_equal(hibloom_async_open(async, "", NULL, on_opened, &never), HIBLOOM_EINVAL);
    assert_int_equal(hibloom_async_open(async, name, NULL, NULL, &never), HIBLOOM_EINVAL);
    assert_int_equal(hibloom_async_add(filter, &(hibloom_item){NULL, 1}, 1, true, on_answered, &never), HIBLOOM_EINVAL);
    assert_int_equal(hibloom_async_contains(filter, &(hibloom_item){numbers, SIZE_MAX - 10}, 1, on_answered, &never),
                     HIBLOOM_ENOMEM);
    assert_int_equal(hibloom_async_expire(filter, UINT64_MAX, on_done, &never), HIBLOOM_ERANGE);
    hibloom_async_close(filter);
    hibloom_async_close(NULL);
    hibloom_async_free(async);
    hibloom_async_free(NULL);
    close_loop(loop);
    assert_int_equal(never.calls, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adds_are_answered_as_blocking_ones),      cmocka_unit_test(very_many_items_are_in_flight),
        cmocka_unit_test(items_need_to_live_during_the_call_only), cmocka_unit_test(past_the_limit_calls_are_refused),
        cmocka_unit_test(a_filter_lives_from_open_to_drop),        cmocka_unit_test(what_is_wrong_is_refused),
    };

    return run_on_each_loop(tests, sizeof tests / sizeof *tests, set_up, NULL);
}
