/* The first words on a new connection: user, password and database arrive byte for byte, and lead where they say.
 * Questions may be refused, and so may passwords, whose bytes no error repeats. */
#include "support/in_time.h"
#include "support/redis_server.h"
#include "support/scripted_server.h"
#include "support/served.h"
#include "support/test.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static void assert_only_in(int db, const char *name)
{
    for (int i = 0; i < 16; i++) {
        test_command(redis, "SELECT %d", i);
        assert_int_equal(test_command(redis, "EXISTS %s", name), i == db);
    }
}

/* After a reconnect too: what was said once at the beginning is said again. */
static void a_new_connection_is_the_same_user_in_the_same_database(void **state)
{
    bool found;
    char uri[256];

    test_command(redis, "SELECT 0");
    test_command(redis, "ACL SETUSER app on >secret ~* &* +@all");
    snprintf(uri, sizeof uri, "redis://app:secret@127.0.0.1:%d/11", redis_server_port(server));
    hibloom_store *store = test_connect(uri, NULL);
    hibloom *filter = test_open(store, "again", "capacity=1000 error=0.01");
    assert_ok(hibloom_add(filter, "x", 1, NULL), store);
    assert_int_equal(test_command(redis, "CLIENT KILL USER app"), 1);
    (void)!hibloom_contains(filter, "x", 1, &found); /* finds it closed, now or before it asks */
    assert_ok(hibloom_contains(filter, "x", 1, &found), store);
    assert_true(found);
    assert_int_equal(test_command(redis, "CLIENT KILL USER app"), 1);
    test_close(filter, store);
    assert_only_in(11, "again");
}

#define SPEC "bits=1048576 hashes=4 seed=5eed" /* as long as what is THERE */

#define REFUSED "-NOPERM this user has no permissions to run the 'info' command\r\n"

/* A bitmap can be joined there: whoever is let in can work. */
static void assert_lets_in(const struct script_step *script, const char *options)
{
    struct scripted_server *scripted = scripted_server_start(script);
    hibloom_store *store = test_connect(with_options(scripted_server_uri(scripted), "%s", options), NULL);

    hibloom_close(test_attach(store, "any", SPEC));
    hibloom_store_free(store);
    scripted_server_stop(scripted);
}

static void who_may_not_ask_for_info_is_let_in(void **state)
{
    static const struct script_step refuses[] = {SCRIPT_ACCEPT, SCRIPT_READ(1), SCRIPT_SEND(REFUSED),
                                                 SCRIPT_JOIN(THERE), SCRIPT_END};
    static const struct script_step knows_none[] = {
        SCRIPT_ACCEPT, SCRIPT_READ(1), SCRIPT_SEND("-ERR unknown command 'INFO'\r\n"), SCRIPT_JOIN(THERE), SCRIPT_END};

    assert_lets_in(refuses, "");
    assert_lets_in(knows_none, "");
}

static void a_client_name_that_is_refused_is_left_out(void **state)
{
    static const struct script_step refuses[] = {SCRIPT_ACCEPT, SCRIPT_READ(2), SCRIPT_SEND(REFUSED WELCOME),
                                                 SCRIPT_JOIN(THERE), SCRIPT_END};

    assert_lets_in(refuses, "client_name=crawler-7");
}

static const char *password;
static bool was_logged;

/* Six bytes of the password, or more. */
static bool shows(const char *words)
{
    for (size_t i = 0; i + 6 <= strlen(password); i++) {
        char piece[7] = "";
        memcpy(piece, password + i, 6);
        if (strstr(words, piece) != NULL)
            return true;
    }
    return false;
}

static void look_at_log(hibloom_log_level level, const char *line, void *data)
{
    (void)level;
    (void)data;
    was_logged = true;
    if (shows(line))
        fail_msg("logged: \"%s\"", line);
}

/* Whichever question is answered by words that repeat it: as it is, cut short at some length, with line ends blanked, or
 * with what is not plain escaped. */
static void a_password_in_the_servers_words_is_not_repeated(void **state)
{
#define LACKS "-ERR unknown command 'AUTH', with args beginning with: 'user' '"
    static const struct {
        const char *password, *encoded, *answer;
        hibloom_status status;
    } cases[] = {
        {"opensesame", "opensesame", "-WRONGPASS opensesame\r\n", HIBLOOM_EDENIED},
        {"opensesame", "opensesame", "+OK\r\n-ERR no database for opensesame\r\n", HIBLOOM_ESERVER},
        {"opensesame", "opensesame", "+OK\r\n+OK\r\n-LOADING for opensesame\r\n", HIBLOOM_EUNAVAILABLE},
        {"opensesame", "opensesame", "-ERR max number of clients, opensesame\r\n", HIBLOOM_EUNAVAILABLE},
        {"opensesame", "opensesame", "-opensesame\r\n", HIBLOOM_ESERVER},
        {"open sesame", "open%20sesame", LACKS "open sesame'\r\n", HIBLOOM_ESERVER},
        {"open sesame", "open%20sesame", LACKS "open ses\r\n", HIBLOOM_ESERVER},
        {"open sesame", "open%20sesame", "$11\r\nopen sesame\r\n", HIBLOOM_EPROTO},
        {"o\nen sesame", "o%0Aen%20sesame", LACKS "o en sesame'\r\n", HIBLOOM_ESERVER},
        {"o\"en sesame", "o%22en%20sesame", "-ERR no such user \"user\" with \"o\\\"en sesame\"\r\n", HIBLOOM_ESERVER},
        {"\xc3\xa4\xc3\xb6\xc3\xbc", "\xc3\xa4\xc3\xb6\xc3\xbc", LACKS "\xc3\xa4\xc3\xb6\xc3\xbc'\r\n",
         HIBLOOM_ESERVER},
        {"opensesame", "opensesame", LACKS "opensesame'\r\n", HIBLOOM_EIO}, /* of a Sentinel, which may lack AUTH */
    };
    const hibloom_setup setup = {.size = sizeof setup, .log = look_at_log};

    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct script_step answers = {SCRIPT_DO_SEND, cases[i].answer, strlen(cases[i].answer), 0};
        const struct script_step script[] = {SCRIPT_ACCEPT, SCRIPT_READ(i + 1 < COUNT(cases) ? 3 : 2), answers,
                                             SCRIPT_CLOSE, SCRIPT_END};
        struct scripted_server *scripted = scripted_server_start_tcp(script, "127.0.0.1");
        hibloom_store *store = NULL;
        char uri[128];

        password = cases[i].password;
        snprintf(uri, sizeof uri, "redis%s://user:%s@127.0.0.1:%d/3?command_timeout=%dms",
                 i + 1 < COUNT(cases) ? "" : "+sentinel", cases[i].encoded, scripted_server_port(scripted), TIMEOUT_MS);
        was_logged = false;
        assert_status(hibloom_connect(&store, uri, &setup), cases[i].status, store);
        assert_true(was_logged);
        assert_string_not_equal(hibloom_store_error(store), "");
        if (shows(hibloom_store_error(store)))
            fail_msg("shown: \"%s\"", hibloom_store_error(store));
        hibloom_store_free(store);
        scripted_server_stop(scripted);
    }
}

/* No further try mends it. */
static void a_password_that_is_wrong_is_not_tried_again(void **state)
{
    struct redis_server *own = redis_server_start_tcp((const char *const[]){"--requirepass", "right", NULL});
    const uint64_t since = test_now_ms();
    hibloom_store *store = NULL;
    char uri[128];

    snprintf(uri, sizeof uri, "redis://:wrong@127.0.0.1:%d?retry=20s", redis_server_port(own));
    assert_status(hibloom_connect(&store, uri, NULL), HIBLOOM_EDENIED, store);
    assert_true(test_now_ms() - since < 10000);
    hibloom_store_free(store);
    redis_server_stop(own);
}

/* Such a password stands in the server's own words for its refusal, so they are not used. */
static void a_password_of_common_words_is_refused_in_plain_words(void **state)
{
    static const char *const passwords[] = {"password", "pass", "invalid", "configured"};
    struct redis_server *asks = redis_server_start_tcp((const char *const[]){"--requirepass", "right", NULL});
    hibloom_store *store = NULL;
    char uri[128];

    for (size_t i = 0; i < COUNT(passwords); i++) {
        snprintf(uri, sizeof uri, "redis://:%s@127.0.0.1:%d", passwords[i], redis_server_port(asks));
        assert_fails(hibloom_connect(&store, uri, NULL), HIBLOOM_EDENIED, store,
                     "WRONGPASS: the server does not accept this user");
        hibloom_store_free(store);
        snprintf(uri, sizeof uri, "redis://:%s@127.0.0.1:%d", passwords[i], redis_server_port(server));
        assert_fails(hibloom_connect(&store, uri, NULL), HIBLOOM_ESERVER, store,
                     "the server has no password for this user");
        hibloom_store_free(store);
    }
    redis_server_stop(asks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(user_password_and_database_arrive_decoded),
        cmocka_unit_test(a_new_connection_is_the_same_user_in_the_same_database),
        cmocka_unit_test(who_may_not_ask_for_info_is_let_in),
        cmocka_unit_test(a_client_name_that_is_refused_is_left_out),
        cmocka_unit_test(a_password_in_the_servers_words_is_not_repeated),
        cmocka_unit_test(a_password_that_is_wrong_is_not_tried_again),
        cmocka_unit_test(a_password_of_common_words_is_refused_in_plain_words),
    };

    return cmocka_run_group_tests(tests, served_set_up, served_tear_down);
}
