/* Many processes at one filter that has lost a key: all repair it at once, or some
 * write on and heed no error. */
#include "support/race.h"

#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static const char *spec_text; /* of the filter that the race is about */

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
    const size_t repairs = assert_no_failure(race, spec_text);
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
        note_status(race, 0, hibloom_repair(store, race->name));
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
        (void)assert_no_failure(race, spec_text);
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
        cmocka_unit_test(of_racing_repairers_none_undoes_what_was_added_since),
        cmocka_unit_test(adders_that_heed_no_error_do_not_keep_a_repair_from_ending),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
