/* One call over many filters on a loop: its answers, and one that is gone. One that is closed meanwhile is simulated. */
#include "loops/subject.h"

enum { FILTERS = 500 };

static const char text[] = "capacity=100 error=0.0001";
static char rooms[FILTERS][TEST_NAME_SIZE + 8];
static const char *names[FILTERS];
static hibloom *filters[FILTERS];
static hibloom_pair pairs[FILTERS];
static hibloom_status each[FILTERS];
static bool answers[FILTERS];
static void *loop;
static hibloom_store *async;

static int open_all(void **state)
{
    char prefix[TEST_NAME_SIZE];
    struct outcome o;

    loop = loop_class->open();
    async = async_store(loop, *state != NULL ? *state : test_uri(), NULL);
    test_name(prefix);
    for (int i = 0; i < FILTERS; i++) {
        snprintf(rooms[i], sizeof rooms[i], "%s:%d", prefix, i);
        names[i] = rooms[i];
    }
    assert_ok(AWAIT(loop, &o, hibloom_async_open_many(filters, async, names, FILTERS, text, NULL, on_done, &o)), async);
    for (int i = 0; i < FILTERS; i++)
        pairs[i] = (hibloom_pair){filters[i], {"x", 1}};
    return 0;
}

static void close_all(void)
{
    hibloom_store_free(async);
    for (int i = 0; i < FILTERS; i++)
        hibloom_close(filters[i]);
    close_loop(loop);
}

/* On Redis, and in memory. */
static void one_that_is_gone_fails_alone(void **state)
{
    struct outcome o;

    for (int memory = 0; memory < 2; memory++) {
        *state = memory ? "memory:" : NULL;
        open_all(state);
        assert_ok(AWAIT(loop, &o, hibloom_async_add_pairs(pairs, FILTERS, answers, NULL, on_done, &o)), async);
        assert_int_equal(test_count_true(answers, FILTERS), FILTERS);
        const uint64_t before = test_stats(async).round_trips;
        assert_ok(AWAIT(loop, &o, hibloom_async_contains_pairs(pairs, FILTERS, answers, NULL, on_done, &o)), async);
        /* and one more if a second has passed, to ask which run the server is */
        assert_in_range(test_stats(async).round_trips - before, !memory, 2 * !memory);
        assert_int_equal(test_count_true(answers, FILTERS), FILTERS);
        assert_ok(AWAIT(loop, &o, hibloom_async_drop(filters[77], on_done, &o)), async);
        assert_ok(AWAIT(loop, &o, hibloom_async_contains_pairs(pairs, FILTERS, answers, each, on_done, &o)), async);
        for (int i = 0; i < FILTERS; i++)
            assert_true(i == 77 ? each[i] == HIBLOOM_ENOTFOUND : each[i] == HIBLOOM_OK && answers[i]);
        memset(answers, false, sizeof answers);
        assert_int_equal(AWAIT(loop, &o, hibloom_async_contains_pairs(pairs, FILTERS, answers, NULL, on_done, &o)),
                         HIBLOOM_ENOTFOUND);
        assert_words(async, names[77]);
        assert_int_equal(test_count_true(answers, FILTERS), 0);
        close_all();
    }
}

static void add_pairs(hibloom_status status, void *outcome)
{
    assert_int_equal(status, HIBLOOM_ECANCELED);
    *(hibloom_status *)outcome = hibloom_async_add_pairs(pairs, 2, answers, each, on_done, NULL);
}

/* In memory, where a call ends as it begins. On Redis it is simulated. */
static void a_handle_that_is_being_closed_takes_no_pair(void **state)
{
    hibloom_status status = HIBLOOM_OK;
    bool found;

    *state = "memory:";
    open_all(state);
    assert_ok(hibloom_async_contains(filters[0], "x", 1, &found, add_pairs, &status), async);
    hibloom_close(filters[0]);
    filters[0] = NULL;
    assert_int_equal(status, HIBLOOM_ECANCELED);
    assert_int_equal(each[0], HIBLOOM_ECANCELED);
    assert_int_equal(each[1], HIBLOOM_OK);
    close_all();
}

static void a_refused_call_calls_nothing(void **state)
{
    struct outcome never = {0};
    hibloom *out[1] = {NULL};

    *state = NULL;
    open_all(state);
    assert_int_equal(hibloom_async_contains_pairs(pairs, 0, answers, each, on_done, &never), HIBLOOM_EINVAL);
    assert_int_equal(hibloom_async_open_many(out, async, names, 1, "capacity=ten", each, on_done, &never),
                     HIBLOOM_EINVAL);
    assert_int_equal(each[0], HIBLOOM_EINVAL);
    assert_int_equal(hibloom_contains_pairs(pairs, 1, answers, each), HIBLOOM_ENOTSUP);
    assert_words(async, "hibloom_async_contains_pairs");
    assert_int_equal(test_stats(async).in_flight, 0);
    close_all();
    assert_int_equal(never.calls, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_that_is_gone_fails_alone),
        cmocka_unit_test(a_handle_that_is_being_closed_takes_no_pair),
        cmocka_unit_test(a_refused_call_calls_nothing),
    };

    return run_on_each_loop(tests, sizeof tests / sizeof *tests, NULL, NULL);
}
