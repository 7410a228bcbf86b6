/* Merges while others add, look, die over a merge of theirs and drop the filter:
 * nothing is lost, and no key is left, or ever seen, but the filters' own. */
#include "support/places.h"

#include "base/store.h"

#include <hiredis/hiredis.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- Others at the same time ------------------------------------------------------------------------------
 *
 * Processes of which each has a place in the race; what they share is a page. */

#define RACERS 4u

struct race {
    const char *uri, *name, *text;
    atomic_bool stop, begun;
    atomic_ulong rounds[RACERS]; /* or items added, by each */
    _Atomic hibloom_status status[RACERS];
    pid_t pids[RACERS];
    unsigned processes;
};

/* What a child has open, freed so that valgrind finds no leak. */
static hibloom_store *own_store, *own_memory;
static hibloom *own_filter;

static bool answers[CHUNK];

static struct race *start_race(const char *name, const char *text, unsigned processes,
                               void (*run)(struct race *, unsigned))
{
    struct race *race = mmap(NULL, sizeof *race, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    assert_true(race != MAP_FAILED);
    race->uri = redis_server_uri(place_servers[0]);
    race->name = name;
    race->text = text;
    race->processes = processes;
    for (unsigned i = 0; i < processes; i++) {
        const pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            alarm(300);
            run(race, i);
            hibloom_close(own_filter);
            hibloom_store_free(own_store);
            hibloom_store_free(own_memory);
            _exit(0);
        }
        race->pids[i] = pid;
    }
    return race;
}

/* Each must end by itself with status 0. */
static void end_race(struct race *race)
{
    atomic_store(&race->stop, true);
    for (unsigned i = 0; i < race->processes; i++) {
        int status = -1;
        assert_int_equal(waitpid(race->pids[i], &status, 0), race->pids[i]);
        assert_int_equal(status, 0);
        if (atomic_load(&race->status[i]) != HIBLOOM_OK)
            fail_msg("%s: process %u: %s", race->text, i, hibloom_strerror(atomic_load(&race->status[i])));
    }
}

/* Until each has done so many rounds more. */
static void wait_for_rounds(struct race *race, unsigned long more)
{
    unsigned long from[RACERS];
    const uint64_t start = test_now_ms();

    for (unsigned i = 0; i < race->processes; i++)
        from[i] = atomic_load(&race->rounds[i]);
    for (unsigned i = 0; i < race->processes; i++)
        while (atomic_load(&race->rounds[i]) < from[i] + more) {
            if (test_now_ms() - start > 60000 || atomic_load(&race->status[i]) != HIBLOOM_OK)
                fail_msg("%s: process %u does not get on: %s", race->text, i,
                         hibloom_strerror(atomic_load(&race->status[i])));
            test_sleep_ms(1);
        }
}

static hibloom_store *connect_child(const struct race *race, hibloom_commands commands)
{
    const hibloom_connect_options options = {.command_timeout_ms = 60000, .commands = commands};

    if (hibloom_connect(&own_store, race->uri, &options) != HIBLOOM_OK)
        _exit(3);
    test_item_by_item(own_store, true);
    return own_store;
}

#define ADDED_MAX 60000u /* by a process, which then begins anew; the filters are large enough for all */

/* SETBIT, BITFIELD, is_new asked in batches, is_new asked of single ones. */
static void add_until_stopped(struct race *race, unsigned i)
{
    const size_t step = i == 3 ? 1 : 50;

    (void)connect_child(race, i == 1 ? HIBLOOM_COMMANDS_BITFIELD : HIBLOOM_COMMANDS_SETBIT);
    if (hibloom_open(&own_filter, own_store, race->name, NULL) != HIBLOOM_OK)
        _exit(4);
    for (size_t at = 0; !atomic_load(&race->stop); at = (at + step) % ADDED_MAX) {
        const size_t count = fill_chunk(1 + i, at, at + step);
        const hibloom_status status = hibloom_add_many(own_filter, chunk, count, i >= 2 ? answers : NULL);
        if (status != HIBLOOM_OK) {
            atomic_store(&race->status[i], status);
            return;
        }
        atomic_fetch_add(&race->rounds[i], step);
    }
}

static void assert_all_added_are_in(struct race *race, hibloom *filter, const char *what)
{
    for (unsigned i = 0; i < race->processes; i++) {
        const unsigned long rounds = atomic_load(&race->rounds[i]), added = rounds < ADDED_MAX ? rounds : ADDED_MAX;
        const size_t missing = count_missing(filter, 1 + i, 0, added);
        if (missing != 0)
            fail_msg("%s (%s): of %lu items of process %u, %zu are missing", what, race->text, added, i, missing);
    }
}

/* One key by BITOP, segments, and a key by the script. */
static const char *const race_texts[] = {"bits=16000001 hashes=4 seed=1", "bits=16000001 hashes=4 seed=1 segments=4",
                                         "bits=134217801 hashes=4 seed=1 segments=1"};

static void a_merge_takes_nothing_away_that_others_add_meanwhile(void **state)
{
    const size_t n = test_is_slow() ? 3000 : 60000;

    (void)state;
    for (size_t t = 0; t < sizeof race_texts / sizeof *race_texts; t++) {
        hibloom *into = place_open(REDIS, "raced", race_texts[t]), *from = place_open(MEMORY, "from", race_texts[t]);
        const int merges = t == 2 ? 4 : 15;
        unsigned long during = 0;

        add_items(from, 0, 0, n);
        struct race *race = start_race("raced", race_texts[t], RACERS, add_until_stopped);
        wait_for_rounds(race, 50);
        for (int i = 0; i < merges; i++) {
            const unsigned long before = atomic_load(&race->rounds[i % 4]);
            assert_ok(hibloom_merge(into, from), into->store);
            during += atomic_load(&race->rounds[i % 4]) - before;
        }
        wait_for_rounds(race, 1);
        end_race(race);
        assert_true(during > 0); /* or it was no race */
        assert_int_equal(count_missing(into, 0, 0, n), 0);
        assert_all_added_are_in(race, into, "merged into");
        assert_no_other_keys(into, from);
        munmap(race, sizeof *race);
        place_drop(into);
        place_drop(from);
    }
}

static void a_snapshot_has_all_that_was_added_before_it_began(void **state)
{
    (void)state;
    for (size_t t = 0; t < sizeof race_texts / sizeof *race_texts; t++) {
        hibloom *from = place_open(REDIS, "raced", race_texts[t]),
                *snapshot = place_open(MEMORY, "snapshot", race_texts[t]);
        hibloom *copy = place_open(OTHER_REDIS, "copy", race_texts[t]);
        struct race *race = start_race("raced", race_texts[t], RACERS, add_until_stopped), before;

        wait_for_rounds(race, 50);
        for (int i = 0; i < (test_is_slow() ? 2 : 3); i++) {
            before.processes = race->processes;
            before.text = race->text;
            for (unsigned j = 0; j < RACERS; j++)
                atomic_init(&before.rounds[j], atomic_load(&race->rounds[j]));
            if (i == 1) {
                assert_ok(hibloom_merge(copy, from), copy->store);
                assert_all_added_are_in(&before, copy, "copied");
            } else {
                assert_ok(hibloom_merge(snapshot, from), snapshot->store);
                assert_all_added_are_in(&before, snapshot, "in a snapshot");
            }
        }
        end_race(race);
        munmap(race, sizeof *race);
        place_drop(from);
        place_drop(snapshot);
        place_drop(copy);
    }
}

/* NAME, or NAME:0 and so on. */
static bool is_of(const redisReply *key, const char *name)
{
    const size_t len = strlen(name);

    return strlen(key->str) == key->len && strncmp(key->str, name, len) == 0 &&
           strspn(key->str + len, ":0123456789") == key->len - len;
}

/* Looks at all keys all the time. */
static void look_for_other_keys(struct race *race, unsigned i)
{
    redisContext *outside = redis_server_connect(place_servers[0]);

    while (!atomic_load(&race->stop)) {
        redisReply *keys = redisCommand(outside, "KEYS *");
        if (keys == NULL || keys->type != REDIS_REPLY_ARRAY)
            _exit(5);
        for (size_t k = 0; k < keys->elements; k++)
            if (!is_of(keys->element[k], "raced") && !is_of(keys->element[k], "other"))
                atomic_store(&race->status[i], HIBLOOM_EMISMATCH);
        freeReplyObject(keys);
        atomic_fetch_add(&race->rounds[i], 1);
    }
    redisFree(outside);
}

static void nobody_ever_sees_another_key(void **state)
{
    (void)state;
    for (size_t t = 0; t < sizeof race_texts / sizeof *race_texts; t++) {
        hibloom *into = place_open(REDIS, "raced", race_texts[t]), *from = place_open(MEMORY, "from", race_texts[t]);
        hibloom *other = place_open(REDIS, "other", race_texts[t]);
        struct race *race;

        add_items(from, 0, 0, 5000);
        race = start_race("raced", race_texts[t], 2, look_for_other_keys);
        wait_for_rounds(race, 1);
        const int merges = t == 2 ? 2 : 8; /* or more, until it was looked for often enough */
        for (int i = 0; i < merges || (atomic_load(&race->rounds[0]) <= 10 && i < 1000); i++) {
            assert_ok(hibloom_merge(into, from), into->store);
            assert_ok(hibloom_merge(other, into), other->store);
        }
        assert_true(atomic_load(&race->rounds[0]) > 10);
        end_race(race);
        assert_no_other_keys(into, other);
        munmap(race, sizeof *race);
        place_drop(into);
        place_drop(other);
        place_drop(from);
    }
}

/* ---- Loaders that die ------------------------------------------------------------------------------------- */

static hibloom *load; /* in memory, made before the fork */

static void merge_until_killed(struct race *race, unsigned i)
{
    (void)connect_child(race, HIBLOOM_COMMANDS_SETBIT);
    if (hibloom_open(&own_filter, own_store, race->name, NULL) != HIBLOOM_OK)
        _exit(4);
    atomic_store(&race->begun, true);
    while (hibloom_merge(own_filter, load) == HIBLOOM_OK)
        atomic_fetch_add(&race->rounds[i], 1);
    _exit(5);
}

/* Kills one at a random moment of its first or second merge. */
static bool kill_a_loader(struct race *race, unsigned microseconds)
{
    const struct timespec pause = {.tv_sec = 0, .tv_nsec = (long)microseconds * 1000};
    const uint64_t end = test_now_ms() + 60000;
    int status = 0;

    while (!atomic_load(&race->begun) && test_now_ms() < end)
        test_sleep_ms(0);
    nanosleep(&pause, NULL);
    assert_int_equal(kill(race->pids[0], SIGKILL), 0);
    assert_int_equal(waitpid(race->pids[0], &status, 0), race->pids[0]);
    assert_true(WIFSIGNALED(status));
    return atomic_load(&race->rounds[0]) == 0;
}

static uint64_t time_of_a_merge(hibloom *into)
{
    const uint64_t start = test_now_ms();

    assert_ok(hibloom_merge(into, load), into->store);
    return test_now_ms() - start;
}

static void loaders_are_killed(const char *text, unsigned kills, struct test_random *random)
{
    hibloom *into = place_open(REDIS, "loaded", text);
    unsigned in_the_middle = 0;

    load = place_open(MEMORY, "load", text);
    add_items(load, 0, 0, test_is_slow() ? 3000 : 40000);
    const uint64_t milliseconds = time_of_a_merge(into);
    assert_ok(hibloom_clear(into), into->store);
    add_items(into, 9, 0, 2000);
    for (unsigned i = 0; i < kills; i++) {
        /* the first one at once, so that it is in the middle */
        const unsigned after = i == 0 ? 0 : (unsigned)test_random_below(random, (milliseconds + 1) * 1000);
        struct race *race = start_race("loaded", text, 1, merge_until_killed);
        in_the_middle += kill_a_loader(race, after % 900000);
        assert_int_equal(count_missing(into, 9, 0, 2000), 0); /* and the guard holds */
        assert_keys(&places[REDIS], count_keys(into));
        munmap(race, sizeof *race);
    }
    print_message("%s: %u of %u killed in their first merge\n", text, in_the_middle, kills);
    assert_true(in_the_middle >= 1);
    assert_ok(hibloom_merge(into, load), into->store);
    assert_int_equal(count_missing(into, 0, 0, test_is_slow() ? 3000 : 40000), 0);
    assert_int_equal(count_missing(into, 9, 0, 2000), 0);
    assert_keys(&places[REDIS], count_keys(into));
    place_drop(into);
    place_drop(load);
}

static void a_loader_that_is_killed_leaves_the_filter_whole(void **state)
{
    struct test_random random = test_random_new();

    (void)state;
    for (size_t t = 0; t < sizeof race_texts / sizeof *race_texts; t++)
        loaders_are_killed(race_texts[t], test_is_slow() || t == 2 ? 5 : 10, &random);
}

/* ---- Droppers ---------------------------------------------------------------------------------------------- */

/* Who is slow among fast ones may have to give up in the end. */
static bool may_happen(hibloom_status status)
{
    return status == HIBLOOM_OK || status == HIBLOOM_ENOTFOUND || status == HIBLOOM_EMISMATCH ||
           status == HIBLOOM_ECORRUPT || status == HIBLOOM_EBUSY;
}

static void open_and_drop(struct race *race, unsigned i)
{
    const hibloom_spec spec = test_spec(race->text);
    hibloom *filter = NULL;
    hibloom_status status = hibloom_open(&filter, own_store, race->name, &spec);

    if (status == HIBLOOM_OK)
        status = hibloom_drop(filter);
    hibloom_close(filter);
    if (!may_happen(status))
        atomic_store(&race->status[i], status);
}

/* With whatever spec it has just now. From memory, or from a filter beside it
 * that is dropped all the time, too. */
static void open_and_merge(struct race *race, unsigned i)
{
    hibloom *into = NULL, *from = NULL;
    hibloom_status status = hibloom_open(&into, own_store, race->name, NULL);

    if (status == HIBLOOM_OK)
        status = hibloom_open(&from, i == 2 ? own_memory : own_store, "beside", hibloom_spec_of(into));
    if (status == HIBLOOM_OK)
        status = hibloom_add(from, "x", 1, NULL);
    if (status == HIBLOOM_OK)
        status = i == 2 || atomic_load(&race->rounds[i]) % 2 ? hibloom_merge(into, from) : hibloom_merge(from, into);
    if (!may_happen(status))
        atomic_store(&race->status[i], status);
    status = from != NULL ? hibloom_drop(from) : HIBLOOM_OK;
    if (!may_happen(status))
        atomic_store(&race->status[i], status);
    hibloom_close(from);
    hibloom_close(into);
}

static void drop_or_merge(struct race *race, unsigned i)
{
    (void)connect_child(race, HIBLOOM_COMMANDS_SETBIT);
    if (hibloom_memory(&own_memory) != HIBLOOM_OK)
        _exit(4);
    while (!atomic_load(&race->stop) && atomic_load(&race->status[i]) == HIBLOOM_OK) {
        (i < 2 ? open_and_drop : open_and_merge)(race, i);
        atomic_fetch_add(&race->rounds[i], 1);
    }
}

static void droppers_and_mergers_leave_no_key_behind(void **state)
{
    static const char *const texts[] = {
        "bits=10001 hashes=3 seed=5eed", "bits=10001 hashes=3", "bits=30001 hashes=3 segments=3 seed=5eed",
        "bits=10001 hashes=3 layout=partitioned seed=5eed", "bits=134217729 hashes=3 segments=1 seed=5eed"};

    (void)state;
    for (size_t t = 0; t < sizeof texts / sizeof *texts; t++) {
        struct race *race = start_race("dropped", texts[t], RACERS, drop_or_merge);
        wait_for_rounds(race, t == 4 || test_is_slow() ? 8 : 300);
        end_race(race);
        hibloom_status status = hibloom_delete(places[REDIS].store, "dropped");
        assert_true(may_happen(status));
        status = hibloom_delete(places[REDIS].store, "beside");
        assert_true(may_happen(status));
        assert_keys(&places[REDIS], 0);
        munmap(race, sizeof *race);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PLACES_TEST(a_merge_takes_nothing_away_that_others_add_meanwhile),
        PLACES_TEST(a_snapshot_has_all_that_was_added_before_it_began),
        PLACES_TEST(nobody_ever_sees_another_key),
        PLACES_TEST(a_loader_that_is_killed_leaves_the_filter_whole),
        PLACES_TEST(droppers_and_mergers_leave_no_key_behind),
    };

    return cmocka_run_group_tests(tests, places_set_up, places_tear_down);
}
