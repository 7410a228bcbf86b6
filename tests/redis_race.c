/* Many processes at one filter: who creates it, and who was first to add. */
#include "support/test.h"

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
    int gate; /* the read end of a pipe: end of file is the start */
    struct {
        hibloom_status status;
        size_t count;
        char spec[HIBLOOM_SPEC_TEXT_SIZE];
    } results[PROCESSES];
};

/* Forks the processes, lets them prepare, then starts them all at once. Each
 * must end by itself with status 0. */
static void run_race(struct race *race, void (*runner)(struct race *, int))
{
    pid_t pids[PROCESSES];
    int ends[2];

    assert_int_equal(pipe(ends), 0);
    race->gate = ends[0];
    for (int i = 0; i < PROCESSES; i++) {
        pids[i] = fork();
        assert_true(pids[i] >= 0);
        if (pids[i] == 0) {
            alarm(60);
            close(ends[1]);
            runner(race, i);
            _exit(0);
        }
    }
    close(ends[0]);
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

    if (read(race->gate, &byte, 1) != 0)
        _exit(2);
}

static hibloom_store *store_in_child(const struct race *race)
{
    const hibloom_connect_options options = {.commands = race->commands};
    hibloom_store *store;

    if (hibloom_connect(&store, race->uri, &options) != HIBLOOM_OK)
        _exit(3);
    return store;
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

static const char *const rivals[] = {"capacity=1000 error=0.01", "capacity=1000 error=0.01 layout=partitioned hash=siphash"};

static void create_one_of_two(struct race *race, int i)
{
    hibloom_store *store = store_in_child(race);
    hibloom_spec spec;
    hibloom *filter;

    if (hibloom_spec_parse(&spec, rivals[i % 2]) != HIBLOOM_OK)
        _exit(4);
    wait_for_start(race);
    race->results[i].status = hibloom_open(&filter, store, race->name, &spec);
    if (race->results[i].status != HIBLOOM_OK)
        return;
    if (hibloom_spec_format(hibloom_spec_of(filter), race->results[i].spec, sizeof race->results[i].spec) != HIBLOOM_OK)
        _exit(5);
    if (hibloom_add(filter, &i, sizeof i, NULL) != HIBLOOM_OK)
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
        redisReply *stored = redisCommand(outside, "GET {%s}:spec", name);
        assert_non_null(stored);
        assert_int_equal(stored->type, REDIS_REPLY_STRING);
        const int winner = strstr(stored->str, "partitioned") != NULL;
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
            assert_string_equal(race->results[i].spec, stored->str);
            assert_ok(hibloom_contains(filter, &i, sizeof i, &found), store);
            assert_true(found);
        }
        freeReplyObject(stored);
        assert_ok(hibloom_drop(filter), store);
        assert_int_equal(test_command(outside, "EXISTS %s {%s}:spec %s:0", name, name, name), 0);
        hibloom_close(filter);
        munmap(race, sizeof *race);
    }
    print_message("won: classic %d, partitioned %d\n", won[0], won[1]);
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
    hibloom *filter;

    if (hibloom_open(&filter, store, race->name, NULL) != HIBLOOM_OK)
        _exit(4);
    for (unsigned j = 0; j < ITEMS; j++) {
        items[j] = i % 4 < 2 ? j : ITEMS - 1 - j; /* and from both ends */
        batch[j] = (hibloom_item){&items[j], sizeof items[j]};
    }
    wait_for_start(race);
    for (size_t at = 0; at < ITEMS; at += step)
        if (hibloom_add_many(filter, batch + at, step, is_new + at) != HIBLOOM_OK)
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_racing_creators_one_wins_and_the_others_verify),
        cmocka_unit_test(one_key_setbit),
        cmocka_unit_test(one_key_bitfield),
        cmocka_unit_test(several_keys),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
