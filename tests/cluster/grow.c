/* Growing filters on a cluster, under four processes that make them grow: the slots of their links move, before there is
 * one in them and while it is made, and a primary is killed, or hands over to its replica. Nothing that was acknowledged is
 * denied, each item is new to one, and the filters grow on. */
#include "../support/growers.h"
#include "../support/redis_cluster.h"
#include "../support/temp_dir.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PRIMARIES = 3, MOVES = 8, LINKS = 4, FEW = 4, MADE = 30 };

#define ALONE "capacity=10 error=1e-9 growth=2"
#define SEGMENTED "capacity=10 error=1e-9 growth=2 segments=2"

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

static struct growers *start(const char *prefix, const char *text, const hibloom_connect_options *options)
{
    struct growers *growers = growers_new();

    growers->uri = redis_cluster_uri(cluster);
    growers->prefix = prefix;
    growers->text = text;
    growers->options = *options;
    growers_start(growers);
    growers_wait_calls(growers, FEW);
    return growers;
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

/* Also where a test has failed in the middle. */
static int leave_nothing(void **state)
{
    for (int i = 0; i < PRIMARIES; i++) {
        const int node = redis_cluster_owner(cluster, REDIS_CLUSTER_SLOTS * i / PRIMARIES);
        freeReplyObject(redis_server_must(redis_cluster_node(cluster, node), "FLUSHALL"));
    }
    return 0;
}

/* They have stopped. */
static void check(struct growers *growers, unsigned most_news)
{
    store = test_connect(redis_cluster_uri(cluster), NULL);
    growers_check(growers, store, 1, most_news);
    hibloom_store_free(store);
    growers_free(growers);
    assert_empty();
}

/* ---- Slots move ---------------------------------------------------------------------------- */

/* A key of link `link` of that filter: it need not be there yet. */
static struct redis_cluster_move move_of(const struct growers *growers, unsigned number, unsigned link,
                                         unsigned segment)
{
    char name[TEST_NAME_SIZE], key[TEST_NAME_SIZE + 32], at[16] = "";

    if (strstr(growers->text, "segments") != NULL)
        snprintf(at, sizeof at, ":%u", segment);
    growers_name(growers, number, name);
    if (link == 0)
        snprintf(key, sizeof key, "%s%s", name, at);
    else
        snprintf(key, sizeof key, "%s:+%u%s", name, link, at);
    const int slot = redis_cluster_slot(cluster, key), from = redis_cluster_owner(cluster, slot);
    return (struct redis_cluster_move){slot, slot, from, (from + 1) % PRIMARIES};
}

static int move_all_keys(const struct redis_cluster_move *move)
{
    int moved = 0;

    for (int one = 1; one > 0; moved += one) /* others come meanwhile, at the old owner, if their keys were there */
        one = redis_cluster_move_keys(cluster, move, 1);
    return moved;
}

/* Slots of the filter that is about to be made, which are half moved when its links come to be there; and of the one that
 * is in use. The first so many links. */
static int move_links(const struct growers *growers, unsigned number, unsigned links, bool ahead, unsigned segment)
{
    struct redis_cluster_move moves[LINKS];
    int moved = 0;

    for (unsigned link = 0; link < links; link++) {
        moves[link] = move_of(growers, number, link, segment);
        redis_cluster_begin_move(cluster, &moves[link]);
    }
    if (ahead)
        growers_wait_filters(growers, number + 1);
    for (unsigned i = 0; i < 2 * links; i++) {
        growers_wait_calls(growers, FEW / 2);
        moved += move_all_keys(&moves[i % links]);
    }
    for (unsigned link = 0; link < links; link++) {
        redis_cluster_end_move(cluster, &moves[link]);
        growers_wait_calls(growers, 1);
    }
    /* nodes that have not heard of it may take the slots back in the next move */
    redis_cluster_wait_settled(cluster);
    return moved;
}

static void move_under(const char *prefix, const char *text, unsigned links)
{
    const hibloom_connect_options patient = {.size = sizeof patient, .retry_ms = 20000};
    struct growers *growers = start(prefix, text, &patient);
    int moved = 0;

    for (unsigned i = 0; i < (test_is_slow() ? MOVES / 4 : MOVES); i++)
        moved += move_links(growers, growers->begun - 1 + i % 2, links, i % 2 != 0, i / 2 % 2);
    growers_stop(growers);
    const hibloom_stats stats = growers_stats(growers);
    print_message("%d keys moved, %llu redirects, %llu retries\n", moved, (unsigned long long)stats.redirects,
                  (unsigned long long)stats.retries);
    assert_true(moved > 0 && stats.redirects > 0);
    assert_int_equal(stats.in_doubt, 0);
    check(growers, 1);
}

static void slots_move_while_it_grows(void **state)
{
    (void)state;
    move_under("moves", ALONE, LINKS);
    move_under("moves", SEGMENTED, LINKS);
}

/* All keys in one slot: each growth meets it half moved. */
static void a_tag_moves_while_it_grows(void **state)
{
    (void)state;
    move_under("{tag}moves", SEGMENTED, 1);
}

/* ---- Another takes over ----------------------------------------------------------------------- */

/* Who does not wait for the replica loses adds, or the link that they are in. */
static void kill_one(int primary)
{
    redis_cluster_cut_off(cluster, primary);
    redis_cluster_fail_over(cluster, primary, redis_server_kill, redis_server_restart);
}

static void hand_over(int primary)
{
    redis_cluster_hand_over(cluster, primary);
}

/* What is being made is on no replica yet, nor does who makes a filter of one key wait for that: so here they are there
 * before. */
static void make_filters(const char *text)
{
    store = test_connect(redis_cluster_uri(cluster), NULL);
    for (unsigned n = 0; n < MADE; n++) {
        char name[32];
        snprintf(name, sizeof name, "fails%u", n);
        hibloom_close(test_open(store, name, text));
    }
    redis_cluster_wait_settled(cluster);
    hibloom_store_free(store);
}

static void remove_unused(unsigned from)
{
    store = test_connect(redis_cluster_uri(cluster), NULL);
    for (unsigned n = from; n < MADE; n++) {
        char name[32];
        snprintf(name, sizeof name, "fails%u", n);
        assert_ok(hibloom_delete(store, name), store);
    }
    hibloom_store_free(store);
}

static void lose_under(const char *text, void (*lose)(int primary), unsigned times, uint32_t replicas)
{
    const hibloom_connect_options careful = {.size = sizeof careful,
                                             .retry_ms = 20000,
                                             .command_timeout_ms = 1000,
                                             .min_replicas = replicas,
                                             .replicas_ms = 300};
    make_filters(text);
    struct growers *growers = start("fails", text, &careful);
    struct test_random random = test_random_new();

    for (unsigned i = 0; i < times; i++) {
        const unsigned link = (unsigned)test_random_below(&random, 4);
        lose(move_of(growers, growers->begun - 1, link, 0).from);
        growers_wait_calls(growers, FEW);
    }
    growers_stop(growers);
    remove_unused(growers->begun);
    check(growers, GROWERS);
}

static void a_primary_is_killed_while_it_grows(void **state)
{
    (void)state;
    lose_under(SEGMENTED, kill_one, test_is_slow() ? 1 : 2, 1);
    lose_under(ALONE, kill_one, 1, 1);
}

static void a_primary_hands_over_while_it_grows(void **state)
{
    (void)state;
    lose_under(SEGMENTED, hand_over, 2, 0);
    lose_under(ALONE, hand_over, 2, 0);
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
        if (status == HIBLOOM_OK && i < GROWERS_ITEMS)
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
    hibloom_close(filter);
    hibloom_store_free(store);

    careful.retry_ms = 10000;
    store = test_connect(redis_cluster_uri(cluster), &careful);
    filter = test_open(store, name, text);
    for (unsigned i = 0; i < in + GROWERS_ITEMS; i++) {
        if (i >= in)
            assert_ok(hibloom_add(filter, &i, sizeof i, NULL), store);
        assert_ok(hibloom_contains(filter, &i, sizeof i, &found), store);
        assert_true(found);
    }
    assert_ok(hibloom_drop(filter), store);
    hibloom_close(filter);
    hibloom_store_free(store);
    assert_empty();
}

static void a_link_is_told_of_once_replicas_have_it(void **state)
{
    static const char *const one[] = {"", NULL}, *const three[] = {":0", ":1", ":+1:0", NULL};

    (void)state;
    grow_and_lose(ALONE, ":+1", one);
    grow_and_lose(SEGMENTED, ":+1:1", three); /* its root is there, and lists a key that is lost */
}

/* ---- Merged ------------------------------------------------------------------------------------------ */

enum { MERGED = 25 }; /* two links of it */

/* By somebody who waits for no replica. */
static void grow_alone(const char *name)
{
    hibloom_store *other = test_connect(redis_cluster_uri(cluster), NULL);
    hibloom *filter = test_open(other, name, SEGMENTED);

    for (unsigned i = 0; i < MERGED; i++)
        assert_ok(hibloom_add(filter, &i, sizeof i, NULL), other);
    hibloom_close(filter);
    hibloom_store_free(other);
}

/* Numbers that are in no other filter, in memory, and in a file. */
static hibloom *fill_memory(hibloom_store *memory, const hibloom *as, const char *file)
{
    hibloom *filter = NULL;

    assert_ok(hibloom_open(&filter, memory, "m", hibloom_spec_of(as)), memory);
    for (unsigned i = 1000; i < 1000 + MERGED; i++)
        assert_ok(hibloom_add(filter, &i, sizeof i, NULL), memory);
    assert_ok(hibloom_save(filter, file), memory);
    return filter;
}

static unsigned count_merged(const char *name)
{
    hibloom_store *other = test_connect(redis_cluster_uri(cluster), NULL);
    hibloom *filter = test_open(other, name, SEGMENTED);
    unsigned count = 0;

    for (unsigned i = 1000; i < 1000 + MERGED; i++) {
        bool found;
        assert_ok(hibloom_contains(filter, &i, sizeof i, &found), other);
        count += found;
    }
    hibloom_close(filter);
    hibloom_store_free(other);
    return count;
}

/* The root that tells of the further link is on a server of its own, whose replica has not heard of it: so a merge, which
 * must be able to be found, waits for that. Nobody has told it that it has grown, or it has found that out before. */
static void merge_and_lose(bool loads, bool knows)
{
    static const char *const others[] = {":1", ":+1:0", ":+1:1", NULL};
    hibloom_connect_options careful = {.size = sizeof careful, .min_replicas = 1, .replicas_ms = 200};
    char *directory = temp_dir_make();
    char *file = temp_dir_path(directory, "merged"), name[32];
    const int primary = name_apart(name, ":0", others);
    hibloom_store *memory;
    bool found;

    assert_ok(hibloom_memory(&memory), memory);
    store = test_connect(redis_cluster_uri(cluster), &careful);
    hibloom *filter = test_open(store, name, SEGMENTED), *from = fill_memory(memory, filter, file);
    redis_cluster_cut_off(cluster, primary);
    grow_alone(name);
    for (unsigned i = 0; knows && i < MERGED; i++)
        assert_ok(hibloom_contains(filter, &i, sizeof i, &found), store);
    for (int tries = 0; tries < 3; tries++) /* it knows what it has tried before */
        assert_status(loads ? hibloom_load(filter, file) : hibloom_merge(filter, from), HIBLOOM_EUNAVAILABLE, store);
    redis_server_resume(redis_cluster_node(cluster, redis_cluster_replica(cluster, primary)));
    redis_cluster_wait_settled(cluster);
    careful.retry_ms = 10000;
    hibloom_close(filter);
    hibloom_store_free(store);
    store = test_connect(redis_cluster_uri(cluster), &careful);
    filter = test_open(store, name, SEGMENTED);
    assert_ok(loads ? hibloom_load(filter, file) : hibloom_merge(filter, from), store);
    redis_server_kill(redis_cluster_node(cluster, primary));
    redis_cluster_wait_failover(cluster, primary);
    assert_int_equal(count_merged(name), MERGED);
    redis_server_restart(redis_cluster_node(cluster, primary));
    redis_cluster_wait_settled(cluster);
    hibloom_close(filter);
    hibloom_close(from);
    assert_ok(hibloom_delete(store, name), store);
    hibloom_store_free(store);
    hibloom_store_free(memory);
    free(file);
    temp_dir_remove(directory);
}

static void a_merge_waits_for_the_root_that_tells_of_its_link(void **state)
{
    (void)state;
    merge_and_lose(false, false);
    merge_and_lose(true, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(slots_move_while_it_grows, leave_nothing),
        cmocka_unit_test_teardown(a_tag_moves_while_it_grows, leave_nothing),
        cmocka_unit_test_teardown(a_link_is_told_of_once_replicas_have_it, leave_nothing),
        cmocka_unit_test_teardown(a_merge_waits_for_the_root_that_tells_of_its_link, leave_nothing),
        cmocka_unit_test_teardown(a_primary_is_killed_while_it_grows, leave_nothing),
        cmocka_unit_test_teardown(a_primary_hands_over_while_it_grows, leave_nothing),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
