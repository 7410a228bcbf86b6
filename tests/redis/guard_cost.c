/* What the guard costs: one short command for each key that a pipeline touches, and no key's name more often
 * than it has to be. And what is in is not sent again. */
#include "support/items.h"
#include "support/served.h"
#include "support/test.h"
#include "base/store.h"
#include "spec/positions.h"
#include "spec/spec.h"

#include <stdio.h>
#include <string.h>

static hibloom_store *store;

static int set_up(void **state)
{
    (void)proxied_set_up(state);
    store = test_connect(proxy_uri(proxy), NULL);
    return 0;
}

static int tear_down(void **state)
{
    hibloom_store_free(store);
    return proxied_tear_down(state);
}

enum { SEGMENTS = 256, BATCH = 1000 };

static long long guards_of(hibloom *filter, const hibloom_item *items, size_t n, int kind)
{
    bool answers[BATCH];
    const long long before = redis_server_calls_of(redis, "getrange");

    if (kind < 2)
        assert_ok(hibloom_add_many(filter, items, n, kind == 1 ? answers : NULL), store);
    else
        assert_ok(hibloom_contains_many(filter, items, n, answers), store);
    return redis_server_calls_of(redis, "getrange") - before;
}

static uint32_t segment_of(const hibloom *filter, const hibloom_item *item)
{
    hibloom_position positions[HIBLOOM_HASHES_MAX];

    assert_ok(positions_of(&filter->spec, item->data, item->len, positions), NULL);
    for (uint32_t i = 1; i < filter->spec.hashes; i++)
        assert_int_equal(positions[i].key, positions[0].key);
    return (uint32_t)positions[0].key;
}

static unsigned segments_touched(const hibloom *filter, const hibloom_item *items, size_t n)
{
    bool touched[SEGMENTS] = {false};
    unsigned count = 0;

    for (size_t i = 0; i < n; i++) {
        const uint32_t segment = segment_of(filter, &items[i]);
        count += !touched[segment];
        touched[segment] = true;
    }
    return count;
}

static void a_batch_asks_each_segment_that_it_touches_once(void **state)
{
    static const size_t counts[] = {1, 10, 100, BATCH};
    static const unsigned pipelines[] = {0, 1, 2, 5}; /* a run that is cut in two by them is asked twice */
    hibloom_item *items = items_new("item", BATCH);
    hibloom *filter = test_open(store, "seen", "bits=2560000 hashes=7 seed=5eed segments=256");

    for (int i = 0; i < 4; i++) {
        const unsigned touched = segments_touched(filter, items, counts[i]);
        for (int kind = 0; kind < 3; kind++) {
            const unsigned most = touched + pipelines[i] + 1; /* and the root in front */
            long long guards = guards_of(filter, items, counts[i], kind);
            for (int again = 0; guards > most && again < 9; again++) /* a client that stood still asks once more */
                guards = guards_of(filter, items, counts[i], kind);
            assert_in_range(guards, touched, most);
        }
    }
    items_free(items);
    hibloom_close(filter);
}

enum { HASHES = 128, NAME_BYTES = 500, ADDED = 300 };

/* Bytes of a command, as it goes over the wire. */
static uint64_t wire_bytes(const char *const arguments[], int count)
{
    char number[24];
    uint64_t bytes = (uint64_t)snprintf(number, sizeof number, "*%d\r\n", count);

    for (int i = 0; i < count; i++)
        bytes += (uint64_t)snprintf(number, sizeof number, "$%zu\r\n", strlen(arguments[i])) + strlen(arguments[i]) + 2;
    return bytes;
}

static void the_guards_are_a_small_part_where_names_are_long(void **state)
{
    char name[NAME_BYTES + 1], key[NAME_BYTES + 8], offset[16];
    hibloom_item *items = items_new("item", ADDED);
    bool is_new[ADDED];

    memset(name, 'n', NAME_BYTES);
    name[NAME_BYTES] = '\0';
    hibloom *filter = test_open(store, name, "bits=1000000 hashes=128 seed=5eed layout=partitioned");
    snprintf(key, sizeof key, "%s:100", name);
    snprintf(offset, sizeof offset, "%d", 125000 + 100);
    const uint64_t guard_bytes = wire_bytes((const char *const[]){"GETRANGE", key, offset, offset}, 4);
    for (int exact = 0; exact < 2; exact++) {
        const long long before = redis_server_calls_of(redis, "getrange");
        proxy_mark(proxy);
        assert_ok(hibloom_add_many(filter, items, ADDED, exact ? is_new : NULL), store);
        const uint64_t sent = proxy_bytes(proxy, PROXY_REQUESTS);
        const uint64_t guards = (uint64_t)(redis_server_calls_of(redis, "getrange") - before);
        assert_true(guards >= HASHES);
        if (!exact)
            assert_true(3 * guards * guard_bytes <= sent);
        else /* the names are sent once a pipeline, not once an item */
            assert_true(sent / ADDED <= HASHES * NAME_BYTES / 4);
    }
    items_free(items);
    hibloom_close(filter);
}

static void one_clear_after_another_costs_a_command_a_key(void **state)
{
    hibloom *filter = test_open(store, "seen", "bits=20000 hashes=5 seed=5eed segments=4");

    for (int i = 0; i < 3; i++) {
        const long long before = redis_server_calls_of(redis, "eval");
        assert_ok(hibloom_clear(filter), store);
        assert_int_equal(redis_server_calls_of(redis, "eval") - before, 4);
    }
    hibloom_close(filter);
}

/* Adds to the blocked layout look first, where much is there already. */
static void what_is_in_is_not_sent_again(void **state)
{
    enum { ITEMS = 40000 };
    hibloom_item *items = items_new("in", ITEMS);
    hibloom *filter = test_open(store, "share", "capacity=100000 error=0.0001 layout=blocked seed=5eed");

    assert_ok(hibloom_add_many(filter, items, ITEMS, NULL), store);
    const long long before = redis_server_calls_of(redis, "setbit");
    assert_ok(hibloom_add_many(filter, items, ITEMS, NULL), store);
    assert_in_range(redis_server_calls_of(redis, "setbit") - before, 0, 2); /* a proof a chunk */
    assert_dropped(filter, store);
    items_free(items);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_in_is_not_sent_again),
        cmocka_unit_test_teardown(a_batch_asks_each_segment_that_it_touches_once, served_leave_nothing),
        cmocka_unit_test_teardown(the_guards_are_a_small_part_where_names_are_long, served_leave_nothing),
        cmocka_unit_test_teardown(one_clear_after_another_costs_a_command_a_key, served_leave_nothing),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
