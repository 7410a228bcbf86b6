/* The connection is cut at one place after the other while growing filters are saved, loaded, merged and replaced: a
 * call that fails has lost nothing and works when it is made again, the file is the old one or the new one, and no key
 * is left. */
#include "support/files.h"
#include "support/items.h"
#include "support/proxied.h"
#include "support/record.h"
#include "support/temp_dir.h"

#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>

enum { ITEMS = 24, STEP = 4001 };

static hibloom_item *items, *others;
static char *dir, *path, *expected;

/* Made again once, if it has failed of the cut; what is in by then is still in. */
#define TWICE(call) \
    do { \
        hibloom_status status_ = (call); \
        if (status_ == HIBLOOM_EIO) \
            status_ = (call); \
        assert_ok(status_, store); \
    } while (0)

static bool has_all(hibloom *filter, hibloom_store *store, const hibloom_item *which)
{
    bool answers[ITEMS];

    assert_ok(hibloom_contains_many(filter, which, ITEMS, answers), store);
    return test_count_true(answers, ITEMS) == ITEMS;
}

static hibloom *same(hibloom_store *store, const char *name, const hibloom *as)
{
    hibloom *filter;

    assert_ok(hibloom_open(&filter, store, name, hibloom_spec_of(as)), store);
    return filter;
}

static void save_twice(hibloom_store *store, hibloom *filter)
{
    const hibloom_status status = hibloom_save(filter, path);

    assert_int_equal(files_in(dir), 2);
    if (status != HIBLOOM_OK)
        assert_true(same_contents(path, expected)); /* as it was */
    if (status == HIBLOOM_EIO)
        assert_ok(hibloom_save(filter, path), store);
    else
        assert_ok(status, store);
}

static hibloom_store *connect_twice(void)
{
    hibloom_store *store;

    if (hibloom_connect(&store, proxy_uri(proxy), NULL) == HIBLOOM_OK)
        return store;
    hibloom_store_free(store);
    assert_ok(hibloom_connect(&store, proxy_uri(proxy), NULL), store);
    return store;
}

static void move_all(hibloom_store *store, hibloom_store *direct, hibloom *into, hibloom *here)
{
    hibloom *moved = NULL, *fresh = NULL;
    bool answers[ITEMS];

    TWICE(hibloom_open(&moved, store, "from", NULL));
    TWICE(hibloom_open(&fresh, store, "into", NULL));
    save_twice(store, moved);
    TWICE(hibloom_merge(fresh, here));
    assert_true(has_all(into, direct, others));
    TWICE(hibloom_merge(fresh, moved));
    TWICE(hibloom_load(fresh, path));
    assert_true(has_all(into, direct, items) && has_all(into, direct, others));
    TWICE(hibloom_merge(here, moved));
    TWICE(hibloom_replace(fresh, "from"));
    TWICE(hibloom_add(fresh, "more", 4, NULL));
    TWICE(hibloom_contains_many(fresh, items, ITEMS, answers)); /* the handle goes with it */
    assert_int_equal(test_count_true(answers, ITEMS), ITEMS);
    hibloom_close(moved);
    hibloom_close(fresh);
}

static void hold(const void *of)
{
    const char *text = of;
    hibloom_store *direct = test_connect(redis_server_uri(server), NULL), *memory, *store = NULL;
    hibloom *from = test_open(direct, "from", text), *into = same(direct, "into", from), *now;

    assert_ok(hibloom_memory(&memory), NULL);
    hibloom *here = same(memory, "here", from);
    assert_ok(hibloom_save(into, expected), direct);
    assert_ok(hibloom_save(into, path), direct);
    assert_ok(hibloom_add_many(from, items, ITEMS, NULL), direct);
    assert_ok(hibloom_add_many(here, others, ITEMS, NULL), memory);
    store = connect_twice();
    move_all(store, direct, into, here);
    assert_true(has_all(here, memory, items) && has_all(here, memory, others));
    assert_ok(hibloom_open(&now, direct, "from", NULL), direct);
    assert_true(has_all(now, direct, items) && has_all(now, direct, others));
    assert_int_equal(keys_with(redis, "into"), 0);
    assert_ok(hibloom_drop(now), direct);
    assert_int_equal(test_command(redis, "DBSIZE"), 0);
    hibloom_close(now);
    hibloom_close(here);
    hibloom_close(into);
    hibloom_close(from);
    hibloom_store_free(memory);
    hibloom_store_free(direct);
    hibloom_store_free(store);
}

static void cut_everywhere(const char *text, enum proxy_way way)
{
    const uint64_t part = way == PROXY_REQUESTS ? 1 : 16, step = STEP / part * (test_is_slow() ? 5 : 1);

    assert_true(proxied_cut_everywhere(way, step, hold, text) > (test_is_slow() ? 1 : 5));
}

static void nothing_is_lost_wherever_it_is_cut(void **state)
{
    (void)state;
    cut_everywhere("capacity=4 error=1e-9 growth=2", PROXY_REQUESTS);
    cut_everywhere("capacity=4 error=1e-9 growth=2", PROXY_REPLIES);
    cut_everywhere("capacity=6 error=1e-9 growth=3 segments=2", PROXY_REQUESTS);
    cut_everywhere("capacity=6 error=1e-9 growth=3 segments=2", PROXY_REPLIES);
}

/* ---- An answer that is lost ------------------------------------------------------------ */

/* Gives the bytes of replies. It was done or not; called again it is done, and nothing of it is taken for the old one's. */
static uint64_t replace_twice(uint64_t cut)
{
    hibloom_store *direct = test_connect(redis_server_uri(server), NULL), *store = test_connect(proxy_uri(proxy), NULL);
    hibloom *old = test_open(direct, "seen", "capacity=4 error=1e-9 growth=2"), *filter = NULL, *now;

    assert_ok(hibloom_add_many(old, others, ITEMS, NULL), direct);
    now = test_open(direct, "aside", "capacity=4 error=1e-9 growth=3");
    assert_ok(hibloom_add_many(now, items, ITEMS, NULL), direct);
    hibloom_close(now);
    assert_ok(hibloom_open(&filter, store, "aside", NULL), store);
    proxy_mark(proxy);
    if (cut > 0)
        proxy_cut(proxy, PROXY_REPLIES, cut);
    TWICE(hibloom_replace(filter, "seen"));
    proxy_heal(proxy);
    const uint64_t bytes = proxy_bytes(proxy, PROXY_REPLIES);
    assert_true(has_all(filter, store, items));
    assert_ok(hibloom_open(&now, direct, "seen", NULL), direct);
    assert_true(has_all(now, direct, items));
    assert_ok(hibloom_drop(now), direct);
    assert_int_equal(test_command(redis, "DBSIZE"), 0);
    hibloom_close(now);
    hibloom_close(filter);
    hibloom_close(old);
    hibloom_store_free(direct);
    hibloom_store_free(store);
    return bytes;
}

static void a_replace_whose_answer_was_lost_is_found_done(void **state)
{
    const uint64_t bytes = replace_twice(0), step = test_is_slow() ? 97 : 13;

    (void)state;
    for (uint64_t cut = 1; cut < bytes; cut += step)
        (void)replace_twice(cut);
}

static int set_up(void **state)
{
    items = items_new("in", ITEMS);
    others = items_new("other", ITEMS);
    dir = temp_dir_make();
    path = temp_dir_path(dir, "file");
    expected = temp_dir_path(dir, "expected");
    return proxied_set_up(state);
}

static int tear_down(void **state)
{
    items_free(items);
    items_free(others);
    free(path);
    free(expected);
    temp_dir_remove(dir);
    return proxied_tear_down(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(nothing_is_lost_wherever_it_is_cut, served_leave_nothing),
        cmocka_unit_test_teardown(a_replace_whose_answer_was_lost_is_found_done, served_leave_nothing),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
