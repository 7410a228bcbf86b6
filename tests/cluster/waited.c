/* min_replicas on a cluster, where the call has nothing to write: each server whose replica lags is waited for,
 * and no other; and the write in front of WAIT follows its key to where that has moved. And nobody opens a filter
 * whose root no replica has yet. */
#include "../support/items.h"
#include "../support/redis_cluster.h"
#include "../support/test.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>

enum { PRIMARIES = 3, ITEMS = 60 };

#define TEXT "bits=30000 hashes=4 segments=6 seed=1"
#define SINGLE "bits=8192 hashes=4 seed=1"
#define OPTIONS .size = sizeof(hibloom_connect_options)

static const hibloom_connect_options careful = {OPTIONS, .min_replicas = 1, .replicas_ms = 100};

static struct redis_cluster *cluster;
static hibloom_store *direct; /* waits for nobody */

static int set_up(void **state)
{
    cluster = redis_cluster_start(&(struct redis_cluster_options){.primaries = PRIMARIES, .replicas = 1});
    direct = test_connect(redis_cluster_uri(cluster), NULL);
    return 0;
}

static int tear_down(void **state)
{
    hibloom_store_free(direct);
    redis_cluster_stop(cluster);
    return 0;
}

static int owner_of(const char *key)
{
    return redis_cluster_owner(cluster, redis_cluster_slot(cluster, key));
}

/* Of the segment of a filter that the item lies in. */
static int server_of(const char *name, const hibloom_spec *spec, const hibloom_item *item)
{
    hibloom_position positions[4];
    char segment[32];

    assert_ok(hibloom_positions(spec, item->data, item->len, positions), NULL);
    snprintf(segment, sizeof segment, "%s:%u", name, positions[0].key);
    return owner_of(segment);
}

/* ---- Who lags ------------------------------------------------------------------------------- */

static int resume(void **state)
{
    for (int node = PRIMARIES; node < 2 * PRIMARIES; node++)
        redis_server_resume(redis_cluster_node(cluster, node));
    return 0;
}

/* Each item in a call of its own, on connections that have written nothing. */
static void assert_waits_for(int lagging, const hibloom_item *items)
{
    const hibloom_spec spec = test_spec(TEXT);
    unsigned waited = 0, others = 0;

    for (size_t i = 0; i < ITEMS && (waited < 3 || others < 3); i++) {
        const bool waits = server_of("seen", &spec, &items[i]) == lagging;
        if (waits ? waited++ >= 3 : others++ >= 3)
            continue;
        hibloom_store *store = test_connect(redis_cluster_uri(cluster), &careful);
        hibloom *filter = test_open(store, "seen", TEXT);
        assert_status(hibloom_add(filter, items[i].data, items[i].len, NULL), waits ? HIBLOOM_EUNAVAILABLE : HIBLOOM_OK,
                      store);
        assert_true(!waits || strstr(hibloom_store_error(store), "0 replicas have what was written, of 1") != NULL);
        hibloom_close(filter);
        hibloom_store_free(store);
    }
    assert_true(waited > 0 && others > 0);
}

static void each_server_that_lags_is_waited_for_and_no_other(void **state)
{
    hibloom *filter = test_open(direct, "seen", TEXT);

    for (int node = 0; node < PRIMARIES; node++) {
        char prefix[] = "a";
        prefix[0] += (char)node;
        hibloom_item *items = items_new(prefix, ITEMS);
        redis_server_pause(redis_cluster_node(cluster, PRIMARIES + node));
        assert_ok(hibloom_add_many(filter, items, ITEMS, NULL), direct);
        assert_waits_for(node, items);
        redis_server_resume(redis_cluster_node(cluster, PRIMARIES + node));
        items_free(items);
    }
    assert_ok(hibloom_drop(filter), direct);
    hibloom_close(filter);
}

/* ---- A key that moves -------------------------------------------------------------------------- */

/* The slot is half moved, and its key has: whose primary is asked sends the write on, with ASK. */
static void the_write_follows_a_key_that_moves(void **state)
{
    hibloom_store *store = test_connect(redis_cluster_uri(cluster), &careful);
    hibloom *filter = test_open(store, "moves", SINGLE);
    const int slot = redis_cluster_slot(cluster, "moves"), from = owner_of("moves"), to = (from + 1) % PRIMARIES;
    const struct redis_cluster_move move = {slot, slot, from, to};

    assert_ok(hibloom_add(filter, "x", 1, NULL), store);
    redis_cluster_begin_move(cluster, &move);
    assert_int_equal(redis_cluster_move_keys(cluster, &move, 10), 1);
    for (int i = 0; i < 3; i++) {
        hibloom_stats before, after;
        hibloom_get_stats(store, &before);
        assert_ok(hibloom_add(filter, "x", 1, NULL), store);
        hibloom_get_stats(store, &after);
        assert_true(after.redirects > before.redirects);
    }
    redis_server_pause(redis_cluster_node(cluster, PRIMARIES + to));
    assert_status(hibloom_add(filter, "x", 1, NULL), HIBLOOM_EUNAVAILABLE, store); /* the new owner's replica counts */
    assert_non_null(strstr(hibloom_store_error(store), "0 replicas have what was written, of 1"));
    redis_server_resume(redis_cluster_node(cluster, PRIMARIES + to));
    redis_cluster_end_move(cluster, &move);
    assert_ok(hibloom_drop(filter), store);
    hibloom_close(filter);
    hibloom_store_free(store);
}

/* ---- The root ------------------------------------------------------------------------------------ */

/* Whoever makes it, and whoever goes on with what another one has made, whose connection has written nothing there. */
static void a_filter_is_ready_once_replicas_have_its_root(void **state)
{
    const int root = owner_of("fresh:0");
    const hibloom_spec spec = test_spec(TEXT);
    hibloom *filter;
    bool found;

    redis_server_pause(redis_cluster_node(cluster, PRIMARIES + root));
    for (int i = 0; i < 2; i++) {
        hibloom_store *store = test_connect(redis_cluster_uri(cluster), &careful);
        assert_status(hibloom_open(&filter, store, "fresh", &spec), HIBLOOM_EUNAVAILABLE, store);
        assert_non_null(strstr(hibloom_store_error(store), "0 replicas have what was written, of 1"));
        hibloom_store_free(store);
    }
    redis_server_resume(redis_cluster_node(cluster, PRIMARIES + root));

    hibloom_store *store = test_connect(redis_cluster_uri(cluster), &careful);
    assert_ok(hibloom_open(&filter, store, "fresh", &spec), store);
    redis_server_pause(redis_cluster_node(cluster, PRIMARIES + root));
    hibloom *other = test_open(store, "fresh", TEXT); /* it is there: nobody is waited for */
    hibloom_close(other);
    hibloom_item *items = items_new("in", ITEMS), *in = NULL;
    for (size_t i = 0; i < ITEMS && in == NULL; i++)
        if (server_of("fresh", &spec, &items[i]) != root)
            in = &items[i];
    assert_non_null(in);
    assert_ok(hibloom_add(filter, in->data, in->len, NULL), store);
    hibloom_close(filter);
    hibloom_store_free(store);
    redis_cluster_fail_over(cluster, root, redis_server_kill, redis_server_restart); /* keys on others are not lost */
    filter = test_open(direct, "fresh", TEXT);
    assert_ok(hibloom_contains(filter, in->data, in->len, &found), direct);
    assert_true(found);
    assert_ok(hibloom_drop(filter), direct);
    hibloom_close(filter);
    items_free(items);
}

/* The store has not met it yet; and nothing of the call was there. */
static void a_failover_before_a_filter_is_made_is_no_loss_of_it(void **state)
{
    const hibloom_connect_options patient = {OPTIONS, .min_replicas = 1, .retry_ms = 10000};
    hibloom_store *store = test_connect(redis_cluster_uri(cluster), &patient);
    const hibloom_spec spec = test_spec(TEXT);
    hibloom *filter;
    hibloom_stats stats;

    hibloom_close(test_open(store, "before", TEXT));
    redis_cluster_fail_over(cluster, owner_of("late:0"), redis_server_kill, redis_server_restart);
    hibloom_get_stats(store, &stats);
    assert_int_equal(stats.restarts, 0);
    assert_ok(hibloom_open(&filter, store, "late", &spec), store);
    hibloom_get_stats(store, &stats);
    assert_true(stats.restarts > 0); /* met */
    assert_ok(hibloom_drop(filter), store);
    assert_ok(hibloom_delete(store, "before"), store);
    hibloom_close(filter);
    hibloom_store_free(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(each_server_that_lags_is_waited_for_and_no_other, resume),
        cmocka_unit_test_teardown(the_write_follows_a_key_that_moves, resume),
        cmocka_unit_test_teardown(a_filter_is_ready_once_replicas_have_its_root, resume),
        cmocka_unit_test(a_failover_before_a_filter_is_made_is_no_loss_of_it),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
