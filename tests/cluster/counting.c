/* Eight processes add to a counting filter and remove from it while the primary that has it is
 * killed, or stops answering, and its replica takes over: in a cluster, and behind Sentinels.
 * Adds wait for a replica, removes do not. A remove whose answer was lost has been carried out or
 * not, and never twice: no item is denied that was added oftener than removes of it were sent. */
#include "../support/ledger.h"
#include "../support/redis_cluster.h"
#include "../support/sentinel.h"

#include <hiredis/hiredis.h>

enum { PRIMARIES = 3, STEPS = 20 };

#define TEXT "capacity=2000 error=0.01 counters=4"

/* Longer than a failover, which takes 4 s at most, on a machine that is slow. */
static const hibloom_connect_options careful = {.size = sizeof(hibloom_connect_options),
                                                .retry_ms = 20000,
                                                .command_timeout_ms = 1000,
                                                .min_replicas = 1,
                                                .replicas_ms = 300};

/* ---- A cluster ------------------------------------------------------------------------ */

static struct redis_cluster *cluster;

static int start_cluster(void **state)
{
    cluster = redis_cluster_start(&(struct redis_cluster_options){.primaries = PRIMARIES, .replicas = 1});
    return 0;
}

static int stop_cluster(void **state)
{
    redis_cluster_stop(cluster);
    return 0;
}

static void lose_primary(void (*stop)(struct redis_server *), void (*back)(struct redis_server *))
{
    const int primary = redis_cluster_owner(cluster, redis_cluster_slot(cluster, "seen:0"));

    redis_cluster_cut_off(cluster, primary);
    redis_cluster_fail_over(cluster, primary, stop, back);
}

static void lose_under_removes(void (*stop)(struct redis_server *), void (*back)(struct redis_server *))
{
    hibloom_store *store = test_connect(redis_cluster_uri(cluster), &careful);
    (void)!hibloom_delete(store, "seen"); /* of a test that failed */
    hibloom *filter = test_open(store, "seen", TEXT " segments=3 seed=4");
    struct ledger *ledger = ledger_start(redis_cluster_uri(cluster), "seen", &careful);

    ledger_wait(ledger, STEPS);
    lose_primary(stop, back);
    ledger_wait(ledger, STEPS);
    ledger_stop(ledger, filter, store);
    hibloom_close(filter);
    assert_ok(hibloom_delete(store, "seen"), store);
    hibloom_store_free(store);
}

static void no_item_is_denied_where_a_primary_is_killed(void **state)
{
    (void)state;
    lose_under_removes(redis_server_kill, redis_server_restart);
}

/* What was sent to it meanwhile is carried out when it goes on, and lost with it, as it is a replica then. */
static void no_item_is_denied_where_a_primary_stops_answering(void **state)
{
    (void)state;
    lose_under_removes(redis_server_pause, redis_server_resume);
}

/* It goes on before anybody has taken over: late removes are carried out there, once. */
static void no_item_is_denied_where_a_primary_stands_still(void **state)
{
    hibloom_store *store = test_connect(redis_cluster_uri(cluster), &careful);
    hibloom_connect_options impatient = careful;

    (void)state;
    impatient.command_timeout_ms = 200;
    impatient.replicas_ms = 100;
    hibloom *filter = test_open(store, "seen", TEXT " segments=3 seed=4");
    struct ledger *ledger = ledger_start(redis_cluster_uri(cluster), "seen", &impatient);
    for (int i = 0; i < 6; i++) {
        ledger_wait(ledger, STEPS / 4);
        struct redis_server *primary = redis_cluster_node(
            cluster, redis_cluster_owner(cluster, redis_cluster_slot(cluster, "seen:0")));
        redis_server_pause(primary);
        test_sleep_ms(500); /* a node is found dead after 1 s */
        redis_server_resume(primary);
    }
    ledger_wait(ledger, STEPS);
    ledger_stop(ledger, filter, store);
    hibloom_close(filter);
    assert_ok(hibloom_delete(store, "seen"), store);
    hibloom_store_free(store);
}

/* What it has acknowledged its replica has: so nobody waits for that. */
static void no_item_is_denied_where_a_primary_hands_over(void **state)
{
    hibloom_connect_options patient = careful;
    const int slot = redis_cluster_slot(cluster, "seen:0");

    (void)state;
    patient.min_replicas = 0;
    hibloom_store *store = test_connect(redis_cluster_uri(cluster), &patient);
    hibloom *filter = test_open(store, "seen", TEXT " segments=3 seed=4");
    struct ledger *ledger = ledger_start(redis_cluster_uri(cluster), "seen", &patient);
    for (int i = 0; i < 2; i++) {
        const int primary = redis_cluster_owner(cluster, slot);
        const int replica = redis_cluster_replica(cluster, primary);
        ledger_wait(ledger, STEPS);
        redis_cluster_hand_over(cluster, primary);
        assert_int_equal(redis_cluster_owner(cluster, slot), replica);
    }
    ledger_wait(ledger, STEPS);
    ledger_stop(ledger, filter, store);
    hibloom_close(filter);
    assert_ok(hibloom_delete(store, "seen"), store);
    hibloom_store_free(store);
}

/* ---- Sentinels -------------------------------------------------------------------------- */

static void no_item_is_denied_where_sentinels_name_another_master(void **state)
{
    struct sentinel *sentinel = sentinel_start(&(struct sentinel_options){.replicas = 1, .sentinels = 3});
    hibloom_store *store = test_connect(sentinel_uri(sentinel), &careful);
    hibloom *filter = test_open(store, "seen", TEXT " seed=3");
    struct ledger *ledger = ledger_start(sentinel_uri(sentinel), "seen", &careful);

    (void)state;
    for (int i = 0; i < 2; i++) {
        const int old = sentinel_master(sentinel);
        ledger_wait(ledger, STEPS);
        redis_server_cut_off(sentinel_server(sentinel, old), sentinel_server(sentinel, 1 - old));
        redis_server_kill(sentinel_server(sentinel, old));
        redis_server_resume(sentinel_server(sentinel, 1 - old));
        sentinel_wait_failover(sentinel, old);
        redis_server_restart(sentinel_server(sentinel, old));
        sentinel_wait_settled(sentinel);
    }
    ledger_wait(ledger, STEPS);
    ledger_stop(ledger, filter, store);
    hibloom_close(filter);
    hibloom_store_free(store);
    sentinel_stop(sentinel);
}

int main(void)
{
    const struct CMUnitTest of_cluster[] = {
        cmocka_unit_test(no_item_is_denied_where_a_primary_is_killed),
        cmocka_unit_test(no_item_is_denied_where_a_primary_stops_answering),
        cmocka_unit_test(no_item_is_denied_where_a_primary_stands_still),
        cmocka_unit_test(no_item_is_denied_where_a_primary_hands_over),
    };
    const struct CMUnitTest of_sentinels[] = {
        cmocka_unit_test(no_item_is_denied_where_sentinels_name_another_master),
    };
    const int failed = cmocka_run_group_tests(of_cluster, start_cluster, stop_cluster);

    return failed + cmocka_run_group_tests(of_sentinels, NULL, NULL);
}
