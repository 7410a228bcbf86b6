/* What the options say of a new connection: the hook that sees it, TCP's own
 * questions, its name, and the lines of the log. */
#include "../support/served.h"
#include "../support/test.h"

#include <hiredis/hiredis.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
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
    assert_dropped(filter, store);
    hibloom_store_free(store);
}

static void without_a_wish_the_system_decides(void **state)
{
    struct seen seen = {0};
    hibloom_store *store = connect_seen(&seen, 0);

    assert_int_equal(seen.connections, 1);
    assert_int_equal(seen.keep_alive, 0);
    hibloom_store_free(store);
}

static void the_connection_has_its_name(void **state)
{
    struct seen seen = {0};
    hibloom_store *store = connect_seen(&seen, 0);
    redisReply *list = redisCommand(redis, "CLIENT LIST");

    assert_non_null(list);
    assert_non_null(strstr(list->str, "name=seen-by-test"));
    freeReplyObject(list);
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
    hibloom_store_free(store);
}

/* Which must not end before they begin. The server answers late, and refuses for a while. */
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
    assert_dropped(filter, store);
    hibloom_store_free(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(the_hook_sees_each_connection_as_the_options_want_it, served_leave_nothing),
        cmocka_unit_test(without_a_wish_the_system_decides),
        cmocka_unit_test(the_connection_has_its_name),
        cmocka_unit_test(the_log_tells_connections_and_failures),
        cmocka_unit_test(the_longest_waits_that_can_be_asked_for_are_long),
    };
    return cmocka_run_group_tests(tests, served_set_up, served_tear_down);
}
