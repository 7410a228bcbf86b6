/* Others have their turn: one event takes a few answers. */
#include "loops/subject.h"

#include <sys/ioctl.h>
#include <time.h>

static struct redis_server *server;
static bool found;
static hibloom_loop inner;
static int watched; /* the store's socket */

static int set_up(void **state)
{
    if (server == NULL)
        server = redis_server_start_tcp(NULL);
    return 0;
}

static int watch(void *data, int fd, int events, void **slot, hibloom_store *store)
{
    watched = events != 0 ? fd : watched;
    return inner.watch(data, fd, events, slot, store);
}

static size_t answered(const struct outcome *outcomes, size_t count)
{
    size_t calls = 0;

    for (size_t i = 0; i < count; i++)
        calls += outcomes[i].calls;
    return calls;
}

/* If each took its own out of the queue, they would take the program's time for 15 s or more. */
static void many_calls_learn_of_a_restart_at_once(void **state)
{
    enum { MANY = 30000 };
    static struct outcome outcomes[MANY];
    void *loop = loop_class->open();
    hibloom_store *async = async_store(loop, with_options(redis_server_uri(server), "retry=20s"), NULL);
    hibloom *filter = async_filter(loop, async, TEST_NAME, "bits=8192 hashes=4 seed=5eed");
    struct outcome look;

    assert_int_equal(AWAIT(loop, &look, hibloom_async_contains(filter, "x", 1, &found, on_done, &look)), HIBLOOM_OK);
    redis_server_kill(server);
    memset(outcomes, 0, sizeof outcomes);
    for (size_t i = 0; i < MANY; i++)
        assert_ok(hibloom_async_contains(filter, "x", 1, &found, on_done, &outcomes[i]), async);
    for (int turns = 0; turns < 20; turns++) /* they wait for another try */
        loop_class->turn(loop);
    redis_server_restart(server);
    const clock_t before = clock();
    await_all(loop, outcomes, MANY);
    assert_in_range(clock() - before, 0, 5 * CLOCKS_PER_SEC);
    for (size_t i = 0; i < MANY; i++)
        assert_int_equal(outcomes[i].status, HIBLOOM_ELOST);
    end_all(loop, async, filter);
}

/* Megabytes of answers are here, or follow. Behind a second of silence a guard's answer comes alone. */
static void one_event_takes_a_few_answers(void **state)
{
    enum { MANY = 20000, FEW = 1000, GUARD_BYTES = 1000, HERE = 64 << 10 };
    static struct outcome outcomes[MANY];
    void *loop = loop_class->open();
    int here = 0; /* bytes of answers */

    inner = loop_class->functions(loop);
    const hibloom_loop outer = {sizeof outer, inner.data, watch, inner.timer};
    hibloom_store *async = NULL;
    assert_ok(hibloom_async_connect(&async, redis_server_uri(server), NULL, &outer), async);
    hibloom *filter = async_filter(loop, async, TEST_NAME, "bits=8192 hashes=4 seed=5eed");
    memset(outcomes, 0, sizeof outcomes);
    for (size_t i = 0; i < MANY; i++)
        assert_ok(hibloom_async_contains(filter, "x", 1, &found, on_done, &outcomes[i]), async);
    hibloom_ready(async, watched, HIBLOOM_WRITE);
    for (int tries = 0; tries < 2000 && here < HERE; tries++) {
        test_sleep_ms(5);
        assert_int_equal(ioctl(watched, FIONREAD, &here), 0);
        if (here > 0 && here < GUARD_BYTES)
            hibloom_ready(async, watched, HIBLOOM_READ);
    }
    assert_true(here >= HERE);
    const size_t before = answered(outcomes, MANY);
    hibloom_ready(async, watched, HIBLOOM_READ);
    const size_t at_once = answered(outcomes, MANY) - before;
    assert_in_range(at_once, 1, FEW);
    await_all(loop, outcomes, MANY);
    end_all(loop, async, filter);
}

/* It reads the root, and then finds a link no more, since the filter has gone in between. */
static void a_repair_of_what_is_dropped_meanwhile_finds_nothing(void **state)
{
    void *loop = loop_class->open();
    hibloom_store *async = async_store(loop, redis_server_uri(server), NULL);
    hibloom_store *other = test_connect(redis_server_uri(server), NULL);

    for (int most = 0; most < 12; most++) {
        hibloom *filter = test_open(other, "dropped", "capacity=2 error=1e-6 growth=2");
        struct outcome repair = {0};
        for (int i = 0; i < 5; i++)
            assert_ok(hibloom_add(filter, &i, sizeof i, NULL), other);
        assert_ok(hibloom_async_repair(async, "dropped", on_done, &repair), async);
        for (int turns = 0; turns < most && repair.calls == 0; turns++)
            loop_class->turn(loop);
        assert_dropped(filter, other);
        await_all(loop, &repair, 1);
        assert_true(repair.status == HIBLOOM_OK || repair.status == HIBLOOM_ENOTFOUND);
    }
    hibloom_store_free(async);
    end_all(loop, other, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_calls_learn_of_a_restart_at_once),
        cmocka_unit_test(one_event_takes_a_few_answers),
        cmocka_unit_test(a_repair_of_what_is_dropped_meanwhile_finds_nothing),
    };
    const int result = run_on_each_loop(tests, sizeof tests / sizeof *tests, set_up, NULL);

    redis_server_stop(server);
    return result;
}
