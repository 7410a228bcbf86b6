/* URIs, as hibloom_connect takes them: what arrives at the server byte for
 * byte, and where it leads. */
#include "support/scripted_server.h"
#include "support/served.h"
#include "support/test.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- What is sent -------------------------------------------------------------------- */

#define INFO "*1\r\n$4\r\nINFO\r\n"
static const struct script_step agreeable[] = {SCRIPT_ACCEPT, SCRIPT_ANSWER("+OK\r\n"), SCRIPT_END};

/* Connects to a server that agrees to everything, and that hears this and INFO. */
static void assert_heard(const char *credentials, const char *database, const char *words)
{
    struct scripted_server *scripted = scripted_server_start_tcp(agreeable, "127.0.0.1");
    hibloom_store *store;
    char uri[512], expected[512], *heard;
    size_t len;

    assert_non_null(scripted);
    snprintf(expected, sizeof expected, "%s" INFO, words);
    snprintf(uri, sizeof uri, "redis://%s127.0.0.1:%d%s", credentials, scripted_server_port(scripted), database);
    assert_ok(hibloom_connect(&store, uri, NULL), store);
    assert_string_equal(hibloom_store_error(store), "");
    heard = scripted_server_heard(scripted, &len);
    assert_string_equal(heard, expected);
    free(heard);
    hibloom_store_free(store);
    scripted_server_stop(scripted);
}

static void user_password_and_database_arrive_decoded(void **state)
{
    assert_heard("", "", "");
    assert_heard("", "/0", "");
    assert_heard("", "/7", "*2\r\n$6\r\nSELECT\r\n$1\r\n7\r\n");
    assert_heard(":pass@", "", "*2\r\n$4\r\nAUTH\r\n$4\r\npass\r\n");
    assert_heard("user:pass@", "", "*3\r\n$4\r\nAUTH\r\n$4\r\nuser\r\n$4\r\npass\r\n");
    assert_heard("user:pass@", "/12",
                 "*3\r\n$4\r\nAUTH\r\n$4\r\nuser\r\n$4\r\npass\r\n*2\r\n$6\r\nSELECT\r\n$2\r\n12\r\n");
    assert_heard("us%65r%3a:p%40ss%3A%2F%25@", "", "*3\r\n$4\r\nAUTH\r\n$5\r\nuser:\r\n$7\r\np@ss:/%\r\n");
    assert_heard(":%0D%0a%20%C3%A9%ff%7F@", "", "*2\r\n$4\r\nAUTH\r\n$7\r\n\r\n \303\251\377\177\r\n");
    assert_heard(":a:b@", "", "*2\r\n$4\r\nAUTH\r\n$3\r\na:b\r\n");
}

/* ---- Where it leads, on a real server -------------------------------------------------- */

static void create_at(const char *uri, const char *name)
{
    hibloom_store *store;
    hibloom *filter;

    assert_ok(hibloom_connect(&store, uri, NULL), store);
    assert_ok(hibloom_open(&filter, store, name, "capacity=1000 error=0.01"), store);
    test_close(filter, store);
}

static void assert_only_in(int db, const char *name)
{
    for (int i = 0; i < 16; i++) {
        test_command(redis, "SELECT %d", i);
        assert_int_equal(test_command(redis, "EXISTS %s", name), i == db);
    }
}

static void the_database_is_selected_also_behind_a_password(void **state)
{
    char uri[512];
    const int port = redis_server_port(server);

    test_command(redis, "ACL SETUSER app on >se%%ret@ ~* &* +@all");
    test_command(redis, "ACL SETUSER guest on nopass ~* &* +@all");
    snprintf(uri, sizeof uri, "redis://127.0.0.1:%d/5", port);
    create_at(uri, "by-port");
    assert_only_in(5, "by-port");
    snprintf(uri, sizeof uri, "redis://app:se%%25ret%%40@127.0.0.1:%d/6", port);
    create_at(uri, "by-user");
    assert_only_in(6, "by-user");
    snprintf(uri, sizeof uri, "redis://guest@127.0.0.1:%d", port);
    create_at(uri, "by-guest");
    assert_only_in(0, "by-guest");
    snprintf(uri, sizeof uri, "%s", redis_server_socket(server));
    create_at(redis_server_uri(server), "plain");
    assert_only_in(0, "plain");
}

/* After a reconnect too: what was said once at the beginning is said again. */
static void a_new_connection_is_the_same_user_in_the_same_database(void **state)
{
    hibloom_store *store;
    hibloom *filter;
    bool found;
    char uri[256];

    test_command(redis, "SELECT 0");
    test_command(redis, "ACL SETUSER app on >secret ~* &* +@all");
    snprintf(uri, sizeof uri, "redis://app:secret@127.0.0.1:%d/11", redis_server_port(server));
    assert_ok(hibloom_connect(&store, uri, NULL), store);
    assert_ok(hibloom_open(&filter, store, "again", "capacity=1000 error=0.01"), store);
    assert_ok(hibloom_add(filter, "x", 1, NULL), store);
    assert_int_equal(test_command(redis, "CLIENT KILL USER app"), 1);
    (void)!hibloom_contains(filter, "x", 1, &found); /* finds it closed, now or before it asks */
    assert_ok(hibloom_contains(filter, "x", 1, &found), store);
    assert_true(found);
    assert_int_equal(test_command(redis, "CLIENT KILL USER app"), 1);
    test_close(filter, store);
    assert_only_in(11, "again");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(user_password_and_database_arrive_decoded),
        cmocka_unit_test(the_database_is_selected_also_behind_a_password),
        cmocka_unit_test(a_new_connection_is_the_same_user_in_the_same_database),
    };

    return cmocka_run_group_tests(tests, served_set_up, served_tear_down);
}
