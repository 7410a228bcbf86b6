/* Names that are close to each other: work on `seen` harms no filter whose name only looks as if it were a part
 * of it, and an error names the key that is meant. */
#include "support/items.h"
#include "support/served.h"
#include "support/test.h"
#include "spec/spec.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>

enum { N = 300 };

static hibloom_store *store, *memory;
static hibloom_item *items;

static int set_up(void **state)
{
    (void)served_set_up(state);
    store = test_connect(redis_server_uri(server), NULL);
    assert_ok(hibloom_connect(&memory, "memory:", NULL), memory);
    items = items_new("item", N);
    return 0;
}

static int tear_down(void **state)
{
    items_free(items);
    hibloom_store_free(store);
    hibloom_store_free(memory);
    return served_tear_down(state);
}

/* Several keys of `seen` are seen:0 to seen:3, so these are beside all its forms. */
static const char *const neighbours[] = {
    "{seen}:hibloom-a",
    "{seen}:hibloom-b",
    "{seen}:hibloom-l",
    "{seen}:spec",
    "{seen:0}:spec",
    "{seen:1}:hibloom-a",
    "{seen}",
    "{seen}a",
    "seen:spec",
    "seen:",
    "seen:4",
    "seen:00",
    "seen:0:0",
    "seen ",
    "Seen",
    "seen:-1",
    "seen:0000",
    "{seen}b",
};
enum { NEIGHBOURS = sizeof neighbours / sizeof neighbours[0], ALL = NEIGHBOURS + 4 };

static const struct form {
    const char *text;
    bool alone; /* seen:0 to seen:3 are free to be filters of their own */
} forms[] = {
    {"bits=20000 hashes=4 seed=5eed", true},
    {"bits=20480 hashes=4 seed=5eed layout=blocked", true},
    {"bits=20000 hashes=4 seed=5eed segments=4", false},
    {"bits=20000 hashes=4 seed=5eed layout=partitioned", false},
};
enum { FORMS = sizeof forms / sizeof forms[0] };

static void name_neighbour(char out[32], int i)
{
    if (i < NEIGHBOURS)
        snprintf(out, 32, "%s", neighbours[i]);
    else
        snprintf(out, 32, "seen:%d", i - NEIGHBOURS);
}

/* Calls on `seen`, and on a second filter that it is merged with. */
static void work_on_seen(const struct form *form, bool is_new[N])
{
    const struct spec spec = test_spec(form->text);
    hibloom *seen = test_open(store, "seen", form->text), *more = test_open(store, "more", form->text), *in_memory;
    hibloom_info info;

    assert_ok(hibloom_add_many(seen, items, N, NULL), store);
    assert_ok(hibloom_add_many(seen, items, N, is_new), store);
    assert_ok(hibloom_contains_many(seen, items, N, is_new), store);
    assert_ok(hibloom_merge(seen, more), store);
    assert_ok(hibloom_merge(more, seen), store);
    assert_ok(hibloom_open(&in_memory, memory, "copy", test_text(&spec)), memory);
    assert_ok(hibloom_merge(in_memory, seen), memory);
    assert_ok(hibloom_merge(seen, in_memory), store);
    assert_dropped(in_memory, memory);
    assert_ok(hibloom_get_info(seen, &info, sizeof info), store);
    assert_ok(hibloom_expire(seen, 100000), store);
    assert_ok(hibloom_expire(seen, 0), store);
    assert_ok(hibloom_clear(seen), store);
    if (!form->alone)
        assert_int_equal(test_command(redis, "DEL seen:2"), 1);
    assert_ok(hibloom_repair(store, "seen"), store);
    assert_ok(hibloom_drop_by_name(store, "seen"), store);
    hibloom_close(seen);
    seen = test_open(store, "seen", form->text);
    assert_dropped(seen, store);
    assert_dropped(more, store);
}

static void names_that_look_like_its_parts_are_filters_of_their_own(void **state)
{
    redisReply *before[ALL];
    char name[32];
    bool found[N];

    for (int f = 0; f < FORMS; f++) {
        const int count = forms[f].alone ? ALL : NEIGHBOURS;
        for (int i = 0; i < count; i++) {
            name_neighbour(name, i);
            hibloom *filter = test_open(store, name, "bits=800 hashes=3");
            assert_ok(hibloom_add(filter, name, strlen(name), NULL), store);
            hibloom_close(filter);
            before[i] = redisCommand(redis, "GET %s", name);
        }
        work_on_seen(&forms[f], found);
        assert_int_equal(test_command(redis, "DBSIZE"), count);
        for (int i = 0; i < count; i++) {
            name_neighbour(name, i);
            redisReply *now = redisCommand(redis, "GET %s", name);
            assert_int_equal(now->len, before[i]->len);
            assert_memory_equal(now->str, before[i]->str, now->len);
            assert_int_equal(test_command(redis, "TTL %s", name), 0 - 1);
            freeReplyObject(now);
            freeReplyObject(before[i]);
        }
        served_leave_nothing(NULL);
    }
}

static void a_filter_in_the_way_is_named(void **state)
{
    static const char *const larger[] = {"bits=20000 hashes=4 segments=4", "bits=2000 hashes=4 layout=partitioned"};
    hibloom *in_the_way, *none;
    char where[8], named[12];
    bool found = false;

    for (int i = 0; i < 2 * 4; i++) {
        const struct spec spec = test_spec(larger[i / 4]);
        snprintf(where, sizeof where, "a:%d", i % 4);
        snprintf(named, sizeof named, "'%s'", where);
        in_the_way = test_open(store, where, "bits=800 hashes=3 seed=1");
        assert_ok(hibloom_add(in_the_way, "x", 1, NULL), store);
        assert_fails(hibloom_open(&none, store, "a", test_text(&spec)), HIBLOOM_EMISMATCH, store, named);
        assert_null(strstr(hibloom_store_error(store), "'a' is a bitmap"));
        assert_ok(hibloom_contains(in_the_way, "x", 1, &found), store); /* and is unharmed */
        assert_true(found);
        assert_int_equal(test_command(redis, "DBSIZE"), 1);
        assert_dropped(in_the_way, store);
    }
}

#define TEST(function) cmocka_unit_test_teardown(function, served_leave_nothing)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(names_that_look_like_its_parts_are_filters_of_their_own),
        TEST(a_filter_in_the_way_is_named),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
