/* A filter of as many keys as 10^11 items at 1 % take: 7,150 segments of 16 MB,
 * here of 1 KB. Every call works on it; what it costs is printed, not judged: time
 * to open, memory of a handle, and what an item takes by the size of the call. */
#include "../support/items.h"
#include "../support/redis_cluster.h"
#include "../support/test.h"

#include <malloc.h>
#include <stdio.h>

enum { SEGMENTS = 7150, ITEMS = 100000, SIZES = 4 };

#define TEXT "bits=58572800 hashes=7 segments=7150 seed=1" /* 1 KB each */

static struct redis_cluster *cluster;
static hibloom_store *store;
static hibloom_item *items;
static bool answers[ITEMS];

static int set_up(void **state)
{
    cluster = redis_cluster_start(&(struct redis_cluster_options){.primaries = 3});
    store = test_connect(redis_cluster_uri(cluster), &(hibloom_connect_options){.commands = HIBLOOM_COMMANDS_BITFIELD});
    items = items_new("in", ITEMS);
    return 0;
}

static int tear_down(void **state)
{
    hibloom_store_free(store);
    redis_cluster_stop(cluster);
    items_free(items);
    return 0;
}

static hibloom_stats stats_of(void)
{
    hibloom_stats stats;

    hibloom_get_stats(store, &stats);
    return stats;
}

static size_t allocated(void)
{
    return mallinfo2().uordblks;
}

static size_t count_answers(size_t n)
{
    size_t count = 0;

    for (size_t i = 0; i < n; i++)
        count += answers[i];
    return count;
}

/* In calls of `size`, n items. What is beyond one command an item is guards. */
static void measure(hibloom *filter, const char *what, bool adds, size_t size, size_t n)
{
    const hibloom_stats before = stats_of();
    const uint64_t since = test_now_ms();

    for (size_t at = 0; at < n; at += size)
        assert_ok(adds ? hibloom_add_many(filter, items + at, size, answers + at)
                       : hibloom_contains_many(filter, items + at, size, answers + at),
                  store);
    const uint64_t took = test_now_ms() - since;
    const hibloom_stats after = stats_of();
    print_message("%s in calls of %zu: %.2f commands an item, %.2f of them guards, %.0f bytes sent, %.2f round trips, "
                  "%.0f items/s\n",
                  what, size, (double)(after.commands - before.commands) / (double)n,
                  (double)(after.commands - before.commands) / (double)n - 1,
                  (double)(after.bytes_sent - before.bytes_sent) / (double)n,
                  (double)(after.round_trips - before.round_trips) / (double)n, (double)n * 1000 / (double)(took + 1));
}

static void thousands_of_segments_are_one_filter(void **state)
{
    static const size_t sizes[SIZES] = {1, 100, 10000, 100000};
    hibloom_info info;
    uint64_t since = test_now_ms();

    hibloom *made = test_open(store, "seen", TEXT);
    print_message("created in %llu ms\n", (unsigned long long)(test_now_ms() - since));
    const size_t before = allocated();
    const hibloom_stats stats = stats_of();
    since = test_now_ms();
    hibloom *filter = test_open(store, "seen", TEXT);
    print_message("opened in %llu ms, %llu commands, %llu round trips; the handle takes %zu bytes\n",
                  (unsigned long long)(test_now_ms() - since),
                  (unsigned long long)(stats_of().commands - stats.commands),
                  (unsigned long long)(stats_of().round_trips - stats.round_trips), allocated() - before);
    for (size_t i = 0; i < SIZES; i++) {
        const size_t n = sizes[i] < 1000 ? (test_is_slow() ? 200 : 2000) : sizes[i];
        measure(filter, "add", true, sizes[i], n);
        measure(made, "contains", false, sizes[i], n);
        assert_int_equal(count_answers(n), n);
        assert_ok(hibloom_clear(filter), store);
        measure(made, "contains, of none,", false, sizes[i], n);
        assert_int_equal(count_answers(n), 0);
    }
    measure(filter, "add", true, ITEMS, ITEMS);
    assert_in_range(count_answers(ITEMS), ITEMS - 20, ITEMS);
    since = test_now_ms();
    assert_ok(hibloom_get_info(filter, &info), store);
    print_message("info in %llu ms\n", (unsigned long long)(test_now_ms() - since));
    assert_int_equal(info.keys, SEGMENTS);
    assert_true(info.estimated_items > ITEMS * 0.99 && info.estimated_items < ITEMS * 1.01);
    since = test_now_ms();
    assert_ok(hibloom_drop(filter), store);
    print_message("dropped in %llu ms\n", (unsigned long long)(test_now_ms() - since));
    for (int node = 0; node < redis_cluster_size(cluster); node++)
        assert_true(redis_server_says(redis_cluster_node(cluster, node), "INFO keyspace", "# Keyspace\r\n") &&
                    !redis_server_says(redis_cluster_node(cluster, node), "INFO keyspace", "keys="));
    hibloom_close(filter);
    hibloom_close(made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(thousands_of_segments_are_one_filter),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
