/* min_replicas on an event loop, where the add has nothing to write: somebody else has just added the item, and the
 * replica does not have it yet. See tests/redis/waited.c. */
#include "loops/subject.h"

static const hibloom_connect_options careful = {.size = sizeof careful, .min_replicas = 1, .replicas_ms = 100},
                                     patient = {.size = sizeof patient, .min_replicas = 1, .retry_ms = 20000};

static struct redis_server *primary, *replica;

static bool is_in_sync(const void *of)
{
    return redis_server_is_in_sync(of);
}

static int set_up(void **state)
{
    signal(SIGPIPE, SIG_IGN);
    if (primary != NULL)
        return 0;
    primary = redis_server_start_tcp(NULL);
    replica = redis_server_start_tcp(NULL);
    freeReplyObject(redis_server_must(replica, "REPLICAOF 127.0.0.1 %d", redis_server_port(primary)));
    redis_server_wait(replica, is_in_sync, replica, "the replica has not come up");
    return 0;
}

static int resume(void **state)
{
    redis_server_resume(replica);
    return 0;
}

static hibloom_status add(const hibloom_connect_options *options, const char *name, const char *text)
{
    void *loop = loop_class->open();
    hibloom_async *async = async_store(loop, redis_server_uri(primary), options);
    hibloom_async_filter *filter = async_filter(loop, async, name, text);
    struct outcome added = {0};

    assert_ok(hibloom_async_add(filter, &(hibloom_item){"x", 1}, 1, true, on_answered, &added), NULL);
    await_all(loop, async, &added, 1);
    hibloom_async_close(filter);
    hibloom_async_free(async);
    close_loop(loop);
    return added.status;
}

static void what_others_have_added_is_waited_for(void **state)
{
    static const char *const texts[] = {"bits=8192 hashes=4 seed=5eed", "capacity=100 error=0.01 growth=2 seed=5eed"};
    hibloom_store *store = test_connect(redis_server_uri(primary), NULL);

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const char *name = TEST_NAME;
        hibloom *filter = test_open(store, name, texts[i]);
        redis_server_pause(replica);
        assert_ok(hibloom_add(filter, "x", 1, NULL), store);
        assert_int_equal(add(&careful, name, texts[i]), HIBLOOM_EUNAVAILABLE);
        redis_server_resume(replica);
        assert_int_equal(add(&patient, name, texts[i]), HIBLOOM_OK);
        assert_ok(hibloom_drop(filter), store);
        hibloom_close(filter);
    }
    hibloom_store_free(store);
}

enum { CALLS = 500, REPLICAS_MS = 200, RETRY_MS = 2000, WITHIN_MS = 8000 };

static long long waits(void)
{
    struct redisContext *own = redis_server_connect(primary);
    const long long calls = redis_server_calls_of(own, "wait");

    redisFree(own);
    return calls;
}

/* So many adds at once, each a call of its own, and a look-up behind them; how often the server has run WAIT for them. */
static long long add_all(hibloom_status expected)
{
    const hibloom_connect_options options = {
        .size = sizeof options, .min_replicas = 1, .replicas_ms = REPLICAS_MS, .retry_ms = RETRY_MS};
    char name[TEST_NAME_SIZE];
    uint32_t numbers[CALLS];
    hibloom_item items[CALLS];
    struct outcome outcomes[CALLS + 1] = {0};
    void *loop = loop_class->open();
    hibloom_async *async = async_store(loop, redis_server_uri(primary), &options);
    hibloom_async_filter *filter = async_filter(loop, async, test_name(name), "bits=8192 hashes=4 seed=5eed");
    const long long before = waits();
    const uint64_t since = test_now_ms();

    hibloom_async_tick(async);
    number_items(items, numbers, CALLS);
    for (size_t i = 0; i < CALLS; i++) {
        assert_ok(hibloom_async_add(filter, &items[i], 1, true, on_answered, &outcomes[i]), NULL);
        loop_class->turn(loop);
    }
    assert_ok(hibloom_async_contains(filter, items, 1, on_answered, &outcomes[CALLS]), NULL);
    await_all(loop, async, &outcomes[CALLS], 1);
    assert_true(test_now_ms() - since < WITHIN_MS);
    await_all(loop, async, outcomes, CALLS);
    assert_true(test_now_ms() - since < WITHIN_MS);
    assert_int_equal(outcomes[CALLS].status, HIBLOOM_OK);
    for (size_t i = 0; i < CALLS; i++)
        assert_int_equal(outcomes[i].status, expected);
    hibloom_async_free(async);
    close_loop(loop);
    return waits() - before;
}

/* WAIT stops the connection that all calls of a store share. */
static void many_calls_share_one_wait_and_end_by_their_bound(void **state)
{
    redis_server_pause(replica);
    assert_in_range(add_all(HIBLOOM_EUNAVAILABLE), 2, 4 * RETRY_MS / REPLICAS_MS);
    redis_server_resume(replica);
    assert_in_range(add_all(HIBLOOM_OK), 1, CALLS / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(what_others_have_added_is_waited_for, resume),
        cmocka_unit_test_teardown(many_calls_share_one_wait_and_end_by_their_bound, resume),
    };
    const int result = run_on_each_loop(tests, sizeof tests / sizeof *tests, set_up, NULL);

    redis_server_stop(replica);
    redis_server_stop(primary);
    return result;
}
