/* A server that forgot: each handle from before is told once that another run of the
 * server is there, before anything is sent; then calls go on. */
#include "support/redis_server.h"
#include "support/test.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>

enum { RETRY_MS = 5000 };

/* All keys survive its restarts: what is acknowledged was written to the file before.
 * (Once a second, as is usual, a write may wait for the last fsync.) */
#define KEEPS "--appendonly", "yes", "--appendfsync", "no"
static const char *const keeps[] = {KEEPS, NULL};

static struct redis_server *server;

struct log {
    unsigned warnings, forgot; /* lines; of them those that say that a server forgot */
};

static void note(hibloom_log_level level, const char *line, void *data)
{
    struct log *log = data;

    log->warnings += level == HIBLOOM_LOG_WARNING;
    log->forgot += level == HIBLOOM_LOG_WARNING && strstr(line, "another run of the server") != NULL;
}

static hibloom_store *connect_with(const char *uri, uint32_t retry_ms, bool accept, struct log *log)
{
    hibloom_connect_options options = HIBLOOM_CONNECT_OPTIONS_INIT;

    options.retry_ms = retry_ms;
    options.accept_restarts = accept;
    options.on_log = log != NULL ? note : NULL;
    options.data = log;
    return test_connect(uri, &options);
}

static uint64_t restarts_of(const hibloom_store *store)
{
    hibloom_stats stats;

    hibloom_get_stats(store, &stats);
    return stats.restarts;
}

static int set_up(void **state)
{
    server = redis_server_start(keeps);
    return 0;
}

static int tear_down(void **state)
{
    redis_server_stop(server);
    return 0;
}

static long long calls_of(const char *command)
{
    redisContext *redis = redis_server_connect(server);
    const long long calls = redis_server_calls_of(redis, command);

    redisFree(redis);
    return calls;
}

static void each_handle_is_told_once_and_no_new_one(void **state)
{
    for (uint32_t retry_ms = 0; retry_ms <= RETRY_MS; retry_ms += RETRY_MS) {
        hibloom_store *store = connect_with(redis_server_uri(server), retry_ms, false, NULL);
        hibloom *one = test_open(store, "one", "capacity=1000 error=0.000001");
        hibloom *two = test_open(store, "two", "capacity=1000 error=0.000001 segments=3");
        bool found, is_new;

        for (int i = 0; i < 2; i++) {
            assert_ok(hibloom_add(one, "x", 1, NULL), store);
            assert_ok(hibloom_add(two, "x", 1, NULL), store);
            redis_server_restart(server);
            assert_status(hibloom_contains(one, "x", 1, &found), HIBLOOM_ELOST, store);
            hibloom *since = test_open(store, "one", "capacity=1000 error=0.000001");
            assert_ok(hibloom_contains(since, "x", 1, &found), store);
            hibloom_close(since);
            assert_ok(hibloom_contains(one, "x", 1, &found), store);
            assert_true(found);
            assert_status(hibloom_add(two, "y", 1, &is_new), HIBLOOM_ELOST, store);
            assert_ok(hibloom_add(two, "y", 1, &is_new), store);
            assert_int_equal(is_new, i == 0);
            assert_int_equal(restarts_of(store), i + 1);
        }
        assert_ok(hibloom_drop(one), store);
        assert_ok(hibloom_drop(two), store);
        hibloom_close(one);
        hibloom_close(two);
        hibloom_store_free(store);
    }
}

/* The new run of the server has seen no command of it when it is said. */
static void it_is_said_before_anything_is_sent(void **state)
{
    hibloom_store *store = connect_with(redis_server_uri(server), 0, false, NULL);
    hibloom *filter = test_open(store, "unsent", "capacity=1000 error=0.000001");
    bool is_new;

    redis_server_restart(server);
    assert_status(hibloom_add(filter, "x", 1, &is_new), HIBLOOM_ELOST, store);
    assert_int_equal(calls_of("bitfield"), 0);
    assert_int_equal(calls_of("setbit"), 0);
    assert_int_equal(calls_of("getrange"), 0);
    assert_ok(hibloom_add(filter, "x", 1, &is_new), store);
    assert_true(is_new);
    assert_ok(hibloom_drop(filter), store);
    hibloom_close(filter);
    hibloom_store_free(store);
}

static void its_words_name_the_server_and_what_may_be_missing(void **state)
{
    hibloom_store *store = connect_with(redis_server_uri(server), 0, false, NULL);
    hibloom *filter = test_open(store, "words", "capacity=1000 error=0.000001");
    hibloom_info info;

    redis_server_restart(server);
    assert_status(hibloom_get_info(filter, &info), HIBLOOM_ELOST, store);
    assert_non_null(strstr(hibloom_store_error(store), redis_server_socket(server)));
    assert_non_null(strstr(hibloom_store_error(store), "restarted"));
    assert_non_null(strstr(hibloom_store_error(store), "adds that were acknowledged may be missing"));
    assert_string_not_equal(hibloom_strerror(HIBLOOM_ELOST), hibloom_strerror((hibloom_status)999));
    assert_false(hibloom_is_retryable(HIBLOOM_ELOST));
    assert_ok(hibloom_drop(filter), store);
    hibloom_close(filter);
    hibloom_store_free(store);
}

static void each_kind_of_call_on_a_handle_says_it(void **state)
{
    enum { KINDS = 8 };

    for (int kind = 0; kind < KINDS; kind++) {
        hibloom_store *store = connect_with(redis_server_uri(server), RETRY_MS, false, NULL);
        hibloom *filter = test_open(store, "kinds", "bits=1000 hashes=4 seed=7");
        hibloom *other = test_open(store, "other", "bits=1000 hashes=4 seed=7");
        hibloom_comparison comparison;
        hibloom_info info;
        bool answer;

        redis_server_restart(server);
        const hibloom_status status = kind == 0   ? hibloom_add(filter, "x", 1, NULL)
                                      : kind == 1 ? hibloom_contains(filter, "x", 1, &answer)
                                      : kind == 2 ? hibloom_get_info(filter, &info)
                                      : kind == 3 ? hibloom_clear(filter)
                                      : kind == 4 ? hibloom_expire(filter, 1000)
                                      : kind == 5 ? hibloom_merge(filter, other)
                                      : kind == 6 ? hibloom_compare(filter, other, &comparison)
                                                  : hibloom_drop(filter);
        assert_status(status, HIBLOOM_ELOST, store);
        assert_ok(hibloom_delete(store, "kinds"), store); /* by name: there is no handle to be told */
        assert_ok(hibloom_delete(store, "other"), store);
        hibloom_close(filter);
        hibloom_close(other);
        hibloom_store_free(store);
    }
}

static void who_accepts_restarts_gets_a_warning_in_the_log(void **state)
{
    struct log log = {0};
    hibloom_store *store = connect_with(redis_server_uri(server), RETRY_MS, true, &log);
    hibloom *filter = test_open(store, "accepts", "capacity=1000 error=0.000001");
    bool is_new;

    assert_int_equal(log.warnings, 0);
    for (unsigned i = 1; i <= 2; i++) {
        redis_server_restart(server);
        assert_ok(hibloom_add(filter, &i, sizeof i, &is_new), store);
        assert_true(is_new);
        assert_int_equal(log.forgot, i);
        assert_int_equal(restarts_of(store), i);
    }
    assert_ok(hibloom_drop(filter), store);
    hibloom_close(filter);
    hibloom_store_free(store);
}

/* What is said is that adds may be missing; then that they are. */
static void a_server_that_comes_back_empty_has_no_filter(void **state)
{
    struct redis_server *empty = redis_server_start(NULL);
    hibloom_store *store = connect_with(redis_server_uri(empty), RETRY_MS, false, NULL);
    hibloom *filter = test_open(store, "empty", "capacity=1000 error=0.000001");
    bool found;

    assert_ok(hibloom_add(filter, "x", 1, NULL), store);
    redis_server_restart(empty);
    assert_status(hibloom_contains(filter, "x", 1, &found), HIBLOOM_ELOST, store);
    assert_status(hibloom_contains(filter, "x", 1, &found), HIBLOOM_ENOTFOUND, store);
    hibloom_close(filter);
    hibloom_store_free(store);
    redis_server_stop(empty);
}

/* A user who may do everything but ask who the server is. The user is one of the
 * command line, so that a restart keeps it. */
static void who_may_not_ask_for_the_run_is_never_told(void **state)
{
    static const char *const blind[] = {KEEPS, "--user", "blind", "on", ">pw", "~*", "&*", "+@all", "-info", NULL};
    struct redis_server *own = redis_server_start_tcp(blind);
    char uri[64];
    bool found;

    snprintf(uri, sizeof uri, "redis://blind:pw@127.0.0.1:%d", redis_server_port(own));
    hibloom_store *store = connect_with(uri, RETRY_MS, false, NULL);
    hibloom *filter = test_open(store, "blind", "capacity=1000 error=0.000001");
    assert_ok(hibloom_add(filter, "x", 1, NULL), store);
    redis_server_restart(own);
    assert_ok(hibloom_contains(filter, "x", 1, &found), store);
    assert_true(found);
    assert_int_equal(restarts_of(store), 0);
    hibloom_close(filter);
    hibloom_store_free(store);
    redis_server_stop(own);
}

static void a_connection_that_was_only_lost_is_no_restart(void **state)
{
    hibloom_store *store = connect_with(redis_server_uri(server), RETRY_MS, false, NULL);
    hibloom *filter = test_open(store, "same", "capacity=1000 error=0.000001");
    redisContext *redis = redis_server_connect(server);
    hibloom_stats stats;
    bool found;

    assert_true(test_command(redis, "CLIENT KILL TYPE normal SKIPME yes") > 0);
    redisFree(redis);
    assert_ok(hibloom_contains(filter, "x", 1, &found), store);
    hibloom_get_stats(store, &stats);
    assert_int_equal(stats.connections, 2);
    assert_int_equal(stats.restarts, 0);
    assert_ok(hibloom_drop(filter), store);
    hibloom_close(filter);
    hibloom_store_free(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_handle_is_told_once_and_no_new_one),
        cmocka_unit_test(it_is_said_before_anything_is_sent),
        cmocka_unit_test(its_words_name_the_server_and_what_may_be_missing),
        cmocka_unit_test(each_kind_of_call_on_a_handle_says_it),
        cmocka_unit_test(who_accepts_restarts_gets_a_warning_in_the_log),
        cmocka_unit_test(a_server_that_comes_back_empty_has_no_filter),
        cmocka_unit_test(who_may_not_ask_for_the_run_is_never_told),
        cmocka_unit_test(a_connection_that_was_only_lost_is_no_restart),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
