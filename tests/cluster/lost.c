/* Servers that forgot, servers that are gone, and servers that do not answer:
 * what a call says then, how soon, and that the same store works once they are
 * back. */
#include "../support/items.h"
#include "../support/redis_cluster.h"
#include "../support/test.h"

#include <hiredis/hiredis.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PRIMARIES = 3, ITEMS = 3000 };

#define TEXT "bits=3000000 hashes=7 segments=12 seed=1"
#define SINGLE "bits=3000000 hashes=7 seed=1"
#define OPTIONS .size = sizeof(hibloom_connect_options)

static const hibloom_connect_options hasty = {OPTIONS}, patient = {OPTIONS, .retry_ms = 20000},
                                     accepting = {OPTIONS, .retry_ms = 20000, .accept_restarts = true};

static struct redis_cluster *cluster;
static hibloom_item *items;
static bool answers[ITEMS];

static int replicas_now;
static bool whole; /* the test has left the cluster as it was: the next one may have it */

static int set_up_with(int replicas)
{
    items = items_new("in", ITEMS);
    if (cluster != NULL && !(whole && replicas == replicas_now)) {
        redis_cluster_stop(cluster);
        cluster = NULL;
    }
    if (cluster == NULL)
        cluster = redis_cluster_start(&(struct redis_cluster_options){.primaries = PRIMARIES, .replicas = replicas});
    for (int node = 0; node < PRIMARIES; node++)
        freeReplyObject(redis_server_must(redis_cluster_node(cluster, node), "FLUSHALL"));
    replicas_now = replicas;
    whole = false;
    return 0;
}

static int set_up(void **state)
{
    return set_up_with(0);
}

static int set_up_replicas(void **state)
{
    return set_up_with(1);
}

static int tear_down(void **state)
{
    items_free(items);
    return 0;
}

static int stop(void **state)
{
    redis_cluster_stop(cluster);
    return 0;
}

static struct redis_server *owner_of(const char *key)
{
    return redis_cluster_node(cluster, redis_cluster_owner(cluster, redis_cluster_slot(cluster, key)));
}

static hibloom_status look(hibloom *filter)
{
    return hibloom_contains_many(filter, items, ITEMS, answers);
}

static hibloom_status add(hibloom *filter)
{
    return hibloom_add_many(filter, items, ITEMS, NULL);
}

static uint64_t commands_of(hibloom_store *store)
{
    hibloom_stats stats;

    hibloom_get_stats(store, &stats);
    return stats.commands;
}

/* ---- A server that forgot ------------------------------------------------------------ */

static void fail_over(const char *key)
{
    const int primary = redis_cluster_owner(cluster, redis_cluster_slot(cluster, key));

    redis_server_kill(redis_cluster_node(cluster, primary));
    redis_cluster_wait_failover(cluster, primary);
}

/* The look-up meets it in its middle; the other handles are told before anything is sent. */
static void each_handle_is_told_once_that_a_server_forgot(void **state)
{
    hibloom_store *store = test_connect(redis_cluster_uri(cluster), &patient);
    hibloom_store *careless = test_connect(redis_cluster_uri(cluster), &accepting);
    hibloom *looks = test_open(store, "seen", TEXT), *adds = test_open(store, "seen", TEXT);
    hibloom *counts = test_open(store, "seen", TEXT), *goes_on = test_open(careless, "seen", TEXT);
    hibloom_info info;

    assert_ok(add(looks), store);
    assert_ok(look(goes_on), careless);
    fail_over("seen:0");
    assert_status(look(looks), HIBLOOM_ELOST, store);
    assert_non_null(strstr(hibloom_store_error(store), "may be missing"));
    const uint64_t before = commands_of(store);
    assert_status(add(adds), HIBLOOM_ELOST, store);
    assert_status(hibloom_get_info(counts, &info), HIBLOOM_ELOST, store);
    assert_int_equal(commands_of(store), before);
    for (int i = 0; i < 2; i++) {
        assert_ok(look(looks), store);
        assert_ok(add(adds), store);
        assert_ok(hibloom_get_info(counts, &info), store);
        assert_ok(look(goes_on), careless);
    }
    hibloom *later = test_open(store, "seen", TEXT);
    assert_ok(look(later), store);
    hibloom *const all[] = {looks, adds, counts, goes_on, later};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        hibloom_close(all[i]);
    hibloom_store_free(store);
    hibloom_store_free(careless);
}

/* The old primary was only paused. Nothing breaks the connection of a store that is
 * idle meanwhile: what tells it is that its server sends it elsewhere. */
static void who_was_idle_is_told_before_a_look_up_answers(void **state)
{
    hibloom_store *store = test_connect(redis_cluster_uri(cluster), &hasty);
    hibloom *filter = test_open(store, "seen", SINGLE);
    const int primary = redis_cluster_owner(cluster, redis_cluster_slot(cluster, "seen"));

    assert_ok(add(filter), store);
    redis_server_pause(redis_cluster_node(cluster, primary));
    redis_cluster_wait_failover(cluster, primary);
    redis_server_resume(redis_cluster_node(cluster, primary));
    redis_cluster_wait_settled(cluster);
    assert_status(look(filter), HIBLOOM_ELOST, store);
    assert_ok(look(filter), store);
    assert_ok(look(filter), store);
    hibloom_close(filter);
    hibloom_store_free(store);
}

/* Without a replica, what was on it is gone. */
static void a_primary_that_comes_back_empty_is_lost_and_then_not_found(void **state)
{
    hibloom_store *store = test_connect(redis_cluster_uri(cluster), &patient);
    hibloom *single = test_open(store, "one", SINGLE), *several = test_open(store, "one{x}", TEXT);
    struct redis_server *server = owner_of("one");

    hibloom_close(several);
    several = test_open(store, "seen", TEXT);
    assert_ok(add(single), store);
    assert_ok(add(several), store);
    redis_server_restart(server);
    redis_cluster_wait_settled(cluster);
    assert_status(look(single), HIBLOOM_ELOST, store);
    assert_status(look(single), HIBLOOM_ENOTFOUND, store);
    assert_status(add(several), HIBLOOM_ELOST, store);
    /* the root may be among what is lost */
    const hibloom_status status = look(several);
    assert_int_equal(status, server == owner_of("seen:0") ? HIBLOOM_ENOTFOUND : HIBLOOM_ECORRUPT);
    hibloom_close(single);
    hibloom_close(several);
    hibloom_store_free(store);
}

/* ---- Servers that are gone --------------------------------------------------------------- */

static void kill_all(void)
{
    for (int node = 0; node < redis_cluster_size(cluster); node++)
        redis_server_kill(redis_cluster_node(cluster, node));
}

static void restart_all(void)
{
    for (int node = 0; node < redis_cluster_size(cluster); node++)
        redis_server_restart(redis_cluster_node(cluster, node));
    redis_cluster_wait_settled(cluster);
}

/* The one seed is a node that is gone for long when the next thing happens. */
static void nodes_that_no_seed_names_are_asked_too(void **state)
{
    char uri[64];

    snprintf(uri, sizeof uri, "redis+cluster://127.0.0.1:%d",
             redis_server_port(redis_cluster_node(cluster, PRIMARIES)));
    hibloom_store *store = test_connect(uri, &accepting);
    hibloom *filter = test_open(store, "seen", TEXT);
    assert_ok(add(filter), store);
    redis_server_kill(redis_cluster_node(cluster, PRIMARIES)); /* a replica of node 0 */
    assert_ok(add(filter), store);
    redis_server_kill(redis_cluster_node(cluster, 1));
    redis_cluster_wait_failover(cluster, 1);
    assert_ok(add(filter), store);
    assert_ok(look(filter), store);
    kill_all(); /* and nobody is left but the seed that is to come back */
    hibloom_store *failed;
    assert_status(hibloom_connect(&failed, uri, &hasty), HIBLOOM_EIO, failed);
    hibloom_store_free(failed);
    hibloom_close(filter);
    hibloom_store_free(store);
}

static void where_all_are_dead_a_call_fails_in_time_and_later_ones_work(void **state)
{
    const hibloom_connect_options options = {OPTIONS, .retry_ms = 700};
    hibloom_store *store = test_connect(redis_cluster_uri(cluster), &options), *failed;
    hibloom *filter = test_open(store, "seen", TEXT);
    hibloom_status status;
    uint64_t since;

    assert_ok(add(filter), store);
    kill_all();
    since = test_now_ms();
    assert_status(look(filter), HIBLOOM_EIO, store);
    assert_in_range(test_now_ms() - since, 600, 3200);
    since = test_now_ms();
    assert_status(add(filter), HIBLOOM_EIO, store);
    assert_in_range(test_now_ms() - since, 600, 3200);
    since = test_now_ms();
    assert_status(hibloom_connect(&failed, redis_cluster_uri(cluster), &options), HIBLOOM_EIO, failed);
    assert_in_range(test_now_ms() - since, 600, 3200);
    hibloom_store_free(failed);
    restart_all();
    unsigned lost = 0; /* a server is found to have forgotten when it is met */
    while ((status = look(filter)) == HIBLOOM_ELOST)
        lost++;
    assert_in_range(lost, 1, PRIMARIES);
    assert_status(status, HIBLOOM_ENOTFOUND, store);
    hibloom_close(filter);
    filter = test_open(store, "seen", TEXT);
    assert_ok(add(filter), store);
    assert_ok(look(filter), store);
    for (size_t i = 0; i < ITEMS; i++)
        assert_true(answers[i]);
    hibloom_close(filter);
    hibloom_store_free(store);
}

/* By who waits for no replica, as it would for one of each server that has a key. */
static void make(const char *name)
{
    hibloom_store *store = test_connect(redis_cluster_uri(cluster), NULL);

    hibloom_close(test_open(store, name, TEXT));
    hibloom_store_free(store);
}

static void more_replicas_than_there_are_is_said_in_words(void **state)
{
    static const uint32_t retries[] = {0, 1000};

    make("seen");
    for (size_t i = 0; i < 2; i++) {
        const hibloom_connect_options options = {OPTIONS, .retry_ms = retries[i], .min_replicas = 2,
                                                 .replicas_ms = 100};
        hibloom_store *store = test_connect(redis_cluster_uri(cluster), &options);
        hibloom *filter = test_open(store, "seen", TEXT);
        const uint64_t since = test_now_ms();
        assert_status(hibloom_add_many(filter, items, ITEMS, answers), HIBLOOM_EUNAVAILABLE, store);
        assert_non_null(strstr(hibloom_store_error(store), "of 2 that min_replicas asks for"));
        assert_in_range(test_now_ms() - since, retries[i], retries[i] + 2000);
        assert_ok(look(filter), store); /* they are in, all the same */
        hibloom_close(filter);
        hibloom_store_free(store);
    }
    whole = true;
}

static char *name_on(char name[2], int node)
{
    strcpy(name, "a");
    while (owner_of(name) != redis_cluster_node(cluster, node))
        name[0]++;
    return name;
}

/* Its slot is node 0's now, and the store hears it from node 2, which has no replica. */
static void assert_moved_is_no_write(hibloom_store *store)
{
    char name[2];
    hibloom *filter = test_open(store, name_on(name, 2), SINGLE);
    const int slot = redis_cluster_slot(cluster, name);
    const struct redis_cluster_move move = {slot, slot, 2, 0};

    redis_cluster_begin_move(cluster, &move);
    assert_int_equal(redis_cluster_move_keys(cluster, &move, 10), 1);
    redis_cluster_end_move(cluster, &move);
    assert_ok(add(filter), store);
    hibloom_close(filter);
}

/* Node 2 has the root, which is asked whether the filter is there, and another one the item's segment. */
static void assert_proof_is_no_write(hibloom_store *store)
{
    const hibloom_spec spec = test_spec(TEXT);
    hibloom_position positions[7];
    char name[] = "a:0", segment[16];
    size_t item = 0;

    while (owner_of(name) != redis_cluster_node(cluster, 2))
        name[0]++;
    do {
        item++;
        assert_ok(hibloom_positions(&spec, items[item].data, items[item].len, positions), NULL);
        snprintf(segment, sizeof segment, "%c:%u", name[0], positions[0].key);
    } while (owner_of(segment) == redis_cluster_node(cluster, 2));
    name[1] = '\0';
    make(name);
    hibloom *filter = test_open(store, name, TEXT);
    for (int i = 0; i < 2; i++) {
        test_sleep_ms(i == 0 ? 0 : 150); /* then the last proof is an old one */
        assert_ok(hibloom_add(filter, items[item].data, items[item].len, NULL), store);
    }
    assert_ok(hibloom_drop(filter), store);
    hibloom_close(filter);
}

/* One shard has lost its replica, the others have theirs: no other node's answer stands for it, nor
 * is it asked where it wrote nothing. */
static void each_server_must_have_its_own_replica(void **state)
{
    const hibloom_connect_options options = {OPTIONS, .retry_ms = 300, .min_replicas = 1, .replicas_ms = 100};
    hibloom_store *store = test_connect(redis_cluster_uri(cluster), &options);

    redis_server_kill(redis_cluster_node(cluster, PRIMARIES + 2));
    for (char name[] = "a"; name[0] <= 'h'; name[0]++) {
        hibloom *filter = test_open(store, name, SINGLE);
        const bool lacks = owner_of(name) == redis_cluster_node(cluster, 2);
        assert_status(add(filter), lacks ? HIBLOOM_EUNAVAILABLE : HIBLOOM_OK, store);
        assert_ok(hibloom_drop(filter), store);
        hibloom_close(filter);
    }
    assert_proof_is_no_write(store);
    assert_moved_is_no_write(store);
    hibloom_store_free(store);
}

/* ---- Servers that do not answer -------------------------------------------------------------- */

static void a_deadline_ends_calls_on_a_node_that_is_paused(void **state)
{
    const hibloom_connect_options options = {OPTIONS, .retry_ms = 20000, .command_timeout_ms = 700};
    hibloom_store *store = test_connect(redis_cluster_uri(cluster), &options);
    hibloom *filter = test_open(store, "seen", TEXT);
    struct redis_server *paused = owner_of("seen:0");
    uint64_t since;

    assert_ok(add(filter), store);
    redis_server_pause(paused);
    hibloom_store_deadline(store, 500);
    since = test_now_ms();
    assert_status(look(filter), HIBLOOM_ETIMEDOUT, store);
    assert_in_range(test_now_ms() - since, 450, 2200);
    since = test_now_ms();
    assert_status(look(filter), HIBLOOM_ETIMEDOUT, store); /* now on a connection that has to be made */
    assert_in_range(test_now_ms() - since, 0, 2200);
    since = test_now_ms();
    assert_status(add(filter), HIBLOOM_ETIMEDOUT, store); /* and taking it back takes a time-out more */
    assert_in_range(test_now_ms() - since, 0, 2200);
    redis_server_resume(paused);
    redis_cluster_wait_settled(cluster);
    hibloom_store_deadline(store, 0);
    assert_ok(look(filter), store);
    hibloom_close(filter);
    hibloom_store_free(store);
    whole = true;
}

/* Of six nodes, each of which costs a time-out, one is asked after the call's time is over. */
static void where_none_answers_a_call_ends_soon_after_its_time(void **state)
{
    const hibloom_connect_options options = {OPTIONS, .retry_ms = 300, .command_timeout_ms = 1000};
    hibloom_store *store = test_connect(redis_cluster_uri(cluster), &options);
    hibloom *filter = test_open(store, "seen", SINGLE);

    assert_ok(add(filter), store);
    for (int node = 0; node < 2 * PRIMARIES; node++)
        redis_server_pause(redis_cluster_node(cluster, node));
    const uint64_t since = test_now_ms();
    assert_status(look(filter), HIBLOOM_ETIMEDOUT, store);
    assert_in_range(test_now_ms() - since, 1900, 4500);
    for (int node = 0; node < 2 * PRIMARIES; node++)
        redis_server_resume(redis_cluster_node(cluster, node));
    redis_cluster_wait_settled(cluster);
    hibloom_close(filter);
    hibloom_store_free(store);
}

/* For so long; a process of its own resumes it, which is to be waited for. */
static pid_t pause_for(struct redis_server *server, unsigned ms)
{
    const pid_t pid = redis_server_pid(server);

    redis_server_pause(server);
    const pid_t waker = fork();
    assert_true(waker >= 0);
    if (waker == 0) {
        test_sleep_ms(ms);
        kill(pid, SIGCONT);
        _exit(0);
    }
    return waker;
}

/* The time that is left to a call is not the time that the next one has. */
static void a_deadline_is_over_with_its_call(void **state)
{
    hibloom_store *store = test_connect(redis_cluster_uri(cluster), NULL);
    hibloom *filter = test_open(store, "seen", TEXT);

    hibloom_store_deadline(store, 300);
    assert_ok(look(filter), store);
    hibloom_store_deadline(store, 0);
    const pid_t waker = pause_for(owner_of("seen:0"), 700);
    assert_ok(look(filter), store);
    assert_int_equal(waitpid(waker, NULL, 0), waker);
    hibloom_close(filter);
    hibloom_store_free(store);
    whole = true;
}

static int paused_port;
static unsigned connected; /* to others than that */

static void count_connections(struct redisContext *context, void *data)
{
    connected += context->tcp.port != paused_port;
}

/* While one node is waited for, the answers of the others have come, and time passes
 * for them as well. */
static void a_node_that_is_slow_does_not_time_out_the_others(void **state)
{
    const hibloom_connect_options options = {OPTIONS, .retry_ms = 20000, .command_timeout_ms = 400,
                                             .on_connect = count_connections};
    hibloom_store *store = test_connect(redis_cluster_uri(cluster), &options);
    hibloom *filter = test_open(store, "seen", TEXT);
    struct redis_server *paused = owner_of("seen:0");
    hibloom_stats stats;

    assert_ok(hibloom_add_many(filter, items, ITEMS, answers), store);
    paused_port = redis_server_port(paused);
    connected = 0;
    const pid_t waker = pause_for(paused, 700);
    assert_ok(look(filter), store);
    hibloom_get_stats(store, &stats);
    assert_int_equal(connected, 0);
    assert_true(stats.connections > PRIMARIES); /* the paused one was given up, and connected to again */
    hibloom_close(filter);
    hibloom_store_free(store);
    assert_int_equal(waitpid(waker, NULL, 0), waker);
    whole = true;
}

#define ON(name, cluster_set_up) cmocka_unit_test_setup_teardown(name, cluster_set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON(more_replicas_than_there_are_is_said_in_words, set_up_replicas),
        ON(each_server_must_have_its_own_replica, set_up_replicas),
        ON(each_handle_is_told_once_that_a_server_forgot, set_up_replicas),
        ON(who_was_idle_is_told_before_a_look_up_answers, set_up_replicas),
        ON(nodes_that_no_seed_names_are_asked_too, set_up_replicas),
        ON(where_none_answers_a_call_ends_soon_after_its_time, set_up_replicas),
        ON(a_deadline_ends_calls_on_a_node_that_is_paused, set_up),
        ON(a_deadline_is_over_with_its_call, set_up),
        ON(a_node_that_is_slow_does_not_time_out_the_others, set_up),
        ON(a_primary_that_comes_back_empty_is_lost_and_then_not_found, set_up),
        ON(where_all_are_dead_a_call_fails_in_time_and_later_ones_work, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, stop);
}
