/* What touches several keys at once, or many items, while a slot moves: the source still has the keys, the target has them
 * already, the move is over. Each call either does all of it, or is EUNAVAILABLE and does nothing. (Calls on one key are
 * simulated.) */
#include "../support/items.h"
#include "../support/redis_cluster.h"
#include "../support/test.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT "bits=4096 hashes=4 seed=1"
#define PARTS TEXT " segments=3"

enum { NODES = 2, KEYS = 100, HOUR_MS = 3600000 };

static struct redis_cluster *cluster;
static hibloom_store *store;
static hibloom *filter;

enum phase { AT_SOURCE, AT_TARGET, MOVED };

static struct redis_cluster_move begin_move(const char *key)
{
    const int slot = redis_cluster_slot(cluster, key), from = redis_cluster_owner(cluster, slot);
    const struct redis_cluster_move move = {slot, slot, from, (from + 1) % NODES};

    redis_cluster_begin_move(cluster, &move);
    return move;
}

static void end_move(const struct redis_cluster_move *move)
{
    redis_cluster_end_move(cluster, move);
    redis_cluster_wait_settled(cluster);
}

static void in_each_phase(const char *key, void check(enum phase))
{
    const struct redis_cluster_move move = begin_move(key);

    check(AT_SOURCE);
    assert_true(redis_cluster_move_keys(cluster, &move, KEYS) > 0);
    check(AT_TARGET);
    end_move(&move);
    check(MOVED);
}

static void add(hibloom *to, const char *item)
{
    assert_ok(hibloom_add(to, item, strlen(item), NULL), store);
}

static bool has(hibloom *in, const char *item)
{
    bool found;

    assert_ok(hibloom_contains(in, item, strlen(item), &found), store);
    return found;
}

static void assert_mortal(void)
{
    hibloom_info info;

    assert_ok(hibloom_get_info(filter, &info, sizeof info), store);
    assert_in_range(info.ttl_ms, 1, HOUR_MS);
}

static void open_mortal(const char *name, const char *text)
{
    filter = test_open(store, name, text);
    assert_ok(hibloom_expire(filter, HOUR_MS), store);
}

static void drop(void)
{
    assert_dropped(filter, store);
}

/* ---- Several keys in a script ---------------------------------------------------------- */

static hibloom *replacers[MOVED + 1];

static void open_replacers(const char *format, const char *text)
{
    for (int i = 0; i <= MOVED; i++) {
        char name[32];
        snprintf(name, sizeof name, format, i);
        replacers[i] = test_open(store, name, text);
        add(replacers[i], name);
    }
}

static void check_replaced(const char *name, const char *format, enum phase phase)
{
    hibloom *opened = NULL;
    char item[32];

    assert_ok(hibloom_open(&opened, store, name, NULL), store);
    for (enum phase i = 0; i <= MOVED; i++) {
        snprintf(item, sizeof item, format, i);
        assert_int_equal(has(opened, item), i == phase);
        assert_int_equal(has(replacers[phase], item), i == phase);
    }
    assert_status(hibloom_contains(filter, item, 1, &(bool){false}), HIBLOOM_EMISMATCH, NULL);
    hibloom_close(filter);
    filter = opened;
    assert_mortal();
}

static void close_replacers(void)
{
    for (int i = 0; i <= MOVED; i++)
        hibloom_close(replacers[i]);
    drop();
}

/* Not in a slot that moves: one of the two places of its name is empty. */
static void check_replace_of_several(enum phase phase)
{
    const hibloom_status status = hibloom_replace(replacers[MOVED], "{several}");

    if (phase == MOVED) {
        assert_ok(status, store);
        check_replaced("{several}", "{several}%d", MOVED);
        return;
    }
    assert_status(status, HIBLOOM_EUNAVAILABLE, store);
    assert_true(has(filter, "in"));
    assert_mortal();
    assert_true(has(replacers[MOVED], "{several}2"));
}

static void a_filter_of_several_keys_is_replaced_once_the_slot_has_moved(void **state)
{
    open_mortal("{several}", PARTS);
    add(filter, "in");
    open_replacers("{several}%d", PARTS);
    in_each_phase("{several}", check_replace_of_several);
    for (int i = 0; i < MOVED; i++)
        assert_ok(hibloom_drop(replacers[i]), store);
    close_replacers();
}

static hibloom *more;

static void check_merge(enum phase phase)
{
    add(more, "more");
    assert_status(hibloom_merge(filter, more), phase == MOVED ? HIBLOOM_OK : HIBLOOM_EUNAVAILABLE, store);
    assert_int_equal(has(filter, "more"), phase == MOVED);
    assert_true(has(filter, "in"));
    assert_mortal();
}

static void a_merge_is_refused_while_the_slot_moves(void **state)
{
    open_mortal("merged", TEXT);
    add(filter, "in");
    more = test_open(store, "{merged}more", TEXT);
    in_each_phase("merged", check_merge);
    assert_dropped(more, store);
    drop();
}

/* So many items at once would be merged. */
static void a_large_add_goes_item_by_item(void **state)
{
    enum { MANY = 100000 };
    hibloom_store *any_way = test_connect_any_way(redis_cluster_uri(cluster), NULL);
    hibloom_item *items = items_new("large", MANY);
    bool *found = calloc(MANY, sizeof *found);

    assert_non_null(found);
    filter = test_open(any_way, "large", "bits=1000000 hashes=4 seed=1");
    const struct redis_cluster_move move = begin_move("large");
    assert_ok(hibloom_add_many(filter, items, MANY, NULL), any_way);
    assert_ok(hibloom_contains_many(filter, items, MANY, found), any_way);
    assert_int_equal(test_count_true(found, MANY), MANY);
    assert_int_equal(redis_cluster_move_keys(cluster, &move, KEYS), 1);
    end_move(&move);
    drop();
    hibloom_store_free(any_way);
    free(found);
    items_free(items);
}

/* An add to the blocked layout looks first. Each look is redirected. */
static void a_large_add_of_what_is_in_comes_to_an_end(void **state)
{
    enum { MANY = 2000 };
    hibloom_item *items = items_new("known", MANY);

    filter = test_open(store, "known", "layout=blocked bits=65536 hashes=4 seed=1");
    assert_ok(hibloom_add_many(filter, items, MANY, NULL), store);
    const struct redis_cluster_move move = begin_move("known");
    assert_int_equal(redis_cluster_move_keys(cluster, &move, KEYS), 1);
    hibloom_store_deadline(store, 5000);
    assert_ok(hibloom_add_many(filter, items, MANY, NULL), store);
    hibloom_store_deadline(store, 0);
    end_move(&move);
    drop();
    items_free(items);
}

static int set_up(void **state)
{
    cluster = redis_cluster_start(&(struct redis_cluster_options){.primaries = NODES});
    store = test_connect(redis_cluster_uri(cluster), NULL);
    return 0;
}

static int tear_down(void **state)
{
    hibloom_store_free(store);
    redis_cluster_stop(cluster);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_filter_of_several_keys_is_replaced_once_the_slot_has_moved),
        cmocka_unit_test(a_merge_is_refused_while_the_slot_moves),
        cmocka_unit_test(a_large_add_goes_item_by_item),
        cmocka_unit_test(a_large_add_of_what_is_in_comes_to_an_end),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
