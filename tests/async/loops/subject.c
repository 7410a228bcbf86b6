/* See subject.h. */
#include "subject.h"
#include "spec/spec.h"

const struct loop_class *loop_class = &loop_libevent;
bool within;

static struct outcome *called(void *data, hibloom_status status)
{
    struct outcome *outcome = data;

    assert_false(within);
    outcome->calls++;
    outcome->status = status;
    return outcome;
}

void on_opened(hibloom_status status, hibloom_async_filter *filter, void *data)
{
    assert_true((status == HIBLOOM_OK) == (filter != NULL));
    called(data, status)->filter = filter;
}

void on_answered(hibloom_status status, const bool *answers, size_t n, void *data)
{
    struct outcome *outcome = called(data, status);

    assert_true(status == HIBLOOM_OK || answers == NULL);
    outcome->n = n;
    if (answers != NULL && outcome->answers != NULL)
        memcpy(outcome->answers, answers, n);
}

void on_counted(hibloom_status status, const hibloom_info *info, void *data)
{
    struct outcome *outcome = called(data, status);

    assert_true((status == HIBLOOM_OK) == (info != NULL));
    if (info != NULL)
        outcome->info = *info;
}

void on_done(hibloom_status status, void *data)
{
    (void)called(data, status);
}

hibloom_status nothing_within(hibloom_status status)
{
    within = false;
    return status;
}

void await_all(void *loop, hibloom_async *async, const struct outcome *outcomes, size_t n)
{
    const uint64_t until = test_now_ms() + 60000;
    size_t answered = 0;

    while (answered < n) {
        assert_true(test_now_ms() < until);
        loop_class->turn(loop);
        if (async != NULL)
            hibloom_async_tick(async);
        while (answered < n && outcomes[answered].calls > 0)
            answered++;
        if (answered < n)
            usleep(20);
    }
}

void await(void *loop, const struct outcome *outcome)
{
    await_all(loop, NULL, outcome, 1);
}

void number_items(hibloom_item *items, uint32_t *numbers, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        numbers[i] = i;
        items[i] = (hibloom_item){&numbers[i], sizeof numbers[i]};
    }
}

hibloom_async *async_store(void *loop, const char *uri, const hibloom_setup *setup)
{
    hibloom_async *async = NULL;

    assert_ok(hibloom_async_connect(&async, uri, setup, loop_class->attach, loop), NULL);
    return async;
}

hibloom_async_filter *async_filter(void *loop, hibloom_async *async, const char *name, const char *text)
{
    const struct spec spec = test_spec(text);
    struct outcome opened = {0};

    assert_ok(NOTHING_WITHIN(hibloom_async_open(async, name, test_text(&spec), on_opened, &opened)), NULL);
    await(loop, &opened);
    if (opened.status != HIBLOOM_OK)
        print_error("%s\n", hibloom_async_error(async));
    assert_int_equal(opened.status, HIBLOOM_OK);
    return opened.filter;
}

void close_loop(void *loop)
{
    for (int i = 0; i < 10; i++)
        loop_class->turn(loop);
    loop_class->close(loop);
}

int run_on_each_loop(const struct CMUnitTest *tests, size_t n, CMFixtureFunction set_up, CMFixtureFunction tear_down)
{
    static const struct loop_class *const classes[] = {&loop_libevent, &loop_libuv, &loop_libev};
    int failed = 0;

    for (size_t i = 0; i < 3; i++) {
        loop_class = classes[i];
        failed += _cmocka_run_group_tests(loop_class->name, tests, n, set_up, tear_down);
    }
    return failed;
}
