/* Out of memory on an event loop, at every allocation in turn: the call that met it is refused, or its function is
 * called with ENOMEM; the store goes on, and nothing is left allocated. */
#include "support/failing_memory.h"

#include "loops/subject.h"
#include "spec/spec.h"

#include <hiredis/async.h>
#include <signal.h>

static const char text[] = "capacity=10000 error=0.01 segments=3";
static void *loop;
static hibloom_item items[600]; /* more than one pipeline */
static uint32_t numbers[600];

static int set_up(void **state)
{
    number_items(items, numbers, 600);
    return 0;
}

/* How a call went: it must fail just if memory did. One of many items may do without what is only for speed. */
static bool went_well(hibloom_status accepted, struct outcome *outcome, bool spares)
{
    if (accepted == HIBLOOM_OK)
        await(loop, outcome);
    else
        outcome->status = accepted;
    assert_int_equal(outcome->calls, accepted == HIBLOOM_OK);
    failed = failed && !(spares && outcome->status == HIBLOOM_OK);
    if (outcome->status != (failed ? HIBLOOM_ENOMEM : HIBLOOM_OK))
        print_error("status %d, failed %d\n", outcome->status, failed);
    assert_int_equal(outcome->status, failed ? HIBLOOM_ENOMEM : HIBLOOM_OK);
    return outcome->status == HIBLOOM_OK;
}

static void use(hibloom *filter)
{
    static bool answers[600];
    struct outcome calls[6] = {{0}};
    hibloom_info info;

    if (went_well(hibloom_async_add_many(filter, items, 600, answers, on_done, &calls[0]), &calls[0], true) &&
        went_well(hibloom_async_add_many(filter, items, 600, NULL, on_done, &calls[1]), &calls[1], true) &&
        went_well(hibloom_async_contains_many(filter, items, 600, answers, on_done, &calls[2]), &calls[2], true)) {
        assert_null(memchr(answers, false, 600));
        (void)(went_well(hibloom_async_get_info(filter, &info, sizeof info, on_done, &calls[3]), &calls[3], false) &&
               went_well(hibloom_async_expire(filter, 100000, on_done, &calls[4]), &calls[4], false) &&
               went_well(hibloom_async_clear(filter, on_done, &calls[5]), &calls[5], false));
    }
}

/* The adapter is compiled into this program, too. What it allocates does not fail. */
static hibloom_loop inner;

static int watch(void *data, int fd, int events, void **slot, hibloom_store *store)
{
    const long kept = countdown;

    countdown = 0;
    const int result = inner.watch(data, fd, events, slot, store);
    countdown = kept;
    return result;
}

static int set_timer(void *data, int64_t ms, void **slot, hibloom_store *store)
{
    const long kept = countdown;

    countdown = 0;
    const int result = inner.timer(data, ms, slot, store);
    countdown = kept;
    return result;
}

static void use_store(const char *name)
{
    hibloom_store *async = NULL;
    hibloom *filter = NULL;
    const struct spec spec = test_spec(text);
    const hibloom_loop outer = {sizeof outer, inner.data, watch, set_timer};
    struct outcome opened = {0}, again = {0}, asked = {0}, dropped = {0};
    bool found;
    hibloom_status status = hibloom_async_connect(&async, test_uri(), NULL, &outer);

    assert_int_equal(status, failed ? HIBLOOM_ENOMEM : HIBLOOM_OK);
    if (status != HIBLOOM_OK) {
        assert_null(async);
        return;
    }
    if (went_well(hibloom_async_open(&filter, async, name, test_text(&spec), on_done, &opened), &opened, true))
        use(filter);
    countdown = 0;
    failed = false;
    if (filter == NULL)
        assert_true(
            went_well(hibloom_async_open(&filter, async, name, test_text(&spec), on_done, &again), &again, true));
    assert_true(went_well(hibloom_async_contains(filter, "x", 1, &found, on_done, &asked), &asked, false));
    assert_true(went_well(hibloom_async_drop(filter, on_done, &dropped), &dropped, false));
    hibloom_store_free(async);
    hibloom_close(filter);
}

/* With a loop of its own, which keeps what it has allocated until it is closed. */
static void live_once(const char *name, long nth)
{
    failed = reached = false;
    loop = loop_class->open();
    inner = loop_class->functions(loop);
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
    do {
        const long before = live;
        live_once(name, n += step);
        assert_int_equal(live, before);
        assert_in_range(n, 1, 1000);
    } while (reached);
    print_message("%s: some %d allocations\n", loop_class->name, n - step);
    assert_true(n > 30);
}

/* A command that is too long for memory is lost, and so is the connection's pipe: no call waits for ever. */
static void lent_once(struct redis_server *server, long nth)
{
    const struct spec spec = test_spec("capacity=10000 error=0.01");
    hibloom_store *async = NULL;
    hibloom *filter = NULL;
    struct outcome opened = {0}, dropped;

    failed = reached = false;
    loop = loop_class->open();
    redisAsyncContext *context = redisAsyncConnectUnix(redis_server_socket(server));
    assert_int_equal(loop_class->attach(context, loop), REDIS_OK);
    countdown = nth;
    const hibloom_status status = hibloom_async_borrow(&async, context, NULL);
    assert_int_equal(status, failed ? HIBLOOM_ENOMEM : HIBLOOM_OK);
    if (async != NULL &&
        went_well(hibloom_async_open(&filter, async, "f", test_text(&spec), on_done, &opened), &opened, true))
        use(filter);
    countdown = 0;
    if (filter != NULL)
        assert_ok(AWAIT(loop, &dropped, hibloom_async_drop(filter, on_done, &dropped)), async);
    hibloom_store_free(async);
    hibloom_close(filter);
    redisAsyncFree(context);
    close_loop(loop);
}

static void every_allocation_may_fail_on_a_borrowed_connection(void **state)
{
    if (!REPLACED || loop_class->attach == NULL)
        skip();
    struct redis_server *server = redis_server_start(NULL);
    long n = 0;

    signal(SIGPIPE, SIG_IGN);
    do
        lent_once(server, ++n);
    while (reached && n < 1000);
    redis_server_stop(server);
    print_message("%s: some %ld allocations\n", loop_class->name, n);
    assert_in_range(n, 30, 999);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_allocation_may_fail),
                                       cmocka_unit_test(every_allocation_may_fail_on_a_borrowed_connection)};

    return run_on_each_loop(tests, 2, set_up, NULL);
}
