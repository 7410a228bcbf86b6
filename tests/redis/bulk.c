/* Calls of very many items: they go by whole bitmaps where that is less work, and give the
 * answers and the bits that going item by item gives, whatever happens meanwhile. */
#include "redis/filter.h"
#include "support/proxy.h"
#include "support/race.h"
#include "support/served.h"

#include <hiredis/hiredis.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ITEMS = 20000 };

static uint32_t numbers[ITEMS];
static hibloom_item items[ITEMS];
static bool answers[ITEMS], expected[ITEMS];
static size_t called = ITEMS; /* items of a call, of `call` */

static void set_items(uint32_t first)
{
    for (uint32_t i = 0; i < ITEMS; i++) {
        numbers[i] = first + i;
        items[i] = (hibloom_item){&numbers[i], sizeof numbers[i]};
    }
}

static hibloom_store *new_store(hibloom_commands commands)
{
    hibloom_connect_options options = HIBLOOM_CONNECT_OPTIONS_INIT;

    options.commands = commands;
    options.command_timeout_ms = 20000;
    return test_connect_any_way(redis_server_uri(server), &options);
}

static hibloom_stats stats_of(const hibloom_store *store)
{
    hibloom_stats stats;

    hibloom_get_stats(store, &stats);
    return stats;
}

static const char *const specs[] = {"capacity=40000 error=0.01 seed=5eed",
                                    "capacity=40000 error=0.01 layout=blocked seed=5eed",
                                    "bits=60001 hashes=5 layout=partitioned seed=5eed",
                                    "bits=300000 hashes=5 segments=7 seed=5eed",
                                    "bits=358400 hashes=5 segments=7 layout=blocked seed=5eed",
                                    "bits=300000 hashes=4 hash=poly seeds=7,11,13,17 empty=excluded"};

enum { SPECS = sizeof specs / sizeof *specs };

/* ---- The answers ------------------------------------------------------------------------- */

static void assert_same(hibloom *filter, hibloom *twin)
{
    hibloom_comparison both;
    hibloom_info a, b;

    assert_ok(hibloom_get_info(filter, &a), NULL);
    assert_ok(hibloom_get_info(twin, &b), NULL);
    assert_int_equal(a.bits_set, b.bits_set);
    assert_ok(hibloom_compare(filter, twin, &both), NULL);
    assert_true(both.similarity > 0.999999);
}

static void answers_and_bits_are_those_of_memory(const char *text, hibloom_commands commands, bool near)
{
    hibloom_store *store = new_store(commands), *memory;
    hibloom *filter = test_open(store, "same", text), *twin;

    assert_ok(hibloom_memory(&memory), NULL);
    twin = test_open(memory, "same", text);
    if (near)
        assert_ok(hibloom_near_cache(filter, 0), store);
    set_items(0);
    items[7].len = 0; /* which one of the specs excludes */
    const uint64_t before = stats_of(store).commands;
    assert_ok(hibloom_add_many(filter, items, ITEMS / 2, NULL), store);
    assert_ok(hibloom_add_many(twin, items, ITEMS / 2, NULL), memory);
    assert_same(filter, twin);
    assert_ok(hibloom_contains_many(filter, items, ITEMS, answers), store);
    assert_ok(hibloom_contains_many(twin, items, ITEMS, expected), memory);
    assert_memory_equal(answers, expected, sizeof answers);
    assert_true(stats_of(store).commands - before < 200); /* as few as by bitmaps only */
    const uint64_t then = stats_of(store).commands;
    assert_ok(hibloom_add_many(filter, items, ITEMS, answers), store);
    assert_ok(hibloom_add_many(twin, items, ITEMS, expected), memory);
    assert_memory_equal(answers, expected, sizeof answers);
    assert_same(filter, twin);
    if (hibloom_spec_of(filter)->layout != HIBLOOM_LAYOUT_PARTITIONED)
        assert_true(stats_of(store).commands - then < ITEMS / 2 + 500); /* those that were in are not sent */
    assert_ok(hibloom_drop(filter), store);
    hibloom_close(filter);
    hibloom_close(twin);
    hibloom_store_free(store);
    hibloom_store_free(memory);
}

static void the_answers_are_those_of_memory(void **state)
{
    for (int i = 0; i < SPECS; i++)
        for (int commands = 0; commands < 2; commands++)
            answers_and_bits_are_those_of_memory(specs[i], (hibloom_commands)commands, (i + commands) % 2 == 1);
}

/* Where the bitmap is many times what the commands are. */
static void a_small_call_goes_item_by_item(void **state)
{
    hibloom_store *store = new_store(HIBLOOM_COMMANDS_SETBIT);
    hibloom *filter = test_open(store, "small", "capacity=10000000 error=0.01 segments=1");
    const uint32_t k = hibloom_spec_of(filter)->hashes;

    set_items(0);
    uint64_t before = stats_of(store).commands;
    assert_ok(hibloom_add_many(filter, items, 1000, NULL), store);
    assert_ok(hibloom_contains_many(filter, items, 1000, answers), store);
    assert_true(stats_of(store).commands - before >= 2000 * k);
    before = stats_of(store).bytes_received;
    assert_ok(hibloom_contains_many(filter, items, ITEMS, answers), store); /* 11 MB, but 140,000 commands */
    assert_true(stats_of(store).bytes_received - before > 11000000);
    assert_ok(hibloom_drop(filter), store);
    hibloom_close(filter);
    hibloom_store_free(store);
}

static void what_was_read_is_near_then(void **state)
{
    hibloom_store *store = new_store(HIBLOOM_COMMANDS_SETBIT), *other = new_store(HIBLOOM_COMMANDS_SETBIT);

    for (int i = 0; i < SPECS; i++) {
        hibloom *filter = test_open(store, "read", specs[i]), *theirs = test_open(other, "read", specs[i]);
        assert_ok(hibloom_near_cache(filter, 600000), store);
        set_items(0);
        assert_ok(hibloom_add_many(theirs, items, ITEMS, NULL), other);
        set_items(ITEMS / 2); /* half of these are in, and more by chance */
        assert_ok(hibloom_contains_many(filter, items, ITEMS, answers), store);
        set_items(0);
        const uint64_t before = stats_of(store).commands;
        assert_ok(hibloom_contains_many(filter, items, ITEMS, answers), store);
        assert_int_equal(test_count_true(answers, ITEMS), ITEMS);
        assert_int_equal(stats_of(store).commands, before);
        assert_ok(hibloom_drop(filter), store);
        hibloom_close(filter);
        hibloom_close(theirs);
    }
    hibloom_store_free(store);
    hibloom_store_free(other);
}

/* ---- Others ------------------------------------------------------------------------------ */

enum { RACED = 4000 };

static unsigned char (*winners)[RACED];

static uint32_t raced_rounds(void)
{
    return test_is_slow() ? 3 : 5;
}

static void add_all(struct race *race, int i)
{
    hibloom_store *store;
    hibloom_connect_options options = HIBLOOM_CONNECT_OPTIONS_INIT;

    options.commands = race->commands;
    options.command_timeout_ms = 60000;
    if (hibloom_connect(&store, race->uri, &options) != HIBLOOM_OK)
        _exit(3);
    own_store = store;
    if (i % 2 == 1)
        test_item_by_item(store, true);
    if (hibloom_open(&own_filter, store, race->name, NULL) != HIBLOOM_OK)
        _exit(4);
    wait_for_start(race);
    for (uint32_t round = 0; round < raced_rounds() && race->results[i].status == HIBLOOM_OK; round++) {
        set_items(round * RACED / 2); /* half are those of the round before */
        note_status(race, i, hibloom_add_many(own_filter, items, RACED, answers));
        for (uint32_t n = 0; n < RACED; n++)
            winners[i][n] = (unsigned char)(winners[i][n] + answers[n]);
        set_items(1000000 + (uint32_t)i * RACED); /* its own, without is_new */
        note_status(race, i, hibloom_add_many(own_filter, items, RACED, NULL));
        note_status(race, i, hibloom_contains_many(own_filter, items, RACED, answers));
        if (memchr(answers, false, RACED) != NULL)
            _exit(5);
    }
}

static void of_what_many_add_at_once_nothing_is_lost(void **state)
{
    static const char *const texts[] = {"capacity=60000 error=1e-9", "bits=3000000 hashes=20 segments=4"};
    const uint32_t rounds = raced_rounds();
    char name[TEST_NAME_SIZE];

    for (size_t t = 0; t < 2; t++) {
        struct race *race = new_race(t == 0 ? HIBLOOM_COMMANDS_SETBIT : HIBLOOM_COMMANDS_BITFIELD, name);
        race->uri = redis_server_uri(server);
        hibloom_store *store = new_store(race->commands);
        hibloom *filter = test_open(store, name, texts[t]);
        winners = mmap(NULL, PROCESSES * sizeof *winners, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        assert_true(winners != MAP_FAILED);
        run_race(race, add_all);
        for (int i = 0; i < PROCESSES; i++)
            assert_status(race->results[i].status, HIBLOOM_OK, NULL);
        for (uint32_t part = 0; part < rounds + PROCESSES; part++) {
            set_items(part < rounds ? part * RACED / 2 : 1000000 + (part - rounds) * RACED);
            assert_ok(hibloom_contains_many(filter, items, RACED, answers), store);
            assert_null(memchr(answers, false, RACED));
        }
        size_t told = 0;
        for (int i = 0; i < PROCESSES; i++)
            for (uint32_t n = 0; n < RACED; n++)
                told += winners[i][n];
        assert_int_equal(told, (rounds + 1) * RACED / 2); /* each has half of the one before */
        munmap(winners, PROCESSES * sizeof *winners);
        assert_ok(hibloom_drop(filter), store);
        hibloom_close(filter);
        hibloom_store_free(store);
        munmap(race, sizeof *race);
    }
}

/* ---- What happens to the filter ------------------------------------------------------------ */

enum { LOOK_UP, ADD, ADD_NEW, CALLS };

static hibloom_status call(hibloom *filter, int which)
{
    return which == LOOK_UP ? hibloom_contains_many(filter, items, called, answers)
                            : hibloom_add_many(filter, items, called, which == ADD ? NULL : answers);
}

static void what_is_gone_or_replaced_is_an_error(void **state)
{
    hibloom_store *store = new_store(HIBLOOM_COMMANDS_SETBIT);

    set_items(0);
    for (int i = 0; i < SPECS; i++)
        for (int which = 0; which < CALLS; which++) {
            hibloom *filter = test_open(store, "gone", specs[i]), *another;
            assert_ok(hibloom_delete(store, "gone"), store);
            assert_status(call(filter, which), HIBLOOM_ENOTFOUND, store);
            assert_int_equal(test_command(redis, "EXISTS gone gone:0 gone:1 gone:2"), 0); /* nothing was made */
            another = test_open(store, "gone", specs[i]);
            assert_status(call(filter, which), HIBLOOM_EMISMATCH, store);
            assert_ok(hibloom_contains_many(another, items, ITEMS, answers), store);
            assert_int_equal(test_count_true(answers, ITEMS), 0); /* nothing fell into the other one */
            assert_ok(hibloom_drop(another), store);
            hibloom_close(another);
            hibloom_close(filter);
        }
    hibloom_store_free(store);
}

static void a_cut_anywhere_is_an_error_and_the_next_call_works(void **state)
{
    struct proxy *proxy = proxy_start(redis_server_socket(server));
    hibloom_connect_options options = HIBLOOM_CONNECT_OPTIONS_INIT;
    hibloom_store *direct = new_store(HIBLOOM_COMMANDS_SETBIT);
    unsigned cuts = 0, failed = 0;

    set_items(0);
    called = 3000;
    for (unsigned retries = 0; retries < 2; retries++) {
        options.retry_ms = retries * 20000;
        hibloom_store *store = test_connect_any_way(proxy_uri(proxy), &options);
        for (int i = 0; i < SPECS; i++)
            for (int which = 0; which < CALLS; which++) {
                hibloom *filter = test_open(store, "cut", specs[i]), *other = test_open(direct, "cut", specs[i]);
                assert_ok(call(filter, which), store);
                proxy_mark(proxy);
                assert_ok(call(filter, which), store);
                for (int way = PROXY_REQUESTS; way <= PROXY_REPLIES; way++) {
                    const uint64_t bytes = proxy_bytes(proxy, (enum proxy_way)way);
                    for (uint64_t at = 0; at < bytes; at += bytes / (test_is_slow() ? 2 : 6) + 1) {
                        assert_ok(hibloom_clear(other), direct);
                        proxy_cut(proxy, (enum proxy_way)way, at);
                        const hibloom_status status = call(filter, which);
                        if (status != HIBLOOM_OK) /* between two exchanges a cut harms nobody */
                            assert_status(status, retries > 0 ? HIBLOOM_OK : HIBLOOM_EIO, store);
                        failed += status != HIBLOOM_OK;
                        proxy_heal(proxy);
                        cuts++;
                        assert_ok(call(filter, which == LOOK_UP ? ADD : which), store);
                        assert_ok(hibloom_contains_many(other, items, called, answers), direct);
                        assert_null(memchr(answers, false, called));
                    }
                    proxy_mark(proxy);
                    assert_ok(call(filter, which), store);
                }
                assert_ok(hibloom_drop(other), direct);
                hibloom_close(filter);
                hibloom_close(other);
            }
        hibloom_store_free(store);
    }
    print_message("%u cuts, %u failures\n", cuts, failed);
    assert_true(failed > cuts / 3);
    hibloom_store_free(direct);
    proxy_stop(proxy);
    called = ITEMS;
}

/* What is in is not sent; but who is no primary any more may lack it elsewhere. */
static void an_add_of_what_is_in_is_acknowledged_by_a_primary_only(void **state)
{
    hibloom_store *store = new_store(HIBLOOM_COMMANDS_SETBIT);

    set_items(0);
    for (int i = 0; i < SPECS; i++)
        for (int by_item = 0; by_item < 2; by_item++) { /* the blocked layout looks first */
            hibloom *filter = test_open(store, "demoted", specs[i]);
            assert_ok(hibloom_add_many(filter, items, ITEMS, NULL), store);
            if (by_item)
                test_item_by_item(store, true);
            (void)test_command(redis, "REPLICAOF 127.0.0.1 1");
            assert_status(hibloom_add_many(filter, items, ITEMS, answers), HIBLOOM_EUNAVAILABLE, store);
            assert_status(hibloom_add_many(filter, items, ITEMS, NULL), HIBLOOM_EUNAVAILABLE, store);
            (void)test_command(redis, "REPLICAOF NO ONE");
            assert_ok(hibloom_add_many(filter, items, ITEMS, answers), store);
            assert_int_equal(test_count_true(answers, ITEMS), 0);
            assert_ok(hibloom_drop(filter), store);
            hibloom_close(filter);
            hibloom_store_free(store);
            store = new_store(HIBLOOM_COMMANDS_SETBIT);
        }
    hibloom_store_free(store);
}

/* Who may add but not merge is none the wiser. */
static void who_may_not_merge_adds_item_by_item(void **state)
{
    char uri[300];

    (void)test_command(redis, "ACL SETUSER adder on >secret ~seen +getrange +strlen +pttl +bitcount +getbit +setbit "
                              "+bitfield +eval");
    snprintf(uri, sizeof uri, "redis://adder:secret@127.0.0.1:%d", redis_server_port(server));
    hibloom_store *maker = new_store(HIBLOOM_COMMANDS_SETBIT), *store = test_connect_any_way(uri, NULL);
    hibloom *made = test_open(maker, "seen", specs[0]), *filter = test_open(store, "seen", specs[0]);

    set_items(0);
    for (int i = 0; i < 2; i++)
        assert_ok(hibloom_add_many(filter, items, ITEMS, NULL), store);
    assert_ok(hibloom_contains_many(made, items, ITEMS, answers), maker);
    assert_int_equal(test_count_true(answers, ITEMS), ITEMS);
    assert_ok(hibloom_drop(made), maker);
    hibloom_close(made);
    hibloom_close(filter);
    hibloom_store_free(maker);
    hibloom_store_free(store);
    (void)test_command(redis, "ACL DELUSER adder");
}

/* ---- Memory ------------------------------------------------------------------------------------ */

static size_t held, most;

static void note(void *memory)
{
    held += malloc_usable_size(memory);
    most = held > most ? held : most;
}

static void *counted_malloc(size_t size)
{
    void *memory = malloc(size);

    note(memory);
    return memory;
}

static void *counted_calloc(size_t count, size_t size)
{
    void *memory = calloc(count, size);

    note(memory);
    return memory;
}

static void counted_free(void *memory)
{
    held -= malloc_usable_size(memory);
    free(memory);
}

static void *counted_realloc(void *old, size_t size)
{
    held -= malloc_usable_size(old);
    void *memory = realloc(old, size);
    note(memory);
    return memory;
}

static void a_call_takes_the_memory_of_a_step(void **state)
{
    enum { MANY = 400000 };
    const hibloom_allocator counted = {counted_malloc, counted_calloc, counted_realloc, counted_free};
    static hibloom_item many[MANY];
    static uint32_t which[MANY];
    static bool found[MANY];

    for (uint32_t i = 0; i < MANY; i++)
        many[i] = (hibloom_item){memcpy(&which[i], &i, sizeof i), sizeof i};
    assert_ok(hibloom_set_allocator(&counted), NULL);
    hibloom_store *store = new_store(HIBLOOM_COMMANDS_SETBIT);
    hibloom *filter = test_open(store, "memory", "bits=400000000 hashes=5 segments=4"); /* 50 MB */
    most = held;
    const size_t before = held;
    const uint64_t commands = stats_of(store).commands;
    assert_ok(hibloom_add_many(filter, many, MANY, NULL), store);
    assert_ok(hibloom_contains_many(filter, many, MANY, found), store);
    assert_null(memchr(found, false, sizeof found));
    assert_true(stats_of(store).commands - commands < 1000);
    print_message("%zu bytes at most\n", most - before);
    assert_true(most - before < (16u << 20) + (8u << 20)); /* a step's bits, some buffers, a bit an item */
    assert_true(held - before < 4u << 20);                 /* of two parts, 1 MB each */
    assert_ok(hibloom_drop(filter), store);
    hibloom_close(filter);
    hibloom_store_free(store);
    assert_ok(hibloom_set_allocator(NULL), NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_answers_are_those_of_memory),
        cmocka_unit_test(a_small_call_goes_item_by_item),
        cmocka_unit_test(what_was_read_is_near_then),
        cmocka_unit_test(of_what_many_add_at_once_nothing_is_lost),
        cmocka_unit_test(what_is_gone_or_replaced_is_an_error),
        cmocka_unit_test(a_cut_anywhere_is_an_error_and_the_next_call_works),
        cmocka_unit_test(an_add_of_what_is_in_is_acknowledged_by_a_primary_only),
        cmocka_unit_test(who_may_not_merge_adds_item_by_item),
        cmocka_unit_test(a_call_takes_the_memory_of_a_step),
    };

    return cmocka_run_group_tests(tests, served_set_up, served_tear_down);
}
