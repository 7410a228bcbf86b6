/* A replica takes over, and later hands back: then it has all that the master has but
 * the last of it, and answers no look-up of those who do not read from replicas.
 *
 * The store is connected to it from when it was a replica the first time, which is what
 * decides whether it answers: READONLY, once said on a connection, holds for good. */
#include "../support/redis_cluster.h"
#include "../support/test.h"

#include <hiredis/hiredis.h>
#include <stdio.h>

enum { LOOKS = 100, PRIMARY = 0, REPLICA = 3 };

static const hibloom_connect_options patient = {
    .size = sizeof patient, .retry_ms = 20000, .command_timeout_ms = 1000, .accept_restarts = true};

static struct redis_cluster *cluster;

static int set_up(void **state)
{
    cluster = redis_cluster_start(&(struct redis_cluster_options){.primaries = 3, .replicas = 1});
    return 0;
}

static int tear_down(void **state)
{
    redis_cluster_stop(cluster);
    return 0;
}

static int owner_of(const char *name)
{
    return redis_cluster_owner(cluster, redis_cluster_slot(cluster, name));
}

/* The one seed is the replica, which is asked who is where while nobody else knows. */
static hibloom_store *connect_by_replica(void)
{
    char uri[64];

    snprintf(uri, sizeof uri, "redis+cluster://127.0.0.1:%d", redis_server_port(redis_cluster_node(cluster, REPLICA)));
    return test_connect(uri, &patient);
}

static void fail_over_and_back(const char *name, hibloom *filter, hibloom_store *store)
{
    struct redis_server *primary = redis_cluster_node(cluster, PRIMARY);
    bool found = false;

    redis_server_kill(primary);
    assert_ok(hibloom_contains(filter, "x", 1, &found), store); /* once the replica has taken over */
    assert_true(found);
    assert_int_equal(owner_of(name), REPLICA);
    redis_server_restart(primary);
    redis_cluster_wait_settled(cluster);
    assert_ok(hibloom_contains(filter, "x", 1, &found), store);
    freeReplyObject(redis_server_must(primary, "CLUSTER FAILOVER"));
    for (int i = 0; i < 600 && owner_of(name) != PRIMARY; i++)
        test_sleep_ms(100);
    assert_int_equal(owner_of(name), PRIMARY);
    redis_cluster_wait_settled(cluster);
}

static void who_was_a_primary_for_a_while_answers_no_look_up(void **state)
{
    hibloom_store *store = connect_by_replica(), *other;
    char name[16] = "f";

    for (int i = 0; owner_of(name) != PRIMARY; i++)
        snprintf(name, sizeof name, "f%d", i);
    hibloom *filter = test_open(store, name, "capacity=100000 error=0.001");
    assert_ok(hibloom_add(filter, "x", 1, NULL), store);
    redis_cluster_wait_settled(cluster); /* the replica has it */
    test_sleep_ms(200);
    fail_over_and_back(name, filter, store);
    other = test_connect(redis_cluster_uri(cluster), &patient);
    hibloom *elsewhere = test_open(other, name, "capacity=100000 error=0.001");
    redisContext *replica = redis_server_connect(redis_cluster_node(cluster, REPLICA));
    const long long before = redis_server_calls_of(replica, "getbit");
    for (int i = 0; i < LOOKS; i++) {
        bool found = false;
        assert_ok(hibloom_add(elsewhere, &i, sizeof i, NULL), other);
        assert_ok(hibloom_contains(filter, &i, sizeof i, &found), store);
        assert_true(found);
    }
    assert_int_equal(redis_server_calls_of(replica, "getbit"), before);
    redisFree(replica);
    assert_ok(hibloom_drop(filter), store);
    hibloom_close(filter);
    hibloom_close(elsewhere);
    hibloom_store_free(store);
    hibloom_store_free(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_was_a_primary_for_a_while_answers_no_look_up),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
