/* Calls on an event loop: each is answered once, as the blocking one would be. */
#include "loops/subject.h"
#include "base/store.h"
#include "spec/spec.h"

#define ITEMS 10000u

static uint32_t numbers[ITEMS];
static hibloom_item items[ITEMS];

static int set_up(void **state)
{
    number_items(items, numbers, ITEMS);
    return 0;
}

static const char *const texts[] = {
    "capacity=5000 error=0.01 seed=5",
    "capacity=5000 error=0.01 seed=5 layout=blocked",
    "capacity=5000 error=0.01 seed=5 segments=7",
    "capacity=5000 error=0.01 seed=5 layout=partitioned",
};

/* As look-ups of one item each: what is done for each reply must not grow with them. That is the same
 * code on each loop, so on one of them there are many more. */
static void very_many_items_are_in_flight(void **state)
{
    const size_t n = test_is_slow() ? 5000 : loop_class == &loop_libevent ? 100000 : 20000;
    struct outcome *outcomes = calloc(n, sizeof *outcomes);
    bool *found = calloc(n, 1);
    char name[TEST_NAME_SIZE];
    void *loop = loop_class->open();
    hibloom_store *async = async_store(loop, test_uri(), NULL);
    hibloom *filter = async_filter(loop, async, test_name(name), texts[0]);
    struct outcome added;

    assert_ok(AWAIT(loop, &added, hibloom_async_add_many(filter, items, 1000, NULL, on_done, &added)), async);
    const uint64_t before = test_now_ms();
    for (size_t i = 0; i < n; i++) {
        uint32_t number = (uint32_t)(i % 1000); /* which is gone when the call is answered */
        assert_ok(hibloom_async_contains(filter, &number, sizeof number, &found[i], on_done, &outcomes[i]), async);
    }
    await_all(loop, outcomes, n);
    print_message("%s: %zu look-ups in flight: %u ms\n", loop_class->name, n, (unsigned)(test_now_ms() - before));
    for (size_t i = 0; i < n; i++)
        assert_true(found[i] && outcomes[i].calls == 1 && outcomes[i].status == HIBLOOM_OK);
    end_all(loop, async, filter);
    free(found);
    free(outcomes);
}

enum { IN_FLIGHT = 131072 }; /* the default of the option */

/* Of a call without items, too, which counts as one. */
static void past_the_limit_calls_are_refused(void **state)
{
    static hibloom_item many[IN_FLIGHT + 1];
    static bool found[IN_FLIGHT];
    void *loop = loop_class->open();
    hibloom_store *async = async_store(loop, test_uri(), NULL);
    hibloom *filter = async_filter(loop, async, TEST_NAME, texts[0]);
    struct outcome large = {0}, never = {0}, fits[2] = {0};

    for (size_t i = 0; i < sizeof many / sizeof *many; i++)
        many[i] = items[i % ITEMS];
    assert_ok(hibloom_async_add_many(filter, many, IN_FLIGHT + 1, NULL, on_done, &large), async);
    assert_int_equal(hibloom_async_contains_many(filter, items, 1, found, on_done, &never), HIBLOOM_EBUSY);
    assert_true(hibloom_is_retryable(HIBLOOM_EBUSY));
    assert_words(async, "131073 items");
    await(loop, &large);
    assert_ok(hibloom_async_contains_many(filter, many, IN_FLIGHT - 1, found, on_done, &fits[0]), async);
    assert_int_equal(hibloom_async_contains_many(filter, items, 2, found, on_done, &never), HIBLOOM_EBUSY);
    assert_ok(hibloom_async_contains_many(filter, items, 0, found, on_done, &fits[1]), async);
    assert_int_equal(hibloom_async_clear(filter, on_done, &never), HIBLOOM_EBUSY);
    await_all(loop, fits, 2);
    assert_true(large.status == HIBLOOM_OK && fits[0].status == HIBLOOM_OK && fits[1].status == HIBLOOM_OK);
    end_all(loop, async, filter);
    assert_int_equal(never.calls, 0);
}

/* Makes, expires and counts, attaches and removes by name, removes items. (More of their use is simulated.) */
static void the_other_calls_have_their_async_forms(void **state)
{
    char name[TEST_NAME_SIZE];
    void *loop = loop_class->open();
    hibloom_store *async = async_store(loop, test_uri(), NULL);
    hibloom *counting = async_filter(loop, async, test_name(name), "capacity=1000 error=0.01 counters=4");
    hibloom *bare = NULL;
    const struct spec spec = test_spec("bits=8192 hashes=4 seed=5eed");
    struct outcome o;
    hibloom_info info;
    bool yes = false;

    assert_ok(AWAIT(loop, &o, hibloom_async_add(counting, "x", 1, &yes, on_done, &o)), async);
    assert_true(yes);
    assert_ok(AWAIT(loop, &o, hibloom_async_expire(counting, 100000, on_done, &o)), async);
    assert_ok(AWAIT(loop, &o, hibloom_async_get_info(counting, &info, sizeof info, on_done, &o)), async);
    assert_true(info.ttl_ms > 90000 && info.ttl_ms <= 100000 && info.bits_set > 0);
    assert_ok(AWAIT(loop, &o, hibloom_async_remove_many(counting, &(hibloom_item){"x", 1}, 1, &yes, on_done, &o)),
              async);
    assert_true(yes);
    assert_ok(AWAIT(loop, &o, hibloom_async_remove(counting, "x", 1, &yes, on_done, &o)), async);
    assert_false(yes);
    assert_int_equal(AWAIT(loop, &o, hibloom_async_repair(async, name, on_done, &o)), HIBLOOM_OK);
    assert_ok(AWAIT(loop, &o, hibloom_async_drop_by_name(async, name, on_done, &o)), async);
    assert_int_equal(AWAIT(loop, &o, hibloom_async_add(counting, "x", 1, &yes, on_done, &o)), HIBLOOM_ENOTFOUND);
    assert_ok(AWAIT(loop, &o, hibloom_async_attach(&bare, async, name, test_text(&spec), on_done, &o)), async);
    assert_ok(AWAIT(loop, &o, hibloom_async_add(bare, "x", 1, NULL, on_done, &o)), async);
    assert_ok(AWAIT(loop, &o, hibloom_async_contains(bare, "x", 1, &yes, on_done, &o)), async);
    assert_true(yes);
    assert_ok(AWAIT(loop, &o, hibloom_async_drop(bare, on_done, &o)), async);
    hibloom_store_free(async);
    hibloom_close(counting);
    hibloom_close(bare);
    close_loop(loop);
}

static void assert_names(hibloom_status status, const hibloom_store *store, const char *name)
{
    assert_int_equal(status, HIBLOOM_ENOTSUP);
    assert_words(store, name);
}

static void the_wrong_kind_of_call_names_the_right_one(void **state)
{
    void *loop = loop_class->open();
    hibloom_store *async = async_store(loop, test_uri(), NULL), *store = test_connect("memory:", NULL);
    hibloom *filter = async_filter(loop, async, TEST_NAME, texts[0]), *here = test_open(store, "f", texts[0]), *none;
    struct outcome never = {0};
    hibloom_info info;
    bool found;

    assert_names(hibloom_add(filter, "x", 1, NULL), async, "hibloom_async_add");
    assert_names(hibloom_contains_many(filter, items, 1, &found), async, "hibloom_async_contains_many");
    assert_names(hibloom_get_info(filter, &info, sizeof info), async, "hibloom_async_get_info");
    assert_names(hibloom_open(&none, async, "f", NULL), async, "hibloom_async_open");
    assert_names(hibloom_list(async, NULL, NULL, NULL), async, "hibloom_async_list");
    assert_names(hibloom_save(filter, "/nowhere"), async, "hibloom_async_save");
    assert_names(hibloom_merge(here, filter), store, "hibloom_async_merge");
    assert_names(hibloom_async_add(here, "x", 1, NULL, on_done, &never), store, "hibloom_add");
    assert_names(hibloom_async_drop(here, on_done, &never), store, "hibloom_drop");
    assert_names(hibloom_async_replace(here, "g", on_done, &never), store, "hibloom_replace");
    hibloom_close(here);
    hibloom_store_free(store);
    end_all(loop, async, filter);
    assert_int_equal(never.calls, 0);
}

static unsigned asked;

static void ask_again(hibloom_status status, void *filter)
{
    static bool found;

    if (++asked < 9)
        (void)!hibloom_async_contains(filter, "x", 1, &found, ask_again, filter);
}

/* The answers are there at once, and the function is called by the timer; also where the store goes first. */
static void on_memory_the_function_is_called_later(void **state)
{
    void *loop = loop_class->open();
    hibloom_store *async = async_store(loop, "memory:", NULL);
    hibloom *filter = async_filter(loop, async, "f", texts[0]), *copy = async_filter(loop, async, "g", texts[0]);
    struct outcome o, pending[3] = {0};
    bool yes = false;

    assert_ok(AWAIT(loop, &o, hibloom_async_add(filter, "x", 1, &yes, on_done, &o)), async);
    assert_true(yes);
    assert_ok(AWAIT(loop, &o, hibloom_async_merge(copy, filter, on_done, &o)), async);
    yes = false;
    assert_ok(AWAIT(loop, &o, hibloom_async_contains(copy, "x", 1, &yes, on_done, &o)), async);
    assert_true(yes);
    asked = 0;
    assert_ok(hibloom_async_contains(copy, "x", 1, &yes, ask_again, copy), async);
    hibloom_ready(async, -1, 0);
    assert_int_equal(asked, 1); /* what begins meanwhile waits */
    assert_int_equal(hibloom_async_open(&filter, async, "none", NULL, on_done, &o), HIBLOOM_ENOTFOUND);
    assert_ok(NOTHING_WITHIN(hibloom_async_add(filter, "y", 1, NULL, on_done, &pending[0])), async);
    assert_ok(NOTHING_WITHIN(hibloom_async_add(copy, "y", 1, NULL, on_done, &pending[1])), async);
    hibloom_close(filter);
    assert_true(pending[0].calls == 1 && pending[0].status == HIBLOOM_ECANCELED);
    assert_int_equal(pending[1].calls, 0);
    await(loop, &pending[1]);
    assert_int_equal(pending[1].status, HIBLOOM_OK);
    assert_ok(NOTHING_WITHIN(hibloom_async_drop(copy, on_done, &pending[2])), async);
    assert_int_equal(hibloom_async_contains_many(copy, NULL, 0, NULL, on_done, &o), HIBLOOM_ENOTFOUND);
    hibloom_store_free(async);
    assert_int_equal(pending[2].calls, 1);
    hibloom_close(copy);
    close_loop(loop);
}

static void what_is_wrong_is_refused(void **state)
{
    char name[TEST_NAME_SIZE];
    void *loop = loop_class->open();
    const hibloom_loop whole = loop_class->functions(loop);
    hibloom_loop half = whole;
    struct outcome never = {0};
    hibloom_store *none, *async = async_store(loop, test_uri(), NULL);
    hibloom *filter = async_filter(loop, async, test_name(name), texts[0]), *out;
    bool yes;

    assert_int_equal(hibloom_async_connect(&none, "nothing:", NULL, &whole), HIBLOOM_EINVAL);
    assert_int_equal(hibloom_async_open(&out, none, "x", NULL, on_done, &never), HIBLOOM_EINVAL);
    hibloom_ready(none, -1, 0);
    hibloom_store_free(none);
    half.timer = NULL;
    assert_int_equal(hibloom_async_connect(&none, test_uri(), NULL, &half), HIBLOOM_EINVAL);
    assert_words(none, "timer");
    hibloom_store_free(none);
    assert_int_equal(hibloom_async_connect(&none, test_uri(), NULL, NULL), HIBLOOM_EINVAL);
    hibloom_store_free(none);
    assert_int_equal(hibloom_async_borrow(&none, NULL, NULL), HIBLOOM_EINVAL);
    hibloom_store_free(none);
    assert_int_equal(hibloom_async_open(&out, async, "", NULL, on_done, &never), HIBLOOM_EINVAL);
    assert_int_equal(hibloom_async_open(&out, async, name, NULL, NULL, &never), HIBLOOM_EINVAL);
    assert_int_equal(hibloom_async_add(filter, NULL, 1, &yes, on_done, &never), HIBLOOM_EINVAL);
    assert_int_equal(hibloom_async_contains(filter, numbers, SIZE_MAX - 10, &yes, on_done, &never), HIBLOOM_ENOMEM);
    assert_int_equal(hibloom_async_expire(filter, UINT64_MAX, on_done, &never), HIBLOOM_ERANGE);
    hibloom_close(filter);
    hibloom_store_free(async);
    hibloom_ready(NULL, -1, 0);
    close_loop(loop);
    assert_int_equal(never.calls, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(very_many_items_are_in_flight),
        cmocka_unit_test(past_the_limit_calls_are_refused),
        cmocka_unit_test(the_other_calls_have_their_async_forms),
        cmocka_unit_test(the_wrong_kind_of_call_names_the_right_one),
        cmocka_unit_test(on_memory_the_function_is_called_later),
        cmocka_unit_test(what_is_wrong_is_refused),
    };

    return run_on_each_loop(tests, sizeof tests / sizeof *tests, set_up, NULL);
}
