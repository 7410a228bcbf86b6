/* A primary is killed, or stops answering, under the load of four processes, and
 * its replica takes over: nothing that replicas were to have is missing, nobody
 * hangs, and each item is new to somebody. What a failover costs is printed. */
#include "../support/items.h"
#include "../support/load.h"
#include "../support/redis_cluster.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <sys/mman.h>

enum { PRIMARIES = 3, ITEMS = 60 };

#define TEXT LOAD_BITS " segments=12 seed=1"

/* Longer than a failover, which takes 4 s at most, on a machine that is slow. */
#define OPTIONS .size = sizeof(hibloom_connect_options)
#define PATIENT OPTIONS, .retry_ms = 20000, .command_timeout_ms = 1000

static const hibloom_connect_options careful = {PATIENT, .min_replicas = 1};

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

/* ---- What happens to the primary ----------------------------------------------------- */

static int owner_of(const char *key)
{
    return redis_cluster_owner(cluster, redis_cluster_slot(cluster, key));
}

static void lose_under(struct load *load, void (*stop)(struct redis_server *), void (*back)(struct redis_server *))
{
    const int primary = owner_of("seen:0");

    redis_cluster_cut_off(cluster, primary);
    redis_cluster_fail_over(cluster, primary, stop, back);
    load_wait(load, 20);
}

static void kill_under(struct load *load)
{
    lose_under(load, redis_server_kill, redis_server_restart);
}

/* Who resumes still believes that it is the primary, for a moment. */
static void pause_under(struct load *load)
{
    lose_under(load, redis_server_pause, redis_server_resume);
}

/* ---- Load ------------------------------------------------------------------------------- */

static uint64_t longest_ms(const struct load *load)
{
    uint64_t longest = 0;

    for (int i = 0; i < LOAD_WORKERS; i++)
        longest = load->workers[i].longest_ms > longest ? load->workers[i].longest_ms : longest;
    return longest;
}

static void report(const char *what, const struct load *load, uint64_t ms)
{
    const hibloom_stats stats = load_stats(load);
    unsigned unavailable = 0;

    for (int i = 0; i < LOAD_WORKERS; i++)
        unavailable += load->workers[i].unavailable;
    print_message(
        "%s: over after %llu ms, the longest call %llu ms, %llu exchanges again, %llu commands in doubt, %zu items, "
        "%zu new to none, %zu to several, %u calls ELOST, %u failed\n",
        what, (unsigned long long)ms, (unsigned long long)longest_ms(load), (unsigned long long)stats.retries,
        (unsigned long long)stats.in_doubt, load_added(load), load_winners(load, 0, 0), load_winners(load, 2, 255),
        load_told(load), unavailable);
}

static struct load *load_under(void (*happens)(struct load *), const char *what, const hibloom_connect_options *options)
{
    store = test_connect(redis_cluster_uri(cluster), options);
    (void)!hibloom_delete(store, "seen"); /* of a test that failed */
    hibloom *filter = test_open(store, "seen", TEXT);
    struct load *load = load_start(redis_cluster_uri(cluster), "seen", TEXT, options, options->min_replicas != 0,
                                   options->min_replicas == 0);
    const uint64_t since = test_now_ms();

    load_wait(load, 20);
    happens(load);
    load_stop(load);
    report(what, load, test_now_ms() - since);
    hibloom_close(filter);
    return load;
}

static void drop_all(struct load *load)
{
    assert_ok(hibloom_delete(store, "seen"), store);
    hibloom_store_free(store);
    load_free(load);
}

static void assert_kept(struct load *load)
{
    hibloom_store_free(store); /* it has not heard of the failover yet */
    store = test_connect(redis_cluster_uri(cluster), NULL);
    hibloom *filter = test_open(store, "seen", TEXT);

    assert_int_equal(load_missing(load, filter, store), 0);
    assert_int_equal(load_winners(load, 0, 0), 0);
    unsigned told = 0;
    for (int i = 0; i < LOAD_WORKERS; i++) {
        assert_true(load->workers[i].told <= 1); /* one whose last call was in the middle of it is not told any more */
        told += load->workers[i].told;
        assert_int_equal(load->workers[i].unavailable, 0);
    }
    assert_true(told > 0);
    hibloom_close(filter);
    drop_all(load);
}

static void what_replicas_have_outlives_a_primary(void **state)
{
    assert_kept(load_under(kill_under, "killed, replicas wanted", &careful));
}

static void what_replicas_have_outlives_a_primary_that_stops_answering(void **state)
{
    assert_kept(load_under(pause_under, "paused, replicas wanted", &careful));
}

static void count_warnings(hibloom_log_level level, const char *line, void *data)
{
    if (level == HIBLOOM_LOG_WARNING)
        atomic_fetch_add((atomic_uint *)data, 1);
}

/* Without replicas to wait for, what the old primary acknowledged last may be missing:
 * but each item was new to somebody, and nobody who accepts it is bothered. */
static void who_accepts_restarts_only_hears_a_warning(void **state)
{
    atomic_uint *warnings = mmap(NULL, sizeof *warnings, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    const hibloom_connect_options options = {PATIENT, .accept_restarts = true, .on_log = count_warnings,
                                             .data = warnings};

    assert_true(warnings != MAP_FAILED);
    struct load *load = load_under(kill_under, "killed, restarts accepted", &options);
    assert_int_equal(load_winners(load, 0, 0), 0);
    assert_int_equal(load_told(load), 0);
    assert_int_equal(load_stats(load).restarts, LOAD_WORKERS);
    assert_true(*warnings >= LOAD_WORKERS);
    hibloom *filter = test_open(store, "seen", TEXT);
    assert_true(load_missing(load, filter, store) > 0); /* so the other tests would see it */
    hibloom_close(filter);
    drop_all(load);
    munmap(warnings, sizeof *warnings);
}

/* ---- A growing filter ------------------------------------------------------------------------ */

enum { GROWN = 100, ONE_BY_ONE = 20 };

#define GROWING "capacity=60 error=1e-9 growth=2 segments=2 seed=5eed"

/* One whose first root has a primary for itself; that one. */
static int name_growing(char *name)
{
    static const char *const others[] = {":1", ":+1:0", ":+1:1"};
    char key[32];

    for (unsigned number = 0;; number++) {
        snprintf(name, 16, "grows%u", number);
        snprintf(key, sizeof key, "%s:0", name);
        const int primary = owner_of(key);
        bool alone = true;
        for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
            snprintf(key, sizeof key, "%s%s", name, others[i]);
            alone = alone && owner_of(key) != primary;
        }
        if (alone)
            return primary;
    }
}

static void grow_alone(const char *name)
{
    hibloom_store *other = test_connect(redis_cluster_uri(cluster), NULL);
    hibloom *filter = test_open(other, name, GROWING);

    for (uint32_t i = 0; i < GROWN; i++)
        assert_ok(hibloom_add(filter, &i, sizeof i, NULL), other);
    hibloom_close(filter);
    hibloom_store_free(other);
}

/* Numbers from `from` on; what was acknowledged is noted. */
static unsigned add_numbers(hibloom *filter, uint32_t from, bool *in)
{
    unsigned count = 0;

    for (uint32_t i = 0; i < ONE_BY_ONE; i++) {
        const uint32_t number = from + i;
        const hibloom_status status = hibloom_add(filter, &number, sizeof number, NULL);
        if (status != HIBLOOM_OK)
            assert_status(status, HIBLOOM_EUNAVAILABLE, store);
        in[i] = status == HIBLOOM_OK;
        count += in[i];
    }
    return count;
}

static void assert_in(const char *name, uint32_t from, const bool *in)
{
    hibloom_store *other = test_connect(redis_cluster_uri(cluster), NULL);
    hibloom *filter = test_open(other, name, GROWING);

    for (uint32_t i = 0; i < ONE_BY_ONE; i++) {
        const uint32_t number = from + i;
        bool found = false;
        assert_ok(hibloom_contains(filter, &number, sizeof number, &found), other);
        assert_true(found || !in[i]);
    }
    hibloom_close(filter);
    hibloom_store_free(other);
}

/* Somebody else has made it grow, and not waited for replicas. The root that tells of the further link is on a server
 * on which no key of the items is. */
static void adds_in_a_further_link_outlive_the_root_that_tells_of_it(void **state)
{
    const hibloom_connect_options options = {.size = sizeof options, .min_replicas = 1, .replicas_ms = 200};
    bool before[ONE_BY_ONE], meanwhile[ONE_BY_ONE], after[ONE_BY_ONE];
    char name[16];
    const int primary = name_growing(name);

    store = test_connect(redis_cluster_uri(cluster), &options);
    hibloom *filter = test_open(store, name, GROWING);
    assert_int_equal(add_numbers(filter, 1000, before), ONE_BY_ONE);
    redis_cluster_cut_off(cluster, primary);
    grow_alone(name);
    const unsigned kept = add_numbers(filter, 2000, meanwhile);
    redis_server_kill(redis_cluster_node(cluster, primary));
    redis_server_resume(redis_cluster_node(cluster, redis_cluster_replica(cluster, primary)));
    redis_cluster_wait_failover(cluster, primary);
    print_message("%u adds were acknowledged while no replica knew of the further link\n", kept);
    assert_in(name, 1000, before);
    assert_in(name, 2000, meanwhile);
    redis_server_restart(redis_cluster_node(cluster, primary));
    redis_cluster_wait_settled(cluster);
    hibloom_close(filter);
    hibloom_store_free(store);

    store = test_connect(redis_cluster_uri(cluster), &options);
    filter = test_open(store, name, GROWING);
    grow_alone(name);
    assert_int_equal(add_numbers(filter, 3000, after), ONE_BY_ONE);
    assert_in(name, 3000, after);
    hibloom_close(filter);
    assert_ok(hibloom_delete(store, name), store);
    hibloom_store_free(store);
}

/* ---- Nobody answers -------------------------------------------------------------------------- */

static void on_all(void (*does)(struct redis_server *))
{
    for (int node = 0; node < redis_cluster_size(cluster); node++)
        does(redis_cluster_node(cluster, node));
}

/* To take its bits back an add asks all of them where its keys are now, a time-out each: once, and not for each of its twelve
 * keys. */
static void an_add_that_fails_asks_them_all_once(void **state)
{
    const hibloom_connect_options options = {OPTIONS, .command_timeout_ms = 300};
    hibloom_item *items = items_new("in", ITEMS);
    bool is_new[ITEMS];

    store = test_connect(redis_cluster_uri(cluster), &options);
    hibloom *filter = test_open(store, "silent", TEXT);
    assert_ok(hibloom_add_many(filter, items, ITEMS / 2, is_new), store); /* so it does not ask before it sends bits */
    on_all(redis_server_pause);
    const uint64_t since = test_now_ms();
    assert_status(hibloom_add_many(filter, items, ITEMS, is_new), HIBLOOM_ETIMEDOUT, store);
    print_message("over after %u ms\n", (unsigned)(test_now_ms() - since));
    assert_in_range(test_now_ms() - since, 600, 6000);
    on_all(redis_server_resume);
    redis_cluster_wait_settled(cluster);
    items_free(items);
    hibloom_close(filter);
    hibloom_store_free(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_replicas_have_outlives_a_primary),
        cmocka_unit_test(what_replicas_have_outlives_a_primary_that_stops_answering),
        cmocka_unit_test(who_accepts_restarts_only_hears_a_warning),
        cmocka_unit_test(adds_in_a_further_link_outlive_the_root_that_tells_of_it),
        cmocka_unit_test(an_add_that_fails_asks_them_all_once),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
