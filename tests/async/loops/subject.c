/* See subject.h. */
#include "subject.h"
#include "spec/spec.h"

const struct loop_class *loop_class = &loop_libevent;
bool within;

void on_done(hibloom_status status, void *data)
{
    struct outcome *outcome = data;

    assert_false(within);
    outcome->calls++;
    outcome->status = status;
}

hibloom_status nothing_within(hibloom_status status)
{
    within = false;
    return status;
}

void await_all(void *loop, const struct outcome *outcomes, size_t n)
{
    const uint64_t until = test_now_ms() + 60000;
    size_t answered = 0;

    while (answered < n) {
        assert_true(test_now_ms() < until);
        loop_class->turn(loop);
        while (answered < n && outcomes[answered].calls > 0)
            answered++;
        if (answered < n)
            usleep(20);
    }
}

void await(void *loop, const struct outcome *outcome)
{
    await_all(loop, outcome, 1);
}

void number_items(hibloom_item *items, uint32_t *numbers, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        numbers[i] = i;
        items[i] = (hibloom_item){&numbers[i], sizeof numbers[i]};
    }
}

hibloom_status await_call(void *loop, const struct outcome *outcome, hibloom_status accepted)
{
    if (accepted != HIBLOOM_OK)
        return accepted;
    await(loop, outcome);
    assert_int_equal(outcome->calls, 1);
    return outcome->status;
}

hibloom_store *async_store(void *loop, const char *uri, const hibloom_setup *setup)
{
    const hibloom_loop functions = loop_class->functions(loop);
    hibloom_store *store = NULL;

    assert_ok(hibloom_async_connect(&store, uri, setup, &functions), store);
    return store;
}

hibloom *async_filter(void *loop, hibloom_store *store, const char *name, const char *text)
{
    const struct spec spec = test_spec(text);
    struct outcome opened;
    hibloom *filter = NULL;

    assert_ok(AWAIT(loop, &opened, hibloom_async_open(&filter, store, name, test_text(&spec), on_done, &opened)),
              store);
    assert_non_null(filter);
    return filter;
}

void close_loop(void *loop)
{
    for (int i = 0; i < 10; i++)
        loop_class->turn(loop);
    loop_class->close(loop);
}

void end_all(void *loop, hibloom_store *store, hibloom *filter)
{
    hibloom_store_free(store);
    hibloom_close(filter);
    close_loop(loop);
}

int run_on_loops(size_t loops, const struct CMUnitTest *tests, size_t n, CMFixtureFunction set_up,
                 CMFixtureFunction tear_down)
{
    static const struct loop_class *const classes[] = {&loop_libevent, &loop_libuv, &loop_libev, &loop_poll};
    int failed = 0;

    for (size_t i = 0; i < loops; i++) {
        loop_class = classes[i];
        failed += _cmocka_run_group_tests(loop_class->name, tests, n, set_up, tear_down);
    }
    return failed;
}
