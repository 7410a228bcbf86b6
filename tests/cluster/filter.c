/* A filter on a real cluster: each call of the header does there what it does on one server, wherever the keys lie. */
#include "../support/items.h"
#include "../support/module_dump.h"
#include "../support/redis_cluster.h"
#include "../support/temp_dir.h"
#include "../support/test.h"
#include "base/store.h"
#include "spec/spec.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ITEMS = 5000 };

static struct redis_cluster *cluster;
static hibloom_store *store;
static hibloom_item *items, *others;
static bool answers[ITEMS];

static int set_up(void **state)
{
    static const char *const args[] = {"--cluster-require-full-coverage", "no", NULL}; /* one of them is paused */

    cluster = redis_cluster_start(&(struct redis_cluster_options){.primaries = 3, .args = args});
    store = test_connect(redis_cluster_uri(cluster), NULL);
    items = items_new("in", ITEMS);
    others = items_new("out", ITEMS);
    return 0;
}

static int tear_down(void **state)
{
    hibloom_store_free(store);
    redis_cluster_stop(cluster);
    items_free(items);
    items_free(others);
    return 0;
}

static void add_all(hibloom *filter)
{
    assert_ok(hibloom_add_many(filter, items, ITEMS, answers), store);
    assert_in_range(test_count_true(answers, ITEMS), ITEMS * 98 / 100, ITEMS);
}

static void assert_all_in(hibloom *filter)
{
    assert_ok(hibloom_contains_many(filter, items, ITEMS, answers), store);
    assert_int_equal(test_count_true(answers, ITEMS), ITEMS);
    assert_ok(hibloom_contains_many(filter, others, ITEMS, answers), store);
    assert_in_range(test_count_true(answers, ITEMS), 0, ITEMS * 2 / 100);
}

/* On three servers, each of which has a third of the filters. */
static void many_filters_are_one_round_trip_a_server(void **state)
{
    enum { FILTERS = 300 };
    static char room[FILTERS][16];
    static const char *names[FILTERS];
    static hibloom *filters[FILTERS];
    static hibloom_pair pairs[FILTERS];
    static hibloom_status each[FILTERS];

    for (int i = 0; i < FILTERS; i++) {
        snprintf(room[i], sizeof room[i], "user:%d", i);
        names[i] = room[i];
    }
    uint64_t before = 0;
    for (int round = 0; round < 2; round++) { /* the connections are made first */
        for (int i = 0; i < FILTERS; i++) {
            assert_ok(filters[i] != NULL ? hibloom_drop(filters[i]) : HIBLOOM_OK, store);
            hibloom_close(filters[i]);
        }
        before = test_stats(store).round_trips;
        assert_ok(hibloom_open_many(filters, store, names, FILTERS, "capacity=100 error=0.001", each), store);
    }
    assert_in_range(test_stats(store).round_trips - before, 3, 3 * 6); /* in step: four each, and a greeting a second */
    for (int i = 0; i < FILTERS; i++) {
        assert_status(each[i], HIBLOOM_OK, store);
        pairs[i] = (hibloom_pair){filters[i], items[0]};
    }
    assert_ok(hibloom_add_pairs(pairs, FILTERS, answers, NULL), store);
    assert_int_equal(test_count_true(answers, FILTERS), FILTERS);
    before = test_stats(store).round_trips;
    assert_ok(hibloom_contains_pairs(pairs, FILTERS, answers, NULL), store);
    assert_in_range(test_stats(store).round_trips - before, 3, 3 * 2);
    assert_int_equal(test_count_true(answers, FILTERS), FILTERS);
    assert_ok(hibloom_drop(filters[7]), store);
    assert_ok(hibloom_contains_pairs(pairs, FILTERS, answers, each), store);
    for (int i = 0; i < FILTERS; i++) {
        assert_status(each[i], i == 7 ? HIBLOOM_ENOTFOUND : HIBLOOM_OK, NULL);
        assert_true(i == 7 || answers[i]);
        assert_status(hibloom_drop(filters[i]), each[i], store);
        hibloom_close(filters[i]);
    }
}

static long long keys_on(int node)
{
    redisContext *redis = redis_server_connect(redis_cluster_node(cluster, node));
    const long long keys = test_command(redis, "DBSIZE");

    redisFree(redis);
    return keys;
}

static void segments_lie_on_all_primaries(void **state)
{
    hibloom *filter = test_open(store, "spread", "capacity=5000 error=0.01 segments=30");
    long long all = 0;

    add_all(filter);
    assert_all_in(filter);
    for (int node = 0; node < 3; node++) {
        assert_true(keys_on(node) > 0);
        all += keys_on(node);
    }
    assert_int_equal(all, 30);
    assert_ok(hibloom_drop(filter), store);
    for (int node = 0; node < 3; node++)
        assert_int_equal(keys_on(node), 0);
    hibloom_close(filter);
}

static void a_tag_keeps_them_together(void **state)
{
    hibloom *filter = test_open(store, "{here}seen", "capacity=5000 error=0.01 segments=30");
    const int owner = redis_cluster_owner(cluster, redis_cluster_slot(cluster, "{here}seen:0"));

    add_all(filter);
    assert_all_in(filter);
    assert_int_equal(keys_on(owner), 30);
    assert_dropped(filter, store);
}

static void partitions_need_a_tag_to_tell_what_is_new(void **state)
{
    hibloom *spread = test_open(store, "part", "capacity=5000 error=0.01 layout=partitioned");
    hibloom *together = test_open(store, "{part}x", "capacity=5000 error=0.01 layout=partitioned");

    assert_fails(hibloom_add_many(spread, items, ITEMS, answers), HIBLOOM_ENOTSUP, store, "{tag}");
    assert_ok(hibloom_add_many(spread, items, ITEMS, NULL), store);
    assert_all_in(spread);
    add_all(together);
    assert_all_in(together);
    assert_ok(hibloom_drop(spread), store);
    assert_ok(hibloom_drop(together), store);
    hibloom_close(spread);
    hibloom_close(together);
}

static void a_new_filter_is_spread_over_the_primaries(void **state)
{
    static const struct {
        const char *text;
        uint32_t segments;
    } cases[] = {{"capacity=1000000 error=0.01", 3},
                 {"capacity=100000 error=0.01", 1},
                 {"capacity=1000000 error=0.01 segments=5", 5},
                 {"bits=9592955 hashes=7 capacity=1000000 error=0.01", 1}}; /* as the text of another filter */

    for (size_t i = 0; i < COUNT(cases); i++) {
        hibloom *filter = test_open(store, "spread", cases[i].text);
        assert_int_equal(spec_segments(&filter->spec), cases[i].segments);
        assert_true(spec_error_at(&filter->spec, filter->spec.capacity) <= 0.01);
        assert_dropped(filter, store);
    }
}

/* A cluster is entered by any of its nodes, of which one that answers will do. */
static void any_seed_that_answers_will_do(void **state)
{
    char uri[200];

    snprintf(uri, sizeof uri, "redis+cluster://127.0.0.1:1,127.0.0.1:%d",
             redis_server_port(redis_cluster_node(cluster, 1)));
    hibloom_store *own = test_connect(uri, NULL);
    hibloom *filter = test_open(own, "seed", "capacity=5000 error=0.01 segments=9");
    add_all(filter);
    assert_dropped_last(filter, own);
    assert_fails(hibloom_connect(&own, "redis+cluster://127.0.0.1:1,127.0.0.1:2", NULL), HIBLOOM_EIO, own,
                 "127.0.0.1:2: Connection refused");
    hibloom_store_free(own);
}

/* Its keys have no tag of their own. */
static void keys_of_pyrebloom_need_a_tag_to_tell_what_is_new(void **state)
{
    static const char text[] = "pyrebloom capacity=4000000000 error=0.01"; /* 9 keys */
    hibloom *filter = test_attach(store, "theirs", text);
    bool is_new;

    assert_fails(hibloom_add(filter, "item", 4, &is_new), HIBLOOM_ENOTSUP, store, "{tag}");
    hibloom_close(filter);
    if (test_is_slow())
        return; /* each key it touches takes up to 512 MB */
    filter = test_attach(store, "{theirs}", "pyrebloom capacity=460000000 error=0.01");
    assert_ok(hibloom_add(filter, "item", 4, &is_new), store);
    assert_true(is_new);
    assert_ok(hibloom_contains(filter, "item", 4, &is_new), store);
    assert_true(is_new);
    assert_dropped(filter, store);
}

/* An import renames at its end, within one slot. It is refused before a piece of it is moved. */
static void an_import_of_several_links_needs_a_tag(void **state)
{
    char *dir = temp_dir_make(), *path = temp_dir_path(dir, "dump"), item[32];
    struct module_dump dump;
    hibloom *filter = NULL;
    hibloom_info info;
    bool found;

    module_dump_make_growing(&dump, 0.01, 10, 2);
    const unsigned added = module_dump_fill(&dump, 55);
    module_dump_write(&dump, path);
    assert_fails(hibloom_import_file(&filter, store, "seen", path), HIBLOOM_ENOTSUP, store, "has a {tag}");
    assert_null(filter);
    assert_ok(hibloom_import_file(&filter, store, "{tag}seen", path), store);
    for (unsigned i = 0; i < added; i++) {
        const int len = snprintf(item, sizeof item, "in %u", i);
        assert_ok(hibloom_contains(filter, item, (size_t)len, &found), store);
        assert_true(found);
    }
    assert_ok(hibloom_get_info(filter, &info, sizeof info), store);
    assert_int_equal(info.keys, 3);
    assert_int_equal(info.ttl_ms, -1);
    assert_dropped(filter, store);
    module_dump_free(&dump);
    free(path);
    temp_dir_remove(dir);
}

/* ---- In a slot that moves. (Calls of few items, merges and replacing are simulated.) -------- */

static struct redis_cluster_move begin_move(const char *key)
{
    const int slot = redis_cluster_slot(cluster, key), from = redis_cluster_owner(cluster, slot);
    const struct redis_cluster_move move = {slot, slot, from, (from + 1) % 3};

    redis_cluster_begin_move(cluster, &move);
    return move;
}

static void end_move(const struct redis_cluster_move *move)
{
    redis_cluster_end_move(cluster, move);
    redis_cluster_wait_settled(cluster);
}

/* So many items at once would be merged. They do not wait for the slot. */
static void a_large_add_goes_item_by_item(void **state)
{
    enum { MANY = 100000 };
    hibloom_store *any_way = test_connect_any_way(with_options(redis_cluster_uri(cluster), "retry=5s"), NULL);
    hibloom_item *many = items_new("large", MANY);
    hibloom *filter = test_open(any_way, "large", "bits=1000000 hashes=4 seed=1");
    const struct redis_cluster_move move = begin_move("large");

    assert_ok(hibloom_add_many(filter, many, MANY, NULL), any_way);
    assert_int_equal(test_stats(any_way).retries, 0);
    assert_int_equal(items_count(filter, any_way, "large", MANY), MANY);
    assert_int_equal(redis_cluster_move_keys(cluster, &move, 10), 1);
    end_move(&move);
    assert_dropped_last(filter, any_way);
    items_free(many);
}

/* An add to the blocked layout looks first. Each look is redirected. */
static void a_large_add_of_what_is_in_comes_to_an_end(void **state)
{
    hibloom *filter = test_open(store, "known", "layout=blocked bits=65536 hashes=4 seed=1");

    assert_ok(hibloom_add_many(filter, items, ITEMS, NULL), store);
    const struct redis_cluster_move move = begin_move("known");
    assert_int_equal(redis_cluster_move_keys(cluster, &move, 10), 1);
    hibloom_store_deadline(store, 5000);
    assert_ok(hibloom_add_many(filter, items, ITEMS, NULL), store);
    hibloom_store_deadline(store, 0);
    end_move(&move);
    assert_dropped(filter, store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_filters_are_one_round_trip_a_server),
        cmocka_unit_test(segments_lie_on_all_primaries),
        cmocka_unit_test(a_tag_keeps_them_together),
        cmocka_unit_test(partitions_need_a_tag_to_tell_what_is_new),
        cmocka_unit_test(a_new_filter_is_spread_over_the_primaries),
        cmocka_unit_test(any_seed_that_answers_will_do),
        cmocka_unit_test(keys_of_pyrebloom_need_a_tag_to_tell_what_is_new),
        cmocka_unit_test(an_import_of_several_links_needs_a_tag),
        cmocka_unit_test(a_large_add_goes_item_by_item),
        cmocka_unit_test(a_large_add_of_what_is_in_comes_to_an_end),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
