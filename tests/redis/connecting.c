/* Options of connections: the hook sees a new one, TCP asks by itself, and the log has its lines.
 * Replicas: min_replicas writes a byte over itself in front of WAIT (docs/format.md, 8), so a user needs EVAL and SETRANGE.
 * Restarts: each older handle gets ELOST once, before it sends anything; then calls go on. */
#include "support/acl_lines.h"
#include "support/served.h"
#include "support/test.h"

#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

struct seen {
    unsigned connections;
    int keep_alive, idle_s;
    unsigned lines[3];
    char last[1200];
};

static void on_connect(struct redisContext *context, void *data)
{
    struct seen *seen = data;
    socklen_t size = sizeof(int);

    seen->connections++;
    assert_int_equal(context->err, 0);
    assert_int_equal(fcntl(context->fd, F_GETFD), FD_CLOEXEC);
    assert_int_equal(getsockopt(context->fd, SOL_SOCKET, SO_KEEPALIVE, &seen->keep_alive, &size), 0);
    assert_int_equal(getsockopt(context->fd, IPPROTO_TCP, TCP_KEEPIDLE, &seen->idle_s, &size), 0);
}

static void on_log(hibloom_log_level level, const char *line, void *data)
{
    struct seen *seen = data;

    assert_true(level <= HIBLOOM_LOG_INFO);
    seen->lines[level]++;
    strncpy(seen->last, line, sizeof seen->last - 1);
}

static hibloom_store *connect_seen(struct seen *seen, uint32_t keepalive_s)
{
    const hibloom_setup setup = {.size = sizeof setup, .connected = on_connect, .log = on_log, .data = seen};

    return test_connect(with_options(redis_server_uri(server), "client_name=seen-by-test&keepalive=%us", keepalive_s),
                        &setup);
}

static void the_hook_sees_each_connection_as_the_options_want_it(void **state)
{
    struct seen seen = {0};
    hibloom_store *store = connect_seen(&seen, 77);
    hibloom *filter = test_open(store, "hooked", "capacity=100 error=0.01");
    bool found;

    assert_int_equal(seen.connections, 1);
    assert_true(seen.keep_alive != 0);
    assert_int_equal(seen.idle_s, 77);
    assert_true(test_command(redis, "CLIENT KILL TYPE normal SKIPME yes") >= 1);
    assert_ok(hibloom_contains(filter, "x", 1, &found), store);
    assert_int_equal(seen.connections, 2);
    assert_dropped_last(filter, store);
}

static void without_a_wish_the_system_decides(void **state)
{
    struct seen seen = {0};
    hibloom_store *store = connect_seen(&seen, 0);

    assert_int_equal(seen.connections, 1);
    assert_int_equal(seen.keep_alive, 0);
    hibloom_store_free(store);
}

static void the_log_tells_connections_and_failures(void **state)
{
    struct seen seen = {0};
    hibloom_store *store = connect_seen(&seen, 0);
    hibloom *filter = NULL;

    assert_int_equal(seen.lines[HIBLOOM_LOG_INFO], 1);
    assert_int_equal(seen.lines[HIBLOOM_LOG_ERROR], 0);
    assert_status(hibloom_open(&filter, store, "absent", NULL), HIBLOOM_ENOTFOUND, store);
    assert_int_equal(seen.lines[HIBLOOM_LOG_ERROR], 1);
    assert_string_equal(seen.last, hibloom_store_error(store));
    assert_status(hibloom_open(&filter, store, "absent", NULL), HIBLOOM_ENOTFOUND, store);
    assert_int_equal(seen.lines[HIBLOOM_LOG_ERROR], 1);
    filter = test_open(store, "there", "capacity=100 error=0.01");
    assert_dropped(filter, store);
    assert_status(hibloom_open(&filter, store, "absent", NULL), HIBLOOM_ENOTFOUND, store);
    assert_int_equal(seen.lines[HIBLOOM_LOG_ERROR], 2);
    hibloom_store_free(store);
}

/* They must not end before they begin. The server answers late, and refuses for a while. */
static void the_longest_waits_that_can_be_asked_for_are_long(void **state)
{
    hibloom_store *store = test_connect(
        with_options(redis_server_uri(server), "connect_timeout=24d&command_timeout=24d&retry=24d&keepalive=9h"), NULL);
    hibloom *filter = test_open(store, "patient", "capacity=100 error=0.01");
    bool found;

    hibloom_store_deadline(store, UINT32_MAX);
    test_command(redis, "CLIENT PAUSE 300 ALL");
    assert_ok(hibloom_contains(filter, "x", 1, &found), store);
    assert_true(test_command(redis, "CLIENT KILL TYPE normal SKIPME yes") >= 1);
    assert_ok(hibloom_contains(filter, "x", 1, &found), store);
    assert_dropped_last(filter, store);
}

/* A server that is reached late finds guards that are old. All are asked again, and all adds go together. */
static void old_guards_are_asked_again_together(void **state)
{
    enum { FILTERS = 500, FEW = 10 };
    static char names[FILTERS][16];
    static const char *list[FILTERS];
    static hibloom *filters[FILTERS];
    static hibloom_pair pairs[FILTERS];
    static bool found[FILTERS];
    hibloom_store *store = test_connect(with_options(redis_server_uri(server), "retry=10s"), NULL);

    for (size_t i = 0; i < FILTERS; i++) {
        snprintf(names[i], sizeof names[i], "late:%zu", i);
        list[i] = names[i];
    }
    assert_ok(hibloom_open_many(filters, store, list, FILTERS, "capacity=100 error=0.01", NULL), store);
    for (size_t i = 0; i < FILTERS; i++)
        pairs[i] = (hibloom_pair){filters[i], {"x", 1}};
    assert_ok(hibloom_contains_pairs(pairs, FILTERS, found, NULL), store);
    assert_true(test_command(redis, "CLIENT KILL TYPE normal SKIPME yes") >= 1);
    test_command(redis, "CLIENT PAUSE 300 ALL");
    const uint64_t before = test_stats(store).round_trips;
    assert_ok(hibloom_add_pairs(pairs, FILTERS, NULL, NULL), store);
    assert_in_range(test_stats(store).round_trips - before, 2, FEW);
    for (size_t i = 0; i < FILTERS; i++)
        assert_dropped(filters[i], store);
    hibloom_store_free(store);
}

/* ---- Replicas ---------------------------------------------------------------------------- */

#define TEXT "bits=8192 hashes=4 seed=5eed"

static bool is_in_sync(const void *of)
{
    return redis_server_is_in_sync(of);
}

static int with_replica(void **state)
{
    struct redis_server *replica = redis_server_start_tcp(NULL);

    freeReplyObject(redis_server_must(replica, "REPLICAOF 127.0.0.1 %d", redis_server_port(server)));
    redis_server_wait(replica, is_in_sync, replica, "the replica has not come up");
    *state = replica;
    return 0;
}

static int without_replica(void **state)
{
    redis_server_stop(*state);
    return 0;
}

static void one_wait_serves_many_filters(void **state)
{
    enum { FILTERS = 50 };
    hibloom_store *store = test_connect(with_options(redis_server_uri(server), "min_replicas=1&replicas_timeout=2s"),
                                        NULL);
    hibloom *filters[FILTERS];
    hibloom_pair pairs[FILTERS];
    char room[FILTERS][8];
    const char *names[FILTERS];
    bool is_new[FILTERS];

    for (int i = 0; i < FILTERS; i++) {
        snprintf(room[i], sizeof room[i], "u:%d", i);
        names[i] = room[i];
    }
    assert_ok(hibloom_open_many(filters, store, names, FILTERS, TEXT, NULL), store);
    for (int i = 0; i < FILTERS; i++)
        pairs[i] = (hibloom_pair){filters[i], {"x", 1}};
    const long long before = redis_server_calls_of(redis, "wait");
    assert_ok(hibloom_add_pairs(pairs, FILTERS, is_new, NULL), store);
    assert_int_equal(test_count_true(is_new, FILTERS), FILTERS);
    /* one more for each part of the answers that comes late */
    assert_in_range(redis_server_calls_of(redis, "wait") - before, 1, FILTERS / 10);
    for (int i = 0; i < FILTERS; i++)
        assert_dropped(filters[i], store);
    hibloom_store_free(store);
}

/* An open goes on behind a refusal at one of the places that it looks at. The others have no further time to try. */
static void all_places_of_a_name_share_the_time_to_try(void **state)
{
    hibloom_store *store = test_connect(with_options(redis_server_uri(server), "retry=1s"), NULL);
    hibloom *filter;

    test_command(redis, "CONFIG SET replica-serve-stale-data no");
    test_command(redis, "REPLICAOF 127.0.0.1 1");
    assert_status(hibloom_open(&filter, store, "seen", "capacity=9 error=0.1 growth=2"), HIBLOOM_EUNAVAILABLE, store);
    assert_in_range(test_stats(store).retries, 1, 44);
    assert_status(hibloom_open(&filter, store, "seen", NULL), HIBLOOM_EUNAVAILABLE, store);
    assert_int_equal(test_stats(store).connections, 2); /* its name may lead elsewhere by now */
    test_command(redis, "REPLICAOF NO ONE");
    test_command(redis, "CONFIG SET replica-serve-stale-data yes");
    hibloom_store_free(store);
}

/* ---- Restarts ---------------------------------------------------------------------------- */

enum { RETRY_MS = 5000 };

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

static void its_words_name_the_server_and_what_may_be_missing(void **state)
{
    hibloom_store *store = connect_with(redis_server_uri(server), 0, false, NULL);
    hibloom *filter = test_open(store, "words", "capacity=1000 error=0.000001");
    hibloom_info info;
    char where[32];

    snprintf(where, sizeof where, "127.0.0.1:%d", redis_server_port(server));
    redis_server_restart(server);
    assert_fails(hibloom_get_info(filter, &info, sizeof info), HIBLOOM_ELOST, store, where);
    assert_words(store, "restarted, or another took over: acknowledged adds may be missing; add those again");
    assert_string_not_equal(hibloom_strerror(HIBLOOM_ELOST), hibloom_strerror((hibloom_status)999));
    assert_false(hibloom_is_retryable(HIBLOOM_ELOST));
    assert_dropped_last(filter, store);
}

static void warnings_tell_of_a_restart_and_of_a_server_that_is_away(void **state)
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
    log = (struct log){0};
    redis_server_kill(server); /* it is tried a dozen times, and that is told when it begins */
    hibloom_store_deadline(store, 1500);
    assert_status(hibloom_add(filter, "x", 1, &is_new), HIBLOOM_EIO, store);
    assert_in_range(log.warnings, 1, 2);
    redis_server_restart(server);
    hibloom_store_deadline(store, 0);
    assert_dropped_last(filter, store);
}

/* All keys survive its restarts: what is acknowledged was written to the file before.
 * (Once a second, as is usual, a write may wait for the last fsync.) */
static int set_up(void **state)
{
    server = redis_server_start_tcp((const char *const[]){"--appendonly", "yes", "--appendfsync", "no", NULL});
    return served_set_up(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(the_hook_sees_each_connection_as_the_options_want_it, served_leave_nothing),
        cmocka_unit_test(without_a_wish_the_system_decides),
        cmocka_unit_test(the_log_tells_connections_and_failures),
        cmocka_unit_test(the_longest_waits_that_can_be_asked_for_are_long),
        cmocka_unit_test(old_guards_are_asked_again_together),
        cmocka_unit_test_setup_teardown(one_wait_serves_many_filters, with_replica, without_replica),
        cmocka_unit_test(all_places_of_a_name_share_the_time_to_try),
        cmocka_unit_test(its_words_name_the_server_and_what_may_be_missing),
        cmocka_unit_test(warnings_tell_of_a_restart_and_of_a_server_that_is_away),
    };

    return cmocka_run_group_tests(tests, set_up, served_tear_down);
}
