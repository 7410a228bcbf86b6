/* Sentinels that name the master: it is killed or stops answering under load, and
 * calls go on with who they name then. Replicas that are read from, behind Sentinels
 * and in a cluster. */
#include "../support/items.h"
#include "../support/load.h"
#include "../support/redis_cluster.h"
#include "../support/sentinel.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>

enum { ITEMS = 1000 };

#define TEXT LOAD_BITS " seed=1"
#define SMALL "bits=1000000 hashes=7 seed=1"
#define PATIENT .size = sizeof(hibloom_connect_options), .retry_ms = 20000, .command_timeout_ms = 1000

static const hibloom_connect_options patient = {PATIENT}, careful = {PATIENT, .min_replicas = 1},
                                     reading = {PATIENT, .read_from_replicas = true};

static struct sentinel *sentinel;
static hibloom_item *items;
static bool answers[ITEMS];

static int set_up(void **state)
{
    items = items_new("in", ITEMS);
    sentinel = sentinel_start(&(struct sentinel_options){.replicas = 2, .sentinels = 3});
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

/* ---- The master is lost ------------------------------------------------------------------ */

static void kill_master(void)
{
    const int old = sentinel_master(sentinel);

    redis_server_kill(sentinel_server(sentinel, old));
    sentinel_wait_failover(sentinel, old);
    redis_server_restart(sentinel_server(sentinel, old));
}

static void pause_master(void)
{
    const int old = sentinel_master(sentinel);

    redis_server_pause(sentinel_server(sentinel, old));
    sentinel_wait_failover(sentinel, old);
    redis_server_resume(sentinel_server(sentinel, old));
}

static void goes_on_under_load(void (*happens)(void), const char *what)
{
    hibloom_store *store = test_connect(sentinel_uri(sentinel), NULL);
    (void)!hibloom_delete(store, "seen"); /* of a test that failed */
    hibloom_close(test_open(store, "seen", TEXT));
    struct load *load = load_start(sentinel_uri(sentinel), "seen", TEXT, &careful, true, false);
    uint64_t longest = 0;
    unsigned told = 0;

    load_wait(load, 20);
    happens();
    load_wait(load, 20);
    load_stop(load);
    sentinel_wait_settled(sentinel);
    hibloom_store_free(store);
    store = test_connect(sentinel_uri(sentinel), NULL);
    hibloom *filter = test_open(store, "seen", TEXT);
    assert_int_equal(load_missing(load, filter, store), 0);
    assert_int_equal(load_winners(load, 0, 0), 0);
    for (int i = 0; i < LOAD_WORKERS; i++) {
        assert_true(load->workers[i].told <= 1); /* one whose last call was in the middle of it is not told any more */
        told += load->workers[i].told;
        assert_int_equal(load->workers[i].unavailable, 0);
        longest = load->workers[i].longest_ms > longest ? load->workers[i].longest_ms : longest;
    }
    assert_true(told > 0);
    print_message("%s: the longest call %llu ms\n", what, (unsigned long long)longest);
    assert_ok(hibloom_drop(filter), store);
    hibloom_close(filter);
    hibloom_store_free(store);
    load_free(load);
}

static void what_replicas_have_outlives_a_master(void **state)
{
    goes_on_under_load(kill_master, "Sentinel, killed");
}

static void what_replicas_have_outlives_a_master_that_stops_answering(void **state)
{
    goes_on_under_load(pause_master, "Sentinel, paused");
}

static void sentinels_are_asked_again_after_each_loss(void **state)
{
    hibloom_store *store = test_connect(sentinel_uri(sentinel), &patient);
    hibloom *filter = test_open(store, "seen", SMALL), *other = test_open(store, "seen", SMALL);
    hibloom_stats stats;

    assert_ok(hibloom_add_many(filter, items, ITEMS, NULL), store);
    test_sleep_ms(200); /* until the replicas have it */
    for (int i = 0; i < 2; i++) {
        kill_master();
        sentinel_wait_settled(sentinel);
        assert_status(look(filter), HIBLOOM_ELOST, store);
        assert_ok(look(filter), store);
        assert_found();
        assert_status(look(other), HIBLOOM_ELOST, store);
        assert_ok(look(other), store);
    }
    hibloom_get_stats(store, &stats);
    assert_int_equal(stats.restarts, 2);
    assert_ok(hibloom_drop(filter), store);
    hibloom_close(filter);
    hibloom_close(other);
    hibloom_store_free(store);
}

/* ---- Sentinels -------------------------------------------------------------------------------- */

static void a_sentinel_that_is_dead_is_skipped(void **state)
{
    const uint64_t since = test_now_ms();

    redis_server_kill(sentinel_watcher(sentinel, 0));
    hibloom_store *store = test_connect(sentinel_uri(sentinel), NULL);
    assert_in_range(test_now_ms() - since, 0, 2000);
    hibloom_close(test_open(store, "seen", SMALL));
    assert_ok(hibloom_delete(store, "seen"), store);
    hibloom_store_free(store);
    redis_server_restart(sentinel_watcher(sentinel, 0));
}

static void a_master_that_nobody_knows_is_said_in_words(void **state)
{
    hibloom_store *store;
    char uri[300];

    snprintf(uri, sizeof uri, "%s-2", sentinel_uri(sentinel));
    assert_status(hibloom_connect(&store, uri, NULL), HIBLOOM_EUNAVAILABLE, store);
    assert_non_null(strstr(hibloom_store_error(store), "no master of that name"));
    hibloom_store_free(store);
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

/* ---- Replicas ----------------------------------------------------------------------------------- */

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
    hibloom_store *store = test_connect(sentinel_uri(sentinel), &reading);
    hibloom *filter = test_open(store, "seen", SMALL), *other = test_open(store, "seen", SMALL);

    assert_ok(hibloom_add_many(filter, items, ITEMS, NULL), store);
    test_sleep_ms(200);
    const long long there = looks_on(master()), elsewhere = looks_on_replicas();
    for (int i = 0; i < 4; i++)
        assert_ok(look(filter), store);
    assert_found();
    assert_int_equal(looks_on(master()), there);
    assert_int_equal(looks_on_replicas() - elsewhere, 4 * ITEMS * 7);
    for (int i = 0; i < sentinel_servers(sentinel); i++) /* the primary answers for those that are gone */
        if (sentinel_server(sentinel, i) != master())
            redis_server_kill(sentinel_server(sentinel, i));
    assert_ok(look(filter), store);
    assert_found();
    assert_int_equal(looks_on(master()) - there, ITEMS * 7);
    for (int i = 0; i < sentinel_servers(sentinel); i++)
        if (!redis_server_runs(sentinel_server(sentinel, i)))
            redis_server_restart(sentinel_server(sentinel, i));
    sentinel_wait_settled(sentinel);
    assert_ok(look(filter), store); /* a replica that restarted has forgotten nothing */
    assert_ok(hibloom_drop(filter), store);
    test_sleep_ms(200);
    assert_status(look(other), HIBLOOM_ENOTFOUND, store);
    hibloom_close(filter);
    hibloom_close(other);
    hibloom_store_free(store);
}

/* A node leaves a replica out of its slot map until it has heard how far that is. */
static bool maps_have_replicas(const void *argument)
{
    const struct redis_cluster *cluster = argument;
    bool all = true;

    for (int node = 0; node < redis_cluster_size(cluster); node++) {
        redisReply *map = redis_server_must(redis_cluster_node(cluster, node), "CLUSTER SLOTS");
        for (size_t i = 0; i < map->elements; i++)
            all = all && map->element[i]->elements > 3;
        freeReplyObject(map);
    }
    return all;
}

static struct redis_cluster *start_cluster(void)
{
    struct redis_cluster *cluster = redis_cluster_start(&(struct redis_cluster_options){.primaries = 3, .replicas = 1});
    hibloom_store *store = test_connect(redis_cluster_uri(cluster), NULL);

    hibloom_close(test_open(store, "seen", SMALL " segments=12")); /* or it is nowhere */
    hibloom_store_free(store);
    redis_server_wait(redis_cluster_node(cluster, 0), maps_have_replicas, cluster,
                      "no map of its cluster has replicas");
    return cluster;
}

static void replicas_in_a_cluster_answer_look_ups(void **state)
{
    struct redis_cluster *cluster = start_cluster();
    hibloom_store *store = test_connect(redis_cluster_uri(cluster), &reading);
    hibloom *filter = test_open(store, "seen", SMALL " segments=12"),
            *other = test_open(store, "seen", SMALL " segments=12");
    long long there = 0, elsewhere = 0;

    assert_ok(hibloom_add_many(filter, items, ITEMS, NULL), store);
    test_sleep_ms(200);
    for (int i = 0; i < 4; i++)
        assert_ok(look(filter), store);
    assert_found();
    for (int i = 0; i < 6; i++)
        *(i < 3 ? &there : &elsewhere) += looks_on(redis_cluster_node(cluster, i));
    assert_int_equal(there, 0);
    assert_int_equal(elsewhere, 4 * ITEMS * 7);
    for (int i = 3; i < 6; i++)
        redis_server_kill(redis_cluster_node(cluster, i));
    assert_ok(look(filter), store);
    assert_found();
    for (int i = 0; i < 3; i++)
        there += looks_on(redis_cluster_node(cluster, i));
    assert_int_equal(there, ITEMS * 7);
    for (int i = 3; i < 6; i++)
        redis_server_restart(redis_cluster_node(cluster, i));
    redis_cluster_wait_settled(cluster);
    assert_ok(look(filter), store); /* a replica that restarted has forgotten nothing */
    assert_found();
    assert_ok(hibloom_drop(filter), store);
    test_sleep_ms(200);
    assert_status(look(other), HIBLOOM_ENOTFOUND, store);
    hibloom_close(filter);
    hibloom_close(other);
    hibloom_store_free(store);
    redis_cluster_stop(cluster);
}

/* A filter is looked up as soon as it is made, before a replica can have it. */
static void who_is_sooner_than_a_replica_asks_the_primary(void **state)
{
    hibloom_store *store = test_connect(sentinel_uri(sentinel), &reading);
    char name[32];

    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof name, "new-%d", i);
        hibloom *filter = test_open(store, name, SMALL);
        assert_ok(look(filter), store);
        hibloom_close(filter);
        assert_ok(hibloom_delete(store, name), store);
    }
    hibloom_store_free(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_replicas_have_outlives_a_master),
        cmocka_unit_test(what_replicas_have_outlives_a_master_that_stops_answering),
        cmocka_unit_test(sentinels_are_asked_again_after_each_loss),
        cmocka_unit_test(a_sentinel_that_is_dead_is_skipped),
        cmocka_unit_test(a_master_that_nobody_knows_is_said_in_words),
        cmocka_unit_test(a_password_is_the_servers),
        cmocka_unit_test(sentinels_may_have_the_same_password),
        cmocka_unit_test(replicas_of_a_master_answer_look_ups),
        cmocka_unit_test(who_is_sooner_than_a_replica_asks_the_primary),
        cmocka_unit_test(replicas_in_a_cluster_answer_look_ups),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
