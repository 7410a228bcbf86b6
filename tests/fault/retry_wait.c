/* How long a call goes on with retry_ms: while a server refuses for now it waits, it
 * gives up in time and says how often it tried, and a deadline ends it earlier. */
#include "support/proxied.h"
#include "support/scripted_server.h"
#include "support/subject.h"

#include <hiredis/hiredis.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RETRY_MS = 5000, REFUSED_MS = 400, SHORT_MS = 600, SLACK_MS = 1500 };

static hibloom_stats stats_of(const hibloom_store *store)
{
    hibloom_stats stats;

    hibloom_get_stats(store, &stats);
    return stats;
}

static hibloom_store *connect_patient(const char *uri, uint32_t retry_ms)
{
    hibloom_connect_options options = HIBLOOM_CONNECT_OPTIONS_INIT;

    options.retry_ms = retry_ms;
    return test_connect(uri, &options);
}

/* ---- A server that refuses for now ----------------------------------------------------- */

struct trouble {
    const char *begin[3], *end; /* commands */
    bool endless_script;        /* or it is one that never ends */
    bool refuses_reads;
};

static void *end_later(void *argument)
{
    const struct trouble *trouble = argument;
    redisContext *own = redis_server_connect(server);

    test_sleep_ms(REFUSED_MS);
    freeReplyObject(redisCommand(own, trouble->end));
    redisFree(own);
    return NULL;
}

static void *run_endless_script(void *argument)
{
    redisContext *own = redis_server_connect(server);

    freeReplyObject(redisCommand(own, "EVAL %s 0", "while true do end"));
    redisFree(own);
    return NULL;
}

/* Until all others are told that it is busy. */
static void wait_until_busy(void)
{
    redisContext *own = redis_server_connect(server);

    for (int i = 0; i < 500; i++) {
        redisReply *reply = redisCommand(own, "GET x");
        const bool busy = reply != NULL && reply->type == REDIS_REPLY_ERROR && strncmp(reply->str, "BUSY", 4) == 0;
        freeReplyObject(reply);
        if (busy)
            break;
        test_sleep_ms(10);
    }
    redisFree(own);
}

/* The item is fresh, and nothing was carried out: so it is new, and nothing is in doubt. */
static void wait_out(const struct trouble *trouble, const struct call *call)
{
    struct subject subject;
    pthread_t ends, runs;

    subject_open(&subject, connect_patient(redis_server_uri(server), RETRY_MS), &variants[1]);
    for (int i = 0; i < 3 && trouble->begin[i] != NULL; i++)
        test_command(redis, trouble->begin[i]);
    if (trouble->endless_script) {
        assert_int_equal(pthread_create(&runs, NULL, run_endless_script, NULL), 0);
        wait_until_busy();
    }
    const hibloom_stats before = stats_of(subject.store);
    const uint64_t since = test_now_ms();
    assert_int_equal(pthread_create(&ends, NULL, end_later, (void *)trouble), 0);
    assert_ok(call->run(&subject), subject.store);
    const uint64_t elapsed = test_now_ms() - since;
    pthread_join(ends, NULL);
    if (trouble->endless_script)
        pthread_join(runs, NULL);
    const hibloom_stats now = stats_of(subject.store);
    if (!call->reads_only || trouble->refuses_reads) {
        assert_in_range(elapsed, REFUSED_MS * 9 / 10, REFUSED_MS + SLACK_MS);
        assert_true(now.retries > before.retries);
    } else {
        assert_int_equal(now.retries, before.retries);
    }
    assert_int_equal(now.in_doubt, before.in_doubt);
    subject_end(&subject);
}

static void what_a_server_refuses_for_now_is_waited_for(void **state)
{
    static const struct trouble troubles[] = {
        {.begin = {"CONFIG SET maxmemory 1"}, .end = "CONFIG SET maxmemory 0"},        /* OOM */
        {.begin = {"REPLICAOF 127.0.0.1 1"}, .end = "REPLICAOF NO ONE"},               /* READONLY */
        {.begin = {"CONFIG SET replica-serve-stale-data no", "REPLICAOF 127.0.0.1 1"}, /* MASTERDOWN */
         .end = "REPLICAOF NO ONE",
         .refuses_reads = true},
        {.begin = {"CONFIG SET min-replicas-to-write 1"}, .end = "CONFIG SET min-replicas-to-write 0"}, /* NOREPLICAS */
        {.begin = {"CONFIG SET lua-time-limit 50"},                                                     /* BUSY */
         .end = "SCRIPT KILL",
         .endless_script = true,
         .refuses_reads = true},
    };
    static const char *const names[] = {"add_many", "add_many, is_new asked for", "contains_many", "clear"};

    for (size_t t = 0; t < sizeof troubles / sizeof *troubles; t++)
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            wait_out(&troubles[t], call_named(names[i]));
    test_command(redis, "CONFIG SET replica-serve-stale-data yes");
}

/* LOADING comes on a connection that is new, behind a greeting that is not refused. */
static void a_server_that_is_loading_is_waited_for(void **state)
{
#define LOADING "-LOADING Redis is loading the dataset in memory\r\n"
    static const struct script_step script[] = {
        SCRIPT_ACCEPT,
        SCRIPT_READ(1),
        SCRIPT_SEND("$0\r\n\r\n"),
        SCRIPT_READ(2),
        SCRIPT_SEND("$0\r\n\r\n" LOADING),
        SCRIPT_READ(1),
        SCRIPT_SEND(LOADING),
        SCRIPT_READ(1),
        SCRIPT_SEND("$0\r\n\r\n"),
        SCRIPT_READ(2),
        SCRIPT_SEND(THERE),
        SCRIPT_READ(5),
        SCRIPT_SEND(LOADING LOADING LOADING LOADING LOADING),
        SCRIPT_READ(5),
        SCRIPT_SEND("*4\r\n:1\r\n:1\r\n:1\r\n:0\r\n*4\r\n:1\r\n:1\r\n:1\r\n:1\r\n"),
        SCRIPT_SEND(":131072\r\n$8\r\n\1\1\1\1\1\1\1\1\r\n"
                    "$0\r\n\r\n"),
        SCRIPT_END};
    struct scripted_server *scripted = scripted_server_start(script);
    hibloom_store *store = connect_patient(scripted_server_uri(scripted), RETRY_MS);
    hibloom *filter = test_attach(store, "any", "bits=1048576 hashes=4 seed=5eed");

    assert_int_equal(stats_of(store).retries, 2);
    hibloom_close(filter);
    hibloom_store_free(store);
    scripted_server_stop(scripted);
}

/* ---- Giving up ---------------------------------------------------------------------------- */

static unsigned tries_said(const hibloom_store *store)
{
    const char *at = strstr(hibloom_store_error(store), "tried ");

    if (at == NULL)
        fail_msg("it is not said how often: %s", hibloom_store_error(store));
    return (unsigned)atoi(at + 6);
}

/* Each try of a contains is four GETBIT and the guard. */
static void a_server_that_refuses_for_ever_is_given_up_in_time(void **state)
{
    hibloom_store *store = connect_patient(proxy_uri(proxy), SHORT_MS);
    hibloom *filter = test_open(store, "refused", variants[0].spec);
    bool found;

    proxy_answer(proxy, "-LOADING Redis is loading the dataset in memory\r\n");
    proxy_mark(proxy);
    const uint64_t since = test_now_ms();
    assert_status(hibloom_contains(filter, "x", 1, &found), HIBLOOM_EUNAVAILABLE, store);
    assert_in_range(test_now_ms() - since, SHORT_MS * 9 / 10, SHORT_MS + SLACK_MS);
    assert_non_null(strstr(hibloom_store_error(store), "LOADING"));
    assert_int_equal(tries_said(store), proxy_values(proxy, PROXY_REQUESTS) / 5);
    proxy_answer(proxy, NULL);
    assert_ok(hibloom_contains(filter, "x", 1, &found), store);
    assert_ok(hibloom_drop(filter), store);
    hibloom_close(filter);
    hibloom_store_free(store);
}

/* It listens no more, so each try is a connection that is refused. */
static void a_server_that_is_gone_is_given_up_in_time(void **state)
{
    struct redis_server *own = redis_server_start_tcp(NULL);
    hibloom_store *store = connect_patient(redis_server_uri(own), SHORT_MS);
    hibloom *filter = test_open(store, "gone", variants[1].spec);
    bool is_new;

    redis_server_kill(own);
    for (int i = 0; i < 2; i++) {
        const uint64_t since = test_now_ms();
        assert_status(hibloom_add(filter, "x", 1, &is_new), HIBLOOM_EIO, store);
        assert_in_range(test_now_ms() - since, SHORT_MS * 9 / 10, SHORT_MS + SLACK_MS);
        assert_in_range(tries_said(store), 4, 100); /* and the pauses grow */
    }
    hibloom_close(filter);
    hibloom_store_free(store);
    const hibloom_connect_options options = {.size = sizeof options, .retry_ms = SHORT_MS};
    const uint64_t since = test_now_ms();
    assert_status(hibloom_connect(&store, redis_server_uri(own), &options), HIBLOOM_EIO, store);
    assert_in_range(test_now_ms() - since, SHORT_MS * 9 / 10, SHORT_MS + SLACK_MS);
    hibloom_store_free(store);
    redis_server_stop(own);
}

/* A redirect is for who knows a cluster: under any other URI no try mends it, and nothing is sent elsewhere. */
static void who_is_no_cluster_is_not_redirected(void **state)
{
    static const char *const redirects[] = {"-MOVED 3999 127.0.0.1:1\r\n", "-ASK 3999 127.0.0.1:1\r\n"};
    hibloom_store *store = connect_patient(proxy_uri(proxy), RETRY_MS);
    hibloom *filter = test_open(store, "redirected", variants[0].spec);
    bool found;

    for (size_t i = 0; i < sizeof redirects / sizeof *redirects; i++) {
        proxy_answer(proxy, redirects[i]);
        const uint64_t since = test_now_ms();
        assert_status(hibloom_contains(filter, "x", 1, &found), HIBLOOM_EUNAVAILABLE, store);
        assert_in_range(test_now_ms() - since, 0, SLACK_MS);
        assert_int_equal(stats_of(store).redirects, 0);
        assert_int_equal(stats_of(store).connections, 1);
    }
    proxy_answer(proxy, NULL);
    assert_ok(hibloom_drop(filter), store);
    hibloom_close(filter);
    hibloom_store_free(store);
}

static void without_retry_ms_a_call_fails_at_once(void **state)
{
    hibloom_store *store = test_connect(proxy_uri(proxy), NULL);
    hibloom *filter = test_open(store, "once", variants[1].spec);
    bool is_new;

    const hibloom_stats before = stats_of(store);
    proxy_cut(proxy, PROXY_REPLIES, 0);
    assert_status(hibloom_add(filter, "x", 1, &is_new), HIBLOOM_EIO, store);
    proxy_heal(proxy);
    proxy_replace(proxy, 1, 10,
                  "-LOADING Redis is loading the dataset in memory\r\n"); /* the first is the greeting's */
    const uint64_t since = test_now_ms();
    assert_status(hibloom_add(filter, "y", 1, &is_new), HIBLOOM_EUNAVAILABLE, store);
    assert_in_range(test_now_ms() - since, 0, SLACK_MS);
    assert_int_equal(stats_of(store).retries, before.retries);
    assert_int_equal(stats_of(store).in_doubt, before.in_doubt);
    proxy_heal(proxy);
    assert_ok(hibloom_drop(filter), store);
    hibloom_close(filter);
    hibloom_store_free(store);
}

/* ---- Replicas ------------------------------------------------------------------------------ */

static atomic_bool over;

/* Cuts off whoever waits for replicas, again and again. */
static void *cut_waiting(void *argument)
{
    redisContext *own = redis_server_connect(server);

    for (const uint64_t until = test_now_ms() + RETRY_MS; !atomic_load(&over) && test_now_ms() < until;) {
        redisReply *list = redisCommand(own, "CLIENT LIST");
        const char *at = strstr(list->str, " cmd=wait ");
        while (at != NULL && at > list->str && at[-1] != '\n')
            at--;
        if (at != NULL)
            freeReplyObject(redisCommand(own, "CLIENT KILL ID %d", atoi(at + strlen("id="))));
        freeReplyObject(list);
        test_sleep_ms(1);
    }
    redisFree(own);
    return NULL;
}

/* The adds come through each time, so there is always an answer, and never an end. */
static void adds_whose_replicas_are_lost_again_and_again_are_given_up_in_time(void **state)
{
    static const uint32_t retries[] = {0, SHORT_MS};

    for (size_t i = 0; i < 2; i++) {
        const hibloom_connect_options options = {
            .size = sizeof options, .retry_ms = retries[i], .min_replicas = 1, .replicas_ms = 4000};
        hibloom_store *store = test_connect(redis_server_uri(server), &options);
        hibloom *filter = test_open(store, "replicas", variants[1].spec);
        pthread_t cuts;
        bool is_new;

        test_command(redis, "CONFIG RESETSTAT");
        atomic_store(&over, false);
        assert_int_equal(pthread_create(&cuts, NULL, cut_waiting, NULL), 0);
        const uint64_t since = test_now_ms();
        const hibloom_status status = hibloom_add(filter, "x", 1, &is_new);
        const uint64_t elapsed = test_now_ms() - since;
        atomic_store(&over, true);
        pthread_join(cuts, NULL);
        assert_status(status, HIBLOOM_EUNAVAILABLE, store);
        assert_non_null(strstr(hibloom_store_error(store), "call again"));
        assert_in_range(elapsed, retries[i] * 9 / 10, retries[i] + SLACK_MS);
        if (retries[i] == 0)
            assert_int_equal(redis_server_calls_of(redis, "wait"), 1);
        else /* and the pauses grow */
            assert_in_range(redis_server_calls_of(redis, "wait"), 3, 20);
        assert_ok(hibloom_drop(filter), store);
        hibloom_close(filter);
        hibloom_store_free(store);
    }
}

/* ---- Deadlines ----------------------------------------------------------------------------- */

static void assert_deadline(hibloom *filter, hibloom_store *store)
{
    bool found;

    for (int i = 0; i < 2; i++) {
        const uint64_t since = test_now_ms();
        assert_status(i == 0 ? hibloom_contains(filter, "x", 1, &found) : hibloom_get_info(filter, &(hibloom_info){0}),
                      HIBLOOM_ETIMEDOUT, store);
        assert_in_range(test_now_ms() - since, SHORT_MS * 9 / 10, SHORT_MS + SLACK_MS);
    }
}

static void a_deadline_ends_silence_refusals_and_lost_connections(void **state)
{
    struct redis_server *own = redis_server_start_tcp(NULL);
    struct proxy *before = proxy_start(redis_server_socket(own));
    hibloom_store *store = connect_patient(proxy_uri(before), 60000);
    hibloom *filter = test_open(store, "deadline", variants[1].spec);
    bool found;

    hibloom_store_deadline(store, SHORT_MS);
    redis_server_pause(own);
    assert_deadline(filter, store);
    redis_server_resume(own);
    assert_ok(hibloom_contains(filter, "x", 1, &found), store);
    proxy_answer(before, "-LOADING Redis is loading the dataset in memory\r\n");
    assert_deadline(filter, store);
    proxy_answer(before, NULL);
    assert_ok(hibloom_contains(filter, "x", 1, &found), store);
    redis_server_kill(own);
    assert_deadline(filter, store);
    redis_server_restart(own);
    hibloom_store_deadline(store, 0);
    assert_status(hibloom_contains(filter, "x", 1, &found), HIBLOOM_ELOST, store); /* it answers again */
    hibloom_close(filter);
    hibloom_store_free(store);
    proxy_stop(before);
    redis_server_stop(own);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_server_refuses_for_now_is_waited_for),
        cmocka_unit_test(a_server_that_is_loading_is_waited_for),
        cmocka_unit_test(a_server_that_refuses_for_ever_is_given_up_in_time),
        cmocka_unit_test(a_server_that_is_gone_is_given_up_in_time),
        cmocka_unit_test(who_is_no_cluster_is_not_redirected),
        cmocka_unit_test(without_retry_ms_a_call_fails_at_once),
        cmocka_unit_test(adds_whose_replicas_are_lost_again_and_again_are_given_up_in_time),
        cmocka_unit_test(a_deadline_ends_silence_refusals_and_lost_connections),
    };

    return cmocka_run_group_tests(tests, proxied_set_up, proxied_tear_down);
}
