/* Nodes say of themselves no host, or a host name; and they want a password. */
#include "spec/spec.h"
#include "support/items.h"
#include "support/redis_cluster.h"
#include "support/test.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>

enum { ITEMS = 3000, PRIMARIES = 3 };

#define TEXT "bits=3000000 hashes=7 segments=12 seed=1"

static hibloom_item *items;
static bool answers[ITEMS];

static int set_up(void **state)
{
    items = items_new("in", ITEMS);
    return 0;
}

static int tear_down(void **state)
{
    items_free(items);
    return 0;
}

static struct redis_cluster *start(const char *const *args)
{
    return redis_cluster_start(&(struct redis_cluster_options){.primaries = PRIMARIES, .args = args});
}

/* Adds, and again after some of its slots moved: so MOVED is read as well as the map. */
static void use(struct redis_cluster *cluster, const char *uri)
{
    hibloom_store *store = test_connect(uri, NULL);
    hibloom *filter = test_open(store, "seen", TEXT);
    hibloom_stats stats;

    assert_ok(hibloom_add_many(filter, items, ITEMS, NULL), store);
    for (int i = 0; i < 12; i++) {
        char key[16];
        snprintf(key, sizeof key, "seen:%d", i);
        const int slot = redis_cluster_slot(cluster, key), from = redis_cluster_owner(cluster, slot);
        const struct redis_cluster_move move = {slot, slot, from, (from + 1) % PRIMARIES};
        redis_cluster_begin_move(cluster, &move);
        assert_int_equal(redis_cluster_move_keys(cluster, &move, 10), 1);
        if (i % 2 == 0) /* the others stay half moved: ASK */
            redis_cluster_end_move(cluster, &move);
        redis_cluster_wait_settled(cluster); /* nodes that have not heard of it may take the slot back */
    }
    assert_ok(hibloom_contains_many(filter, items, ITEMS, answers), store);
    for (size_t i = 0; i < ITEMS; i++)
        assert_true(answers[i]);
    hibloom_get_stats(store, &stats, sizeof stats);
    assert_in_range(stats.redirects, 12, 100);
    test_close(filter, store);
    redis_cluster_stop(cluster);
}

static void a_node_that_names_no_host_means_the_one_that_was_asked(void **state)
{
    static const char *const args[] = {"--cluster-preferred-endpoint-type", "unknown-endpoint", NULL};
    struct redis_cluster *cluster = start(args);

    use(cluster, redis_cluster_uri(cluster));
}

static void nodes_may_have_names(void **state)
{
    static const char *const args[] = {"--cluster-preferred-endpoint-type", "hostname", "--cluster-announce-hostname",
                                       "localhost", NULL};
    struct redis_cluster *cluster = start(args);

    use(cluster, redis_cluster_uri(cluster));
}

static void each_node_is_given_the_password(void **state)
{
    static const char *const args[] = {"--requirepass", "secret", "--masterauth", "secret", "--user", "worker", "on",
                                       ">hidden",       "~*",     "&*",           "+@all",  NULL};
    struct redis_cluster *cluster = start(args);
    const char *hosts = redis_cluster_uri(cluster) + strlen("redis+cluster://");
    hibloom_store *store;
    char uri[600];

    assert_status(hibloom_connect(&store, redis_cluster_uri(cluster), NULL), HIBLOOM_EDENIED, store);
    hibloom_store_free(store);
    snprintf(uri, sizeof uri, "redis+cluster://worker:wrong@%s", hosts);
    assert_status(hibloom_connect(&store, uri, NULL), HIBLOOM_EDENIED, store);
    hibloom_store_free(store);
    snprintf(uri, sizeof uri, "redis+cluster://worker:hidden@%s", hosts);
    use(cluster, uri);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_node_that_names_no_host_means_the_one_that_was_asked),
        cmocka_unit_test(nodes_may_have_names),
        cmocka_unit_test(each_node_is_given_the_password),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
