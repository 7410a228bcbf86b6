/* A primary is killed under a thread that adds, and its replica takes over: what replicas were to have is there. */
#include "../support/items.h"
#include "../support/redis_cluster.h"
#include "../support/test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

enum { PRIMARIES = 3, ITEMS = 2000 };

#define TEXT "capacity=10000 error=1e-9 segments=12 seed=1"

static struct redis_cluster *cluster;
static hibloom_item *items;
static bool answers[ITEMS];

static int set_up(void **state)
{
    items = items_new("in", ITEMS);
    cluster = redis_cluster_start(&(struct redis_cluster_options){.primaries = PRIMARIES, .replicas = 1});
    return 0;
}

static int tear_down(void **state)
{
    redis_cluster_stop(cluster);
    items_free(items);
    return 0;
}

struct adder {
    hibloom_store *store;
    hibloom *filter;
    unsigned added;   /* numbers 0 to added - 1 were acknowledged */
    atomic_uint told; /* calls that were ELOST */
    atomic_bool stop;
};

static void *add_numbers(void *of)
{
    struct adder *adder = of;

    while (!adder->stop) {
        const hibloom_status status = hibloom_add(adder->filter, &adder->added, sizeof adder->added, NULL);
        if (status != HIBLOOM_ELOST)
            assert_ok(status, adder->store);
        adder->added += status == HIBLOOM_OK;
        adder->told += status == HIBLOOM_ELOST;
    }
    return NULL;
}

/* The main thread kills and restarts: a server dies with the thread that started it. */
static void what_replicas_have_outlives_a_primary(void **state)
{
    hibloom_store *store = test_connect(
        with_options(redis_cluster_uri(cluster), "command_timeout=1s&min_replicas=1&retry=20s"), NULL);
    hibloom *filter = test_open(store, "seen", TEXT);
    const int primary = redis_cluster_owner(cluster, redis_cluster_slot(cluster, "seen:0"));
    struct adder adder = {.store = store, .filter = filter};
    pthread_t thread;
    bool found;

    assert_int_equal(pthread_create(&thread, NULL, add_numbers, &adder), 0);
    redis_cluster_cut_off(cluster, primary);
    redis_cluster_fail_over(cluster, primary, redis_server_kill, redis_server_restart);
    for (int i = 0; i < 2000 && adder.told == 0; i++)
        test_sleep_ms(5);
    adder.stop = true;
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(adder.added > 0);
    assert_int_equal(adder.told, 1);
    for (unsigned i = 0; i < adder.added; i++) {
        assert_ok(hibloom_contains(filter, &i, sizeof i, &found), store);
        assert_true(found);
    }
    assert_dropped(filter, store);
    hibloom_store_free(store);
}

static void more_replicas_than_there_are_is_said_in_words(void **state)
{
    hibloom_store *store = test_connect(redis_cluster_uri(cluster), NULL), *careful;

    hibloom_close(test_open(store, "seen", TEXT)); /* to make it would wait, too */
    hibloom_store_free(store);
    careful = test_connect(
        with_options(redis_cluster_uri(cluster), "command_timeout=1s&min_replicas=2&replicas_timeout=100ms"), NULL);
    hibloom *filter = test_open(careful, "seen", TEXT);
    assert_status(hibloom_add_many(filter, items, ITEMS, answers), HIBLOOM_EUNAVAILABLE, careful);
    assert_non_null(strstr(hibloom_store_error(careful), "min_replicas asks for 2"));
    assert_ok(hibloom_contains_many(filter, items, ITEMS, answers), careful);
    assert_int_equal(test_count_true(answers, ITEMS), ITEMS); /* they are in, all the same */
    hibloom_close(filter);
    assert_ok(hibloom_drop_by_name(careful, "seen"), careful);
    hibloom_store_free(careful);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(more_replicas_than_there_are_is_said_in_words),
        cmocka_unit_test(what_replicas_have_outlives_a_primary),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
