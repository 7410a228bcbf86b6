/* What a user may not do: words for connections, databases, windows and links that no root tells of; and a server that
 * wants a password. */
#include "support/acl_lines.h"
#include "support/served.h"
#include "support/subject.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>

/* The words that docs/access.md adds to the lines of tests/fault/acl.c. */
static const struct word {
    const char *permission, *command;
} words[] = {
    {"+select", "SELECT 1"},   {"+client|setname", "CLIENT SETNAME x"}, {"+info", "INFO server"}, {"+role", "ROLE"},
    {"+readonly", "READONLY"}, {"+cluster|slots", "CLUSTER SLOTS"},     {"+asking", "ASKING"},    {"+wait", "WAIT 0 1"},
};

enum { WORDS = sizeof words / sizeof *words };

/* A server that is no cluster says so to who may ask. */
static bool is_denied(redisContext *connection, const char *command)
{
    redisReply *reply = redisCommand(connection, command);

    assert_non_null(reply);
    const bool denied = reply->type == REDIS_REPLY_ERROR && strncmp(reply->str, "NOPERM ", 7) == 0;
    freeReplyObject(reply);
    return denied;
}

static void each_word_for_connections_allows_its_command_and_no_other(void **state)
{
    redisContext *connection = redis_server_connect(server);

    test_command(redis, "ACL SETUSER app reset on >secret");
    test_command(connection, "AUTH app secret"); /* which needs no word */
    for (int w = 0; w < WORDS; w++) {
        test_command(redis, "ACL SETUSER app -@all %s", words[w].permission);
        for (int c = 0; c < WORDS; c++)
            assert_int_equal(is_denied(connection, words[c].command), c != w);
    }
    redisFree(connection);
}

static void a_database_takes_select_and_is_denied_without_it(void **state)
{
    hibloom_store *store;
    char uri[256];

    snprintf(uri, sizeof uri, "redis://app:secret@127.0.0.1:%d/1", redis_server_port(server));
    test_command(redis, "ACL SETUSER app reset on >secret ~* +getrange");
    assert_fails(hibloom_connect(&store, uri, NULL), HIBLOOM_EDENIED, store, "NOPERM");
    assert_words(store, "'select'");
    hibloom_store_free(store);
    test_command(redis, "ACL SETUSER app +select");
    assert_ok(hibloom_connect(&store, uri, NULL), store);
    hibloom_store_free(store);
}

/* The line of an application on docs/access.md is `line` and +info. */
static hibloom_status ask_behind_a_restart(const char *line)
{
    struct redis_server *restarted = redis_server_start_tcp(NULL);
    char uri[64];
    bool found;

    snprintf(uri, sizeof uri, "redis://app:secret@127.0.0.1:%d", redis_server_port(restarted));
    freeReplyObject(redis_server_must(restarted, line));
    hibloom_store *store = test_connect(uri, NULL);
    hibloom *filter = test_open(store, "seen", "capacity=1000 error=0.01");
    redis_server_restart(restarted); /* it has forgotten its users and the filter */
    freeReplyObject(redis_server_must(restarted, line));
    hibloom_status status = hibloom_contains(filter, "x", 1, &found);
    if (status == HIBLOOM_EIO) /* so the connection was found closed in the middle of the call */
        status = hibloom_contains(filter, "x", 1, &found);
    test_close(filter, store);
    redis_server_stop(restarted);
    return status;
}

static void an_application_learns_of_a_restart_by_info(void **state)
{
    assert_int_equal(ask_behind_a_restart("ACL SETUSER app reset on >secret " APPLYING " +info"), HIBLOOM_ELOST);
    assert_int_equal(ask_behind_a_restart("ACL SETUSER app reset on >secret " APPLYING), HIBLOOM_ENOTFOUND);
}

#define WINDOW "capacity=1000 error=1e-9 window=1000s slices=2"

/* Opens the window, or makes it, as a user of this line, and adds an item or asks for one. */
static hibloom_status call_window(const char *line, bool adds)
{
    hibloom *filter = NULL;
    char uri[256], command[640];
    bool found;

    snprintf(command, sizeof command, "ACL SETUSER app reset on >secret %s", line);
    test_command(redis, command);
    snprintf(uri, sizeof uri, "redis://app:secret@127.0.0.1:%d", redis_server_port(server));
    hibloom_store *store = test_connect(uri, NULL);
    hibloom_status status = hibloom_open(&filter, store, "seen", adds ? WINDOW : NULL);
    if (status == HIBLOOM_OK)
        status = adds ? hibloom_add(filter, "x", 1, NULL) : hibloom_contains(filter, "x", 1, &found);
    test_close(filter, store);
    return status;
}

/* An add to a period that is new empties its slice first, as the first one of all does. A script that may not do the
 * whole of that does nothing. (That no add is OK that was not, and what a slice keeps, is simulated.) */
static void a_window_needs_each_word_and_without_it_nothing_is_emptied(void **state)
{
    static const char *const adding[] = {"eval", "getrange", "strlen", "time", "pttl", "setrange", "set", "setbit"};
    hibloom_store *all = test_connect(redis_server_uri(server), NULL);
    hibloom *filter = test_open(all, "seen", WINDOW);
    char line[512];

    assert_ok(hibloom_expire(filter, 1000000), all);
    assert_int_equal(call_window(READING, false), HIBLOOM_EDENIED);
    assert_int_equal(call_window(READING " +time", false), HIBLOOM_OK);
    for (size_t i = 0; i < COUNT(adding); i++) {
        const long long before = served_digest();
        snprintf(line, sizeof line, ADDING " +time +setrange +set -%s", adding[i]);
        assert_int_equal(call_window(line, true), HIBLOOM_EDENIED);
        if (served_digest() != before && strcmp(adding[i], "setbit") != 0) /* of which the slice is empty, as before */
            fail_msg("-%s: something was altered", adding[i]);
    }
    assert_int_equal(call_window(ADDING " +time +setrange +set", true), HIBLOOM_OK);
    assert_dropped(filter, all);
    assert_int_equal(call_window(APPLYING, true), HIBLOOM_EDENIED);
    assert_int_equal(call_window(APPLYING " +persist", true), HIBLOOM_OK); /* goes on */
    hibloom_store_free(all);
}

/* The password comes while the store is connected: it is found out when the connection has to be made anew. */
static void assert_found_by(const char *uri)
{
    hibloom_store *store = test_connect(uri, NULL);
    hibloom *filter = test_open(store, "seen", NULL);
    bool found;

    for (int i = 0; i < 5; i++) {
        assert_ok(hibloom_contains(filter, &i, sizeof i, &found), store);
        assert_true(found);
    }
    test_close(filter, store);
}

/* Its server has forgotten that the filter grew. Who may write tells of the link again; others go on without. */
static void who_may_only_read_asks_a_link_that_no_root_tells_of(void **state)
{
    hibloom_store *store = test_connect(redis_server_uri(server), NULL);
    hibloom *filter = test_open(store, "seen", "capacity=2 error=1e-6 growth=2");
    char uri[256];

    for (int i = 0; i < 5; i++)
        assert_ok(hibloom_add(filter, &i, sizeof i, NULL), store);
    test_command(redis, "EVAL return(redis.call('setrange',KEYS[1],redis.call('strlen',KEYS[1])-55,'r')) 1 seen");
    snprintf(uri, sizeof uri, "redis://app:secret@127.0.0.1:%d", redis_server_port(server));
    test_command(redis, "ACL SETUSER app reset on >secret " READING);
    assert_found_by(uri);
    test_command(redis, "CONFIG SET replica-serve-stale-data yes");
    test_command(redis, "REPLICAOF 127.0.0.1 1"); /* read-only */
    assert_found_by(redis_server_uri(server));
    test_command(redis, "REPLICAOF NO ONE");
    test_command(redis, "DEL seen seen:+1");
    test_close(filter, store);
}

static void a_server_that_wants_a_password(void **state)
{
    struct subject subject;

    subject_begin(&subject, redis_server_uri(server), &variants[0], NULL);
    for (int i = 0; i < CALLS; i++) {
        test_command(redis, "CONFIG SET requirepass secret");
        test_command(redis, "CLIENT KILL TYPE normal");
        hibloom_status status = calls[i].run(&subject);
        if (status == HIBLOOM_EIO) /* so it was found closed in the middle of the call */
            status = calls[i].run(&subject);
        test_command(redis, "CONFIG SET requirepass %s", "");
        if (strstr(hibloom_store_error(subject.store), "unauthenticated") == NULL) {
            subject_assert_words(&subject, &calls[i], status, HIBLOOM_EDENIED, "NOAUTH");
        } else { /* said to a long command of who has not logged in, and then it hangs up: seen at once or next */
            assert_status(status, HIBLOOM_EDENIED, subject.store);
            if (call_named("get_info")->run(&subject) != HIBLOOM_OK)
                assert_ok(call_named("get_info")->run(&subject), subject.store);
        }
        subject_check(&subject);
    }
    subject_end(&subject);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_word_for_connections_allows_its_command_and_no_other),
        cmocka_unit_test(a_database_takes_select_and_is_denied_without_it),
        cmocka_unit_test(an_application_learns_of_a_restart_by_info),
        cmocka_unit_test_setup(a_window_needs_each_word_and_without_it_nothing_is_emptied, served_leave_nothing),
        cmocka_unit_test_setup(who_may_only_read_asks_a_link_that_no_root_tells_of, served_leave_nothing),
        cmocka_unit_test(a_server_that_wants_a_password),
    };

    return cmocka_run_group_tests(tests, served_set_up, served_tear_down);
}
