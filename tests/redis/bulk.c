/* Calls of very many items: they go by whole bitmaps where that is less work, and give the answers that going
 * item by item gives. */
#include "base/store.h"
#include "resp/command.h"
#include "hibloom/hibloom.h"
#include "support/test.h"
#include "support/served.h"
#include "spec/spec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ITEMS = 20000 };

#define USED_MEMORY "return tonumber(redis.call('INFO','memory'):match('used_memory:(%d+)'))"

static uint32_t numbers[ITEMS];
static hibloom_item items[ITEMS];
static bool answers[ITEMS], expected[ITEMS];

static void set_items(uint32_t first)
{
    for (uint32_t i = 0; i < ITEMS; i++) {
        numbers[i] = first + i;
        items[i] = (hibloom_item){&numbers[i], sizeof numbers[i]};
    }
}

static hibloom_store *new_store_over(uint32_t link_mb_s, const char *commands)
{
    return test_connect_any_way(
        with_options(redis_server_uri(server), "commands=%s&command_timeout=20s&link=%um", commands, link_mb_s), NULL);
}

static hibloom_store *new_store(const char *commands)
{
    return new_store_over(1000, commands);
}

/* The pipelines of a partitioned filter may be answered in another order than they were begun in. Then another item is
 * the wrong "maybe". So many hashes leave none. */
static const char *const specs[] = {"capacity=40000 error=0.01 seed=5eed",
                                    "capacity=40000 error=0.01 layout=blocked seed=5eed",
                                    "bits=60001 hashes=16 layout=partitioned seed=5eed",
                                    "bits=300000 hashes=5 segments=7 seed=5eed",
                                    "bits=358400 hashes=5 segments=7 layout=blocked seed=5eed",
                                    "bits=300000 hashes=4 hash=poly seeds=7,11,13,17 empty=excluded"};

enum { SPECS = sizeof specs / sizeof *specs };

/* ---- The answers ------------------------------------------------------------------------- */

static void assert_same(hibloom *filter, hibloom *twin)
{
    hibloom_comparison both;
    hibloom_info a, b;

    assert_ok(hibloom_get_info(filter, &a, sizeof a), NULL);
    assert_ok(hibloom_get_info(twin, &b, sizeof b), NULL);
    assert_int_equal(a.bits_set, b.bits_set);
    assert_ok(hibloom_compare(filter, twin, &both, sizeof both), NULL);
    assert_true(both.similarity > 0.999999);
}

static void answers_and_bits_are_those_of_memory(const char *text, const char *commands, bool near)
{
    hibloom_store *store = new_store(commands), *memory;
    hibloom *filter = test_open(store, "same", text), *twin;

    assert_ok(hibloom_connect(&memory, "memory:", NULL), NULL);
    twin = test_open(memory, "same", text);
    if (near)
        assert_ok(hibloom_near_cache(filter, 0), store);
    set_items(0);
    items[7].len = 0; /* which one of the specs excludes */
    const uint64_t before = test_stats(store).commands;
    assert_ok(hibloom_add_many(filter, items, ITEMS / 2, NULL), store);
    assert_ok(hibloom_add_many(twin, items, ITEMS / 2, NULL), memory);
    assert_same(filter, twin);
    assert_ok(hibloom_contains_many(filter, items, ITEMS, answers), store);
    assert_ok(hibloom_contains_many(twin, items, ITEMS, expected), memory);
    assert_memory_equal(answers, expected, sizeof answers);
    assert_true(test_stats(store).commands - before < 200); /* as few as by bitmaps only */
    const uint64_t then = test_stats(store).commands;
    assert_ok(hibloom_add_many(filter, items, ITEMS, answers), store);
    assert_ok(hibloom_add_many(twin, items, ITEMS, expected), memory);
    assert_memory_equal(answers, expected, sizeof answers);
    assert_same(filter, twin);
    if (filter->spec.layout != LAYOUT_PARTITIONED)
        assert_true(test_stats(store).commands - then < ITEMS / 2 + 500); /* those that were in are not sent */
    const uint64_t near_before = test_stats(store).items_near;            /* what is in by bitmaps is near, too */
    assert_ok(hibloom_contains_many(filter, items + 8, 100, answers), store);
    assert_int_equal(test_stats(store).items_near - near_before, near ? 100 : 0);
    assert_dropped(filter, store);
    test_close(twin, store);
    hibloom_store_free(memory);
}

static void the_answers_are_those_of_memory(void **state)
{
    for (int i = 0; i < SPECS; i++)
        for (int commands = 0; commands < 2; commands++)
            answers_and_bits_are_those_of_memory(specs[i], commands == 0 ? "setbit" : "bitfield",
                                                 (i + commands) % 2 == 1);
}

/* Where the bitmap is many times what the commands are. */
static void a_small_call_goes_item_by_item(void **state)
{
    hibloom_store *store = new_store("setbit");
    hibloom *filter = test_open(store, "small", "capacity=10000000 error=0.01 segments=1");
    const uint32_t k = filter->spec.hashes;

    set_items(0);
    uint64_t before = test_stats(store).commands;
    assert_ok(hibloom_add_many(filter, items, 1000, NULL), store);
    assert_ok(hibloom_contains_many(filter, items, 1000, answers), store);
    assert_true(test_stats(store).commands - before >= 2000 * k);
    before = test_stats(store).bytes_received;
    assert_ok(hibloom_contains_many(filter, items, ITEMS, answers), store); /* 11 MB, but 140,000 commands */
    assert_true(test_stats(store).bytes_received - before > 11000000);
    assert_dropped_last(filter, store);
}

/* The commands of an add with is_new of all items. */
static uint64_t commands_to_add_new(const char *text)
{
    hibloom_store *store = new_store_over(1000, "setbit");
    hibloom *filter = test_open(store, "sampled", text);

    set_items(0);
    const uint64_t before = test_stats(store).commands;
    assert_ok(hibloom_add_many(filter, items, ITEMS, answers), store);
    const uint64_t commands = test_stats(store).commands - before;
    assert_int_equal(test_count_true(answers, ITEMS), ITEMS);
    assert_dropped_last(filter, store);
    return commands;
}

/* 512 items tell whether most are in. Beside a merge of a megabyte that would be most of the work. */
static void a_sample_is_asked_for_where_a_merge_costs_more(void **state)
{
    assert_in_range(commands_to_add_new("bits=8000000 hashes=7 segments=1"), 1, 50);
    assert_in_range(commands_to_add_new("bits=80000000 hashes=7 segments=1"), 512 * 7, 512 * 7 + 100);
}

/* ---- Filters of several links ------------------------------------------------------------ */

/* The commands of a look-up of n items, the first half of which is in. */
static uint64_t commands_to_look(const char *text, uint32_t link_mb_s, uint32_t n)
{
    hibloom_store *store = new_store_over(link_mb_s, "bitfield");
    hibloom *filter = test_open(store, "links", text);
    hibloom_item *const asked = items + ITEMS / 2 - n / 2;

    set_items(0);
    assert_ok(hibloom_add_many(filter, items, ITEMS / 2, NULL), store);
    const uint64_t before = test_stats(store).commands;
    assert_ok(hibloom_contains_many(filter, asked, n, answers), store);
    const uint64_t commands = test_stats(store).commands - before;
    assert_int_equal(test_count_true(answers, n / 2), n / 2);
    assert_in_range(test_count_true(answers + n / 2, n / 2), 0, n / 20);
    assert_ok(hibloom_add_many(filter, asked, n / 2, answers), store); /* it looks first */
    assert_int_equal(test_count_true(answers, n / 2), 0);
    assert_dropped_last(filter, store);
    return commands;
}

/* Of an add of all items, beside one of the first. */
static uint64_t commands_to_add(const char *text)
{
    hibloom_store *store = new_store_over(1000, "setbit");
    hibloom *filter = test_open(store, "merged", text);

    set_items(0);
    assert_ok(hibloom_add_many(filter, items, 1, NULL), store);
    const uint64_t before = test_stats(store).commands;
    assert_ok(hibloom_add_many(filter, items, ITEMS, NULL), store);
    const uint64_t commands = test_stats(store).commands - before;
    assert_ok(hibloom_contains_many(filter, items, ITEMS, answers), store);
    assert_int_equal(test_count_true(answers, ITEMS), ITEMS);
    assert_dropped_last(filter, store);
    return commands;
}

/* A link that holds them is counted, and merged. While a call makes links, each is read once it is older. */
static void a_growing_filter_takes_many_by_its_bitmap(void **state)
{
    assert_in_range(commands_to_add("capacity=40000 error=0.01 growth=2"), 1, 400);
    assert_in_range(commands_to_add("capacity=500 error=0.01 growth=2"), 1, 80000);
}

/* A call of some items reads the bitmaps of small links, and asks a large one; over a slow link it asks all. */
static void each_link_goes_its_way(void **state)
{
    const char *const growing = "capacity=500 error=0.02 growth=4 seed=5eed";
    const char *const faster = "capacity=500 error=0.02 growth=16 seed=5eed";
    const char *const window = "capacity=12000 error=0.02 window=3600s seed=5eed";

    assert_in_range(commands_to_look(growing, 1000, ITEMS), 1, 100);
    assert_in_range(commands_to_look(faster, 1000, 80), 20, 50);
    assert_in_range(commands_to_look(faster, 1, 80), 60, 90);
    assert_in_range(commands_to_look(growing, 1000, 40), 31, 60);
    assert_in_range(commands_to_look(window, 1000, ITEMS), 1, 100);
    assert_in_range(commands_to_look(window, 1000, 40), 40, 80);
}

/* ---- What happens to the filter ------------------------------------------------------------ */

/* Who may add but not merge is none the wiser. Each store finds it out. */
static void who_may_not_merge_adds_item_by_item(void **state)
{
    char uri[300];

    (void)test_command(redis, "ACL SETUSER adder on >secret ~seen +getrange +strlen +pttl +bitcount +getbit +setbit "
                              "+bitfield +eval");
    snprintf(uri, sizeof uri, "redis://adder:secret@127.0.0.1:%d", redis_server_port(server));
    hibloom_store *maker = new_store("setbit"), *memory;
    hibloom *made = test_open(maker, "seen", specs[0]), *twin;

    assert_ok(hibloom_connect(&memory, "memory:", NULL), NULL);
    twin = test_open(memory, "seen", specs[0]);
    for (uint32_t i = 0; i < 2; i++) {
        hibloom_store *store = test_connect_any_way(uri, NULL);
        hibloom *filter = test_open(store, "seen", specs[0]);
        set_items(i * ITEMS);
        for (int again = 0; again < 2; again++) {
            assert_ok(hibloom_add_many(filter, items, ITEMS, i == 0 ? NULL : answers), store);
            assert_ok(hibloom_add_many(twin, items, ITEMS, expected), memory);
            if (i > 0)
                assert_memory_equal(answers, expected, sizeof answers);
        }
        test_close(filter, store);
    }
    assert_same(made, twin);
    assert_dropped_last(made, maker);
    test_close(twin, memory);
    (void)test_command(redis, "ACL DELUSER adder");
}

/* Nobody needs UNLINK to delete a copy. If a merge fails, its bits go at once, too. */
static void no_copy_stays(void **state)
{
    hibloom_store *store = new_store("setbit");
    hibloom *filter = test_open(store, "seen", "bits=33554432 hashes=5 seed=5eed"), *small;
    const long long used = test_command(redis, "EVAL %s 0", USED_MEMORY);

    (void)test_command(redis, "ACL SETUSER default -unlink");
    set_items(0);
    for (int i = 0; i < 5; i++)
        assert_ok(hibloom_add_many(filter, items, ITEMS, answers), store);
    assert_in_range(test_command(redis, "EVAL %s 0", USED_MEMORY), 0, used + (10 << 20)); /* buffers; five copies: 20 */
    (void)test_command(redis, "ACL SETUSER default +unlink");
    assert_dropped(filter, store);
    small = test_open(store, "small", "bits=600000 hashes=5 seed=5eed segments=2");
    (void)test_command(redis, "DEL small:1");
    (void)test_command(redis, "LPUSH small:1 x");
    assert_status(hibloom_add_many(small, items, ITEMS, answers), HIBLOOM_EMISMATCH, store);
    assert_int_equal(test_command(redis, "DBSIZE"), 2);
    (void)test_command(redis, "DEL small:1");
    assert_dropped_last(small, store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_answers_are_those_of_memory),
        cmocka_unit_test(a_small_call_goes_item_by_item),
        cmocka_unit_test(a_sample_is_asked_for_where_a_merge_costs_more),
        cmocka_unit_test(a_growing_filter_takes_many_by_its_bitmap),
        cmocka_unit_test(each_link_goes_its_way),
        cmocka_unit_test(who_may_not_merge_adds_item_by_item),
        cmocka_unit_test(no_copy_stays),
    };

    return cmocka_run_group_tests(tests, served_set_up, served_tear_down);
}
