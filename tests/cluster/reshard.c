/* Slots move while four processes add: nothing fails, each item is new to one of
 * them, nothing that is in is denied, and where the slots are is asked about once
 * a move. What a reshard costs is printed. */
#include "../support/load.h"
#include "../support/redis_cluster.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>

enum { PRIMARIES = 3, MOVES = 40 };

static const hibloom_connect_options patient = {.size = sizeof(hibloom_connect_options), .retry_ms = 10000};

static struct redis_cluster *cluster;
static hibloom_store *store;

static int set_up(void **state)
{
    cluster = redis_cluster_start(&(struct redis_cluster_options){.primaries = PRIMARIES});
    store = test_connect(redis_cluster_uri(cluster), &patient);
    return 0;
}

static int tear_down(void **state)
{
    hibloom_store_free(store);
    redis_cluster_stop(cluster);
    return 0;
}

/* ---- Slots on the move ------------------------------------------------------------- */

static unsigned moves(void)
{
    return test_is_slow() ? MOVES / 4 : MOVES;
}

static struct redis_cluster_move to_next(const char *key)
{
    const int slot = redis_cluster_slot(cluster, key), from = redis_cluster_owner(cluster, slot);

    return (struct redis_cluster_move){slot, slot, from, (from + 1) % PRIMARIES};
}

/* With the load at work in each state in between: no key is there yet, some are, all are. */
static void move_under(struct load *load, const char *key, int keys)
{
    const struct redis_cluster_move move = to_next(key);

    redis_cluster_begin_move(cluster, &move);
    load_wait(load, 4);
    if (keys > 1) {
        assert_int_equal(redis_cluster_move_keys(cluster, &move, keys / 2), keys / 2);
        test_sleep_ms(20); /* nobody can add now who needs all keys */
    }
    assert_int_equal(redis_cluster_move_keys(cluster, &move, keys), keys - (keys > 1 ? keys / 2 : 0));
    load_wait(load, 4);
    redis_cluster_end_move(cluster, &move);
    load_wait(load, 4);
    redis_cluster_wait_settled(cluster); /* nodes that have not heard of it may take the slot back in the next move */
}

static void report(const char *what, const struct load *load, uint64_t ms, long long asked)
{
    const hibloom_stats stats = load_stats(load);
    uint64_t longest = 0;

    for (int i = 0; i < LOAD_WORKERS; i++)
        longest = load->workers[i].longest_ms > longest ? load->workers[i].longest_ms : longest;
    print_message(
        "%s: %u moves in %llu ms, %zu items: %llu calls, %llu redirects, %llu retries, %lld maps asked, the longest "
        "call %llu ms\n",
        what, moves(), (unsigned long long)ms, load_added(load), (unsigned long long)stats.calls,
        (unsigned long long)stats.redirects, (unsigned long long)stats.retries, asked, (unsigned long long)longest);
}

/* Moves and checks; key i of those that are moved has the name that `format` makes of i. */
static hibloom_stats reshard(const char *name, const char *text, const char *format, unsigned keys, int in_slot)
{
    hibloom *filter = test_open(store, name, text);
    const long long asked_before = redis_cluster_calls_of(cluster, "cluster|slots");
    struct load *load = load_start(redis_cluster_uri(cluster), name, text, &patient, false, false);
    const uint64_t since = test_now_ms();
    char key[64];

    for (unsigned i = 0; i < moves(); i++) {
        snprintf(key, sizeof key, format, i % keys);
        move_under(load, key, in_slot);
    }
    load_stop(load);
    const uint64_t took = test_now_ms() - since;
    const long long asked = redis_cluster_calls_of(cluster, "cluster|slots") - asked_before;
    const hibloom_stats stats = load_stats(load);
    report(name, load, took, asked);
    assert_int_equal(load_winners(load, 0, 0), 0);
    assert_int_equal(load_winners(load, 2, 255), 0);
    assert_int_equal(load_missing(load, filter, store), 0);
    assert_true(stats.redirects > 0);
    assert_int_equal(stats.in_doubt, 0);
    assert_int_equal(stats.restarts, 0);
    assert_in_range(asked, 1, LOAD_WORKERS * (moves() * 2 + 2));
    load_free(load);
    assert_ok(hibloom_drop(filter), store);
    hibloom_close(filter);
    return stats;
}

static void segments_move_one_by_one(void **state)
{
    (void)reshard("seen", LOAD_BITS " segments=30 seed=1", "seen:%u", 30, 1);
}

/* Of a filter of one key each command is redirected by itself, in the middle of its exchange. */
static void a_filter_of_one_key_moves(void **state)
{
    (void)reshard("one", LOAD_BITS " segments=1 seed=1", "one", 1, 1);
}

/* All of its keys are in one slot, and each add needs all of them: while some are
 * here and some are there nobody can do it (TRYAGAIN). */
static void a_tag_moves_with_keys_on_both_sides(void **state)
{
    const hibloom_stats stats = reshard("{tag}part", "bits=30000000 hashes=9 layout=partitioned seed=1", "{tag}part:0",
                                        1, 9);

    assert_true(stats.retries > 0);
}

static void a_tag_with_segments_moves(void **state)
{
    (void)reshard("{tag}seen", LOAD_BITS " segments=30 seed=1", "{tag}seen:0", 1, 30);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(segments_move_one_by_one),
        cmocka_unit_test(a_filter_of_one_key_moves),
        cmocka_unit_test(a_tag_moves_with_keys_on_both_sides),
        cmocka_unit_test(a_tag_with_segments_moves),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
