/* A filter on a real cluster: each call of the header does there what it does
 * on one server, wherever the keys lie. */
#include "../support/items.h"
#include "../support/redis_cluster.h"
#include "../support/test.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>

enum { ITEMS = 5000 };

static struct redis_cluster *cluster;
static hibloom_store *store;
static hibloom_item *items, *others;
static bool answers[ITEMS];

static int set_up(void **state)
{
    cluster = redis_cluster_start(&(struct redis_cluster_options){.primaries = 3});
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
    assert_ok(hibloom_drop(filter), store);
    hibloom_close(filter);
}

/* Each layout, each encoding; a second handle finds what the first has put in. */
static void every_layout_answers_as_on_one_server(void **state)
{
    static const char *const texts[] = {"capacity=5000 error=0.01", "capacity=5000 error=0.01 layout=blocked",
                                        "capacity=5000 error=0.01 layout=blocked segments=7",
                                        "capacity=5000 error=0.01 hash=siphash segments=5"};

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        for (int commands = 0; commands < 2; commands++) {
            hibloom_store *own = test_connect(redis_cluster_uri(cluster),
                                              &(hibloom_connect_options){.commands = (hibloom_commands)commands});
            hibloom *filter = test_open(own, "layout", texts[i]), *again = test_open(store, "layout", texts[i]);
            add_all(filter);
            assert_ok(hibloom_add_many(filter, items, ITEMS, NULL), own);
            assert_all_in(again);
            assert_ok(hibloom_drop(filter), own);
            hibloom_close(filter);
            hibloom_close(again);
            hibloom_store_free(own);
        }
}

static void partitions_need_a_tag_to_tell_what_is_new(void **state)
{
    hibloom *spread = test_open(store, "part", "capacity=5000 error=0.01 layout=partitioned");
    hibloom *together = test_open(store, "{part}x", "capacity=5000 error=0.01 layout=partitioned");

    assert_status(hibloom_add_many(spread, items, ITEMS, answers), HIBLOOM_ENOTSUP, store);
    assert_non_null(strstr(hibloom_store_error(store), "{tag}"));
    assert_ok(hibloom_add_many(spread, items, ITEMS, NULL), store);
    assert_all_in(spread);
    add_all(together);
    assert_all_in(together);
    assert_ok(hibloom_drop(spread), store);
    assert_ok(hibloom_drop(together), store);
    hibloom_close(spread);
    hibloom_close(together);
}

static void move_all_ways(const char *text)
{
    hibloom_store *memory;
    hibloom_comparison same;
    char path[300];

    snprintf(path, sizeof path, "%s/filter.hbl", redis_server_dir(redis_cluster_node(cluster, 0)));
    assert_ok(hibloom_memory(&memory), NULL);
    hibloom *from = test_open(store, "from", text), *into = test_open(store, "into", text);
    hibloom *here = test_open(memory, "here", text), *loaded = test_open(store, "loaded", text);
    add_all(from);
    assert_ok(hibloom_merge(into, from), store);
    assert_all_in(into);
    assert_ok(hibloom_merge(here, into), memory);
    assert_all_in(here);
    if (hibloom_spec_of(from)->growth == 0) {
        assert_ok(hibloom_compare(from, into, &same), store);
        assert_true(same.similarity == 1);
    }
    assert_ok(hibloom_save(into, path), store);
    assert_ok(hibloom_load(loaded, path), store);
    assert_all_in(loaded);
    hibloom *const all[] = {from, into, loaded};
    for (size_t i = 0; i < 3; i++) {
        assert_ok(hibloom_drop(all[i]), store);
        hibloom_close(all[i]);
    }
    hibloom_close(here);
    hibloom_store_free(memory);
}

static void merges_snapshots_files_and_comparisons_work(void **state)
{
    move_all_ways("capacity=5000 error=0.01 segments=5 seed=7");
    move_all_ways("capacity=500 error=0.001 growth=2 seed=7"); /* without a {tag}: each link has its slot */
}

static void merge_within(const char *text)
{
    hibloom *from = test_open(store, "{one}from", text), *into = test_open(store, "{one}into", text);

    add_all(from);
    assert_ok(hibloom_merge(into, from), store);
    assert_all_in(into);
    assert_ok(hibloom_drop(from), store);
    assert_ok(hibloom_drop(into), store);
    hibloom_close(from);
    hibloom_close(into);
}

static void two_filters_of_one_slot_are_merged_by_the_server(void **state)
{
    merge_within("capacity=5000 error=0.01 segments=5 seed=7");
    merge_within("capacity=500 error=0.001 growth=3 segments=2 seed=7");
}

static void info_clear_expire_and_repair_reach_each_key(void **state)
{
    hibloom *filter = test_open(store, "life", "capacity=5000 error=0.01 segments=30");
    hibloom_info info;

    add_all(filter);
    assert_ok(hibloom_get_info(filter, &info), store);
    assert_int_equal(info.keys, 30);
    assert_true(info.estimated_items > ITEMS * 0.95 && info.estimated_items < ITEMS * 1.05);
    assert_ok(hibloom_clear(filter), store);
    assert_ok(hibloom_get_info(filter, &info), store);
    assert_int_equal(info.bits_set, 0);
    assert_ok(hibloom_expire(filter, 1000), store);
    assert_ok(hibloom_get_info(filter, &info), store);
    assert_in_range(info.ttl_ms, 900000, 1000000);

    const int owner = redis_cluster_owner(cluster, redis_cluster_slot(cluster, "life:7"));
    redisContext *redis = redis_server_connect(redis_cluster_node(cluster, owner));
    assert_int_equal(test_command(redis, "DEL life:7"), 1);
    redisFree(redis);
    assert_status(hibloom_add_many(filter, items, ITEMS, NULL), HIBLOOM_ECORRUPT, store);
    assert_ok(hibloom_repair(store, "life"), store);
    hibloom_close(filter);
    filter = test_open(store, "life", "capacity=5000 error=0.01 segments=30");
    assert_ok(hibloom_add_many(filter, items, ITEMS, NULL), store); /* the call that failed has added a part */
    assert_all_in(filter);
    hibloom_close(filter);
    assert_ok(hibloom_delete(store, "life"), store);
    for (int node = 0; node < 3; node++)
        assert_int_equal(keys_on(node), 0);
}

/* RENAME puts a rebuilt filter in the place of the old one, within a slot. */
static void a_filter_that_is_renamed_over_another_one_is_noticed(void **state)
{
    hibloom *old = test_open(store, "{r}seen", "capacity=5000 error=0.01");
    hibloom *rebuilt = test_open(store, "{r}new", "capacity=5000 error=0.01");
    const int owner = redis_cluster_owner(cluster, redis_cluster_slot(cluster, "{r}seen"));
    redisContext *redis = redis_server_connect(redis_cluster_node(cluster, owner));

    add_all(rebuilt);
    test_command(redis, "RENAME {r}new {r}seen");
    redisFree(redis);
    assert_status(hibloom_contains_many(old, items, ITEMS, answers), HIBLOOM_EMISMATCH, store);
    hibloom_close(old);
    old = test_open(store, "{r}seen", "capacity=5000 error=0.01");
    assert_all_in(old);
    assert_ok(hibloom_drop(old), store);
    hibloom_close(old);
    hibloom_close(rebuilt);
}

static void counters_count_on_all_primaries(void **state)
{
    hibloom *filter = test_open(store, "counted", "capacity=5000 error=0.000001 segments=9 counters=4 seed=5");
    hibloom_info info;

    add_all(filter);
    assert_ok(hibloom_add_many(filter, items, ITEMS, NULL), store);
    assert_ok(hibloom_remove_many(filter, items, ITEMS, answers), store);
    assert_int_equal(test_count_true(answers, ITEMS), ITEMS);
    assert_all_in(filter);
    assert_ok(hibloom_remove_many(filter, items, ITEMS, answers), store);
    assert_int_equal(test_count_true(answers, ITEMS), ITEMS);
    assert_ok(hibloom_get_info(filter, &info), store);
    assert_int_equal(info.bits_set, 0);
    assert_ok(hibloom_drop(filter), store);
    hibloom_close(filter);
}

/* Each redirect comes before the step was carried out: so it counts once. */
static void a_remove_follows_a_slot_that_moves(void **state)
{
    hibloom *filter = test_open(store, "moves", "capacity=100 error=0.000001 counters=4");
    const int slot = redis_cluster_slot(cluster, "moves"), from = redis_cluster_owner(cluster, slot);
    const struct redis_cluster_move move = {slot, slot, from, (from + 1) % 3};
    bool was_in;

    for (int i = 0; i < 5; i++)
        assert_ok(hibloom_add(filter, "a", 1, NULL), store);
    for (int state_of_move = 0; state_of_move < 6; state_of_move++) {
        if (state_of_move == 1)
            redis_cluster_begin_move(cluster, &move);
        if (state_of_move == 2)
            assert_int_equal(redis_cluster_move_keys(cluster, &move, 1), 1);
        if (state_of_move == 4)
            redis_cluster_end_move(cluster, &move);
        assert_ok(hibloom_remove(filter, "a", 1, &was_in), store);
        assert_int_equal(was_in, state_of_move < 5);
    }
    redis_cluster_wait_settled(cluster); /* nodes that have not heard of it may take the slot back in the next move */
    assert_ok(hibloom_drop(filter), store);
    hibloom_close(filter);
}

static void a_spec_is_spread_over_the_primaries(void **state)
{
    hibloom_spec large, small, given;

    assert_ok(hibloom_spec_for(&large, 1000000, 0.01), NULL);
    assert_ok(hibloom_spec_for(&small, 100000, 0.01), NULL);
    given = test_spec("capacity=1000000 error=0.01 segments=5");
    assert_ok(hibloom_spec_spread(&large, store), store);
    assert_int_equal(large.segments, 3);
    assert_true(hibloom_spec_error_at(&large, 1000000) <= 0.01);
    assert_ok(hibloom_spec_spread(&small, store), store);
    assert_int_equal(small.segments, 1);
    assert_ok(hibloom_spec_spread(&given, store), store);
    assert_int_equal(given.segments, 5);
}

/* A cluster is entered by any of its nodes, of which one that answers will do. */
static void any_seed_that_answers_will_do(void **state)
{
    char uri[200];
    hibloom_store *own;

    snprintf(uri, sizeof uri, "redis+cluster://127.0.0.1:1,127.0.0.1:%d",
             redis_server_port(redis_cluster_node(cluster, 1)));
    own = test_connect(uri, NULL);
    hibloom *filter = test_open(own, "seed", "capacity=5000 error=0.01 segments=9");
    add_all(filter);
    assert_ok(hibloom_drop(filter), own);
    hibloom_close(filter);
    hibloom_store_free(own);
    assert_status(hibloom_connect(&own, "redis+cluster://127.0.0.1:1,127.0.0.1:2", NULL), HIBLOOM_EIO, own);
    assert_non_null(strstr(hibloom_store_error(own), "refused"));
    hibloom_store_free(own);
}

struct named {
    unsigned times[60];
    unsigned others;
};

static bool take_name(const char *name, void *data)
{
    struct named *named = data;
    int i;

    if (sscanf(name, "listed%d", &i) == 1)
        named->times[i]++;
    else
        named->others++;
    return true;
}

static void filters_of_all_primaries_are_listed(void **state)
{
    struct named named = {0};
    char name[32];

    for (int i = 0; i < 60; i++) {
        snprintf(name, sizeof name, "listed%d", i);
        hibloom_close(test_open(store, name, i % 2 == 0 ? "bits=64 hashes=2" : "bits=64 hashes=2 segments=4"));
    }
    assert_ok(hibloom_list(store, "listed*", take_name, &named), store);
    for (int i = 0; i < 60; i++)
        assert_int_equal(named.times[i], 1);
    assert_int_equal(named.others, 0);
    hibloom_close(test_open(store, "another", "bits=64 hashes=2"));
    assert_ok(hibloom_list(store, NULL, take_name, &named), store);
    assert_in_range(named.others, 1, 100); /* those that other tests left, too */
    for (int i = 0; i < 60; i++) {
        snprintf(name, sizeof name, "listed%d", i);
        assert_ok(hibloom_delete(store, name), store);
    }
}

/* A command on the node that has the key's slot. */
static long long on_its_node(const char *key, const char *command)
{
    const int node = redis_cluster_owner(cluster, redis_cluster_slot(cluster, key));
    redisContext *redis = redis_server_connect(redis_cluster_node(cluster, node));
    const long long answer = test_command(redis, command, key);

    redisFree(redis);
    return answer;
}

static void other_libraries_filters_are_joined_with_what_lies_beside(void **state)
{
    static const struct {
        const char *text, *key, *beside;
    } presets[] = {
        {"pyrebloom capacity=5000 error=0.01", "theirs.0", NULL},
        {"rueidis capacity=5000 error=0.01", "{theirs}", "{theirs}:c"},
        {"redisson", "theirs", "{theirs}:config"},
        {"orestes capacity=5000 error=0.01", "theirs:bits", NULL},
        {"redisbloom capacity=5000 error=0.01", "theirs", NULL},
    };

    for (size_t i = 0; i < sizeof presets / sizeof *presets; i++) {
        if (strcmp(presets[i].text, "redisson") == 0)
            on_its_node(presets[i].beside, "HSET %s size 47925 hashIterations 7");
        hibloom *filter = test_attach(store, "theirs", presets[i].text);
        add_all(filter);
        assert_all_in(filter);
        assert_int_equal(on_its_node(presets[i].key, "EXISTS %s"), 1);
        if (strcmp(presets[i].text, "rueidis capacity=5000 error=0.01") == 0)
            assert_in_range(on_its_node(presets[i].beside, "INCRBY %s 0"), ITEMS * 98 / 100, ITEMS);
        assert_ok(hibloom_expire(filter, 100), store);
        if (presets[i].beside != NULL)
            assert_in_range(on_its_node(presets[i].beside, "TTL %s"), 90, 100);
        assert_ok(hibloom_drop(filter), store);
        hibloom_close(filter);
        assert_int_equal(on_its_node(presets[i].key, "EXISTS %s"), 0);
        if (presets[i].beside != NULL)
            assert_int_equal(on_its_node(presets[i].beside, "EXISTS %s"), 0);
    }
}

/* Of the bitmap and what lies beside one is still where it was, and one is not: look-ups go on, and
 * so do adds, unless they are one step on both keys. */
static void a_slot_that_moves_may_part_them_for_a_while(void **state)
{
    static const char *const texts[] = {"redisson codec=bytes", "rueidis capacity=5000 error=0.01"};
    bool is_new, found;

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const bool one_step = texts[i][1] == 'u';
        const int slot = redis_cluster_slot(cluster, "theirs"), from = redis_cluster_owner(cluster, slot);
        const struct redis_cluster_move move = {slot, slot, from, (from + 1) % 3};
        if (!one_step)
            on_its_node("{theirs}:config", "HSET %s size 47925 hashIterations 7");
        hibloom *filter = test_attach(store, "theirs", texts[i]);
        assert_ok(hibloom_add(filter, "before", 6, NULL), store);
        redis_cluster_begin_move(cluster, &move);
        for (int moved = 0; moved < 2; moved++) {
            assert_int_equal(redis_cluster_move_keys(cluster, &move, 1), 1);
            assert_ok(hibloom_contains(filter, "before", 6, &found), store);
            assert_true(found);
            assert_status(hibloom_add(filter, moved == 0 ? "half" : "whole", 4, &is_new),
                          one_step && moved == 0 ? HIBLOOM_EUNAVAILABLE : HIBLOOM_OK, store);
            assert_ok(hibloom_contains(filter, "absent", 6, &found), store);
            assert_false(found);
        }
        redis_cluster_end_move(cluster, &move);
        redis_cluster_wait_settled(cluster);
        assert_ok(hibloom_add(filter, "half", 4, &is_new), store);
        assert_int_equal(is_new, one_step);
        if (one_step)
            assert_int_equal(on_its_node("{theirs}:c", "INCRBY %s 0"), 3);
        assert_ok(hibloom_drop(filter), store);
        hibloom_close(filter);
    }
}

/* Its keys have no tag of their own. */
static void keys_of_pyrebloom_need_a_tag_to_tell_what_is_new(void **state)
{
    static const char text[] = "pyrebloom capacity=4000000000 error=0.01"; /* 9 keys */
    hibloom *filter = test_attach(store, "theirs", text);
    bool is_new;

    assert_status(hibloom_add(filter, "item", 4, &is_new), HIBLOOM_ENOTSUP, store);
    assert_non_null(strstr(hibloom_store_error(store), "{tag}"));
    hibloom_close(filter);
    if (test_is_slow())
        return; /* each key it touches takes up to 512 MB */
    filter = test_attach(store, "{theirs}", "pyrebloom capacity=460000000 error=0.01");
    assert_ok(hibloom_add(filter, "item", 4, &is_new), store);
    assert_true(is_new);
    assert_ok(hibloom_contains(filter, "item", 4, &is_new), store);
    assert_true(is_new);
    assert_ok(hibloom_drop(filter), store);
    hibloom_close(filter);
}

/* They lie on several primaries. Who has not seen a filter grow sees it there. */
static void links_and_slices_lie_anywhere(void **state)
{
    static const char *const texts[] = {"capacity=100 error=1e-6 growth=2",
                                        "capacity=100 error=1e-6 growth=3 segments=3",
                                        "capacity=20000 error=1e-6 window=86400 slices=7"};
    bool found;

    for (size_t i = 0; i < 3; i++) {
        hibloom *filter = test_open(store, "grows", texts[i]), *stale = test_open(store, "grows", texts[i]);
        add_all(filter);
        assert_all_in(stale);
        assert_ok(hibloom_add_many(stale, items, ITEMS, answers), store);
        assert_int_equal(test_count_true(answers, ITEMS), 0);
        assert_true(keys_on(0) > 0 && keys_on(1) > 0 && keys_on(2) > 0);
        assert_ok(hibloom_drop(stale), store);
        assert_status(hibloom_contains(filter, "in1", 3, &found), HIBLOOM_ENOTFOUND, store);
        for (int node = 0; node < 3; node++)
            assert_int_equal(keys_on(node), 0);
        hibloom_close(filter);
        hibloom_close(stale);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(segments_lie_on_all_primaries),
        cmocka_unit_test(a_tag_keeps_them_together),
        cmocka_unit_test(every_layout_answers_as_on_one_server),
        cmocka_unit_test(partitions_need_a_tag_to_tell_what_is_new),
        cmocka_unit_test(merges_snapshots_files_and_comparisons_work),
        cmocka_unit_test(two_filters_of_one_slot_are_merged_by_the_server),
        cmocka_unit_test(info_clear_expire_and_repair_reach_each_key),
        cmocka_unit_test(a_filter_that_is_renamed_over_another_one_is_noticed),
        cmocka_unit_test(counters_count_on_all_primaries),
        cmocka_unit_test(links_and_slices_lie_anywhere),
        cmocka_unit_test(a_remove_follows_a_slot_that_moves),
        cmocka_unit_test(a_spec_is_spread_over_the_primaries),
        cmocka_unit_test(any_seed_that_answers_will_do),
        cmocka_unit_test(filters_of_all_primaries_are_listed),
        cmocka_unit_test(other_libraries_filters_are_joined_with_what_lies_beside),
        cmocka_unit_test(keys_of_pyrebloom_need_a_tag_to_tell_what_is_new),
        cmocka_unit_test(a_slot_that_moves_may_part_them_for_a_while),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
