/* Faults while connecting and at the first words: nobody there, nobody who
 * answers, somebody who hangs up, somebody who is no Redis. */
#include "support/in_time.h"
#include "support/net.h"
#include "support/redis_server.h"
#include "support/scripted_server.h"
#include "support/test.h"

#include <hibloom/async.h>

#include <dlfcn.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static const char *impatient(const char *uri)
{
    return with_options(uri, "connect_timeout=%ums&command_timeout=%ums", TIMEOUT_MS, TIMEOUT_MS);
}

/* Fails with words, and with a store that can be freed. Whether it was in time. */
static bool connect_in_vain(const char *uri, hibloom_status expected, const char *words)
{
    const uint64_t since = test_now_ms();
    hibloom_store *store = NULL;

    assert_status(hibloom_connect(&store, impatient(uri), NULL), expected, store);
    const bool was_in_time = in_time(since);
    assert_non_null(store);
    assert_words(store, words);
    hibloom_store_free(store);
    return was_in_time;
}

static void assert_connect_fails(const char *uri, hibloom_status expected, const char *words)
{
    ASSERT_IN_TIME(connect_in_vain(uri, expected, words));
}

/* ---- Nobody there ------------------------------------------------------------------------ */

static void nobody_listens(void **state)
{
    struct listener listener;
    char uri[160];

    assert_true(listener_open_tcp(&listener, "127.0.0.1"));
    snprintf(uri, sizeof uri, "%s", listener.uri);
    listener_close(&listener);
    assert_connect_fails(uri, HIBLOOM_EIO, "refused");

    listener_open_unix(&listener);
    snprintf(uri, sizeof uri, "%s", listener.uri);
    close(listener.fd);
    listener.fd = -1;
    assert_connect_fails(uri, HIBLOOM_EIO, "refused"); /* the socket is there, its server is not */
    listener_close(&listener);
    assert_connect_fails(uri, HIBLOOM_EIO, "No such file");
}

/* ---- A name -------------------------------------------------------------------------------- */

static int look_ups_fail, look_up_status; /* so many of them, with that */

/* In front of the C library's. */
__attribute__((visibility("default"))) int getaddrinfo(const char *name, const char *service,
                                                       const struct addrinfo *hints, struct addrinfo **out)
{
    int (*next)(const char *, const char *, const struct addrinfo *, struct addrinfo **);

    *(void **)&next = dlsym(RTLD_NEXT, "getaddrinfo");
    if (strcmp(name, "host.example") != 0)
        return next(name, service, hints, out);
    return look_ups_fail-- > 0 ? look_up_status : next("127.0.0.1", service, hints, out);
}

static int watch_nothing(void *loop, int fd, int events, void **slot, hibloom_store *store)
{
    return 0;
}

static int no_timer(void *loop, int64_t ms, void **slot, hibloom_store *store)
{
    return 0;
}

static void on_opened(hibloom_status status, void *data)
{
}

/* A try takes two: for an address of each kind. */
static void a_name_that_is_unknown_is_looked_up_once_and_one_that_cannot_be_looked_up_again(void **state)
{
    static const char *const uris[] = {"redis://host.example:%d", "redis+cluster://host.example:%d",
                                       "redis+sentinel://host.example:%d/m"};
    struct redis_server *server = redis_server_start_tcp(NULL);
    const hibloom_loop loop = {sizeof loop, NULL, watch_nothing, no_timer};
    hibloom_store *store = NULL;
    hibloom *filter;
    char uri[64];

    look_up_status = EAI_NONAME;
    for (size_t i = 0; i < sizeof uris / sizeof *uris; i++) {
        snprintf(uri, sizeof uri, uris[i], redis_server_port(server));
        look_ups_fail = 6;
        assert_fails(hibloom_connect(&store, with_options(uri, "retry=60s"), NULL), HIBLOOM_EIO, store,
                     gai_strerror(EAI_NONAME));
        hibloom_store_free(store);
        assert_int_equal(look_ups_fail, 4);
    }
    snprintf(uri, sizeof uri, uris[0], redis_server_port(server));
    assert_ok(hibloom_async_connect(&store, with_options(uri, "retry=60s"), NULL, &loop), store);
    assert_int_equal(hibloom_async_open(&filter, store, "seen", NULL, on_opened, NULL), HIBLOOM_EIO);
    assert_words(store, gai_strerror(EAI_NONAME));
    assert_int_equal(look_ups_fail, 2);
    hibloom_store_free(store);
    look_up_status = EAI_AGAIN;
    assert_ok(hibloom_connect(&store, with_options(uri, "retry=60s"), NULL), store);
    assert_true(look_ups_fail <= 0);
    hibloom_store_free(store);
    redis_server_stop(server);
}

/* ---- Faults in the first conversation ------------------------------------------------------ */

struct first_words {
    const struct script_step *script;
    hibloom_status status;
    const char *words;
};

static const struct script_step hang_up_at_once[] = {SCRIPT_ACCEPT, SCRIPT_CLOSE, SCRIPT_END};
static const struct script_step hang_up_when_asked[] = {SCRIPT_ACCEPT, SCRIPT_READ(1), SCRIPT_CLOSE, SCRIPT_END};
static const struct script_step half_a_reply[] = {SCRIPT_ACCEPT, SCRIPT_READ(1), SCRIPT_SEND("+O"), SCRIPT_CLOSE,
                                                  SCRIPT_END};
static const struct script_step half_an_error[] = {SCRIPT_ACCEPT, SCRIPT_READ(1), SCRIPT_SEND("-WRONGPA"), SCRIPT_CLOSE,
                                                   SCRIPT_END};
static const struct script_step silent[] = {SCRIPT_ACCEPT, SCRIPT_END};
static const struct script_step half_silent[] = {SCRIPT_ACCEPT, SCRIPT_SEND("+OK\r"), SCRIPT_END};
static const struct script_step never_accepts[] = {SCRIPT_END};
static const struct script_step drips[] = {SCRIPT_ACCEPT, SCRIPT_SEND("+"), SCRIPT_REPEAT("OK", 20), SCRIPT_END};
#define FOUR_TIMES(text) text text text text
#define NO_END FOUR_TIMES(FOUR_TIMES(FOUR_TIMES(FOUR_TIMES("no end in sight")))) /* 3,840 bytes */
static const struct script_step floods[] = {SCRIPT_ACCEPT, SCRIPT_SEND("$536870912\r\n"), SCRIPT_REPEAT(NO_END, 0),
                                            SCRIPT_END};
static const struct script_step announces_many[] = {SCRIPT_ACCEPT, SCRIPT_SEND("*500000000\r\n"),
                                                    SCRIPT_REPEAT(":1\r\n:1\r\n:1\r\n:1\r\n", 0), SCRIPT_END};
static const struct script_step nests[] = {SCRIPT_ACCEPT, SCRIPT_REPEAT(FOUR_TIMES("*1\r\n*1\r\n"), 0), SCRIPT_END};
/* Nobody asked for pushes, so nobody collects them. */
static const struct script_step pushes_a_flood[] = {SCRIPT_ACCEPT, SCRIPT_SEND(">100000000\r\n"),
                                                    SCRIPT_REPEAT("$3840\r\n" NO_END "\r\n", 0), SCRIPT_END};
static const struct script_step pushes[] = {SCRIPT_ACCEPT, SCRIPT_SEND(">100000000\r\n"), SCRIPT_REPEAT("+x\r\n", 20),
                                            SCRIPT_END};
static const struct script_step pushes_none[] = {SCRIPT_ACCEPT, SCRIPT_SEND(">-1\r\n"), SCRIPT_END};
static const struct script_step pushes_and_answers[] = {
    SCRIPT_ACCEPT, SCRIPT_SEND(">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nx\r\n"), SCRIPT_ANSWER("+OK\r\n"), SCRIPT_END};
static const struct script_step endless[] = {SCRIPT_ACCEPT, SCRIPT_SEND("*50000\r\n"), SCRIPT_REPEAT(":1\r\n", 20),
                                             SCRIPT_END};
static const struct script_step web_server[] = {
    SCRIPT_ACCEPT, SCRIPT_READ(1), SCRIPT_SEND("HTTP/1.1 400 Bad Request\r\n\r\n"), SCRIPT_CLOSE, SCRIPT_END};
static const struct script_step wrong_type[] = {SCRIPT_ACCEPT, SCRIPT_ANSWER(":1\r\n"), SCRIPT_END};
static const struct script_step nil[] = {SCRIPT_ACCEPT, SCRIPT_ANSWER("$-1\r\n"), SCRIPT_END};
static const struct script_step loading[] = {
    SCRIPT_ACCEPT, SCRIPT_ANSWER("-LOADING Redis is loading the dataset in memory\r\n"), SCRIPT_END};
static const struct script_step no_password[] = {
    SCRIPT_ACCEPT,
    SCRIPT_ANSWER("-ERR AUTH <password> called without any password configured for the default user.\r\n"), SCRIPT_END};
/* This comes unasked, and then the server hangs up. */
static const struct script_step protected[] = {SCRIPT_ACCEPT,
                                               SCRIPT_SEND("-DENIED Redis is running in protected mode\r\n"),
                                               SCRIPT_READ(2), SCRIPT_CLOSE, SCRIPT_END};
static const struct script_step too_many[] = {SCRIPT_ACCEPT, SCRIPT_SEND("-ERR max number of clients reached\r\n"),
                                              SCRIPT_READ(2), SCRIPT_CLOSE, SCRIPT_END};

static const struct first_words first_words[] = {
    {hang_up_at_once, HIBLOOM_EIO, ""},
    {hang_up_when_asked, HIBLOOM_EIO, ""},
    {half_a_reply, HIBLOOM_EIO, ""},
    {half_an_error, HIBLOOM_EIO, ""},
    {silent, HIBLOOM_ETIMEDOUT, "timed out waiting for the server (command_timeout="},
    {half_silent, HIBLOOM_ETIMEDOUT, ""},
    {never_accepts, HIBLOOM_ETIMEDOUT, ""},
    {drips, HIBLOOM_ETIMEDOUT, ""},
    {endless, HIBLOOM_ETIMEDOUT, ""},
    {pushes, HIBLOOM_EPROTO, ""},
    {pushes_none, HIBLOOM_EPROTO, ""},
    {pushes_and_answers, HIBLOOM_EPROTO, ""},
    {web_server, HIBLOOM_EPROTO, ""},
    {wrong_type, HIBLOOM_EPROTO, ""},
    {nil, HIBLOOM_EPROTO, ""},
    {loading, HIBLOOM_EUNAVAILABLE, "LOADING Redis is loading the dataset in memory"},
    {no_password, HIBLOOM_ESERVER, "the server has no password for this user"},
    {protected, HIBLOOM_EDENIED, "DENIED Redis is running in protected mode"},
    {too_many, HIBLOOM_EUNAVAILABLE, "max number of clients reached"},
};

static void with_query(char *uri, size_t size, const struct scripted_server *scripted)
{
    snprintf(uri, size, "%s?db=1", scripted_server_uri(scripted));
}

/* The connection is made, and then the first command goes wrong. */
static void faults_while_introducing_itself(void **state)
{
    for (size_t i = 0; i < sizeof first_words / sizeof first_words[0]; i++) {
        struct scripted_server *scripted = scripted_server_start(first_words[i].script);
        char uri[160];

        with_query(uri, sizeof uri, scripted);
        assert_connect_fails(uri, first_words[i].status, first_words[i].words);
        scripted_server_stop(scripted);
    }
}

/* Here the hanging up may be quicker than the first command, which then finds nobody to read it. */
static void a_server_that_is_full(void **state)
{
    static const struct script_step full[] = {SCRIPT_ACCEPT, SCRIPT_SEND("-ERR max number of clients reached\r\n"),
                                              SCRIPT_CLOSE, SCRIPT_END};
    struct scripted_server *scripted = scripted_server_start(full);

    for (int i = 0; i < 100; i++) {
        hibloom_store *store = NULL;
        char uri[160];

        with_query(uri, sizeof uri, scripted);
        hibloom_status status = hibloom_connect(&store, impatient(uri), NULL);
        if (status != HIBLOOM_EIO)
            assert_status(status, HIBLOOM_EUNAVAILABLE, store);
        assert_words(store, status == HIBLOOM_EUNAVAILABLE ? "max number of clients reached" : "");
        hibloom_store_free(store);
    }
    scripted_server_stop(scripted);
}

static long most_kilobytes(void)
{
    struct rusage usage;

    assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
    return usage.ru_maxrss;
}

/* More comes than any answer can be: memory must not go on growing with it. */
static hibloom_status connect_to_flood(const struct script_step *script)
{
    struct scripted_server *scripted = scripted_server_start(script);
    const long before = most_kilobytes();
    hibloom_store *store = NULL;
    const uint64_t since = test_now_ms();
    char uri[160];

    with_query(uri, sizeof uri, scripted);
    hibloom_status status = hibloom_connect(&store, impatient(uri), NULL);
    assert_true(test_now_ms() - since < 10 * TIMEOUT_MS + SLACK_MS);
    assert_in_range(most_kilobytes() - before, 0, 16 << 10);
    hibloom_store_free(store);
    scripted_server_stop(scripted);
    return status;
}

static void a_flood_is_given_up(void **state)
{
    const hibloom_status status = connect_to_flood(floods);

    if (status != HIBLOOM_ETIMEDOUT)
        assert_int_equal(status, HIBLOOM_EPROTO);
}

static void a_flood_of_values_is_nonsense_from_its_first_bytes_on(void **state)
{
    assert_int_equal(connect_to_flood(pushes_a_flood), HIBLOOM_EPROTO);
    assert_int_equal(connect_to_flood(announces_many), HIBLOOM_EPROTO);
    assert_int_equal(connect_to_flood(nests), HIBLOOM_EPROTO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_listens),
        cmocka_unit_test(a_name_that_is_unknown_is_looked_up_once_and_one_that_cannot_be_looked_up_again),
        cmocka_unit_test(faults_while_introducing_itself),
        cmocka_unit_test(a_server_that_is_full),
        cmocka_unit_test(a_flood_is_given_up),
        cmocka_unit_test(a_flood_of_values_is_nonsense_from_its_first_bytes_on),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
