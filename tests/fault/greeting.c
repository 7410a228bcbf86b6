/* The first words on a new connection: questions that are refused, client names, passwords. */
#include "support/in_time.h"
#include "support/redis_server.h"
#include "support/scripted_server.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>

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

/* ---- What may be refused ------------------------------------------------------------- */

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

/* ---- The password ------------------------------------------------------------------------------ */

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
    };
    const hibloom_setup setup = {.size = sizeof setup, .log = look_at_log};

    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct script_step answers = {SCRIPT_DO_SEND, cases[i].answer, strlen(cases[i].answer), 0};
        const struct script_step script[] = {SCRIPT_ACCEPT, SCRIPT_READ(3), answers, SCRIPT_CLOSE, SCRIPT_END};
        struct scripted_server *scripted = scripted_server_start_tcp(script, "127.0.0.1");
        hibloom_store *store = NULL;
        char uri[128];

        password = cases[i].password;
        snprintf(uri, sizeof uri, "redis://user:%s@127.0.0.1:%d/3?command_timeout=%dms", cases[i].encoded,
                 scripted_server_port(scripted), TIMEOUT_MS);
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
    struct redis_server *asks = redis_server_start_tcp((const char *const[]){"--requirepass", "right", NULL}),
                        *asks_none = redis_server_start_tcp(NULL);
    hibloom_store *store = NULL;
    char uri[128];

    for (size_t i = 0; i < COUNT(passwords); i++) {
        snprintf(uri, sizeof uri, "redis://:%s@127.0.0.1:%d", passwords[i], redis_server_port(asks));
        assert_status(hibloom_connect(&store, uri, NULL), HIBLOOM_EDENIED, store);
        assert_non_null(strstr(hibloom_store_error(store), "WRONGPASS: the server does not accept this user"));
        hibloom_store_free(store);
        snprintf(uri, sizeof uri, "redis://:%s@127.0.0.1:%d", passwords[i], redis_server_port(asks_none));
        assert_status(hibloom_connect(&store, uri, NULL), HIBLOOM_ESERVER, store);
        assert_non_null(strstr(hibloom_store_error(store), "the server has no password for this user"));
        hibloom_store_free(store);
    }
    redis_server_stop(asks);
    redis_server_stop(asks_none);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_may_not_ask_for_info_is_let_in),
        cmocka_unit_test(a_client_name_that_is_refused_is_left_out),
        cmocka_unit_test(a_password_in_the_servers_words_is_not_repeated),
        cmocka_unit_test(a_password_that_is_wrong_is_not_tried_again),
        cmocka_unit_test(a_password_of_common_words_is_refused_in_plain_words),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
