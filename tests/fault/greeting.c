/* What is said first on a new connection, and goes wrong: questions that are refused
 * or never answered, nonsense, a server that is loading; and what the library takes
 * from the answers, which run of a server it has reached. */
#include "support/in_time.h"
#include "support/redis_server.h"
#include "support/scripted_server.h"
#include "support/test.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])
#define SPEC "bits=1048576 hashes=4 seed=5eed" /* as long as what is THERE */

#define A "0123456789abcdef0123456789abcdef01234567"
#define B "0123456789abcdef0123456789abcdef01234568"
#define RUN(id) "$59\r\n# Server\r\nrun_id:" id "\r\n\r\n"
#define REFUSED "-NOPERM this user has no permissions to run the 'info' command\r\n"

static const hibloom_connect_options impatient = {.connect_timeout_ms = TIMEOUT_MS, .command_timeout_ms = TIMEOUT_MS};

/* A bitmap can be joined there: whoever is let in can work. */
static void assert_lets_in(const struct script_step *script, const hibloom_connect_options *options)
{
    struct scripted_server *scripted = scripted_server_start(script);
    hibloom_store *store = test_connect(scripted_server_uri(scripted), options);

    hibloom_close(test_attach(store, "any", SPEC));
    hibloom_store_free(store);
    scripted_server_stop(scripted);
}

static bool keeps_out(const struct script_step *script, hibloom_status expected, const char *words)
{
    struct scripted_server *scripted = scripted_server_start(script);
    const uint64_t since = test_now_ms();
    hibloom_store *store = NULL;

    assert_status(hibloom_connect(&store, scripted_server_uri(scripted), &impatient), expected, store);
    const bool was_in_time = in_time(since);
    if (strstr(hibloom_store_error(store), words) == NULL)
        fail_msg("\"%s\" is not in \"%s\"", words, hibloom_store_error(store));
    hibloom_store_free(store);
    scripted_server_stop(scripted);
    return was_in_time;
}

/* ---- What may be refused ------------------------------------------------------------- */

static void who_may_not_ask_for_info_is_let_in(void **state)
{
    static const struct script_step refuses[] = {SCRIPT_ACCEPT, SCRIPT_READ(1), SCRIPT_SEND(REFUSED),
                                                 SCRIPT_JOIN(THERE), SCRIPT_END};
    static const struct script_step knows_none[] = {
        SCRIPT_ACCEPT, SCRIPT_READ(1), SCRIPT_SEND("-ERR unknown command 'INFO'\r\n"), SCRIPT_JOIN(THERE), SCRIPT_END};

    (void)state;
    assert_lets_in(refuses, NULL);
    assert_lets_in(knows_none, NULL);
}

static void a_client_name_that_is_refused_is_left_out(void **state)
{
    static const struct script_step refuses[] = {SCRIPT_ACCEPT, SCRIPT_READ(2), SCRIPT_SEND(REFUSED WELCOME),
                                                 SCRIPT_JOIN(THERE), SCRIPT_END};
    const hibloom_connect_options named = {.size = sizeof named, .client_name = "crawler-7"};

    (void)state;
    assert_lets_in(refuses, &named);
}

static void a_client_name_is_that_of_each_connection(void **state)
{
    const hibloom_connect_options named = {.size = sizeof named, .client_name = "crawler-7"};
    struct redis_server *server = redis_server_start(NULL);
    redisContext *redis = redis_server_connect(server);
    hibloom_store *store = test_connect(redis_server_uri(server), &named);
    hibloom *filter = test_open(store, "any", SPEC);

    (void)state;
    for (int times = 0; times < 2; times++) {
        redisReply *list = redisCommand(redis, "CLIENT LIST");
        const char *at = strstr(list->str, " name=crawler-7 ");
        assert_non_null(at);
        assert_null(strstr(at + 1, " name=crawler-7 "));
        freeReplyObject(list);
        assert_int_equal(test_command(redis, "CLIENT KILL TYPE normal"), 1); /* the library's: it connects anew */
        assert_ok(hibloom_add(filter, "x", 1, NULL), store);
    }
    hibloom_close(filter);
    hibloom_store_free(store);
    redisFree(redis);
    redis_server_stop(server);
}

/* It is the first call that is told so: whoever only connects need not be let in. */
static void who_has_to_authenticate_is_told_by_the_first_call(void **state)
{
    static const struct script_step locked[] = {SCRIPT_ACCEPT, SCRIPT_ANSWER("-NOAUTH Authentication required.\r\n"),
                                                SCRIPT_END};
    struct scripted_server *scripted = scripted_server_start(locked);
    hibloom_store *store = test_connect(scripted_server_uri(scripted), NULL);
    hibloom *none;

    (void)state;
    assert_status(hibloom_open(&none, store, "any", NULL), HIBLOOM_EDENIED, store);
    assert_non_null(strstr(hibloom_store_error(store), "NOAUTH"));
    hibloom_store_free(store);
    scripted_server_stop(scripted);
}

/* ---- What keeps it out ----------------------------------------------------------------- */

static void an_answer_that_never_comes_is_a_time_out(void **state)
{
    static const struct script_step silent[] = {SCRIPT_ACCEPT, SCRIPT_READ(1), SCRIPT_END};
    static const struct script_step half[] = {SCRIPT_ACCEPT, SCRIPT_READ(1), SCRIPT_SEND("$59\r\n# Server\r\nrun_id:0"),
                                              SCRIPT_END};
    static const struct script_step trickle[] = {SCRIPT_ACCEPT, SCRIPT_READ(1), SCRIPT_SEND("$9999\r\n"),
                                                 SCRIPT_REPEAT("x", 20), SCRIPT_END};

    (void)state;
    ASSERT_IN_TIME(keeps_out(silent, HIBLOOM_ETIMEDOUT, "timed out"));
    ASSERT_IN_TIME(keeps_out(half, HIBLOOM_ETIMEDOUT, "timed out"));
    ASSERT_IN_TIME(keeps_out(trickle, HIBLOOM_ETIMEDOUT, "timed out"));
}

static void nonsense_is_no_server(void **state)
{
    static const struct script_step web[] = {SCRIPT_ACCEPT, SCRIPT_READ(1),
                                             SCRIPT_SEND("HTTP/1.1 400 Bad Request\r\n\r\n"), SCRIPT_END};
    static const struct script_step no_length[] = {SCRIPT_ACCEPT, SCRIPT_READ(1), SCRIPT_SEND("$x\r\n"), SCRIPT_END};
    static const struct script_step cut[] = {SCRIPT_ACCEPT, SCRIPT_READ(1), SCRIPT_SEND("$59\r\n# Server"),
                                             SCRIPT_CLOSE, SCRIPT_END};

    (void)state;
    ASSERT_IN_TIME(keeps_out(web, HIBLOOM_EPROTO, "nonsense"));
    ASSERT_IN_TIME(keeps_out(no_length, HIBLOOM_EPROTO, "nonsense"));
    ASSERT_IN_TIME(keeps_out(cut, HIBLOOM_EIO, "closed"));
}

#define LOADING "-LOADING Redis is loading the dataset in memory\r\n"

static void a_server_that_is_loading_is_not_available_yet(void **state)
{
    static const struct script_step loading[] = {SCRIPT_ACCEPT, SCRIPT_READ(1), SCRIPT_SEND(LOADING), SCRIPT_END};

    (void)state;
    ASSERT_IN_TIME(keeps_out(loading, HIBLOOM_EUNAVAILABLE, "LOADING"));
}

static void with_retries_it_is_waited_for_until_it_has_loaded(void **state)
{
    static const struct script_step loads[] = {SCRIPT_ACCEPT,  SCRIPT_READ(1),     SCRIPT_SEND(LOADING),
                                               SCRIPT_ACCEPT,  SCRIPT_READ(1),     SCRIPT_CLOSE,
                                               SCRIPT_WELCOME, SCRIPT_JOIN(THERE), SCRIPT_END};
    const hibloom_connect_options patient = {.size = sizeof patient, .retry_ms = 10000};

    (void)state;
    assert_lets_in(loads, &patient);
}

/* ---- Which run of the server --------------------------------------------------------------- */

/* Joins a bitmap, loses the connection, and asks on the next one; what each has told
 * of itself. The status of the first answer on that. */
static hibloom_status ask_after(const char *first, const char *second)
{
    const struct script_step script[] = {SCRIPT_ACCEPT,
                                         SCRIPT_READ(1),
                                         {SCRIPT_DO_SEND, first, strlen(first), 0},
                                         SCRIPT_JOIN(THERE),
                                         SCRIPT_READ(6),
                                         SCRIPT_CLOSE,
                                         SCRIPT_ACCEPT,
                                         SCRIPT_READ(1),
                                         {SCRIPT_DO_SEND, second, strlen(second), 0},
                                         SCRIPT_READ(6),
                                         SCRIPT_SEND(":0\r\n:0\r\n:0\r\n:0\r\n" THERE),
                                         SCRIPT_END};
    struct scripted_server *scripted = scripted_server_start(script);
    hibloom_store *store = test_connect(scripted_server_uri(scripted), &impatient);
    hibloom *filter = test_attach(store, "any", SPEC);
    bool found = true;

    assert_status(hibloom_contains(filter, "x", 1, &found), HIBLOOM_EIO, store);
    const hibloom_status status = hibloom_contains(filter, "x", 1, &found);
    if (status != HIBLOOM_OK) /* it is said once, and nothing was sent for it */
        assert_ok(hibloom_contains(filter, "x", 1, &found), store);
    assert_false(found);
    hibloom_close(filter);
    hibloom_store_free(store);
    scripted_server_stop(scripted);
    return status;
}

static void another_run_of_the_server_is_told_where_both_are_known(void **state)
{
    static const char *const unknown[] = {
        REFUSED,
        "$0\r\n\r\n",
        "$-1\r\n",
        ":1\r\n",
        "*0\r\n",
        "$19\r\n# Server\r\nrun_id:\r\n\r\n",         /* empty */
        "$27\r\n# Server\r\nrun_id:01234567\r\n\r\n", /* too short */
        "$59\r\n# Server\r\nrun_id:0123456789ABCDEF0123456789ABCDEF01234567\r\n\r\n",
        "$60\r\n# Server\r\nrun_id:" A "0\r\n\r\n", /* too long */
        "$59\r\n# Server\r\nRUN_ID:" A "\r\n\r\n",
    };

    (void)state;
    assert_int_equal(ask_after(RUN(A), RUN(A)), HIBLOOM_OK);
    assert_int_equal(ask_after(RUN(A), RUN(B)), HIBLOOM_ELOST);
    for (size_t i = 0; i < COUNT(unknown); i++) {
        assert_int_equal(ask_after(RUN(A), unknown[i]), HIBLOOM_OK);
        assert_int_equal(ask_after(unknown[i], RUN(A)), HIBLOOM_OK);
    }
}

/* ---- The password ------------------------------------------------------------------------------ */

static bool was_logged;

static void look_at_log(hibloom_log_level level, const char *line, void *data)
{
    (void)level;
    (void)data;
    was_logged = true;
    if (strstr(line, "opensesame") != NULL)
        fail_msg("logged: \"%s\"", line);
}

/* Whichever question is answered by words that repeat it. */
static void a_password_in_the_servers_words_is_not_repeated(void **state)
{
    static const struct {
        struct script_step script[5];
        hibloom_status status;
    } servers[] = {
        {{SCRIPT_ACCEPT, SCRIPT_READ(3), SCRIPT_SEND("-WRONGPASS opensesame\r\n"), SCRIPT_END}, HIBLOOM_EDENIED},
        {{SCRIPT_ACCEPT, SCRIPT_READ(3), SCRIPT_SEND("+OK\r\n-ERR no database for opensesame\r\n"), SCRIPT_END},
         HIBLOOM_ESERVER},
        {{SCRIPT_ACCEPT, SCRIPT_READ(3), SCRIPT_SEND("+OK\r\n+OK\r\n-LOADING for opensesame\r\n"), SCRIPT_END},
         HIBLOOM_EUNAVAILABLE},
        {{SCRIPT_ACCEPT, SCRIPT_READ(3), SCRIPT_SEND("-ERR max number of clients, opensesame\r\n"), SCRIPT_CLOSE,
          SCRIPT_END},
         HIBLOOM_EUNAVAILABLE},
    };
    const hibloom_connect_options options = {
        .size = sizeof options, .command_timeout_ms = TIMEOUT_MS, .on_log = look_at_log};

    (void)state;
    for (size_t i = 0; i < COUNT(servers); i++) {
        struct scripted_server *scripted = scripted_server_start_tcp(servers[i].script, "127.0.0.1");
        hibloom_store *store = NULL;
        char uri[128];

        snprintf(uri, sizeof uri, "redis://app:opensesame@127.0.0.1:%d/3", scripted_server_port(scripted));
        was_logged = false;
        assert_status(hibloom_connect(&store, uri, &options), servers[i].status, store);
        assert_true(was_logged);
        assert_string_not_equal(hibloom_store_error(store), "");
        assert_null(strstr(hibloom_store_error(store), "opensesame"));
        hibloom_store_free(store);
        scripted_server_stop(scripted);
    }
}

/* No further try mends it. */
static void a_password_that_is_wrong_is_not_tried_again(void **state)
{
    struct redis_server *own = redis_server_start_tcp((const char *const[]){"--requirepass", "right", NULL});
    const hibloom_connect_options options = {.size = sizeof options, .retry_ms = 20000};
    const uint64_t since = test_now_ms();
    hibloom_store *store = NULL;
    char uri[128];

    (void)state;
    snprintf(uri, sizeof uri, "redis://:wrong@127.0.0.1:%d", redis_server_port(own));
    assert_status(hibloom_connect(&store, uri, &options), HIBLOOM_EDENIED, store);
    assert_true(test_now_ms() - since < 10000);
    hibloom_store_free(store);
    redis_server_stop(own);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_may_not_ask_for_info_is_let_in),
        cmocka_unit_test(a_client_name_that_is_refused_is_left_out),
        cmocka_unit_test(a_client_name_is_that_of_each_connection),
        cmocka_unit_test(who_has_to_authenticate_is_told_by_the_first_call),
        cmocka_unit_test(an_answer_that_never_comes_is_a_time_out),
        cmocka_unit_test(nonsense_is_no_server),
        cmocka_unit_test(a_server_that_is_loading_is_not_available_yet),
        cmocka_unit_test(with_retries_it_is_waited_for_until_it_has_loaded),
        cmocka_unit_test(another_run_of_the_server_is_told_where_both_are_known),
        cmocka_unit_test(a_password_in_the_servers_words_is_not_repeated),
        cmocka_unit_test(a_password_that_is_wrong_is_not_tried_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
