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
        char name[TEST_NAME_SIZE];
        hibloom *filter = test_open(store, test_name(name), texts[i]);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(what_others_have_added_is_waited_for, resume),
    };
    const int result = run_on_each_loop(tests, 1, set_up, NULL);

    redis_server_stop(replica);
    redis_server_stop(primary);
    return result;
}
