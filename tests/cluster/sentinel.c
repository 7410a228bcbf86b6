/* Sentinels that name the master: it is killed under a call, and calls go on with the new one. Passwords. Replicas that
 * are read from. */
#include "../support/items.h"
#include "../support/test.h"
#include "../support/redis_server.h"
#include "../support/sentinel.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>

enum { ITEMS = 1000, REPLICAS = 2 };

#define SMALL "bits=1000000 hashes=7 seed=1"
#define PATIENT "retry=20s&command_timeout=1s"

static struct sentinel *sentinel;
static hibloom_item *items;
static bool answers[ITEMS];

static int set_up(void **state)
{
    items = items_new("in", ITEMS);
    sentinel = sentinel_start(&(struct sentinel_options){.replicas = REPLICAS, .sentinels = 3});
    return 0;
}

static int tear_down(void **state)
{
    sentinel_stop(sentinel);
    items_free(items);
    return 0;
}

static struct redis_server *master(void)
{
    return sentinel_server(sentinel, sentinel_master(sentinel));
}

static hibloom_status look(hibloom *filter)
{
    return hibloom_contains_many(filter, items, ITEMS, answers);
}

static void assert_found(void)
{
    for (size_t i = 0; i < ITEMS; i++)
        assert_true(answers[i]);
}

static void what_replicas_have_outlives_a_master(void **state)
{
    hibloom_store *store = test_connect(with_options(sentinel_uri(sentinel), PATIENT "&min_replicas=1"), NULL);
    hibloom *filter = test_open(store, "seen", SMALL);
    const int old = sentinel_master(sentinel);

    assert_ok(hibloom_add_many(filter, items, ITEMS / 2, NULL), store);
    redis_server_kill(sentinel_server(sentinel, old));
    assert_status(hibloom_add_many(filter, items, ITEMS, NULL), HIBLOOM_ELOST, store);
    assert_ok(hibloom_add_many(filter, items + ITEMS / 2, ITEMS / 2, NULL), store);
    assert_ok(look(filter), store);
    assert_found();
    assert_int_not_equal(sentinel_master(sentinel), old);
    redis_server_restart(sentinel_server(sentinel, old));
    sentinel_wait_settled(sentinel);
    assert_dropped_last(filter, store);
}

static void a_master_that_nobody_knows_is_said_in_words(void **state)
{
    hibloom_store *store;
    char uri[300];

    snprintf(uri, sizeof uri, "%s-2", sentinel_uri(sentinel));
    assert_fails(hibloom_connect(&store, uri, NULL), HIBLOOM_EUNAVAILABLE, store, "no master of that name");
    hibloom_store_free(store);
    snprintf(uri, sizeof uri, "redis+sentinel://%s/m", redis_server_uri(master()) + strlen("redis://"));
    assert_fails(hibloom_connect(&store, uri, NULL), HIBLOOM_ESERVER, store, "this is no Sentinel but a Redis");
    hibloom_store_free(store);
}

static void a_sentinel_behind_the_others_is_passed_over(void **state)
{
    char uri[300];

    for (int i = 0; i < 3; i++)
        freeReplyObject(redis_server_must(sentinel_watcher(sentinel, i), "SENTINEL MONITOR mymaster-3 127.0.0.1 %d 2",
                                          i > 0 ? redis_server_port(master()) : 1));
    snprintf(uri, sizeof uri, "%s-3", sentinel_uri(sentinel));
    hibloom_store_free(test_connect(with_options(uri, PATIENT), NULL));
    for (int i = 0; i < 3; i++)
        freeReplyObject(redis_server_must(sentinel_watcher(sentinel, i), "SENTINEL REMOVE mymaster-3"));
}

/* Sentinels have no password unless they are given one: the URI's is the servers'. */
static void a_password_is_the_servers(void **state)
{
    static const char *const args[] = {"--requirepass", "secret", "--masterauth", "secret", "--user", "worker", "on",
                                       ">secret",       "~*",     "&*",           "+@all",  NULL};
    static const char *const users[] = {"", "default", "worker"};
    struct sentinel *own = sentinel_start(&(struct sentinel_options){.replicas = 1, .sentinels = 1, .args = args});
    hibloom_store *store;
    char uri[300];

    for (size_t i = 0; i < sizeof users / sizeof *users; i++) {
        snprintf(uri, sizeof uri, "redis+sentinel://%s:secret@%s", users[i],
                 sentinel_uri(own) + strlen("redis+sentinel://"));
        store = test_connect(uri, NULL);
        hibloom_close(test_open(store, "seen", SMALL));
        hibloom_store_free(store);
    }
    snprintf(uri, sizeof uri, "redis+sentinel://default:wrong@%s", sentinel_uri(own) + strlen("redis+sentinel://"));
    assert_status(hibloom_connect(&store, uri, NULL), HIBLOOM_EDENIED, store);
    assert_null(strstr(hibloom_store_error(store), "wrong@"));
    hibloom_store_free(store);
    sentinel_stop(own);
}

static void sentinels_may_have_the_same_password(void **state)
{
    static const char *const args[] = {"--requirepass", "secret", "--masterauth", "secret", NULL};
    static const char *const sentinel_args[] = {"--requirepass", "secret", NULL};
    struct sentinel *own = sentinel_start(
        &(struct sentinel_options){.replicas = 1, .sentinels = 1, .args = args, .sentinel_args = sentinel_args});
    char uri[300];

    snprintf(uri, sizeof uri, "redis+sentinel://default:secret@%s", sentinel_uri(own) + strlen("redis+sentinel://"));
    hibloom_store *store = test_connect(uri, NULL);
    hibloom_close(test_open(store, "seen", SMALL));
    hibloom_store_free(store);
    sentinel_stop(own);
}

static long long looks_on(const struct redis_server *server)
{
    redisContext *redis = redis_server_connect(server);
    const long long n = redis_server_calls_of(redis, "getbit");

    redisFree(redis);
    return n;
}

static long long looks_on_replicas(void)
{
    long long n = 0;

    for (int i = 0; i < sentinel_servers(sentinel); i++)
        if (redis_server_runs(sentinel_server(sentinel, i)) && sentinel_server(sentinel, i) != master())
            n += looks_on(sentinel_server(sentinel, i));
    return n;
}

static void replicas_of_a_master_answer_look_ups(void **state)
{
    sentinel_wait_settled(sentinel);
    hibloom_store *store = test_connect(
        with_options(sentinel_uri(sentinel), PATIENT "&read_from=replicas&min_replicas=%d", REPLICAS), NULL);
    hibloom *filter = test_open(store, "seen", SMALL);

    assert_ok(hibloom_add_many(filter, items, ITEMS, NULL), store);
    const long long there = looks_on(master()), elsewhere = looks_on_replicas();
    for (int i = 0; i < 4; i++)
        assert_ok(look(filter), store);
    assert_found();
    assert_int_equal(looks_on(master()), there);
    assert_int_equal(looks_on_replicas() - elsewhere, 4 * ITEMS * 7);
    assert_dropped_last(filter, store);
}

static void words_name_the_replica_that_stands_still(void **state)
{
    hibloom_store *store = test_connect(with_options(sentinel_uri(sentinel), PATIENT "&read_from=replicas"), NULL);
    hibloom *filter = test_open(store, "seen", SMALL);

    for (int i = 0; i < sentinel_servers(sentinel); i++)
        if (sentinel_server(sentinel, i) != master())
            redis_server_pause(sentinel_server(sentinel, i));
    hibloom_store_deadline(store, 300);
    assert_fails(look(filter), HIBLOOM_ETIMEDOUT, store, "timed out waiting for the server (hibloom_store_deadline)");
    assert_null(strstr(hibloom_store_error(store), redis_server_uri(master()) + strlen("redis://")));
    assert_null(strstr(hibloom_store_error(store), "Sentinel"));
    hibloom_store_deadline(store, 0);
    for (int i = 0; i < sentinel_servers(sentinel); i++)
        if (sentinel_server(sentinel, i) != master())
            redis_server_resume(sentinel_server(sentinel, i));
    assert_dropped_last(filter, store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_master_that_nobody_knows_is_said_in_words),
        cmocka_unit_test(a_sentinel_behind_the_others_is_passed_over),
        cmocka_unit_test(a_password_is_the_servers),
        cmocka_unit_test(sentinels_may_have_the_same_password),
        cmocka_unit_test(replicas_of_a_master_answer_look_ups),
        cmocka_unit_test(what_replicas_have_outlives_a_master),
        cmocka_unit_test(words_name_the_replica_that_stands_still),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
