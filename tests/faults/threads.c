/* Threads with a store each work on one filter, on one server and on a cluster, while connections are closed under
 * them. Stores share nothing: that there is no race is ThreadSanitizer's to say (make check-threads); that of all who
 * add an item at least one is told that it is new, and that nothing is missing, this shows by itself. */
#include "support/redis_cluster.h"
#include "support/served.h"
#include "support/test.h"
#include "base/store.h"

#include <hiredis/hiredis.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { THREADS = 8, ITEMS = 2000, BATCH = 100, NODES = 3 };

struct worker {
    pthread_t thread;
    unsigned number;
    const char *uri, *spec;
    hibloom_status status; /* the first that is not OK */
    char words[256];
    unsigned missing;
};

static atomic_uint winners[ITEMS];

static void note(struct worker *worker, hibloom_status status, const hibloom_store *store)
{
    if (worker->status != HIBLOOM_OK || status == HIBLOOM_OK)
        return;
    worker->status = status;
    snprintf(worker->words, sizeof worker->words, "%s", hibloom_store_error(store));
}

static void add_batch(struct worker *worker, hibloom *filter, hibloom_store *store, unsigned first)
{
    char text[BATCH][16];
    hibloom_item items[BATCH];
    bool is_new[BATCH] = {false}, found[BATCH] = {false};

    for (unsigned i = 0; i < BATCH; i++)
        items[i] = (hibloom_item){text[i], (size_t)snprintf(text[i], sizeof text[i], "item%u", first + i)};
    note(worker, hibloom_add_many(filter, items, BATCH, is_new), store);
    note(worker, hibloom_contains_many(filter, items, BATCH, found), store);
    for (unsigned i = 0; i < BATCH; i++) {
        winners[first + i] += is_new[i];
        worker->missing += !found[i];
    }
}

/* All of them add all items, each from another place on. */
static void *work(void *argument)
{
    struct worker *worker = argument;
    hibloom_store *store = NULL;
    hibloom *filter = NULL;
    hibloom_info info;

    note(worker, hibloom_connect(&store, with_options(worker->uri, "retry=20s&command_timeout=20s"), NULL), store);
    if (worker->status == HIBLOOM_OK)
        note(worker, hibloom_open(&filter, store, "shared", worker->spec), store);
    for (unsigned i = 0; i < ITEMS / BATCH && worker->status == HIBLOOM_OK; i++)
        add_batch(worker, filter, store, (worker->number * ITEMS / THREADS + i * BATCH) % ITEMS / BATCH * BATCH);
    if (worker->status == HIBLOOM_OK)
        note(worker, hibloom_get_info(filter, &info, sizeof info), store);
    test_close(filter, store);
    return NULL;
}

/* Meanwhile their connections are closed now and then, each another one's. */
static void work_at_once(const char *uri, const char *spec, redisContext *outside)
{
    struct worker workers[THREADS];

    memset(workers, 0, sizeof workers);
    for (unsigned i = 0; i < ITEMS; i++)
        winners[i] = 0;
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.number = i, .uri = uri, .spec = spec};
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < 10; i++) {
        test_sleep_ms(10);
        (void)test_command(outside, "CLIENT KILL TYPE normal SKIPME yes");
    }
    for (unsigned i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
        if (workers[i].status != HIBLOOM_OK)
            fail_msg("thread %u: %s: %s", i, hibloom_strerror(workers[i].status), workers[i].words);
        assert_int_equal(workers[i].missing, 0);
    }
    for (unsigned i = 0; i < ITEMS; i++)
        assert_true(winners[i] >= 1);
}

static void on_one_server(void **state)
{
    work_at_once(redis_server_uri(server), "bits=1048576 hashes=5 seed=5eed", redis);
    test_command(redis, "FLUSHALL");
    work_at_once(redis_server_uri(server), "bits=1048576 hashes=5 seed=5eed segments=7", redis);
}

static void on_a_cluster(void **state)
{
    struct redis_cluster *cluster = redis_cluster_start(&(struct redis_cluster_options){.primaries = NODES});
    redisContext *node = redis_server_connect(redis_cluster_node(cluster, 1));

    work_at_once(redis_cluster_uri(cluster), "bits=1048576 hashes=5 seed=5eed segments=7", node);
    redisFree(node);
    redis_cluster_stop(cluster);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(on_one_server, served_leave_nothing),
        cmocka_unit_test(on_a_cluster),
    };

    return cmocka_run_group_tests(tests, served_set_up, served_tear_down);
}
