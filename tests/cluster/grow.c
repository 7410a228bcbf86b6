/* A growing filter on a cluster: the primary of its root, or of a further link, dies, and the replica that takes over has
 * not heard that the filter grew. Nothing that was acknowledged is denied, or new again. */
#include "../support/test.h"
#include "../support/redis_cluster.h"

#include <hiredis/hiredis.h>
#include <stdio.h>

enum { PRIMARIES = 3, FIRST = 100, GROWN = 120, MORE = 400 }; /* numbers: from FIRST on they are in the further link */

#define ALONE "capacity=10 error=1e-9 growth=2"
#define SEGMENTED ALONE " segments=2"

static struct redis_cluster *cluster;
static hibloom_store *store;

static int set_up(void **state)
{
    cluster = redis_cluster_start(&(struct redis_cluster_options){.primaries = PRIMARIES, .replicas = 1});
    return 0;
}

static int tear_down(void **state)
{
    redis_cluster_stop(cluster);
    return 0;
}

/* No key of a filter is left that was removed. */
static void assert_empty(void)
{
    for (int i = 0; i < PRIMARIES; i++) {
        const int node = redis_cluster_owner(cluster, REDIS_CLUSTER_SLOTS * i / PRIMARIES);
        redisContext *redis = redis_server_connect(redis_cluster_node(cluster, node));
        assert_int_equal(test_command(redis, "DBSIZE"), 0);
        redisFree(redis);
    }
}

/* A name for which that key is on another server than the others of the filter and its first further link; that one. */
static int name_apart(char name[32], const char *apart, const char *const *others)
{
    char key[64];

    for (unsigned number = 0;; number++) {
        snprintf(name, 32, "apart%u", number);
        snprintf(key, sizeof key, "%s%s", name, apart);
        const int primary = redis_cluster_owner(cluster, redis_cluster_slot(cluster, key));
        bool alone = true;
        for (size_t i = 0; others[i] != NULL; i++) {
            snprintf(key, sizeof key, "%s%s", name, others[i]);
            alone = alone && redis_cluster_owner(cluster, redis_cluster_slot(cluster, key)) != primary;
        }
        if (alone)
            return primary;
    }
}

/* Adds one number after the other; how many until one could not be had by a replica. */
static unsigned add_until_it_grows(hibloom *filter)
{
    for (unsigned i = 0;; i++) {
        const hibloom_status status = hibloom_add(filter, &i, sizeof i, NULL);
        if (status == HIBLOOM_OK && i < MORE)
            continue;
        assert_status(status, HIBLOOM_EUNAVAILABLE, store);
        return i;
    }
}

/* A key of the further link is on a server whose replica does not hear of it. Then that takes over. */
static void grow_and_lose(const char *text, const char *lost, const char *const *others)
{
    hibloom_connect_options careful = {.size = sizeof careful, .min_replicas = 1, .replicas_ms = 200};
    char name[32];
    const int primary = name_apart(name, lost, others);
    bool found;

    store = test_connect(redis_cluster_uri(cluster), &careful);
    hibloom *filter = test_open(store, name, text);
    for (unsigned i = 0; i < 2; i++)
        assert_ok(hibloom_add(filter, &i, sizeof i, NULL), store);
    redis_cluster_cut_off(cluster, primary);
    const unsigned in = add_until_it_grows(filter);
    redis_cluster_fail_over(cluster, primary, redis_server_kill, redis_server_restart);
    test_close(filter, store);

    careful.retry_ms = 10000;
    store = test_connect(redis_cluster_uri(cluster), &careful);
    filter = test_open(store, name, text);
    for (unsigned i = 0; i < in + MORE; i++) {
        if (i >= in)
            assert_ok(hibloom_add(filter, &i, sizeof i, NULL), store);
        assert_ok(hibloom_contains(filter, &i, sizeof i, &found), store);
        assert_true(found);
    }
    assert_dropped(filter, store);
    hibloom_store_free(store);
    assert_empty();
}

static void a_link_is_told_of_once_replicas_have_it(void **state)
{
    static const char *const one[] = {"", NULL}, *const three[] = {":0", ":1", ":+1:0", NULL};

    grow_and_lose(ALONE, ":+1", one);
    grow_and_lose(SEGMENTED, ":+1:1", three); /* its root is there, and lists a key that is lost */
}

/* It asks all servers, so it is told that one forgot: once more where it has met the old one, which runs again, before it
 * met the new one. */
static void tell_all(hibloom *filter, hibloom_store *of)
{
    unsigned told = 0;
    bool found;

    for (unsigned i = 0; i < FIRST; i++) {
        const hibloom_status status = hibloom_contains(filter, &i, sizeof i, &found);
        if (status != HIBLOOM_ELOST)
            assert_ok(status, of);
        told += status == HIBLOOM_ELOST;
    }
    assert_in_range(told, 1, 2);
}

static void assert_none_is_new(hibloom *filter, hibloom_store *of, bool adds)
{
    bool yes;

    for (unsigned i = FIRST; i < GROWN; i++) {
        assert_ok(adds ? hibloom_add(filter, &i, sizeof i, &yes) : hibloom_contains(filter, &i, sizeof i, &yes), of);
        if (yes == adds)
            fail_msg("%u is %s", i, adds ? "new" : "denied");
    }
}

static void assert_tells(const char *name, const char *root)
{
    char key[64];

    snprintf(key, sizeof key, "%s%s", name, root);
    const int owner = redis_cluster_owner(cluster, redis_cluster_slot(cluster, key));
    redisReply *reply = redis_server_must(redis_cluster_node(cluster, owner), "GETRANGE %s -55 -55", key);
    assert_string_equal(reply->str, "g");
    freeReplyObject(reply);
}

/* The root's primary dies, and its replica has not heard of the growth. */
static void forget(const char *text, const char *root, const char *const *others, bool by_a_new_one)
{
    const hibloom_connect_options patient = {.size = sizeof patient, .retry_ms = 20000};
    hibloom_store *asker = test_connect(redis_cluster_uri(cluster), &patient);
    const hibloom_spec spec = test_spec(text);
    char name[32];
    const int primary = name_apart(name, root, others);
    hibloom *anew;

    store = test_connect(redis_cluster_uri(cluster), &patient);
    hibloom *grower = test_open(store, name, text), *old = test_open(asker, name, text);
    redis_cluster_wait_settled(cluster);
    redis_cluster_cut_off(cluster, primary);
    for (unsigned i = 0; i < GROWN; i++)
        assert_ok(hibloom_add(grower, &i, sizeof i, NULL), store);
    redis_cluster_fail_over(cluster, primary, redis_server_kill, redis_server_restart);
    if (!by_a_new_one) {
        tell_all(old, asker);
        assert_none_is_new(old, asker, false);
        assert_tells(name, root);
    }
    hibloom_store *late = test_connect(redis_cluster_uri(cluster), &patient);
    assert_ok(hibloom_open(&anew, late, name, by_a_new_one ? &spec : NULL), late);
    assert_tells(name, root);
    assert_none_is_new(anew, late, false);
    assert_none_is_new(anew, late, true);
    assert_dropped(anew, late);
    hibloom_close(old);
    test_close(grower, late);
    hibloom_store_free(asker);
    hibloom_store_free(store);
    assert_empty();
}

#define WIDE "capacity=100 error=1e-9 growth=2"

static void a_root_that_forgets_its_growth_is_told_of_it_again(void **state)
{
    static const char *const one[] = {":+1", NULL}, *const three[] = {":1", ":+1:0", ":+1:1", NULL};

    forget(WIDE, "", one, true);
    forget(WIDE " segments=2", ":0", three, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_link_is_told_of_once_replicas_have_it),
        cmocka_unit_test(a_root_that_forgets_its_growth_is_told_of_it_again),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
