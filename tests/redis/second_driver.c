/* The protocol does no I/O: carried by a driver of the tests, over two
 * connections, late, out of phase between keys and one reply at a time, it
 * gives what the blocking driver gives. */
#include "base/store.h"
#include "support/bits.h"
#include "support/items.h"
#include "support/second_driver.h"
#include "support/served.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 1200 };

static hibloom_store *plain[2], *second[2], *memory; /* by hibloom_commands */

static int set_up(void **state)
{
    (void)served_set_up(state);
    for (int i = 0; i < 2; i++) {
        plain[i] = test_connect(redis_server_uri(server), &(hibloom_connect_options){.commands = (hibloom_commands)i});
        second[i] = second_store(redis_server_socket(server), (hibloom_commands)i);
    }
    assert_ok(hibloom_memory(&memory), memory);
    return 0;
}

static int tear_down(void **state)
{
    for (int i = 0; i < 2; i++) {
        hibloom_store_free(plain[i]);
        hibloom_store_free(second[i]);
    }
    hibloom_store_free(memory);
    return served_tear_down(state);
}

static int leave_nothing(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        second_store_lose(second[i], 0);
        (void)second_store_lost(second[i]);
    }
    test_command(redis, "FLUSHALL");
    return 0;
}

/* `tagged`: its keys lie in one slot, as is_new wants them in a cluster. */
static const struct form {
    const char *text;
    bool tagged;
} forms[] = {
    {"bits=100000 hashes=7 seed=5eed", false},
    {"bits=100000 hashes=7 seed=5eed segments=5", false},
    {"bits=1000000 hashes=7 seed=5eed segments=300", false},
    {"bits=30000 hashes=5 seed=5eed layout=partitioned", false},
    {"bits=30000 hashes=5 seed=5eed layout=partitioned", true},
    {"bits=102400 hashes=7 seed=5eed layout=blocked", false},
    {"bits=102400 hashes=7 seed=5eed layout=blocked segments=5", false},
};
enum { FORMS = sizeof forms / sizeof forms[0] };

static bool is_partitioned(const struct form *form)
{
    return strstr(form->text, "partitioned") != NULL;
}

/* ---- The same calls on both ------------------------------------------------------ */

struct pair {
    const struct form *form;
    hibloom_store *store[2];
    hibloom *filter[2];
    char name[2][32];
};

static void pair_open(struct pair *pair)
{
    for (int i = 0; i < 2; i++)
        pair->filter[i] = test_open(pair->store[i], pair->name[i], pair->form->text);
}

static void pair_begin(struct pair *pair, const struct form *form, int commands)
{
    *pair = (struct pair){.form = form, .store = {plain[commands], second[commands]}};
    for (int i = 0; i < 2; i++)
        snprintf(pair->name[i], sizeof pair->name[i], form->tagged ? "{t}%s" : "%s", i == 0 ? "one" : "two");
    pair_open(pair);
}

static void pair_close(struct pair *pair)
{
    hibloom_close(pair->filter[0]);
    hibloom_close(pair->filter[1]);
}

static void add(struct pair *pair, const char *prefix, size_t n, bool exact)
{
    hibloom_item *items = items_new(prefix, n);
    bool is_new[2][N];

    memset(is_new, 0, sizeof is_new);
    for (int i = 0; i < 2; i++)
        assert_ok(hibloom_add_many(pair->filter[i], items, n, exact ? is_new[i] : NULL), pair->store[i]);
    assert_memory_equal(is_new[0], is_new[1], sizeof is_new[0]);
    items_free(items);
}

static hibloom_status ask(struct pair *pair, const char *prefix)
{
    hibloom_item *items = items_new(prefix, N);
    hibloom_status status[2];
    bool found[2][N];

    memset(found, 0, sizeof found);
    for (int i = 0; i < 2; i++)
        status[i] = hibloom_contains_many(pair->filter[i], items, N, found[i]);
    assert_int_equal(status[0], status[1]);
    assert_memory_equal(found[0], found[1], sizeof found[0]);
    items_free(items);
    return status[0];
}

static void assert_equal_bits(struct pair *pair)
{
    unsigned char *bits[2] = {all_bits_read(pair->filter[0]), all_bits_read(pair->filter[1])};
    hibloom_info info[2];

    assert_memory_equal(bits[0], bits[1], all_bits_len(pair->filter[0]));
    free(bits[0]);
    free(bits[1]);
    for (int i = 0; i < 2; i++)
        assert_ok(hibloom_get_info(pair->filter[i], &info[i]), pair->store[i]);
    assert_true(info[0].bits_set == info[1].bits_set && info[0].bytes == info[1].bytes);
    assert_true(info[0].keys == info[1].keys && (info[0].ttl_ms == -1) == (info[1].ttl_ms == -1));
    assert_true(ask(pair, "a") == HIBLOOM_OK && ask(pair, "b") == HIBLOOM_OK && ask(pair, "never") == HIBLOOM_OK);
}

static void merge(struct pair *pair)
{
    hibloom *loaded = test_open(memory, "loaded", pair->form->text);
    hibloom_item *items = items_new("loaded", N);

    assert_ok(hibloom_add_many(loaded, items, N, NULL), memory);
    items_free(items);
    for (int i = 0; i < 2; i++) {
        hibloom *beside = test_open(pair->store[i], pair->form->tagged ? "{t}beside" : "beside", pair->form->text);
        assert_ok(hibloom_add(beside, "beside", 6, NULL), pair->store[i]);
        assert_ok(hibloom_merge(pair->filter[i], loaded), pair->store[i]);
        assert_ok(hibloom_merge(pair->filter[i], beside), pair->store[i]);
        assert_ok(hibloom_drop(beside), pair->store[i]);
        hibloom_close(beside);
    }
    assert_ok(hibloom_drop(loaded), memory);
    hibloom_close(loaded);
}

static void lose_a_key_and_repair(struct pair *pair)
{
    for (int i = 0; i < 2; i++)
        assert_int_equal(test_command(redis, "DEL %s:3", pair->name[i]), 1);
    assert_int_equal(ask(pair, "a"), HIBLOOM_ECORRUPT);
    for (int i = 0; i < 2; i++)
        assert_ok(hibloom_repair(pair->store[i], pair->name[i]), pair->store[i]);
    assert_int_equal(ask(pair, "a"), HIBLOOM_ECORRUPT);
    pair_close(pair);
    pair_open(pair);
    assert_equal_bits(pair);
}

static void results_are_equal(void **state)
{
    struct pair pair;
    bool found;

    (void)state;
    for (int f = 0; f < 2 * FORMS; f++) {
        pair_begin(&pair, &forms[f / 2], f % 2);
        const uint32_t keys = is_partitioned(pair.form) ? 5 : hibloom_spec_of(pair.filter[0])->segments;
        add(&pair, "a", N / 2, !is_partitioned(pair.form) || pair.form->tagged);
        add(&pair, "a", N, !is_partitioned(pair.form) || pair.form->tagged);
        add(&pair, "b", N, false);
        add(&pair, "b", N, false); /* in the blocked layout, by looking first */
        assert_equal_bits(&pair);
        merge(&pair);
        assert_equal_bits(&pair);
        for (int i = 0; i < 2; i++)
            assert_ok(hibloom_expire(pair.filter[i], 100), pair.store[i]);
        assert_equal_bits(&pair);
        if (keys > 4)
            lose_a_key_and_repair(&pair);
        for (int i = 0; i < 2; i++)
            assert_ok(hibloom_clear(pair.filter[i]), pair.store[i]);
        assert_equal_bits(&pair);
        add(&pair, "a", 1, false);
        for (int i = 0; i < 2; i++)
            assert_ok(hibloom_expire(pair.filter[i], 0), pair.store[i]);
        assert_equal_bits(&pair);
        assert_ok(hibloom_drop(pair.filter[0]), pair.store[0]);
        assert_ok(hibloom_drop(pair.filter[1]), pair.store[1]);
        assert_int_equal(ask(&pair, "a"), HIBLOOM_ENOTFOUND);
        assert_status(hibloom_add(pair.filter[1], "x", 1, &found), HIBLOOM_ENOTFOUND, pair.store[1]);
        pair_close(&pair);
        assert_int_equal(test_command(redis, "DBSIZE"), 0);
    }
}

static void each_opens_what_the_other_made(void **state)
{
    hibloom_item *items = items_new("a", N);
    bool found[N];

    (void)state;
    for (int f = 0; f < 2 * FORMS; f++) {
        hibloom_store *maker = f % 2 ? second[0] : plain[0], *other = f % 2 ? plain[0] : second[0];
        hibloom *made = test_open(maker, "seen", forms[f / 2].text), *opened = NULL;
        assert_ok(hibloom_add_many(made, items, N, NULL), maker);
        assert_ok(hibloom_open(&opened, other, "seen", NULL), other);
        assert_ok(hibloom_contains_many(opened, items, N, found), other);
        for (int i = 0; i < N; i++)
            assert_true(found[i]);
        hibloom_close(opened);
        hibloom_close(made);
        assert_ok(hibloom_delete(other, "seen"), other);
        assert_int_equal(test_command(redis, "DBSIZE"), 0);
    }
    items_free(items);
}

/* Bare bitmaps have a guard in front, too. */
static void on_bare_bitmaps_as_well(void **state)
{
    struct pair pair = {.name = {"one", "two"}};

    (void)state;
    for (int f = 0; f < 2 * FORMS; f++) {
        pair.form = &forms[f / 2];
        for (int i = 0; i < 2; i++) {
            pair.store[i] = i == 0 ? plain[f % 2] : second[f % 2];
            pair.filter[i] = test_attach(pair.store[i], pair.name[i], pair.form->text);
        }
        assert_int_equal(ask(&pair, "a"), HIBLOOM_ENOTFOUND);
        add(&pair, "a", N, false);
        add(&pair, "b", N, !is_partitioned(pair.form));
        assert_equal_bits(&pair);
        for (int i = 0; i < 2; i++)
            assert_ok(hibloom_clear(pair.filter[i]), pair.store[i]);
        assert_equal_bits(&pair);
        add(&pair, "b", N, false);
        assert_equal_bits(&pair);
        for (int i = 0; i < 2; i++)
            assert_ok(hibloom_drop(pair.filter[i]), pair.store[i]);
        assert_int_equal(ask(&pair, "a"), HIBLOOM_ENOTFOUND);
        pair_close(&pair);
        assert_int_equal(test_command(redis, "DBSIZE"), 0);
    }
}

/* Else the driver would show nothing. */
static void both_connections_carry_keys_of_a_filter(void **state)
{
    hibloom *filter = test_open(second[0], "seen", forms[1].text);
    hibloom_item *items = items_new("a", N);

    (void)state;
    assert_ok(hibloom_add_many(filter, items, N, NULL), second[0]);
    assert_true(second_store_exchanges(second[0], 0) > 1 && second_store_exchanges(second[0], 1) > 1);
    items_free(items);
    hibloom_close(filter);
}

/* ---- Exchanges are lost ---------------------------------------------------------- */

/* A call fails if and only if something was lost, and has no answer then. */
static bool is_done(hibloom_store *store, hibloom_status status)
{
    const unsigned lost = second_store_lost(store);

    assert_status(status, lost > 0 ? HIBLOOM_EIO : HIBLOOM_OK, store);
    return lost == 0;
}

static hibloom *open_until_done(hibloom_store *store, const struct form *form)
{
    const hibloom_spec spec = test_spec(form->text);
    hibloom *filter = NULL;

    while (!is_done(store, hibloom_open(&filter, store, "seen", &spec)))
        assert_null(filter);
    return filter;
}

static void add_with_losses(hibloom *filter, hibloom *witness, size_t n, bool exact)
{
    hibloom_item *items = items_new("lossy", n);
    bool answers[N];

    for (int try = 0; try < 10; try++) {
        memset(answers, 7, sizeof answers);
        if (is_done(filter->store, hibloom_add_many(filter, items, n, exact ? answers : NULL)))
            break;
        for (size_t i = 0; i < n && exact; i++)
            assert_int_equal(((unsigned char *)answers)[i], 7);
    }
    second_store_lose(filter->store, 0);
    assert_ok(hibloom_add_many(filter, items, n, NULL), filter->store);
    assert_ok(hibloom_contains_many(witness, items, n, answers), witness->store);
    for (size_t i = 0; i < n; i++)
        assert_true(answers[i]);
    items_free(items);
}

static void exchanges_that_are_lost_fail_the_call_and_nothing_else(void **state)
{
    bool answer, kept = false;

    (void)state;
    for (int f = 0; f < 4 * FORMS; f++) {
        const struct form *form = &forms[f / 4];
        hibloom_store *store = second[f % 2];
        const unsigned one_in = form == &forms[2] ? 200 : 10;
        second_store_lose(store, one_in);
        hibloom *filter = open_until_done(store, form), *witness = test_open(plain[0], "seen", form->text);
        assert_ok(hibloom_add(witness, "kept", 4, NULL), plain[0]);
        second_store_lose(store, one_in);
        add_with_losses(filter, witness, f % 4 < 2 ? 40 : N, !is_partitioned(form) || form->tagged);
        second_store_lose(store, one_in);
        for (int try = 0; try < 10; try++)
            if (is_done(store, hibloom_contains(filter, "kept", 4, &kept)))
                assert_true(kept);
        while (!is_done(store, hibloom_expire(filter, 100)) || !is_done(store, hibloom_expire(filter, 0)))
            ;
        assert_ok(hibloom_contains(witness, "kept", 4, &answer), plain[0]);
        assert_true(answer);
        while (!is_done(store, hibloom_clear(filter)))
            ;
        assert_ok(hibloom_contains(witness, "kept", 4, &answer), plain[0]);
        assert_false(answer);
        hibloom_status status = HIBLOOM_EIO;
        while (status == HIBLOOM_EIO)
            status = hibloom_delete(store, "seen");
        assert_true(status == HIBLOOM_OK || status == HIBLOOM_ENOTFOUND); /* done, and its answer lost */
        assert_int_equal(test_command(redis, "DBSIZE"), 0);
        hibloom_close(filter);
        hibloom_close(witness);
        (void)leave_nothing(NULL);
    }
}

static void a_repair_that_loses_exchanges_can_be_made_again(void **state)
{
    (void)state;
    for (int round = 0; round < 20; round++) {
        hibloom *filter = test_open(plain[0], "seen", forms[1].text), *again = NULL;
        assert_int_equal(test_command(redis, "DEL seen:1 seen:4"), 2);
        second_store_lose(second[0], 8);
        while (!is_done(second[0], hibloom_repair(second[0], "seen")))
            ;
        hibloom_close(filter);
        assert_ok(hibloom_open(&again, plain[0], "seen", NULL), plain[0]);
        assert_int_equal(test_command(redis, "DBSIZE"), 5);
        assert_ok(hibloom_drop(again), plain[0]);
        hibloom_close(again);
        assert_int_equal(test_command(redis, "DBSIZE"), 0);
    }
}

#define TEST(function) cmocka_unit_test_teardown(function, leave_nothing)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(results_are_equal),
        TEST(each_opens_what_the_other_made),
        TEST(on_bare_bitmaps_as_well),
        TEST(both_connections_carry_keys_of_a_filter),
        TEST(exchanges_that_are_lost_fail_the_call_and_nothing_else),
        TEST(a_repair_that_loses_exchanges_can_be_made_again),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
