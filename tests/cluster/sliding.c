/* Sliding windows on a cluster, whose slices lie on several servers: their clocks differ, and slots move. Node 0 has the
 * root of the first slice, so its clock decides what counts. */
#include "../support/redis_cluster.h"
#include "../support/stepped.h"
#include "../support/test.h"

#include <hiredis/hiredis.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define TEXT "capacity=2000 error=1e-12 window=1000 slices=2"

enum { NODES = 3, PERIOD_S = 500, SLICES = 2, START = 3600000 /* slice 0 */ };

static struct stepped_clock *clocks;
static struct redis_cluster *cluster;
static hibloom_store *store;
static char name[64]; /* slice i lies on node i */

/* Node 0 shows so many milliseconds after the beginning of period START. */
static void set_clock(int64_t ms)
{
    const int64_t now = (int64_t)stepped_now_us(clocks) - stepped_ahead(clocks) * 1000;

    stepped_set(clocks, (int64_t)START * PERIOD_S * 1000 + ms - now / 1000);
}

static void set_others(int64_t ahead_ms)
{
    for (int node = 1; node < NODES; node++)
        stepped_set_one(clocks, redis_cluster_node(cluster, node), ahead_ms);
}

static int64_t shown_ms(void)
{
    return (int64_t)stepped_now_us(clocks) / 1000 - (int64_t)START * PERIOD_S * 1000;
}

static int owner_of(const char *key)
{
    return redis_cluster_owner(cluster, redis_cluster_slot(cluster, key));
}

static void find_name(void)
{
    char key[2][sizeof name + 8];
    int i = 0;

    do {
        snprintf(name, sizeof name, "slides%d", i++);
        for (int link = 1; link <= SLICES; link++)
            snprintf(key[link - 1], sizeof key[0], "%s:+%d", name, link);
    } while (owner_of(name) != 0 || owner_of(key[0]) != 1 || owner_of(key[1]) != 2);
}

static bool add(hibloom *filter, const char *item)
{
    bool is_new;

    assert_ok(hibloom_add(filter, item, strlen(item), &is_new), store);
    return is_new;
}

static bool has(hibloom *filter, const char *item)
{
    bool found;

    assert_ok(hibloom_contains(filter, item, strlen(item), &found), store);
    return found;
}

/* Items of the two periods before START + 1, which the clock shows then, so long before its end. */
static hibloom *fill_until(int64_t before_end_ms)
{
    set_others(0);
    set_clock(-PERIOD_S * 1000 + 10);
    hibloom *filter = test_open(store, name, TEXT);
    assert_true(add(filter, "old"));
    set_clock(10);
    assert_true(add(filter, "mid"));
    set_clock(2 * PERIOD_S * 1000 - before_end_ms);
    return filter;
}

static void drop(hibloom *filter)
{
    assert_ok(hibloom_drop(filter), store);
    hibloom_close(filter);
    set_others(0);
}

/* ---- Clocks that differ ---------------------------------------------------------------------- */

struct watch {
    hibloom_store *store;
    hibloom *filter;
    unsigned asked, wrong;
};

/* An item that counts until the end of the period is looked for until then. */
static void *watch_old(void *data)
{
    struct watch *watch = data;
    bool found = false;

    while (shown_ms() < 2 * PERIOD_S * 1000) {
        const bool ok = hibloom_contains(watch->filter, "old", 3, &found) == HIBLOOM_OK;
        if (shown_ms() >= 2 * PERIOD_S * 1000)
            break;
        watch->asked++;
        watch->wrong += !ok || !found;
        test_sleep_ms(1);
    }
    return NULL;
}

static void add_while_it_is_watched(bool exact)
{
    hibloom *filter = fill_until(1200);
    struct watch watch = {.store = test_connect(redis_cluster_uri(cluster), NULL)};
    bool is_new = true;
    pthread_t thread;

    watch.filter = test_open(watch.store, name, TEXT);
    set_others(2000);
    assert_int_equal(pthread_create(&thread, NULL, watch_old, &watch), 0);
    test_sleep_ms(100);
    assert_ok(hibloom_add(filter, "now", 3, exact ? &is_new : NULL), store);
    assert_true(shown_ms() >= 2 * PERIOD_S * 1000); /* it has waited */
    pthread_join(thread, NULL);
    assert_true(watch.asked > 10);
    assert_int_equal(watch.wrong, 0);
    assert_true(is_new && has(filter, "now") && has(filter, "mid"));
    assert_false(add(watch.filter, "now"));
    hibloom_close(watch.filter);
    hibloom_store_free(watch.store);
    drop(filter);
}

static void where_a_server_is_ahead_adds_wait_and_nothing_is_forgotten_too_soon(void **state)
{
    add_while_it_is_watched(false);
    add_while_it_is_watched(true);
}

static void where_it_is_far_ahead_they_are_refused_in_words(void **state)
{
    hibloom *filter = fill_until(20000);
    bool is_new;

    set_others(40000);
    for (int exact = 0; exact < 2; exact++) {
        assert_status(hibloom_add(filter, "now", 3, exact ? &is_new : NULL), HIBLOOM_EBUSY, store);
        assert_non_null(strstr(hibloom_store_error(store), "clocks"));
    }
    assert_true(has(filter, "old") && has(filter, "mid"));
    set_others(0);
    assert_true(add(filter, "now"));
    drop(filter);
}

static void where_a_server_is_behind_adds_go_on(void **state)
{
    hibloom *filter = fill_until(1000), *other = test_open(store, name, TEXT);

    set_others(-5000);
    assert_true(add(filter, "now"));
    set_clock(2 * PERIOD_S * 1000 + 1000); /* in START + 2, where the others are in START + 1 */
    assert_true(has(filter, "now") && has(other, "mid") && !has(other, "old"));
    assert_true(add(other, "later") && !add(filter, "later") && !add(filter, "now"));
    assert_ok(hibloom_add(filter, "plain", 5, NULL), store);
    for (int period = 2; period <= 3; period++) {
        set_clock(period * PERIOD_S * 1000 + 6000);
        assert_true(has(other, "now") && has(other, "later") && has(other, "plain"));
    }
    set_clock(5 * PERIOD_S * 1000 + 6000);
    assert_false(has(filter, "now") || has(filter, "later") || has(other, "plain"));
    hibloom_close(other);
    drop(filter);
}

/* A look-up that a replica answers goes by its clock. If that is wrong, adds go on by the primary's, and empty nothing. */
static void a_replicas_clock_decides_nothing_but_its_own_answers(void **state)
{
    hibloom_connect_options options = HIBLOOM_CONNECT_OPTIONS_INIT;
    bool is_new;

    options.read_from_replicas = true;
    options.retry_ms = 5000;
    hibloom_store *readers = test_connect(redis_cluster_uri(cluster), &options);
    for (int ahead = 1; ahead <= 3; ahead++)
        for (int exact = 0; exact < 2; exact++) {
            hibloom *filter = fill_until(100000), *other = test_open(readers, name, TEXT);
            bool found = true;
            for (int node = NODES; node < 2 * NODES; node++)
                stepped_set_one(clocks, redis_cluster_node(cluster, node), ahead * PERIOD_S * 1000);
            for (int tries = 0; found && tries < 500;
                 tries++) { /* a replica that lags does not know it, and is not believed */
                test_sleep_ms(tries == 0 ? 0 : 10);
                assert_ok(hibloom_contains(other, "old", 3, &found), readers);
            }
            assert_false(found);
            assert_ok(hibloom_add(other, "now", 3, exact ? &is_new : NULL), readers);
            assert_true(has(filter, "old") && has(filter, "mid") && has(filter, "now"));
            for (int node = NODES; node < 2 * NODES; node++)
                stepped_set_one(clocks, redis_cluster_node(cluster, node), 0);
            hibloom_close(other);
            drop(filter);
        }
    hibloom_store_free(readers);
}

/* ---- Slots that move ------------------------------------------------------------------------------ */

enum { ROUND = 4 * 3 }; /* items in a period */

/* Adds, and asks for what was added now, and in the periods before. */
static void go_on(hibloom *filter, hibloom *other, unsigned *n)
{
    char item[32];

    for (int i = 0; i < 3; i++) {
        snprintf(item, sizeof item, "moved %u", (*n)++);
        if (i == 0)
            assert_ok(hibloom_add(filter, item, strlen(item), NULL), store);
        else
            assert_true(add(i == 1 ? filter : other, item));
    }
    for (unsigned i = *n - 3; i < *n; i++) {
        snprintf(item, sizeof item, "moved %u", i);
        assert_true(has(filter, item) && has(other, item));
        assert_false(add(other, item));
    }
    for (unsigned rounds = 1; rounds <= SLICES && *n > rounds * ROUND; rounds++) { /* of the periods that still count */
        snprintf(item, sizeof item, "moved %u", *n - rounds * ROUND - 1);
        assert_true(has(filter, item) && has(other, item));
    }
}

static void slots_move_as_periods_pass(void **state)
{
    hibloom *filter = test_open(store, name, TEXT), *other = test_open(store, name, TEXT);
    unsigned n = 0;

    for (int round = 0; round < 2 * (SLICES + 1); round++) {
        char key[sizeof name + 8];
        const int link = round % (SLICES + 1);
        snprintf(key, sizeof key, link == 0 ? "%s" : "%s:+%d", name, link);
        const int slot = redis_cluster_slot(cluster, key), from = redis_cluster_owner(cluster, slot);
        const struct redis_cluster_move move = {slot, slot, from, (from + 1) % NODES};
        set_clock(round * PERIOD_S * 1000 + 10);
        go_on(filter, other, &n);
        redis_cluster_begin_move(cluster, &move);
        go_on(filter, other, &n);
        assert_int_equal(redis_cluster_move_keys(cluster, &move, 1), 1);
        set_clock(round * PERIOD_S * 1000 + PERIOD_S * 1000 - 3000);
        go_on(filter, other, &n);
        redis_cluster_end_move(cluster, &move);
        go_on(filter, other, &n);
        redis_cluster_wait_settled(cluster);
    }
    hibloom_close(other);
    drop(filter);
}

static int set_up(void **state)
{
    /* Clocks that step shall make no node think that another one is dead. */
    static const char *const args[] = {"--cluster-node-timeout", "2000000000", NULL};

    clocks = stepped_begin();
    set_clock(0);
    cluster = redis_cluster_start(&(struct redis_cluster_options){.primaries = NODES, .replicas = 1, .args = args});
    stepped_end();
    store = test_connect(redis_cluster_uri(cluster),
                         &(hibloom_connect_options){.size = sizeof(hibloom_connect_options), .retry_ms = 5000});
    find_name();
    return 0;
}

static int tear_down(void **state)
{
    hibloom_store_free(store);
    redis_cluster_stop(cluster);
    stepped_free(clocks);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(where_a_server_is_ahead_adds_wait_and_nothing_is_forgotten_too_soon),
        cmocka_unit_test(where_it_is_far_ahead_they_are_refused_in_words),
        cmocka_unit_test(where_a_server_is_behind_adds_go_on),
        cmocka_unit_test(a_replicas_clock_decides_nothing_but_its_own_answers),
        cmocka_unit_test(slots_move_as_periods_pass),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
