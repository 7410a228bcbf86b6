/* Out of memory on an event loop, at every allocation in turn: the call that met it
 * is refused, or its function is called with ENOMEM; the store goes on, and nothing is
 * left allocated. */
#include "support/failing_memory.h"

#include "loops/subject.h"
#include "spec/spec.h"

static const char text[] = "capacity=10000 error=0.01 segments=3";
static void *loop;
static int attached;            /* connections, in this life */
static hibloom_item items[600]; /* more than one pipeline */
static uint32_t numbers[600];

static int set_up(void **state)
{
    number_items(items, numbers, 600);
    return 0;
}

/* How a call went: it must fail just if memory did. One of many items may do without what is only for speed. */
static bool went_well(hibloom_status accepted, struct outcome *outcome)
{
    if (accepted == HIBLOOM_OK)
        await(loop, outcome);
    else
        outcome->status = accepted;
    assert_int_equal(outcome->calls, accepted == HIBLOOM_OK);
    failed = failed && !(outcome->answers != NULL && outcome->status == HIBLOOM_OK);
    if (outcome->status != (failed ? HIBLOOM_ENOMEM : HIBLOOM_OK))
        print_error("status %d, failed %d\n", outcome->status, failed);
    assert_int_equal(outcome->status, failed ? HIBLOOM_ENOMEM : HIBLOOM_OK);
    return outcome->status == HIBLOOM_OK;
}

static void use(hibloom_async_filter *filter)
{
    static bool answers[600];
    struct outcome calls[6] = {{.answers = answers}, {.answers = answers}, {.answers = answers}, {0}, {0}, {0}};

    if (went_well(hibloom_async_add(filter, items, 600, true, on_answered, &calls[0]), &calls[0]) &&
        went_well(hibloom_async_add(filter, items, 600, false, on_answered, &calls[1]), &calls[1]) &&
        went_well(hibloom_async_contains(filter, items, 600, on_answered, &calls[2]), &calls[2])) {
        assert_null(memchr(answers, false, 600));
        (void)(went_well(hibloom_async_get_info(filter, on_counted, &calls[3]), &calls[3]) &&
               went_well(hibloom_async_expire(filter, 100000, on_done, &calls[4]), &calls[4]) &&
               went_well(hibloom_async_clear(filter, on_done, &calls[5]), &calls[5]));
    }
}

/* The adapter is compiled into this program, too. */
static int attach(struct redisAsyncContext *context, void *to)
{
    const long kept = countdown;

    countdown = 0;
    attached++;
    const int result = loop_class->attach(context, to);
    countdown = kept;
    return result;
}

static void use_store(const char *name)
{
    hibloom_async *async = NULL;
    const struct spec spec = test_spec(text);
    struct outcome opened = {0}, again = {0}, asked = {0}, dropped = {0};
    hibloom_status status = hibloom_async_connect(&async, test_uri(), NULL, attach, loop);

    assert_int_equal(status, failed ? HIBLOOM_ENOMEM : HIBLOOM_OK);
    if (status != HIBLOOM_OK) {
        assert_null(async);
        return;
    }
    if (went_well(hibloom_async_open(async, name, test_text(&spec), on_opened, &opened), &opened))
        use(opened.filter);
    countdown = 0;
    failed = false;
    if (opened.filter == NULL)
        assert_true(went_well(hibloom_async_open(async, name, test_text(&spec), on_opened, &again), &again));
    hibloom_async_filter *filter = opened.filter != NULL ? opened.filter : again.filter;
    assert_true(went_well(hibloom_async_contains(filter, items, 1, on_answered, &asked), &asked));
    assert_true(went_well(hibloom_async_drop(filter, on_done, &dropped), &dropped));
    hibloom_async_free(async);
}

/* With a loop of its own, which keeps what it has allocated until it is closed. */
static void live_once(const char *name, long nth)
{
    failed = reached = false;
    attached = 0;
    loop = loop_class->open();
    countdown = nth;
    use_store(name);
    countdown = 0;
    close_loop(loop);
}

static void every_allocation_may_fail(void **state)
{
    static int loops;
    const int step = test_is_slow() ? 3 : 1; /* each loop every third one */
    const char *name = TEST_NAME;
    int n = loops++ % step + 1 - step;

    if (!REPLACED)
        skip();
    live_once(name, 0); /* what libraries allocate once and keep */
    const long empty = live;
    live_once(name, 0);
    const long own = live - empty; /* of a connection: what hiredis allocates and its adapter frees */
    assert_true(own <= 0);
    do {
        const long before = live;
        live_once(name, n += step);
        assert_int_equal(live, before + own * attached);
        assert_in_range(n, 1, 1000);
    } while (reached);
    print_message("%s: some %d allocations\n", loop_class->name, n - step);
    assert_true(n > 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_allocation_may_fail)};

    return run_on_each_loop(tests, 1, set_up, NULL);
}
