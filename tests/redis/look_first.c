/* Adding to the blocked layout looks first where much is there already, and
 * sends only what is missing: nothing may be lost by that, whatever share is
 * there and wherever the connection breaks. */
#include "support/proxy.h"
#include "support/served.h"
#include "support/test.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SPEC "capacity=100000 error=0.0001 layout=blocked seed=5eed"

enum { ITEMS = 40000, HASHES_AT_LEAST = 10 }; /* more than a chunk, and a rest of one */

static hibloom_spec spec;
static char text[ITEMS][16];
static hibloom_item items[ITEMS];
static bool found[ITEMS];

static int set_up(void **state)
{
    spec = test_spec(SPEC);
    assert_true(spec.hashes >= HASHES_AT_LEAST);
    for (int i = 0; i < ITEMS; i++)
        items[i] = (hibloom_item){text[i], (size_t)snprintf(text[i], sizeof text[i], "item %d", i)};
    return served_set_up(state);
}

static hibloom *open_on(hibloom_store **store, const char *uri, const char *name, hibloom_commands commands)
{
    const hibloom_connect_options options = {.command_timeout_ms = 20000, .commands = commands};
    hibloom *filter;

    *store = test_connect(uri, &options);
    assert_ok(hibloom_open(&filter, *store, name, &spec), *store);
    return filter;
}

static void drop_and_close(hibloom *filter, hibloom_store *store)
{
    assert_ok(hibloom_drop(filter), store);
    hibloom_close(filter);
    hibloom_store_free(store);
}

static void assert_all_found(hibloom *filter, hibloom_store *store)
{
    assert_ok(hibloom_contains_many(filter, items, ITEMS, found), store);
    for (int i = 0; i < ITEMS; i++)
        if (!found[i])
            fail_msg("item %d is not found", i);
}

/* Every n-th item of the filter, so that the share is the same all over it. */
static void add_share(hibloom *filter, hibloom_store *store, int quarters)
{
    static hibloom_item some[ITEMS];
    size_t n = 0;

    for (int i = 0; i < ITEMS; i++)
        if (i % 4 < quarters)
            some[n++] = items[i];
    assert_ok(hibloom_add_many(filter, some, n, NULL), store);
}

static void what_is_there_is_not_sent_again(void **state)
{
    const int least = getenv("HIBLOOM_TEST_SLOW") != NULL ? 3 : 0;

    (void)state;
    for (int quarters = least; quarters <= 4; quarters++)
        for (int commands = 0; commands < 2; commands++) {
            const char *command = commands == 0 ? "setbit" : "bitfield";
            hibloom_store *store;
            hibloom *filter = open_on(&store, redis_server_uri(server), "share", (hibloom_commands)commands);
            const int each = commands == 0 ? (int)hibloom_spec_of(filter)->hashes : 1;
            add_share(filter, store, quarters);
            const long long before = redis_server_calls_of(redis, command);
            assert_ok(hibloom_add_many(filter, items, ITEMS, NULL), store);
            const long long sent = redis_server_calls_of(redis, command) - before;
            const long long missing = ITEMS * (4 - quarters) / 4;
            if (quarters >= 3) /* save for false positives, one in 10,000 */
                assert_true(sent <= each * missing + 2 && sent >= each * (missing - 100)); /* 2: a proof a chunk */
            else if (quarters <= 1)
                assert_int_equal(sent, each * ITEMS);
            assert_all_found(filter, store);
            drop_and_close(filter, store);
        }
}

/* In memory there is no such short cut. */
static void the_bits_are_those_of_adding_everything(void **state)
{
    hibloom_store *store, *memory;
    hibloom *filter = open_on(&store, redis_server_uri(server), "bits", HIBLOOM_COMMANDS_SETBIT), *twin;
    hibloom_info one, other;

    (void)state;
    assert_ok(hibloom_memory(&memory), NULL);
    assert_ok(hibloom_open(&twin, memory, "bits", hibloom_spec_of(filter)), memory);
    add_share(filter, store, 3);
    for (int round = 0; round < 2; round++)
        assert_ok(hibloom_add_many(filter, items, ITEMS, NULL), store);
    assert_ok(hibloom_add_many(twin, items, ITEMS, NULL), memory);
    assert_ok(hibloom_get_info(filter, &one), store);
    assert_ok(hibloom_merge(twin, filter), memory);
    assert_ok(hibloom_get_info(twin, &other), memory);
    assert_int_equal(one.bits_set, other.bits_set);
    hibloom_close(twin);
    hibloom_store_free(memory);
    drop_and_close(filter, store);
}

static void a_cut_anywhere_is_an_error_and_loses_nothing(void **state)
{
    struct proxy *proxy = proxy_start(redis_server_socket(server));
    hibloom_store *store, *direct;
    hibloom *filter = open_on(&store, proxy_uri(proxy), "cut", HIBLOOM_COMMANDS_BITFIELD);
    hibloom *other = open_on(&direct, redis_server_uri(server), "cut", HIBLOOM_COMMANDS_BITFIELD);
    hibloom_status status = HIBLOOM_EIO;

    (void)state;
    for (uint64_t step = 1; status != HIBLOOM_OK;
         step += getenv("HIBLOOM_TEST_SLOW") != NULL ? 5 : 3) { /* odd: both ways */
        assert_true(step < 100);
        assert_ok(hibloom_clear(other), direct);
        add_share(other, direct, 3);
        proxy_mark(proxy);
        proxy_cut(proxy, step % 2 == 0 ? PROXY_REQUESTS : PROXY_REPLIES, step * 300001);
        status = hibloom_add_many(filter, items, ITEMS, NULL);
        proxy_heal(proxy);
        if (status == HIBLOOM_OK) {
            assert_true(step > 8); /* or not much was cut */
            break;
        }
        assert_status(status, HIBLOOM_EIO, store);
        assert_ok(hibloom_add_many(filter, items, ITEMS, NULL), store);
        assert_all_found(filter, store);
    }
    assert_all_found(filter, store);
    hibloom_close(filter);
    hibloom_store_free(store);
    drop_and_close(other, direct);
    proxy_stop(proxy);
}

static void a_lost_filter_is_an_error_and_is_not_begun_again(void **state)
{
    hibloom_store *store;
    hibloom *filter = open_on(&store, redis_server_uri(server), "lost", HIBLOOM_COMMANDS_SETBIT);

    (void)state;
    assert_ok(hibloom_add_many(filter, items, ITEMS, NULL), store);
    test_command(redis, "DEL lost");
    assert_status(hibloom_add_many(filter, items, ITEMS, NULL), HIBLOOM_ENOTFOUND, store);
    assert_int_equal(test_command(redis, "EXISTS lost"), 0);
    assert_status(hibloom_repair(store, "lost"), HIBLOOM_ENOTFOUND, store);
    hibloom_close(filter);
    assert_ok(hibloom_open(&filter, store, "lost", &spec), store);
    assert_ok(hibloom_add_many(filter, items, ITEMS, NULL), store);
    assert_all_found(filter, store);
    drop_and_close(filter, store);
}

static void a_server_that_is_gone_is_an_error(void **state)
{
    struct redis_server *own = redis_server_start(NULL);
    hibloom_store *store;
    hibloom *filter = open_on(&store, redis_server_uri(own), "gone", HIBLOOM_COMMANDS_SETBIT);

    (void)state;
    redis_server_stop(own);
    assert_status(hibloom_add_many(filter, items, ITEMS, NULL), HIBLOOM_EIO, store);
    hibloom_close(filter);
    hibloom_store_free(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_there_is_not_sent_again),
        cmocka_unit_test(the_bits_are_those_of_adding_everything),
        cmocka_unit_test(a_cut_anywhere_is_an_error_and_loses_nothing),
        cmocka_unit_test(a_lost_filter_is_an_error_and_is_not_begun_again),
        cmocka_unit_test(a_server_that_is_gone_is_an_error),
    };

    return cmocka_run_group_tests(tests, set_up, served_tear_down);
}
