/* A Redis Cluster on an event loop: redirects, slots that move, a failover. */
#include "loops/subject.h"
#include "support/redis_cluster.h"

#define CALLS 1000u

static struct redis_cluster *cluster;
static struct outcome outcomes[CALLS];
static bool found[CALLS];
static uint32_t numbers[CALLS];

static const hibloom_connect_options patient = {
    .size = sizeof patient, .retry_ms = 30000, .accept_restarts = true, .command_timeout_ms = 2000, .min_replicas = 1};

static int set_up(void **state)
{
    signal(SIGPIPE, SIG_IGN);
    for (uint32_t i = 0; i < CALLS; i++)
        numbers[i] = i;
    if (cluster == NULL)
        cluster = redis_cluster_start(&(struct redis_cluster_options){.primaries = 3, .replicas = 1});
    redis_cluster_wait_settled(cluster);
    return 0;
}

/* All at once; each has to be OK in the end. */
static void carry_all(void *loop, hibloom_async *async, hibloom_async_filter *filter, bool adds,
                      void (*meanwhile)(void))
{
    memset(outcomes, 0, sizeof outcomes);
    memset(found, 0, sizeof found);
    for (size_t i = 0; i < CALLS; i++) {
        const hibloom_item item = {&numbers[i], sizeof *numbers};
        outcomes[i].answers = &found[i];
        assert_ok(adds ? hibloom_async_add(filter, &item, 1, true, on_answered, &outcomes[i])
                       : hibloom_async_contains(filter, &item, 1, on_answered, &outcomes[i]),
                  NULL);
    }
    if (meanwhile != NULL)
        meanwhile();
    await_all(loop, async, outcomes, CALLS);
    for (size_t i = 0; i < CALLS; i++) {
        if (outcomes[i].status != HIBLOOM_OK)
            print_error("%s\n", hibloom_async_error(async));
        assert_true(outcomes[i].status == HIBLOOM_OK && outcomes[i].calls == 1);
    }
}

static void assert_all_found(void)
{
    assert_null(memchr(found, false, CALLS));
}

static struct redis_cluster_move move;

static void begin_move(void)
{
    redis_cluster_begin_move(cluster, &move);
    while (redis_cluster_move_keys(cluster, &move, 100) == 100)
        ;
}

static void end_move(void)
{
    redis_cluster_end_move(cluster, &move);
    redis_cluster_wait_settled(cluster);
}

/* ASK while the slot moves, MOVED when it has. */
static void calls_go_on_while_slots_move(void **state)
{
    char name[TEST_NAME_SIZE], key[TEST_NAME_SIZE + 8];
    void *loop = loop_class->open();
    hibloom_async *async = async_store(loop, redis_cluster_uri(cluster), &patient);
    hibloom_async_filter *filter = async_filter(loop, async, test_name(name), "capacity=100000 error=0.01 segments=9");

    snprintf(key, sizeof key, "%s:4", name);
    move.first_slot = move.last_slot = redis_cluster_slot(cluster, key);
    move.from = redis_cluster_owner(cluster, move.first_slot);
    for (int i = 0; i < redis_cluster_size(cluster); i++)
        for (int slot = 0; slot < REDIS_CLUSTER_SLOTS; slot += 1000)
            if (redis_cluster_owner(cluster, slot) != move.from)
                move.to = redis_cluster_owner(cluster, slot);
    carry_all(loop, async, filter, true, NULL);
    carry_all(loop, async, filter, false, begin_move);
    assert_all_found();
    carry_all(loop, async, filter, true, NULL);
    assert_null(memchr(found, true, CALLS));
    carry_all(loop, async, filter, false, end_move);
    assert_all_found();
    hibloom_async_free(async);
    close_loop(loop);
}

static int killed;

static void kill_primary(void)
{
    redis_server_kill(redis_cluster_node(cluster, killed));
}

/* What was acknowledged with a replica is there after the failover. */
static void a_failover_costs_time_and_no_answer(void **state)
{
    char name[TEST_NAME_SIZE];
    void *loop = loop_class->open();
    hibloom_async *async = async_store(loop, redis_cluster_uri(cluster), &patient);
    hibloom_async_filter *filter = async_filter(loop, async, test_name(name), "capacity=100000 error=0.01 segments=9");

    carry_all(loop, async, filter, true, NULL);
    killed = redis_cluster_owner(cluster, 0);
    carry_all(loop, async, filter, false, kill_primary);
    assert_all_found();
    carry_all(loop, async, filter, false, NULL);
    assert_all_found();
    hibloom_async_free(async);
    close_loop(loop);
    redis_server_restart(redis_cluster_node(cluster, killed));
    redis_cluster_wait_settled(cluster);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_go_on_while_slots_move),
        cmocka_unit_test(a_failover_costs_time_and_no_answer),
    };
    const int result = run_on_each_loop(tests, 2, set_up, NULL);

    redis_cluster_stop(cluster);
    return result;
}
