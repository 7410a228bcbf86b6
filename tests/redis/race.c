/* Many processes at one filter: who creates it, who drops it, and who was first to add. */
#include "support/race.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- Creating ------------------------------------------------------------------ */

static const char *const rivals[] = {"capacity=1000 error=0.01",
                                     "capacity=1000 error=0.01 layout=partitioned hash=siphash"};

static void create_one_of_two(struct race *race, int i)
{
    hibloom_store *store = store_in_child(race);
    hibloom_spec spec;

    if (hibloom_spec_parse(&spec, rivals[i % 2]) != HIBLOOM_OK)
        _exit(4);
    wait_for_start(race);
    note_status(race, i, hibloom_open(&own_filter, store, race->name, &spec));
    if (race->results[i].status != HIBLOOM_OK)
        return;
    if (hibloom_spec_format(hibloom_spec_of(own_filter), race->results[i].spec, sizeof race->results[i].spec) !=
        HIBLOOM_OK)
        _exit(5);
    if (hibloom_add(own_filter, &i, sizeof i, NULL) != HIBLOOM_OK)
        _exit(6);
}

static void of_racing_creators_one_wins_and_the_others_verify(void **state)
{
    redisContext *outside = test_redis();
    hibloom_store *store = test_store(NULL);
    char name[TEST_NAME_SIZE];
    int won[2] = {0, 0};

    (void)state;
    for (int round = 0; round < (test_is_slow() ? 8 : 20); round++) {
        struct race *race = new_race(HIBLOOM_COMMANDS_SETBIT, name);
        run_race(race, create_one_of_two);
        char root[TEST_NAME_SIZE + 8];
        struct stored_record record;
        snprintf(root, sizeof root, "%s:0", name);
        const int winner = test_command(outside, "EXISTS %s", name) == 0;
        record_stored(outside, winner ? root : name, &record);
        assert_int_equal(strstr(record.text, "partitioned") != NULL, winner);
        assert_int_equal(record.state, 'r');
        assert_int_equal(keys_with(outside, name), record.keys); /* of the loser none is left */
        won[winner]++;
        hibloom *filter;
        assert_ok(hibloom_open(&filter, store, name, NULL), store);
        for (int i = 0; i < PROCESSES; i++) {
            bool found;
            if (race->results[i].status != (i % 2 != winner ? HIBLOOM_EMISMATCH : HIBLOOM_OK))
                fail_msg("won by %s; process %d: %s", record.text, i, race->results[i].words);
            if (i % 2 != winner)
                continue;
            assert_string_equal(race->results[i].spec, record.text);
            assert_ok(hibloom_contains(filter, &i, sizeof i, &found), store);
            assert_true(found);
        }
        assert_ok(hibloom_drop(filter), store);
        assert_int_equal(keys_with(outside, name), 0);
        hibloom_close(filter);
        munmap(race, sizeof *race);
    }
    print_message("won: classic %d, partitioned %d\n", won[0], won[1]);
    hibloom_store_free(store);
    redisFree(outside);
}

/* ---- Opening while others drop ---------------------------------------------------- */

#define ROUNDS 300

static const char *const dropped[] = {"capacity=1000 error=0.01 seed=5eed",
                                      "bits=5000 hashes=3 layout=partitioned seed=5eed", "capacity=1000 error=0.01",
                                      "bits=5000 hashes=3 segments=3 seed=5eed"};
static const char *spec_text; /* of the filter that the race is about */

/* Every other process drops what it has opened, and may find that somebody was
 * faster, and may have made it again. */
static void note_drop(struct race *race, int i, hibloom *filter)
{
    const hibloom_status status = hibloom_drop(filter);

    race->results[i].count += status == HIBLOOM_OK;
    if (status != HIBLOOM_ENOTFOUND && status != HIBLOOM_EMISMATCH)
        note_status(race, i, status);
}

static void open_and_perhaps_drop(struct race *race, int i)
{
    hibloom_store *store = store_in_child(race);
    hibloom_spec spec;

    if (hibloom_spec_parse(&spec, spec_text) != HIBLOOM_OK)
        _exit(4);
    wait_for_start(race);
    for (int round = 0; round < ROUNDS && race->results[i].status == HIBLOOM_OK; round++) {
        hibloom *filter = NULL;
        note_status(race, i, hibloom_open(&filter, store, race->name, &spec));
        if (filter != NULL && i % 2 == 0)
            note_drop(race, i, filter);
        hibloom_close(filter);
    }
}

static void opening_with_a_spec_ends_in_a_filter_whoever_drops_it(void **state)
{
    redisContext *outside = test_redis();
    hibloom_store *store = test_store(NULL);
    char name[TEST_NAME_SIZE];

    (void)state;
    for (size_t i = 0; i < sizeof dropped / sizeof dropped[0]; i++) {
        struct race *race = new_race(HIBLOOM_COMMANDS_SETBIT, name);
        spec_text = dropped[i];
        run_race(race, open_and_perhaps_drop);
        const size_t drops = assert_no_failure(race, spec_text);
        print_message("%s: dropped %zu times\n", spec_text, drops);
        assert_true(drops >= 50); /* or it was no race */
        const hibloom_status status = hibloom_delete(store, name);
        if (status != HIBLOOM_ENOTFOUND)
            assert_ok(status, store);
        assert_int_equal(keys_with(outside, name), 0);
        munmap(race, sizeof *race);
    }
    hibloom_store_free(store);
    redisFree(outside);
}

/* ---- Adding -------------------------------------------------------------------- */

#define ITEMS 10000

/* Half of the processes add in one batch, half one item at a time or so. */
static void add_the_same_items(struct race *race, int i)
{
    static unsigned items[ITEMS];
    static hibloom_item batch[ITEMS];
    static bool is_new[ITEMS];
    hibloom_store *store = store_in_child(race);
    const size_t step = i % 2 == 0 ? ITEMS : 10;

    if (hibloom_open(&own_filter, store, race->name, NULL) != HIBLOOM_OK)
        _exit(4);
    for (unsigned j = 0; j < ITEMS; j++) {
        items[j] = i % 4 < 2 ? j : ITEMS - 1 - j; /* and from both ends */
        batch[j] = (hibloom_item){&items[j], sizeof items[j]};
    }
    wait_for_start(race);
    for (size_t at = 0; at < ITEMS; at += step)
        if (hibloom_add_many(own_filter, batch + at, step, is_new + at) != HIBLOOM_OK)
            _exit(5);
    for (size_t j = 0; j < ITEMS; j++)
        race->results[i].count += is_new[j];
}

/* The error rate is so low that no item is taken for one that is in. */
static void of_racing_adders_exactly_one_is_told(const char *text, hibloom_commands commands)
{
    hibloom_store *store = test_store(NULL);
    char name[TEST_NAME_SIZE];
    struct race *race = new_race(commands, name);
    hibloom_spec spec;
    hibloom *filter;
    size_t told = 0;

    assert_ok(hibloom_spec_parse(&spec, text), NULL);
    assert_ok(hibloom_open(&filter, store, name, &spec), store);
    run_race(race, add_the_same_items);
    for (int i = 0; i < PROCESSES; i++)
        told += race->results[i].count;
    assert_int_equal(told, ITEMS);
    assert_ok(hibloom_drop(filter), store);
    hibloom_close(filter);
    hibloom_store_free(store);
    munmap(race, sizeof *race);
}

static void one_key_setbit(void **state)
{
    (void)state;
    of_racing_adders_exactly_one_is_told("capacity=10000 error=1e-12", HIBLOOM_COMMANDS_SETBIT);
}

static void one_key_bitfield(void **state)
{
    (void)state;
    of_racing_adders_exactly_one_is_told("capacity=10000 error=1e-12", HIBLOOM_COMMANDS_BITFIELD);
}

static void several_keys(void **state)
{
    (void)state;
    of_racing_adders_exactly_one_is_told("capacity=10000 error=1e-9 hashes=8 layout=partitioned",
                                         HIBLOOM_COMMANDS_SETBIT);
}

static void several_segments(void **state)
{
    (void)state;
    of_racing_adders_exactly_one_is_told("capacity=10000 error=1e-12 segments=5", HIBLOOM_COMMANDS_SETBIT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_racing_creators_one_wins_and_the_others_verify),
        cmocka_unit_test(opening_with_a_spec_ends_in_a_filter_whoever_drops_it),
        cmocka_unit_test(one_key_setbit),
        cmocka_unit_test(one_key_bitfield),
        cmocka_unit_test(several_keys),
        cmocka_unit_test(several_segments),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
