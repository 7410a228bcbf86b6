/* A server that forgot: each handle from before is told once that another run of the
 * server is there, before anything is sent; then calls go on. */
#include "support/served.h"
#include "support/test.h"

#include <string.h>

enum { RETRY_MS = 5000 };

/* All keys survive its restarts: what is acknowledged was written to the file before.
 * (Once a second, as is usual, a write may wait for the last fsync.) */
#define KEEPS "--appendonly", "yes", "--appendfsync", "no"
static const char *const keeps[] = {KEEPS, NULL};

struct log {
    unsigned warnings, forgot; /* lines; of them those that say that a server forgot */
};

static void note(hibloom_log_level level, const char *line, void *data)
{
    struct log *log = data;

    log->warnings += level == HIBLOOM_LOG_WARNING;
    log->forgot += level == HIBLOOM_LOG_WARNING &&
                   strstr(line, "the server restarted, or another one took over") != NULL;
}

static hibloom_store *connect_with(const char *uri, uint32_t retry_ms, bool accept, struct log *log)
{
    const hibloom_setup setup = {.size = sizeof setup, .log = log != NULL ? note : NULL, .data = log};

    return test_connect(with_options(uri, "retry=%ums&accept_restarts=%s", retry_ms, accept ? "yes" : "no"), &setup);
}

static int set_up(void **state)
{
    server = redis_server_start(keeps);
    return served_set_up(state);
}

static void its_words_name_the_server_and_what_may_be_missing(void **state)
{
    hibloom_store *store = connect_with(redis_server_uri(server), 0, false, NULL);
    hibloom *filter = test_open(store, "words", "capacity=1000 error=0.000001");
    hibloom_info info;

    redis_server_restart(server);
    assert_status(hibloom_get_info(filter, &info, sizeof info), HIBLOOM_ELOST, store);
    assert_non_null(strstr(hibloom_store_error(store), redis_server_socket(server)));
    assert_non_null(strstr(hibloom_store_error(store), "restarted"));
    assert_non_null(strstr(hibloom_store_error(store), "adds that were acknowledged may be missing"));
    assert_string_not_equal(hibloom_strerror(HIBLOOM_ELOST), hibloom_strerror((hibloom_status)999));
    assert_false(hibloom_is_retryable(HIBLOOM_ELOST));
    assert_dropped(filter, store);
    hibloom_store_free(store);
}

/* Of a call over many filters, too: none has its items yet. */
static void each_of_many_handles_is_told_once(void **state)
{
    static const char *const names[] = {"a", "b", "c"};
    hibloom_store *store = connect_with(redis_server_uri(server), RETRY_MS, false, NULL);
    hibloom *filters[3];
    hibloom_status each[3];
    bool is_new[3];

    assert_ok(hibloom_open_many(filters, store, names, 3, "capacity=1000 error=0.000001", NULL), store);
    const hibloom_pair pairs[] = {{filters[0], {"x", 1}}, {filters[1], {"x", 1}}, {filters[2], {"x", 1}}};
    redis_server_restart(server);
    assert_status(hibloom_add(filters[1], "y", 1, NULL), HIBLOOM_ELOST, store);
    assert_ok(hibloom_add_pairs(pairs, 3, is_new, each), store);
    assert_status(each[0], HIBLOOM_ELOST, NULL);
    assert_status(each[1], HIBLOOM_OK, NULL);
    assert_status(each[2], HIBLOOM_ELOST, NULL);
    assert_true(is_new[1]);
    assert_ok(hibloom_add_pairs(pairs, 3, is_new, NULL), store);
    assert_true(is_new[0] && !is_new[1] && is_new[2]);
    for (int i = 0; i < 3; i++)
        assert_dropped(filters[i], store);
    hibloom_store_free(store);
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
        assert_int_equal(test_stats(store).restarts, i);
    }
    assert_dropped(filter, store);
    hibloom_store_free(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(its_words_name_the_server_and_what_may_be_missing),
        cmocka_unit_test(each_of_many_handles_is_told_once),
        cmocka_unit_test(who_accepts_restarts_gets_a_warning_in_the_log),
    };

    return cmocka_run_group_tests(tests, set_up, served_tear_down);
}
