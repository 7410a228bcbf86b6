/* One filter in Redis and its twin in memory are done the same random things to. They must give the same answers and hold
 * the same bits, whatever the spec and the order. A failure says in which round and step it was. $HIBLOOM_TEST_SEED repeats
 * it, and $HIBLOOM_TEST_ROUNDS is for a longer run. */
#include "support/pieces.h"
#include "support/random_spec.h"
#include "support/record.h"
#include "support/temp_dir.h"
#include "support/test.h"
#include "support/universe.h"

#include "spec/spec.h"
#include "base/store.h"

#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 60, LOOK_EVERY = 15 };

/* Twins: [0] is in Redis, [1] in memory. */
struct world {
    struct test_random random;
    unsigned round, step;
    const char *doing;
    hibloom_store *redis[2], *memory; /* of the two dialects */
    redisContext *outside;
    char *path;
    char name[TEST_NAME_SIZE], third_name[TEST_NAME_SIZE];
    struct spec spec;
    char text[SPEC_TEXT_SIZE];
    hibloom *twins[2][2]; /* two handles each: in Redis by either dialect */
    hibloom *thirds[2];   /* others of the same spec, which are twins, too */
    struct universe universe;
    bool answers[2][UNIVERSE_BATCH];
};

static struct world world;

static uint64_t below(uint64_t bound)
{
    return test_random_below(&world.random, bound);
}

static void fail_here(const char *what)
{
    fail_msg("round %u, step %u, %s: %s; %s", world.round, world.step, world.doing, what, world.text);
}

/* A call that must be OK. */
static void ok(hibloom_status status, const hibloom *filter)
{
    if (status != HIBLOOM_OK) {
        print_error("%s: %s\n", hibloom_strerror(status), hibloom_store_error(filter->store));
        fail_here("a call failed");
    }
}

/* One of the handles; on the same filter whichever it is. */
static hibloom *redis_twin(void)
{
    return world.twins[0][below(2)];
}

static hibloom *memory_twin(void)
{
    return world.twins[1][below(2)];
}

/* ---- Answers --------------------------------------------------------------------------- */

static bool is_item(size_t i, size_t j)
{
    const hibloom_item *one = &world.universe.batch[i], *other = &world.universe.batch[j];

    return one->len == other->len && memcmp(one->data, other->data, one->len) == 0;
}

/* How many of the batch that equal item i were answered with yes. */
static size_t count_yes(const bool *answers, size_t i, size_t n)
{
    size_t yes = 0;

    for (size_t j = 0; j < n; j++)
        yes += answers[j] && is_item(i, j);
    return yes;
}

/* In memory. */
static hibloom *copy_of(hibloom *filter, const char *name)
{
    hibloom *copy = NULL;

    assert_ok(hibloom_open(&copy, world.memory, name, test_text(&world.spec)), world.memory);
    ok(hibloom_merge(copy, filter), copy);
    return copy;
}

static void drop_copy(hibloom *copy)
{
    ok(hibloom_drop(copy), copy);
    hibloom_close(copy);
}

/* Was item i not in before, and do the others of the batch have all of its bits? */
static bool is_by_order(hibloom *before, size_t i, size_t n)
{
    const hibloom_item *batch = world.universe.batch;
    hibloom *others = copy_of(before, "others");
    bool was_in, is_in;

    ok(hibloom_contains(others, batch[i].data, batch[i].len, &was_in), others);
    for (size_t j = 0; j < n; j++)
        if (!is_item(i, j))
            ok(hibloom_add(others, batch[j].data, batch[j].len, NULL), others);
    ok(hibloom_contains(others, batch[i].data, batch[i].len, &is_in), others);
    drop_copy(others);
    return !was_in && is_in;
}

/* A pipeline that has to be proven again goes later. So either of two equal items may be the new one, and an item may find
 * all of its bits set by others. `before` NULL: no order decides. */
static void assert_same_answers(hibloom *before, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (world.answers[0][i] != world.answers[1][i] &&
            (before == NULL ||
             (count_yes(world.answers[0], i, n) != count_yes(world.answers[1], i, n) && !is_by_order(before, i, n)))) {
            print_error("item %zu of %zu: %d in Redis, %d in memory\n", i, n, world.answers[0][i], world.answers[1][i]);
            fail_here("the answers differ");
        }
}

/* ---- Bits -------------------------------------------------------------------------------- */

/* Past the library; to be freed. Behind the bits there is the record, and nothing else. */
static unsigned char *read_outside(void)
{
    const uint64_t len = spec_bitmap_bytes(&world.spec);
    unsigned char *out = malloc(all_bits_len(world.twins[0][0]));
    char name[TEST_NAME_SIZE + 16];
    struct stored_record record, root;

    for (uint32_t key = 0; key < spec_keys(&world.spec); key++) {
        snprintf(name, sizeof name, spec_keys(&world.spec) == 1 ? "%s" : "%s:%u", world.name, (unsigned)key);
        record_stored(world.outside, name, &record);
        if (key == 0)
            root = record;
        if (record.bytes != len || record.key != key || record.keys != spec_keys(&world.spec) || record.state != 'r' ||
            record.generation != root.generation || strcmp(record.text, root.text) != 0)
            fail_here("the record is not that of this key");
        redisReply *reply = redisCommand(world.outside, "GET %s", name);
        assert_non_null(reply);
        if (reply->type != REDIS_REPLY_STRING || reply->len != record.length)
            fail_here("the string is longer or shorter than it should be");
        memcpy(out + key * len, reply->str, (size_t)len);
        freeReplyObject(reply);
    }
    return out;
}

/* Frees both. */
static void assert_same_bits(unsigned char *one, unsigned char *other, const char *what)
{
    if (memcmp(one, other, all_bits_len(world.twins[1][0])) != 0)
        fail_here(what);
    free(one);
    free(other);
}

static void look_at_all_bits(void)
{
    world.doing = "all bits";
    assert_same_bits(all_bits_read(memory_twin()), read_outside(), "what is stored in Redis differs from memory");
    assert_same_bits(all_bits_read(memory_twin()), all_bits_read(redis_twin()),
                     "what is read from Redis differs from memory");
    hibloom *snapshot = copy_of(redis_twin(), "snapshot");
    assert_same_bits(all_bits_read(memory_twin()), all_bits_read(snapshot), "a snapshot of Redis differs from memory");
    drop_copy(snapshot);
    assert_same_bits(all_bits_read(world.thirds[0]), all_bits_read(world.thirds[1]),
                     "the third in Redis differs from the one in memory");
}

/* ---- Things to do -------------------------------------------------------------------------- */

static void add(void)
{
    const hibloom_item item = universe_item(&world.universe, &world.random);
    const bool asks = below(2) == 0;

    for (int i = 0; i < 2; i++) {
        hibloom *filter = i == 0 ? redis_twin() : memory_twin();
        ok(hibloom_add(filter, item.data, item.len, asks ? &world.answers[i][0] : NULL), filter);
    }
    assert_same_answers(NULL, asks ? 1 : 0);
}

static void add_many(void)
{
    const size_t n = universe_choose(&world.universe, &world.random);
    const bool asks = below(2) == 0;
    hibloom *before = copy_of(memory_twin(), "before");

    for (int i = 0; i < 2; i++) {
        hibloom *filter = i == 0 ? redis_twin() : memory_twin();
        ok(hibloom_add_many(filter, world.universe.batch, n, asks ? world.answers[i] : NULL), filter);
    }
    assert_same_answers(before, asks ? n : 0);
    drop_copy(before);
}

static bool counts(void)
{
    return world.spec.counters != 0;
}

/* An item that is in several times is in until it was removed as often. */
static void remove_many(void)
{
    const size_t n = universe_choose(&world.universe, &world.random);
    const bool asks = below(2) == 0;

    for (int i = 0; i < 2 && counts(); i++) {
        hibloom *filter = i == 0 ? redis_twin() : memory_twin();
        ok(hibloom_remove_many(filter, world.universe.batch, n, asks ? world.answers[i] : NULL), filter);
    }
    assert_same_answers(NULL, asks && counts() ? n : 0);
}

static void contains(void)
{
    const hibloom_item item = universe_item(&world.universe, &world.random);

    for (int i = 0; i < 2; i++) {
        hibloom *filter = i == 0 ? redis_twin() : memory_twin();
        ok(hibloom_contains(filter, item.data, item.len, &world.answers[i][0]), filter);
    }
    assert_same_answers(NULL, 1);
}

static void contains_many(void)
{
    const size_t n = universe_choose(&world.universe, &world.random);

    for (int i = 0; i < 2; i++) {
        hibloom *filter = i == 0 ? redis_twin() : memory_twin();
        ok(hibloom_contains_many(filter, world.universe.batch, n, world.answers[i]), filter);
    }
    assert_same_answers(NULL, n);
}

static void clear(void)
{
    hibloom *const both[] = {redis_twin(), memory_twin()};

    for (int i = 0; i < 2; i++)
        ok(hibloom_clear(both[i]), both[i]);
    /* A near cache learns of it by a guard. Learned in the middle of an add, what it had left out is
     * sent behind the rest: in so small a filter another order may make another item the new one. */
    for (int i = 0; i < 2; i++)
        ok(hibloom_contains_many(world.twins[0][i], world.universe.batch,
                                 universe_choose(&world.universe, &world.random), world.answers[0]),
           world.twins[0][i]);
}

static void get_info(void)
{
    hibloom_info info[2];

    for (int i = 0; i < 2; i++) {
        hibloom *filter = i == 0 ? redis_twin() : memory_twin();
        ok(hibloom_get_info(filter, &info[i], sizeof info[i]), filter);
    }
    uint64_t bytes = 0;
    for (uint32_t key = 0; key < info[0].keys; key++)
        bytes += record_length(&world.spec, key);
    if (info[0].bytes != bytes || info[1].bytes != spec_keys(&world.spec) * spec_bitmap_bytes(&world.spec))
        fail_here("not as many bytes");
    info[0].bytes = info[1].bytes;
    if (info[0].bits_set != info[1].bits_set || info[0].keys != info[1].keys ||
        memcmp(&info[0].fill, &info[1].fill, sizeof(double)) != 0 ||
        memcmp(&info[0].estimated_items, &info[1].estimated_items, sizeof(double)) != 0 ||
        memcmp(&info[0].estimated_error_rate, &info[1].estimated_error_rate, sizeof(double)) != 0)
        fail_here("the infos differ");
}

/* Fills both thirds anew, or with a little more; one of them. */
static hibloom *choose_third(void)
{
    const size_t n = universe_choose(&world.universe, &world.random);
    const bool anew = below(2) == 0;

    for (int i = 0; i < 2; i++) {
        if (anew)
            ok(hibloom_clear(world.thirds[i]), world.thirds[i]);
        ok(hibloom_add_many(world.thirds[i], world.universe.batch, n, NULL), world.thirds[i]);
    }
    return world.thirds[below(2)];
}

static void merge_third(void)
{
    hibloom *third = choose_third(), *redis = redis_twin(), *memory = memory_twin();

    ok(hibloom_merge(redis, third), redis);
    ok(hibloom_merge(memory, third), memory);
}

/* Into each other; or each into itself: the counters of two would be added. */
static void merge_twins(void)
{
    hibloom *const twins[] = {redis_twin(), memory_twin()}, *from = twins[below(2)];

    for (int i = 0; i < 2; i++)
        ok(hibloom_merge(twins[i], counts() ? twins[i] : from), twins[i]);
}

/* By way of the file or not: the union is the same. */
static void save_and_load(void)
{
    hibloom *const sources[] = {choose_third(), redis_twin(), memory_twin()};
    hibloom *source = sources[counts() ? 0 : below(3)], *const into[] = {redis_twin(), memory_twin()};
    const uint64_t by_file = 1 + below(3);

    ok(hibloom_save(source, world.path), source);
    for (int i = 0; i < 2; i++)
        ok(by_file >> i & 1 ? hibloom_restore(into[i], world.path) : hibloom_merge(into[i], source), into[i]);
}

static void compare(void)
{
    hibloom *third = choose_third(), *redis = redis_twin(), *memory = memory_twin();
    hibloom_comparison in_redis, in_memory;

    ok(hibloom_compare(redis, third, &in_redis, sizeof in_redis), redis);
    ok(hibloom_compare(memory, third, &in_memory, sizeof in_memory), memory);
    if (memcmp(&in_redis, &in_memory, sizeof in_redis) != 0)
        fail_here("the comparisons differ");
}

static void expire(void)
{
    const uint64_t ms = below(2) == 0 ? 0 : 100000000;

    for (int i = 0; i < 2; i++) {
        hibloom *filter = i == 0 ? redis_twin() : memory_twin();
        ok(hibloom_expire(filter, ms), filter);
    }
}

static void open_twins(unsigned handle)
{
    test_item_by_item(world.redis[handle], below(2) == 0);
    assert_ok(hibloom_open(&world.twins[0][handle], world.redis[handle], world.name, test_text(&world.spec)),
              world.redis[handle]);
    if (below(2) == 0 && !counts())
        assert_ok(hibloom_near_cache(world.twins[0][handle], 0), world.redis[handle]);
    assert_ok(hibloom_open(&world.twins[1][handle], world.memory, world.name, test_text(&world.spec)), world.memory);
}

/* A random call on a handle of a filter that was dropped, or made anew: what it says. */
static hibloom_status call_in_vain(hibloom *filter, unsigned which, const hibloom_item *item)
{
    bool answer;
    hibloom_info info;
    hibloom_comparison comparison;

    switch (which) {
    case 0: return hibloom_add(filter, item->data, item->len, NULL);
    case 1: return hibloom_add(filter, item->data, item->len, &answer);
    case 2: return hibloom_contains(filter, item->data, item->len, &answer);
    case 3: return hibloom_get_info(filter, &info, sizeof info);
    case 4: return hibloom_clear(filter);
    case 5: return hibloom_merge(filter, world.thirds[1]);
    case 6: return hibloom_merge(world.thirds[0], filter);
    case 7: return hibloom_save(filter, world.path);
    case 8: return hibloom_compare(filter, world.thirds[0], &comparison, sizeof comparison);
    default: return hibloom_expire(filter, 1000000);
    }
}

/* Calls 0 and 1 are adds, which may leave bits in a filter that took the name. */
static void assert_in_vain(hibloom_status expected, unsigned first)
{
    const unsigned which = first + (unsigned)below(10 - first);
    const hibloom_item item = universe_item(&world.universe, &world.random);

    for (int i = 0; i < 2; i++) {
        const hibloom_status status = call_in_vain(world.twins[i][1], which, &item);
        if (status != expected) {
            print_error("call %u: %s\n", which, hibloom_strerror(status));
            fail_here(i == 0 ? "not the status it should be in Redis" : "not the status it should be in memory");
        }
    }
}

static void drop_and_make_anew(void)
{
    struct spec another = world.spec;
    hibloom *other[2];

    for (int i = 0; i < 2; i++)
        ok(hibloom_drop(world.twins[i][0]), world.twins[i][0]);
    assert_in_vain(HIBLOOM_ENOTFOUND, 0);
    if (below(2) == 0) { /* by somebody else, in between: with another seed, or the very same */
        if (world.spec.seeded && below(2) == 0)
            another.seeds[0] ^= 1;
        for (int i = 0; i < 2; i++) {
            hibloom_store *store = i == 0 ? world.redis[0] : world.memory;
            assert_ok(hibloom_open(&other[i], store, world.name, test_text(&another)), store);
            ok(hibloom_add_many(other[i], world.universe.items, UNIVERSE_ITEMS, NULL), other[i]);
        }
        assert_in_vain(HIBLOOM_EMISMATCH, 0);
        for (int i = 0; i < 2; i++) {
            ok(hibloom_drop(other[i]), other[i]);
            hibloom_close(other[i]);
        }
    }
    for (unsigned handle = 0; handle < 2; handle++) {
        for (int i = 0; i < 2; i++)
            hibloom_close(world.twins[i][handle]);
        open_twins(handle);
        if (handle == 0)
            assert_in_vain(HIBLOOM_EMISMATCH, 2); /* the second handles */
    }
}

static const struct thing {
    const char *name;
    void (*run)(void);
    unsigned weight;
} things[] = {
    {"add", add, 20},
    {"add_many", add_many, 20},
    {"remove_many", remove_many, 12},
    {"contains", contains, 10},
    {"contains_many", contains_many, 15},
    {"get_info", get_info, 6},
    {"merge a third filter", merge_third, 8},
    {"merge twins", merge_twins, 3},
    {"save and load", save_and_load, 2},
    {"compare", compare, 4},
    {"expire", expire, 2},
    {"clear", clear, 3},
    {"drop and make anew", drop_and_make_anew, 3},
};

static void do_something(void)
{
    unsigned all = 0;

    for (size_t i = 0; i < sizeof things / sizeof things[0]; i++)
        all += things[i].weight;
    unsigned choice = (unsigned)below(all);
    const struct thing *thing = things;
    while (choice >= thing->weight)
        choice -= (thing++)->weight;
    world.doing = thing->name;
    thing->run();
}

/* ---- Rounds --------------------------------------------------------------------------------- */

static void play_round(void)
{
    random_spec(&world.random, world.text);
    world.spec = test_spec(world.text);
    universe_make(&world.universe, &world.random);
    test_name(world.name);
    test_name(world.third_name);
    world.doing = "opening";
    for (unsigned handle = 0; handle < 2; handle++)
        open_twins(handle);
    hibloom_store *store = world.redis[below(2)]; /* that of one of the handles, with which merges stay within it */
    assert_ok(hibloom_open(&world.thirds[0], store, world.third_name, test_text(&world.spec)), store);
    assert_ok(hibloom_open(&world.thirds[1], world.memory, world.third_name, test_text(&world.spec)), world.memory);
    for (world.step = 1; world.step <= STEPS; world.step++) {
        do_something();
        if (world.step % LOOK_EVERY == 0)
            look_at_all_bits();
    }
    for (int i = 0; i < 2; i++) {
        ok(hibloom_drop(world.twins[i][0]), world.twins[i][0]);
        ok(hibloom_drop(world.thirds[i]), world.thirds[i]);
        hibloom_close(world.twins[i][0]);
        hibloom_close(world.twins[i][1]);
        hibloom_close(world.thirds[i]);
    }
    if (keys_with(world.outside, world.name) + keys_with(world.outside, world.third_name) != 0)
        fail_here("a key was left");
}

static unsigned rounds(void)
{
    const char *given = getenv("HIBLOOM_TEST_ROUNDS");

    if (given != NULL)
        return (unsigned)strtoul(given, NULL, 10);
    return test_is_slow() ? 60 : 1000;
}

static void a_filter_in_redis_and_its_twin_in_memory_stay_the_same(void **state)
{
    char *dir = temp_dir_make();

    world.random = test_random_new();
    world.redis[0] = test_connect(with_options(test_uri(), "command_timeout=60s"), NULL);
    world.redis[1] = test_connect(with_options(test_uri(), "command_timeout=60s&commands=bitfield"), NULL);
    world.outside = test_redis();
    world.path = temp_dir_path(dir, "filter");
    assert_ok(hibloom_connect(&world.memory, "memory:", NULL), NULL);
    for (world.round = 1; world.round <= rounds(); world.round++)
        play_round();
    print_message("%u rounds of %d steps\n", world.round - 1, STEPS);
    for (int i = 0; i < 2; i++)
        hibloom_store_free(world.redis[i]);
    hibloom_store_free(world.memory);
    redisFree(world.outside);
    free(world.path);
    temp_dir_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_filter_in_redis_and_its_twin_in_memory_stay_the_same),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
