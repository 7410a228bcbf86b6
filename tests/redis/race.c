/* Many processes at one filter: who creates it, and who was first to add. */
#include "support/record.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROCESSES 8

/* What the processes of one race share: where each writes how it fared. */
struct race {
    const char *uri;
    const char *name;
    hibloom_commands commands;
    int ready;                                 /* the write end of a pipe: closed by who has prepared */
    int gate;                                  /* the read end of a pipe: end of file is the start */
    void (*before_start)(const struct race *); /* what the parent does when all have prepared, or NULL */
    struct {
        hibloom_status status;
        size_t count;
        char spec[HIBLOOM_SPEC_TEXT_SIZE];
    } results[PROCESSES];
};

/* What a child has open; run_race frees it, so that valgrind finds no leak. */
static hibloom_store *own_store;
static hibloom *own_filter;

/* Forks the processes, lets them prepare, then starts them all at once. Each
 * must end by itself with status 0. */
static void run_race(struct race *race, void (*runner)(struct race *, int))
{
    pid_t pids[PROCESSES];
    int ends[2], ready[2];
    char byte;

    assert_int_equal(pipe(ends), 0);
    assert_int_equal(pipe(ready), 0);
    race->gate = ends[0];
    race->ready = ready[1];
    for (int i = 0; i < PROCESSES; i++) {
        pids[i] = fork();
        assert_true(pids[i] >= 0);
        if (pids[i] == 0) {
            alarm(120);
            close(ends[1]);
            runner(race, i);
            hibloom_close(own_filter);
            hibloom_store_free(own_store);
            _exit(0);
        }
    }
    close(ends[0]);
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 0);
    close(ready[0]);
    if (race->before_start != NULL)
        race->before_start(race);
    close(ends[1]);
    for (int i = 0; i < PROCESSES; i++) {
        int status = -1;
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_int_equal(status, 0);
    }
}

static void wait_for_start(const struct race *race)
{
    char byte;

    close(race->ready);
    if (read(race->gate, &byte, 1) != 0)
        _exit(2);
}

static hibloom_store *store_in_child(const struct race *race)
{
    /* patient: under valgrind eight processes on two cores take their time */
    const hibloom_connect_options options = {.command_timeout_ms = 60000, .commands = race->commands};

    if (hibloom_connect(&own_store, race->uri, &options) != HIBLOOM_OK)
        _exit(3);
    return own_store;
}

static struct race *new_race(hibloom_commands commands, char name[TEST_NAME_SIZE])
{
    struct race *race = mmap(NULL, sizeof *race, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    assert_true(race != MAP_FAILED);
    race->uri = test_uri();
    race->name = test_name(name);
    race->commands = commands;
    return race;
}

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
    race->results[i].status = hibloom_open(&own_filter, store, race->name, &spec);
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
    for (int round = 0; round < 20; round++) {
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
            if (i % 2 != winner) {
                assert_int_equal(race->results[i].status, HIBLOOM_EMISMATCH);
                continue;
            }
            assert_int_equal(race->results[i].status, HIBLOOM_OK);
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

/* The first failure of a process is what it is asked about. */
static void note_status(struct race *race, int i, hibloom_status status)
{
    if (race->results[i].status == HIBLOOM_OK)
        race->results[i].status = status;
}

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

static size_t assert_no_failure(const struct race *race)
{
    size_t count = 0;

    for (int i = 0; i < PROCESSES; i++) {
        if (race->results[i].status != HIBLOOM_OK)
            fail_msg("%s: %s", spec_text, hibloom_strerror(race->results[i].status));
        count += race->results[i].count;
    }
    return count;
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
        const size_t drops = assert_no_failure(race);
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

/* ---- Repairing -------------------------------------------------------------------- */

#define REPAIR_ITEMS 40

struct numbered {
    int process, number;
};

/* One that is not the root. */
static void lose_key(const struct race *race)
{
    redisContext *outside = test_redis();

    assert_int_equal(test_command(outside, "DEL %s:1", race->name), 1);
    redisFree(outside);
}

/* A handle from before the repair does not know the key that it made. */
static hibloom_status repair_and_open(const struct race *race, hibloom_store *store)
{
    const hibloom_status status = hibloom_repair(store, race->name);

    if (status != HIBLOOM_OK)
        return status;
    hibloom_close(own_filter);
    own_filter = NULL;
    return hibloom_open(&own_filter, store, race->name, NULL);
}

/* Who finds the filter damaged repairs it, as all the others do at the same time,
 * and adds his item again. */
static void add_and_repair(struct race *race, int i)
{
    hibloom_store *store = store_in_child(race);

    if (hibloom_open(&own_filter, store, race->name, NULL) != HIBLOOM_OK)
        _exit(4);
    wait_for_start(race);
    for (int number = 0; number < REPAIR_ITEMS && race->results[i].status == HIBLOOM_OK; number++) {
        const struct numbered item = {i, number};
        hibloom_status status = hibloom_add(own_filter, &item, sizeof item, NULL);
        for (int again = 0; status == HIBLOOM_ECORRUPT && again < 100; again++, race->results[i].count++)
            if ((status = repair_and_open(race, store)) == HIBLOOM_OK)
                status = hibloom_add(own_filter, &item, sizeof item, NULL);
        note_status(race, i, status);
    }
}

/* Each add that was OK came after the first repair, or was of keys that were not
 * lost, as the key was gone before any: so not one may be missing. */
static size_t repair_once(hibloom_store *store)
{
    char name[TEST_NAME_SIZE];
    struct race *race = new_race(HIBLOOM_COMMANDS_SETBIT, name);
    hibloom_spec spec;
    hibloom *filter;

    assert_ok(hibloom_spec_parse(&spec, spec_text), NULL);
    assert_ok(hibloom_open(&filter, store, name, &spec), store);
    race->before_start = lose_key;
    run_race(race, add_and_repair);
    const size_t repairs = assert_no_failure(race);
    hibloom_close(filter);
    assert_ok(hibloom_open(&filter, store, name, NULL), store);
    for (int i = 0; i < PROCESSES * REPAIR_ITEMS; i++) {
        const struct numbered item = {i % PROCESSES, i / PROCESSES};
        bool found = false;
        assert_ok(hibloom_contains(filter, &item, sizeof item, &found), store);
        if (!found)
            fail_msg("%s: item %d of process %d was added, and is not there", spec_text, item.number, item.process);
    }
    assert_ok(hibloom_drop(filter), store);
    hibloom_close(filter);
    munmap(race, sizeof *race);
    return repairs;
}

static void of_racing_repairers_none_undoes_what_was_added_since(void **state)
{
    static const char *const texts[] = {"bits=1048576 hashes=4 layout=blocked segments=2 seed=5eed",
                                        "bits=262144 hashes=3 layout=partitioned seed=5eed",
                                        "bits=1048576 hashes=4 segments=3 seed=5eed"};
    const int rounds = getenv("HIBLOOM_TEST_SLOW") != NULL ? 6 : 30;
    hibloom_store *store = test_store(NULL);
    size_t repairs = 0;

    (void)state;
    for (int round = 0; round < rounds; round++) {
        spec_text = texts[round % 3];
        repairs += repair_once(store);
    }
    print_message("%zu calls to repair %d losses\n", repairs, rounds);
    assert_true(repairs >= (size_t)rounds);
    hibloom_store_free(store);
}

/* Who ignores that a key is lost, and writes on and on, must not keep others from
 * repairing it. One process loses and repairs it; the others write, some of them
 * through the handle that they had, some through one that they open again. */
#define LOSSES 50

static void repair_or_write(struct race *race, int i)
{
    enum { BATCH = 500 }; /* so many that the server always has some to write */
    struct numbered numbers[BATCH];
    hibloom_item batch[BATCH];
    hibloom_store *store = store_in_child(race);
    volatile size_t *over = &race->results[0].count;

    for (int j = 0; j < BATCH; j++) {
        numbers[j] = (struct numbered){i, j};
        batch[j] = (hibloom_item){&numbers[j], sizeof numbers[j]};
    }
    if (hibloom_open(&own_filter, store, race->name, NULL) != HIBLOOM_OK)
        _exit(4);
    wait_for_start(race);
    while (i != 0 && !*over) {
        hibloom *opened;
        if (hibloom_add_many(own_filter, batch, BATCH, NULL) != HIBLOOM_OK && i % 2 == 0 &&
            hibloom_open(&opened, store, race->name, NULL) == HIBLOOM_OK) {
            hibloom_close(own_filter);
            own_filter = opened;
        }
        for (int j = 0; j < BATCH; j++)
            numbers[j].number += BATCH; /* what is set already changes nothing */
    }
    for (int loss = 0; i == 0 && loss < LOSSES && race->results[0].status == HIBLOOM_OK; loss++) {
        lose_key(race);
        race->results[0].status = hibloom_repair(store, race->name);
    }
    if (i == 0)
        *over = 1;
}

static void adders_that_heed_no_error_do_not_keep_a_repair_from_ending(void **state)
{
    static const char *const texts[] = {"bits=262144 hashes=3 layout=partitioned seed=5eed",
                                        "bits=1048576 hashes=4 segments=3 seed=5eed"};
    hibloom_store *store = test_store(NULL);

    (void)state;
    for (int t = 0; t < 2; t++) {
        char name[TEST_NAME_SIZE];
        struct race *race = new_race(HIBLOOM_COMMANDS_SETBIT, name);
        hibloom_spec spec;
        hibloom *filter;
        spec_text = texts[t];
        assert_ok(hibloom_spec_parse(&spec, spec_text), NULL);
        assert_ok(hibloom_open(&filter, store, name, &spec), store);
        run_race(race, repair_or_write);
        (void)assert_no_failure(race);
        hibloom_close(filter);
        assert_ok(hibloom_open(&filter, store, name, NULL), store);
        assert_ok(hibloom_add(filter, "x", 1, NULL), store);
        assert_ok(hibloom_drop(filter), store);
        hibloom_close(filter);
        munmap(race, sizeof *race);
    }
    hibloom_store_free(store);
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
        cmocka_unit_test(of_racing_repairers_none_undoes_what_was_added_since),
        cmocka_unit_test(adders_that_heed_no_error_do_not_keep_a_repair_from_ending),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
