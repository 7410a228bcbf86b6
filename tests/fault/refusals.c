/* What a server refuses, by the code of its error: each call that hears it has the
 * status that tells whose matter it is, and words that begin with the server,
 * name the key and repeat what was said. */
#include "support/borrowed.h"
#include "support/scripted_server.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *words;
    hibloom_status status;
} refusals[] = {
    {"LOADING Redis is loading the dataset in memory", HIBLOOM_EUNAVAILABLE},
    {"BUSY Redis is busy running a script", HIBLOOM_EUNAVAILABLE},
    {"OOM command not allowed when used memory > 'maxmemory'", HIBLOOM_EUNAVAILABLE},
    {"READONLY You can't write against a read only replica", HIBLOOM_EUNAVAILABLE},
    {"MASTERDOWN Link with MASTER is down", HIBLOOM_EUNAVAILABLE},
    {"CLUSTERDOWN Hash slot not served", HIBLOOM_EUNAVAILABLE},
    {"TRYAGAIN Multiple keys request during rehashing of slot", HIBLOOM_EUNAVAILABLE},
    {"NOREPLICAS Not enough good replicas to write", HIBLOOM_EUNAVAILABLE},
    {"MISCONF Redis is configured to save RDB snapshots", HIBLOOM_EUNAVAILABLE},
    {"MOVED 3999 127.0.0.1:6381", HIBLOOM_EUNAVAILABLE},
    {"ASK 3999 127.0.0.1:6381", HIBLOOM_EUNAVAILABLE},
    {"ERR max number of clients reached", HIBLOOM_EUNAVAILABLE},
    {"NOAUTH Authentication required", HIBLOOM_EDENIED},
    {"WRONGPASS invalid username-password pair", HIBLOOM_EDENIED},
    {"ERR invalid password", HIBLOOM_EDENIED},
    {"DENIED Redis is running in protected mode", HIBLOOM_EDENIED},
    {"NOPERM this user has no permissions to run the 'eval' command", HIBLOOM_EDENIED},
    {"ERR ACL failure in script: User app has no permissions", HIBLOOM_EDENIED},
    {"ERR The user executing the script can't run this command or subcommand", HIBLOOM_EDENIED},
    {"ERR Error running script (call to f_0a1b): @user_script:12: -OOM command not allowed", HIBLOOM_EUNAVAILABLE},
    {"ERR Error running script (call to f_0a1b): @user_script:12: @user_script: 12: -READONLY You can't write",
     HIBLOOM_EUNAVAILABLE},
    {"WRONGTYPE Operation against a key holding the wrong kind of value", HIBLOOM_EMISMATCH},
    {"ERR unknown command 'EVAL'", HIBLOOM_ESERVER},
    {"ERR value is not an integer or out of range", HIBLOOM_ESERVER},
    {"OOMPH is no code that we know", HIBLOOM_ESERVER},
    {"ERR this LOADING comes too late to be a code", HIBLOOM_ESERVER},
};

enum { REFUSALS = sizeof refusals / sizeof refusals[0] };

static void assert_retryable(hibloom_status status)
{
    assert_int_equal(hibloom_is_retryable(status), status == HIBLOOM_EUNAVAILABLE || status == HIBLOOM_EIO ||
                                                       status == HIBLOOM_ETIMEDOUT || status == HIBLOOM_EBUSY);
}

static void assert_said(const hibloom_store *store, const char *where, const char *words)
{
    char begins[1024];

    snprintf(begins, sizeof begins, "%s: %s", where, words);
    if (strncmp(hibloom_store_error(store), begins, strlen(begins)) != 0)
        fail_msg("\"%s\" does not begin with \"%s\"", hibloom_store_error(store), begins);
}

/* How far a server lets come whom it refuses then: it accepts the connection,
 * it answers the greeting, or it lets a bare bitmap be joined that is not there. */
enum lets_come { LETS_CONNECT, LETS_IN, LETS_JOIN };
enum { STEPS = 9 };

static struct scripted_server *start_refusing(struct script_step script[STEPS], char *reply, size_t size, int refusal,
                                              enum lets_come so_far, const char *host)
{
    const struct script_step first[] = {SCRIPT_WELCOME, SCRIPT_JOIN(ABSENT)};
    int steps = so_far == LETS_JOIN ? STEPS - 2 : so_far == LETS_IN ? 3 : 1;

    const int len = snprintf(reply, size, "-%s\r\n", refusals[refusal].words);
    memcpy(script, first, sizeof first);
    script[steps++] = (struct script_step){SCRIPT_DO_ANSWER, reply, (size_t)len, 0};
    script[steps] = (struct script_step)SCRIPT_END;
    return host != NULL ? scripted_server_start_tcp(script, host) : scripted_server_start(script);
}

/* ---- Calls on a handle --------------------------------------------------------------- */

enum { HANDLE_CALLS = 7 };

static hibloom_status call(hibloom *filter, int number)
{
    hibloom_info info;
    bool answer;

    switch (number) {
    case 0: return hibloom_add(filter, "x", 1, NULL);
    case 1: return hibloom_add(filter, "x", 1, &answer);
    case 2: return hibloom_contains(filter, "x", 1, &answer);
    case 3: return hibloom_get_info(filter, &info);
    case 4: return hibloom_clear(filter);
    case 5: return hibloom_expire(filter, 10);
    default: return hibloom_drop(filter);
    }
}

static void a_refusal_in_any_call_has_its_status_and_words(void **state)
{
    (void)state;
    for (int i = 0; i < REFUSALS; i++) {
        struct script_step script[STEPS];
        char reply[256], words[256];
        struct scripted_server *scripted = start_refusing(script, reply, sizeof reply, i, LETS_JOIN, NULL);
        hibloom_store *store = test_connect(scripted_server_uri(scripted), NULL);
        hibloom *filter = attach_any(store);

        snprintf(words, sizeof words, "'any': %s", refusals[i].words);
        for (int number = 0; number < HANDLE_CALLS; number++) {
            const hibloom_status status = call(filter, number);

            assert_status(status, refusals[i].status, store);
            assert_said(store, scripted_server_uri(scripted), words);
            assert_retryable(status);
        }
        hibloom_close(filter);
        hibloom_store_free(store);
        scripted_server_stop(scripted);
    }
}

/* ---- Calls by name, and what comes before them ------------------------------------------ */

/* All that they ask is refused: the two places of the name. */
static void a_refusal_of_a_name_has_its_status_and_words(void **state)
{
    const hibloom_spec spec = test_spec("bits=4096 hashes=4");

    (void)state;
    for (int i = 0; i < REFUSALS; i++) {
        struct script_step script[STEPS];
        char reply[256];
        struct scripted_server *scripted = start_refusing(script, reply, sizeof reply, i, LETS_IN, NULL);
        hibloom_store *store = test_connect(scripted_server_uri(scripted), NULL);
        hibloom *filter = NULL;

        assert_status(hibloom_open(&filter, store, "any", &spec), refusals[i].status, store);
        assert_status(hibloom_open(&filter, store, "any", NULL), refusals[i].status, store);
        assert_status(hibloom_attach(&filter, store, "any", &spec), refusals[i].status, store);
        assert_status(hibloom_repair(store, "any"), refusals[i].status, store);
        assert_status(hibloom_delete(store, "any"), refusals[i].status, store);
        assert_said(store, scripted_server_uri(scripted), "'any");
        assert_null(filter);
        hibloom_store_free(store);
        scripted_server_stop(scripted);
    }
}

/* The first words of a connection, which are no key's. */
static void a_refusal_to_let_in_has_its_status_and_words(void **state)
{
    (void)state;
    for (int i = 0; i < REFUSALS; i++) {
        struct script_step script[STEPS];
        char reply[256], uri[200];
        struct scripted_server *scripted = start_refusing(script, reply, sizeof reply, i, LETS_CONNECT, NULL);
        hibloom_store *store;

        snprintf(uri, sizeof uri, "%s?db=3", scripted_server_uri(scripted));
        assert_status(hibloom_connect(&store, uri, NULL), refusals[i].status, store);
        assert_said(store, scripted_server_uri(scripted), refusals[i].words);
        hibloom_store_free(store);
        scripted_server_stop(scripted);
    }
}

/* ---- Which server ------------------------------------------------------------------------- */

static void words_begin_with_the_server(void **state)
{
    static const char *const hosts[] = {"127.0.0.1", "::1"};
    struct script_step script[STEPS];
    char reply[256], where[64];
    hibloom *filter = NULL;
    hibloom_store *store;

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct scripted_server *scripted = start_refusing(script, reply, sizeof reply, 0, LETS_IN, hosts[i]);
        if (scripted == NULL) /* this machine has no such address */
            continue;
        store = test_connect(scripted_server_uri(scripted), NULL);
        assert_status(hibloom_open(&filter, store, "any", NULL), HIBLOOM_EUNAVAILABLE, store);
        snprintf(where, sizeof where, i == 0 ? "%s:%d" : "[%s]:%d", hosts[i], scripted_server_port(scripted));
        assert_said(store, where, "'any': LOADING");
        hibloom_store_free(store);
        scripted_server_stop(scripted);
    }
    struct scripted_server *scripted = start_refusing(script, reply, sizeof reply, 0, LETS_CONNECT, NULL);
    redisContext *context = connect_owner(scripted_server_socket(scripted));
    assert_ok(hibloom_borrow(&store, context), store);
    assert_status(hibloom_open(&filter, store, "any", NULL), HIBLOOM_EUNAVAILABLE, store);
    assert_said(store, "borrowed connection", "'any': LOADING");
    hibloom_store_free(store);
    redisFree(context);
    scripted_server_stop(scripted);
}

/* ---- And which may pass -------------------------------------------------------------------- */

static void every_status_is_retryable_or_not(void **state)
{
    (void)state;
    for (int status = -1; status < 100; status++)
        assert_retryable((hibloom_status)status);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_refusal_in_any_call_has_its_status_and_words),
        cmocka_unit_test(a_refusal_of_a_name_has_its_status_and_words),
        cmocka_unit_test(a_refusal_to_let_in_has_its_status_and_words),
        cmocka_unit_test(words_begin_with_the_server),
        cmocka_unit_test(every_status_is_retryable_or_not),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
