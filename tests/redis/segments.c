/* Filters of several segments: what lies where, batches in any order, the
 * guard and the repair of each segment; and that one made and removed step by
 * step is never taken for whole when it is not, whoever dies over it.
 *
 * On a server of the program's own, so that "no key is left" can be seen. */
#include "support/redis_server.h"
#include "support/test.h"

#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NAME "seen"
#define SEAL_BITS 34 /* set bits in "hibloom1" */

#define SMALL "bits=100000 hashes=7 segments=5 seed=5eed"
#define UNSEEDED_MANY "bits=3000000 hashes=7 segments=300"         /* made in three steps, of 128 keys at most */
#define UNSEEDED_LARGE "capacity=20000000 error=0.01 segments=3"   /* in two, of 16 MB at most */
#define MANY UNSEEDED_MANY " seed=5eed"
#define LARGE UNSEEDED_LARGE " seed=5eed"

static const char *const specs[] = {
    SMALL, "bits=100000 hashes=7 segments=5 hash=siphash seed=000102030405060708090a0b0c0d0e0f",
    "bits=102400 hashes=7 segments=5 layout=blocked seed=5eed", MANY, LARGE,
};
enum { SPECS = sizeof specs / sizeof *specs, SMALL_SPECS = 3 };

static struct redis_server *server;
static redisContext *redis; /* somebody else's connection */
static hibloom_store *stores[2]; /* by hibloom_commands */

static int set_up(void **state)
{
    (void)state;
    server = redis_server_start(NULL);
    redis = redis_server_connect(server);
    for (int i = 0; i < 2; i++) {
        const hibloom_connect_options options = {.commands = (hibloom_commands)i};
        assert_ok(hibloom_connect(&stores[i], redis_server_uri(server), &options), stores[i]);
    }
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    hibloom_store_free(stores[0]);
    hibloom_store_free(stores[1]);
    redisFree(redis);
    redis_server_stop(server);
    return 0;
}

/* So that one test that fails is not the end of the next. */
static int leave_nothing(void **state)
{
    (void)state;
    test_command(redis, "FLUSHALL");
    test_command(redis, "CONFIG SET proto-max-bulk-len 512mb");
    return 0;
}

static bool slow(void)
{
    return getenv("HIBLOOM_TEST_SLOW") != NULL;
}

static hibloom_spec spec_of(const char *text)
{
    hibloom_spec spec;

    assert_ok(hibloom_spec_parse(&spec, text), NULL);
    return spec;
}

static hibloom *open_in(hibloom_store *store, const char *text)
{
    const hibloom_spec spec = spec_of(text);
    hibloom *filter;

    assert_ok(hibloom_open(&filter, store, NAME, &spec), store);
    return filter;
}

static hibloom *open_text(const char *text)
{
    return open_in(stores[0], text);
}

/* But for the numbers that late adders keep for some seconds. */
static long long keys_stored(void)
{
    return test_command(redis, "EVAL %s 0", "local n = 0 for _, k in ipairs(redis.call('keys', '*')) do "
                                            "if not k:find(':hibloom-l', 1, true) then n = n + 1 end end return n");
}

static void drop_and_close(hibloom *filter)
{
    assert_ok(hibloom_drop(filter), stores[0]);
    hibloom_close(filter);
    assert_int_equal(keys_stored(), 0);
}

static char *get(const char *key)
{
    redisReply *reply = redisCommand(redis, "GET %s", key);
    char *text = NULL;

    assert_non_null(reply);
    if (reply->type == REDIS_REPLY_STRING)
        text = strdup(reply->str);
    freeReplyObject(reply);
    return text;
}

/* n different items; free both with free_items. */
static hibloom_item *make_items(size_t n)
{
    uint64_t *numbers = malloc(n * sizeof *numbers);
    hibloom_item *items = malloc(n * sizeof *items);

    assert_non_null(numbers);
    assert_non_null(items);
    for (size_t i = 0; i < n; i++) {
        numbers[i] = i;
        items[i] = (hibloom_item){&numbers[i], sizeof numbers[i]};
    }
    return items;
}

static void free_items(hibloom_item *items)
{
    free((void *)items[0].data);
    free(items);
}

static uint32_t segment_of(const hibloom *filter, const hibloom_item *item)
{
    hibloom_position positions[HIBLOOM_HASHES_MAX];

    assert_ok(hibloom_positions(hibloom_spec_of(filter), item->data, item->len, positions), NULL);
    for (uint32_t i = 1; i < hibloom_spec_of(filter)->hashes; i++)
        assert_int_equal(positions[i].key, positions[0].key);
    return positions[0].key;
}

/* ---- What lies where --------------------------------------------------------------- */

static int compare_positions(const void *a, const void *b)
{
    const hibloom_position *x = a, *y = b;

    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return (x->bit > y->bit) - (x->bit < y->bit);
}

static size_t count_different(hibloom_position *positions, size_t n)
{
    size_t different = n > 0;

    qsort(positions, n, sizeof *positions, compare_positions);
    for (size_t i = 1; i < n; i++)
        different += compare_positions(&positions[i - 1], &positions[i]) != 0;
    return different;
}

/* Bits set over all segments, counted from outside. */
static uint64_t count_outside(uint32_t segments)
{
    uint64_t count = 0;

    for (uint32_t i = 0; i < segments; i++)
        count += (uint64_t)test_command(redis, "BITCOUNT " NAME ":%u", i) - SEAL_BITS;
    return count;
}

static void the_bits_lie_where_positions_says_and_nowhere_else(void **state)
{
    enum { N = 300 };
    static hibloom_position positions[N * 7];
    hibloom_item *items = make_items(N);

    (void)state;
    for (int s = 0; s < SPECS; s++) {
        hibloom *filter = open_in(stores[s % 2], specs[s]);
        const uint32_t k = hibloom_spec_of(filter)->hashes, segments = hibloom_spec_of(filter)->segments;
        hibloom_info info;
        assert_int_equal(k, 7);
        assert_ok(hibloom_add_many(filter, items, N, NULL), stores[s % 2]);
        for (size_t i = 0; i < N; i++)
            assert_ok(hibloom_positions(hibloom_spec_of(filter), items[i].data, items[i].len, positions + i * k), NULL);
        for (size_t i = 0; i < N * k; i++)
            assert_int_equal(test_command(redis, "GETBIT " NAME ":%u %llu", positions[i].key,
                                          (unsigned long long)positions[i].bit), 1);
        const size_t different = count_different(positions, N * k);
        assert_int_equal(count_outside(segments), different);
        assert_ok(hibloom_get_info(filter, &info), stores[s % 2]);
        assert_int_equal(info.bits_set, different);
        assert_int_equal(info.keys, segments);
        assert_true(info.bytes >= hibloom_spec_of(filter)->bits / 8);
        drop_and_close(filter);
    }
    free_items(items);
}

static void beside_each_segment_lies_a_copy_of_the_spec(void **state)
{
    (void)state;
    for (int s = 0; s < SPECS; s++) {
        hibloom *filter = open_text(specs[s]);
        const uint32_t segments = hibloom_spec_of(filter)->segments;
        char text[HIBLOOM_SPEC_TEXT_SIZE], key[64], *stored;
        assert_ok(hibloom_spec_format(hibloom_spec_of(filter), text, sizeof text), NULL);
        for (uint32_t i = 0; i <= segments; i++) {
            snprintf(key, sizeof key, i < segments ? "{" NAME ":%u}:spec" : "{" NAME "}:spec", i);
            stored = get(key);
            assert_non_null(stored);
            assert_string_equal(stored, text);
            free(stored);
        }
        assert_int_equal(keys_stored(), 2 * segments + 1);
        drop_and_close(filter);
    }
}

/* ---- Batches ----------------------------------------------------------------------- */

/* n of the items, chosen by chance, most of them more than once; the first of
 * each is new. */
static void choose_by_chance(const hibloom_item *items, size_t different, hibloom_item *chosen, bool *first, size_t n)
{
    struct test_random random = test_random_new();
    bool *seen = calloc(different, sizeof *seen);

    assert_non_null(seen);
    for (size_t i = 0; i < n; i++) {
        const size_t which = (size_t)test_random_below(&random, different);
        chosen[i] = items[which];
        first[i] = !seen[which];
        seen[which] = true;
    }
    free(seen);
}

/* `more` items of `items` are not added at all. */
static void assert_batch_answered(const char *text, hibloom_store *store, size_t different, size_t more, size_t n)
{
    hibloom_item *items = make_items(different + more), *chosen = malloc(n * sizeof *chosen);
    bool *first = malloc(n), *answers = malloc(n + different + more);
    hibloom *filter = open_in(store, text);
    size_t wrong = 0;

    assert_true(chosen != NULL && first != NULL && answers != NULL);
    choose_by_chance(items, different, chosen, first, n);
    assert_ok(hibloom_add_many(filter, chosen, n, answers), store);
    assert_memory_equal(answers, first, n);
    assert_ok(hibloom_contains_many(filter, chosen, n, answers), store);
    for (size_t i = 0; i < n; i++)
        wrong += !answers[i];
    assert_ok(hibloom_contains_many(filter, items + different, more, answers), store);
    for (size_t i = 0; i < more; i++)
        wrong += answers[i];
    assert_int_equal(wrong, 0);
    assert_ok(hibloom_add_many(filter, chosen, n, NULL), store);
    assert_ok(hibloom_add_many(filter, chosen, n, answers), store);
    for (size_t i = 0; i < n; i++)
        wrong += answers[i];
    assert_int_equal(wrong, 0);
    drop_and_close(filter);
    free(chosen);
    free(first);
    free(answers);
    free_items(items);
}

static void a_batch_in_any_order_is_answered_in_its_own(void **state)
{
    (void)state;
    for (int s = 0; s < SPECS; s++)
        for (int commands = 0; commands < 2; commands++)
            assert_batch_answered(specs[s], stores[commands], 500, 300, 1500);
}

static void so_is_one_longer_than_what_is_put_in_order_at_a_time(void **state)
{
    const size_t n = slow() ? 66000 : 80000;

    (void)state;
    assert_batch_answered(LARGE, stores[1], n / 3, 1000, n);
    assert_batch_answered("capacity=1000000 error=1e-6 hashes=4 segments=200 seed=5eed", stores[0], 65536, 1, 65536 + 1);
}

static void a_batch_may_be_of_no_item_or_one_or_the_empty_one(void **state)
{
    (void)state;
    for (int s = 0; s < SPECS; s++) {
        hibloom *filter = open_text(specs[s]);
        bool answer = true;
        assert_ok(hibloom_add_many(filter, NULL, 0, NULL), stores[0]);
        assert_ok(hibloom_contains_many(filter, NULL, 0, &answer), stores[0]);
        assert_ok(hibloom_contains_many(filter, &(hibloom_item){NULL, 0}, 1, &answer), stores[0]);
        assert_false(answer);
        assert_ok(hibloom_add_many(filter, &(hibloom_item){NULL, 0}, 1, &answer), stores[0]);
        assert_true(answer);
        assert_ok(hibloom_add(filter, "", 0, &answer), stores[0]);
        assert_false(answer);
        assert_ok(hibloom_contains(filter, "", 0, &answer), stores[0]);
        assert_true(answer);
        drop_and_close(filter);
    }
}

/* ---- Damage ------------------------------------------------------------------------- */

struct damage {
    const char *script; /* KEYS: bitmap, copy of the spec, the filter's own; ARGV: another valid spec */
    hibloom_status status;
    bool own; /* to the filter's own spec: of all segments */
    bool cleared; /* clear makes it good */
    hibloom_status opened; /* when it is opened with its spec */
};

#define COPY_DELETED "redis.call('del', KEYS[2])"

static const struct damage damages[] = {
    {"redis.call('del', KEYS[1])", HIBLOOM_ENOTFOUND, false, true, HIBLOOM_ENOTFOUND},
    {"redis.call('set', KEYS[1], redis.call('getrange', KEYS[1], 0, -2))", HIBLOOM_ECORRUPT, false, true,
     HIBLOOM_ECORRUPT},
    {"redis.call('set', KEYS[1], 'x')", HIBLOOM_ECORRUPT, false, true, HIBLOOM_ECORRUPT},
    {"redis.call('del', KEYS[1]) redis.call('setbit', KEYS[1], 9, 1)", HIBLOOM_ECORRUPT, false, true, HIBLOOM_ECORRUPT},
    {"redis.call('setrange', KEYS[1], redis.call('strlen', KEYS[1]) - 1, '2')", HIBLOOM_ECORRUPT, false, true,
     HIBLOOM_ECORRUPT},
    {COPY_DELETED, HIBLOOM_ENOTFOUND, false, true, HIBLOOM_ENOTFOUND},
    {"redis.call('set', KEYS[2], ARGV[1])", HIBLOOM_EMISMATCH, false, true, HIBLOOM_EMISMATCH},
    {"redis.call('set', KEYS[2], 'what?')", HIBLOOM_ECORRUPT, false, true, HIBLOOM_ECORRUPT},
    {"redis.call('append', KEYS[2], 'x')", HIBLOOM_ECORRUPT, false, true, HIBLOOM_ECORRUPT},
    {"redis.call('del', KEYS[1], KEYS[2])", HIBLOOM_ENOTFOUND, false, true, HIBLOOM_ENOTFOUND},
    {"redis.call('del', KEYS[3])", HIBLOOM_ENOTFOUND, true, false, HIBLOOM_EMISMATCH},
    {"redis.call('set', KEYS[3], ARGV[1])", HIBLOOM_EMISMATCH, true, false, HIBLOOM_EMISMATCH},
    {"redis.call('set', KEYS[3], 'what?')", HIBLOOM_ECORRUPT, true, false, HIBLOOM_ECORRUPT},
};
enum { DAMAGES = sizeof damages / sizeof *damages };

#define OTHER_SPEC "bits=100000 hashes=7 segments=5 seed=5eee"

static void inflict(const struct damage *damage, uint32_t segment)
{
    redisReply *reply = redisCommand(redis, "EVAL %s 3 " NAME ":%u {" NAME ":%u}:spec {" NAME "}:spec %s",
                                     damage->script, segment, segment, OTHER_SPEC);

    assert_non_null(reply);
    assert_int_not_equal(reply->type, REDIS_REPLY_ERROR);
    freeReplyObject(reply);
}

enum { KNOWN = 60 };

/* Of the items the first that lies in this segment, or does not. */
static const hibloom_item *one_of(const hibloom *filter, const hibloom_item *items, uint32_t segment, bool inside)
{
    for (size_t i = 0; i < KNOWN; i++)
        if ((segment_of(filter, &items[i]) == segment) == inside)
            return &items[i];
    fail_msg("no such item among so few");
    return NULL;
}

static void assert_unwritten(const void *answers, size_t n)
{
    for (size_t i = 0; i < n; i++)
        assert_int_equal(((const unsigned char *)answers)[i], 0xA5);
}

/* Every call that touches the segment fails with the status; `item` lies in it. */
static void assert_calls_fail(hibloom *filter, const hibloom_item *items, const hibloom_item *item,
                              const struct damage *damage)
{
    hibloom_store *store = stores[0];
    bool answers[KNOWN];
    hibloom_info info;

    memset(answers, 0xA5, sizeof answers);
    assert_status(hibloom_contains(filter, item->data, item->len, answers), damage->status, store);
    assert_status(hibloom_contains_many(filter, items, KNOWN, answers), damage->status, store);
    assert_status(hibloom_get_info(filter, &info), damage->status, store);
    assert_status(hibloom_expire(filter, 1000), damage->status, store);
    assert_unwritten(answers, KNOWN);
    hibloom *opened = filter;
    assert_status(hibloom_open(&opened, store, NAME, hibloom_spec_of(filter)), damage->opened, store);
    if (!damage->own)
        assert_status(hibloom_open(&opened, store, NAME, NULL), damage->opened, store);
    assert_ptr_equal(opened, filter);
}

/* An add may set bits before it fails: then what is left is not what was lost. */
static void assert_adds_fail(hibloom *filter, const hibloom_item *items, const hibloom_item *item)
{
    bool answers[KNOWN];

    memset(answers, 0xA5, sizeof answers);
    for (int call = 0; call < 4; call++) {
        const hibloom_status status = call < 2 ? hibloom_add(filter, item->data, item->len, call == 1 ? answers : NULL)
                                               : hibloom_add_many(filter, items, KNOWN, call == 3 ? answers : NULL);
        if (status != HIBLOOM_ENOTFOUND && status != HIBLOOM_EMISMATCH && status != HIBLOOM_ECORRUPT)
            fail_msg("add %d: %s", call, hibloom_strerror(status));
    }
    assert_unwritten(answers, KNOWN);
}

static void assert_found(hibloom *filter, const hibloom_item *item, bool expected)
{
    bool found = !expected;

    assert_ok(hibloom_contains(filter, item->data, item->len, &found), stores[0]);
    assert_int_equal(found, expected);
}

/* Items of other segments are answered all the while. */
static void damage_once(const struct damage *damage, const char *text, uint32_t segment, const hibloom_item *items)
{
    hibloom *filter = open_text(text);
    const hibloom_item *inside = one_of(filter, items, segment, true), *outside = one_of(filter, items, segment, false);

    assert_ok(hibloom_add_many(filter, items, KNOWN, NULL), stores[0]);
    inflict(damage, segment);
    assert_calls_fail(filter, items, inside, damage);
    if (!damage->own) {
        assert_found(filter, outside, true);
        assert_ok(hibloom_add(filter, outside->data, outside->len, NULL), stores[0]);
    } else {
        assert_calls_fail(filter, items, outside, damage);
        assert_status(hibloom_clear(filter), damage->status, stores[0]);
        assert_status(hibloom_drop(filter), damage->status, stores[0]);
    }
    assert_adds_fail(filter, items, inside);
    hibloom_close(filter);
    test_command(redis, "FLUSHALL");
}

static void damage_to_any_one_segment_is_seen_by_all_that_touch_it(void **state)
{
    hibloom_item *items = make_items(KNOWN);

    (void)state;
    for (int s = 0; s < SMALL_SPECS; s++)
        for (int d = 0; d < DAMAGES; d++)
            for (uint32_t segment = 0; segment < 5; segment++)
                damage_once(&damages[d], specs[s], segment, items);
    for (int d = 0; d < DAMAGES; d++)
        damage_once(&damages[d], LARGE, (uint32_t)d % 3, items);
    free_items(items);
}

/* Beside a bitmap that is whole a copy that is gone is only written again. */
static void a_repair_makes_only_the_damaged_segment_anew(void **state)
{
    hibloom_item *items = make_items(KNOWN);

    (void)state;
    for (int i = 0; i < SPECS * DAMAGES; i++) {
        const struct damage *damage = &damages[i % DAMAGES];
        if (damage->own || i / DAMAGES == 3)
            continue;
        hibloom *filter = open_text(specs[i / DAMAGES]);
        const uint32_t segment = (uint32_t)i % hibloom_spec_of(filter)->segments;
        assert_ok(hibloom_add_many(filter, items, KNOWN, NULL), stores[0]);
        const bool kept = strcmp(damage->script, COPY_DELETED) == 0;
        const uint64_t lost = kept ? 0 : (uint64_t)test_command(redis, "BITCOUNT " NAME ":%u", segment) - SEAL_BITS;
        const uint64_t before = count_outside(hibloom_spec_of(filter)->segments) - lost;
        inflict(damage, segment);
        for (int times = 0; times < 2; times++) {
            assert_ok(hibloom_repair(stores[1], NAME), stores[1]);
            for (size_t j = 0; j < KNOWN; j++)
                assert_found(filter, &items[j], kept || segment_of(filter, &items[j]) != segment);
            assert_int_equal(count_outside(hibloom_spec_of(filter)->segments), before);
        }
        assert_ok(hibloom_add_many(filter, items, KNOWN, NULL), stores[0]);
        assert_ok(hibloom_repair(stores[1], NAME), stores[1]); /* whole: nothing is undone */
        for (size_t j = 0; j < KNOWN; j++)
            assert_found(filter, &items[j], true);
        drop_and_close(filter);
    }
    free_items(items);
}

/* ---- Life ----------------------------------------------------------------------------- */

/* How many keys have a time to live. */
static long long keys_that_expire(void)
{
    return test_command(redis, "EVAL %s 0", "local n = 0 for _, k in ipairs(redis.call('keys', '*')) do "
                                            "if redis.call('ttl', k) > 900 then n = n + 1 end end return n");
}

static void clear_expire_and_removal_are_of_all_segments(void **state)
{
    hibloom_item *items = make_items(KNOWN);

    (void)state;
    for (int s = 0; s < SPECS; s++) {
        hibloom *filter = open_text(specs[s]);
        const long long keys = 2 * hibloom_spec_of(filter)->segments + 1;
        hibloom_info before, after;
        assert_ok(hibloom_get_info(filter, &before), stores[0]);
        assert_ok(hibloom_add_many(filter, items, KNOWN, NULL), stores[0]);
        assert_ok(hibloom_expire(filter, 1000), stores[0]);
        assert_int_equal(keys_that_expire(), keys);
        assert_ok(hibloom_clear(filter), stores[0]);
        assert_int_equal(keys_that_expire(), keys);
        inflict(&damages[0], 2);
        assert_ok(hibloom_repair(stores[0], NAME), stores[0]);
        assert_int_equal(keys_that_expire(), keys);
        inflict(&damages[5], 1);
        assert_ok(hibloom_clear(filter), stores[0]);
        assert_int_equal(keys_that_expire(), keys);
        assert_int_equal(count_outside(hibloom_spec_of(filter)->segments), 0);
        assert_ok(hibloom_get_info(filter, &after), stores[0]);
        assert_true(after.bits_set == 0 && after.bytes == before.bytes && after.keys == before.keys);
        assert_ok(hibloom_expire(filter, 0), stores[0]);
        assert_int_equal(keys_that_expire(), 0);
        assert_int_equal(keys_stored(), keys);
        if (s % 2 == 0) {
            drop_and_close(filter);
            continue;
        }
        hibloom_close(filter);
        inflict(&damages[0], 3 % (uint32_t)(keys / 2));
        assert_ok(hibloom_delete(stores[0], NAME), stores[0]);
        assert_int_equal(keys_stored(), 0);
    }
    free_items(items);
}

static void a_time_to_live_takes_all_keys(void **state)
{
    (void)state;
    for (int s = 0; s < SPECS; s += 2) {
        hibloom *filter = open_text(specs[s]);
        assert_ok(hibloom_expire(filter, 1), stores[0]);
        test_sleep_ms(1100);
        for (int i = 0; i < 400 && keys_stored() != 0; i++)
            test_sleep_ms(5);
        assert_int_equal(keys_stored(), 0);
        assert_status(hibloom_add(filter, "x", 1, NULL), HIBLOOM_ENOTFOUND, stores[0]);
        assert_int_equal(keys_stored(), 0); /* its bits were taken back */
        hibloom_close(filter);
        drop_and_close(open_text(specs[s]));
    }
}

static void a_foreign_bitmap_is_in_the_way_and_stays_as_it_was(void **state)
{
    static const uint32_t places[] = {3, 0, 2, 200, 2};

    (void)state;
    for (int s = 0; s < SPECS; s++) {
        const hibloom_spec spec = spec_of(specs[s]);
        hibloom *filter;
        char key[32];
        snprintf(key, sizeof key, NAME ":%u", places[s]);
        test_command(redis, "SETBIT %s 1000 1", key);
        assert_status(hibloom_open(&filter, stores[0], NAME, &spec), HIBLOOM_EMISMATCH, stores[0]);
        assert_int_equal(keys_stored(), 1);
        assert_int_equal(test_command(redis, "BITCOUNT %s", key), 1);
        assert_int_equal(test_command(redis, "STRLEN %s", key), 126);
        test_command(redis, "DEL %s", key);
        test_command(redis, "LPUSH %s x", key);
        assert_status(hibloom_open(&filter, stores[0], NAME, &spec), HIBLOOM_ESERVER, stores[0]);
        assert_non_null(strstr(hibloom_store_error(stores[0]), "WRONGTYPE"));
        assert_int_equal(keys_stored(), 1);
        test_command(redis, "DEL %s", key);
        drop_and_close(open_text(specs[s]));
    }
}

static void a_server_that_takes_no_such_string_says_so_and_is_left_clean(void **state)
{
    /* with a seed: a drawn one may have four letters of the words, which then are not said */
    static const char *const texts[] = {"bits=67108864 hashes=7 seed=1",
                                        "bits=67108864 hashes=7 layout=partitioned seed=1",
                                        "bits=20000000 hashes=7 segments=2 seed=1", LARGE};

    (void)state;
    test_command(redis, "CONFIG SET proto-max-bulk-len 1mb");
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const hibloom_spec spec = spec_of(texts[i]);
        const bool in_steps = strcmp(texts[i], LARGE) == 0 || spec.layout == HIBLOOM_LAYOUT_PARTITIONED;
        hibloom *filter;
        assert_status(hibloom_open(&filter, stores[0], NAME, &spec), HIBLOOM_ESERVER, stores[0]);
        if (strstr(hibloom_store_error(stores[0]), "maximum allowed size") == NULL)
            fail_msg("%s: %s", texts[i], hibloom_store_error(stores[0]));
        if (in_steps) /* it was begun */
            assert_ok(hibloom_delete(stores[0], NAME), stores[0]);
        assert_int_equal(keys_stored(), 0);
    }
    test_command(redis, "CONFIG SET proto-max-bulk-len 512mb");
}

/* ---- Processes --------------------------------------------------------------------------- */

enum { PROCESSES = 8, RACE_ITEMS = 5000 };

/* What the processes of a test share. */
struct shared {
    const char *name;
    const char *text;      /* the spec's */
    uint64_t until_ms;
    size_t items;
    size_t opened[PROCESSES], answered[PROCESSES], in_the_way[PROCESSES];
    int failed[PROCESSES]; /* the first status that must not be, negative: of an add; 100: a wrong "no" */
    char specs[PROCESSES][HIBLOOM_SPEC_TEXT_SIZE];
    unsigned char told[PROCESSES][RACE_ITEMS];
};

static struct shared *new_shared(const char *text)
{
    struct shared *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    assert_true(shared != MAP_FAILED);
    shared->name = NAME;
    shared->text = text;
    shared->items = slow() ? RACE_ITEMS / 10 : RACE_ITEMS;
    return shared;
}

typedef void work(struct shared *shared, int i, hibloom_store *store);

static pid_t start(work *run, struct shared *shared, int i)
{
    const hibloom_connect_options options = {.command_timeout_ms = 60000, .commands = (hibloom_commands)(i % 2)};
    const pid_t pid = fork();
    hibloom_store *store;

    assert_true(pid >= 0);
    if (pid != 0)
        return pid;
    alarm(120);
    if (hibloom_connect(&store, redis_server_uri(server), &options) != HIBLOOM_OK)
        _exit(3);
    run(shared, i, store);
    hibloom_store_free(store);
    _exit(0);
}

static void wait_for(pid_t pid)
{
    int status = -1;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void run_all(work *run, struct shared *shared, int processes)
{
    pid_t pids[PROCESSES];

    for (int i = 0; i < processes; i++)
        pids[i] = start(run, shared, i);
    for (int i = 0; i < processes; i++)
        wait_for(pids[i]);
}

static hibloom *open_in_child(const struct shared *shared, hibloom_store *store)
{
    hibloom_spec spec;
    hibloom *filter;

    if (hibloom_spec_parse(&spec, shared->text) != HIBLOOM_OK ||
        hibloom_open(&filter, store, NAME, &spec) != HIBLOOM_OK)
        _exit(4);
    return filter;
}

/* ---- Opened by many at once ---------------------------------------------------------------- */

static void open_and_add_one(struct shared *shared, int i, hibloom_store *store)
{
    hibloom *filter = open_in_child(shared, store);

    if (hibloom_spec_format(hibloom_spec_of(filter), shared->specs[i], HIBLOOM_SPEC_TEXT_SIZE) != HIBLOOM_OK ||
        hibloom_add(filter, &i, sizeof i, NULL) != HIBLOOM_OK)
        _exit(5);
    hibloom_close(filter);
}

static uint64_t memory_used(void)
{
    redisReply *reply = redisCommand(redis, "INFO memory");
    uint64_t bytes = 0;

    assert_non_null(reply);
    assert_int_equal(sscanf(strstr(reply->str, "used_memory:"), "used_memory:%" SCNu64, &bytes), 1);
    freeReplyObject(reply);
    return bytes;
}

static void all_who_open_it_at_once_have_the_same_filter(void **state)
{
    (void)state;
    for (int round = 0; round < 10; round++) {
        struct shared *shared = new_shared(round % 2 == 0 ? UNSEEDED_LARGE : UNSEEDED_MANY);
        const uint64_t before = memory_used();
        hibloom *filter;
        bool found;
        run_all(open_and_add_one, shared, PROCESSES);
        assert_ok(hibloom_open(&filter, stores[0], NAME, NULL), stores[0]);
        const hibloom_spec *spec = hibloom_spec_of(filter);
        for (int i = 0; i < PROCESSES; i++) {
            assert_string_equal(shared->specs[i], shared->specs[0]);
            assert_ok(hibloom_contains(filter, &i, sizeof i, &found), stores[0]);
            assert_true(found);
        }
        assert_int_equal(keys_stored(), 2 * spec->segments + 1);
        assert_true(memory_used() - before < spec->bits / 8 * 5 / 4 + 4000000); /* clients' buffers among it */
        drop_and_close(filter);
        munmap(shared, sizeof *shared);
    }
}

/* ---- Killed half-way -------------------------------------------------------------------------- */

enum stored { NOTHING, CREATING, REMOVING, WHOLE, HALF, STATES };

/* What is stored, at one moment. */
static enum stored look(void)
{
    static const char script[] =
        "local spec = redis.call('get', '{" NAME "}:spec') "
        "if not spec then return 0 end "
        "if spec:sub(1, 9) == 'creating ' then return 1 end "
        "if spec:sub(1, 9) == 'removing ' then return 2 end "
        "for i = 0, tonumber(spec:match('segments=(%d+)')) - 1 do "
        "  if redis.call('getrange', '" NAME ":' .. i, -8, -1) ~= 'hibloom1' or "
        "     redis.call('get', '{" NAME ":' .. i .. '}:spec') ~= spec then return 4 end end "
        "return 3";

    return (enum stored)test_command(redis, "EVAL %s 0", script);
}

static void open_only(struct shared *shared, int i, hibloom_store *store)
{
    (void)i;
    hibloom_close(open_in_child(shared, store));
}

static void remove_only(struct shared *shared, int i, hibloom_store *store)
{
    (void)shared;
    (void)i;
    if (hibloom_delete(store, NAME) != HIBLOOM_OK)
        _exit(6);
}

/* How long the work takes if nobody dies. */
static uint64_t microseconds_of(work *run, struct shared *shared)
{
    struct timespec from, to;

    clock_gettime(CLOCK_MONOTONIC, &from);
    wait_for(start(run, shared, 0));
    clock_gettime(CLOCK_MONOTONIC, &to);
    return (uint64_t)((to.tv_sec - from.tv_sec) * 1000000 + (to.tv_nsec - from.tv_nsec) / 1000);
}

/* Looks until it is so, or for some seconds at most. */
static void wait_until(enum stored state)
{
    const uint64_t until = test_now_ms() + 3000;
    enum stored stored;

    while ((stored = look()) != state && test_now_ms() < until)
        assert_int_not_equal(stored, HALF);
}

/* Has a process work, and kills it at any moment, or once the state is seen;
 * what it has left. */
static enum stored kill_in(work *run, struct shared *shared, bool on_sight, enum stored state, uint64_t microseconds)
{
    const pid_t pid = start(run, shared, 0);
    enum stored stored;

    if (on_sight)
        wait_until(state);
    else
        usleep((useconds_t)microseconds);
    assert_int_not_equal(look(), HALF);
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    (void)look(); /* what it has sent is carried out before this is answered, or at the latest before the next */
    stored = look();
    assert_int_not_equal(stored, HALF);
    return stored;
}

/* After that anybody may open it, whole and empty, or remove it. */
static void assert_gone_on_with(enum stored stored, int i, const char *text)
{
    const hibloom_spec spec = spec_of(text);
    hibloom *filter = NULL;
    hibloom_info info;

    if (stored == CREATING || stored == REMOVING)
        assert_status(hibloom_repair(stores[0], NAME), HIBLOOM_ENOTFOUND, stores[0]);
    if (i % 3 == 0) {
        assert_status(hibloom_delete(stores[0], NAME), stored == NOTHING ? HIBLOOM_ENOTFOUND : HIBLOOM_OK, stores[0]);
        assert_int_equal(keys_stored(), 0);
    } else if (i % 3 == 1) {
        const bool gone = stored == NOTHING || stored == REMOVING;
        assert_status(hibloom_open(&filter, stores[0], NAME, NULL), gone ? HIBLOOM_ENOTFOUND : HIBLOOM_OK, stores[0]);
        assert_int_equal(look(), gone ? NOTHING : WHOLE);
        if (gone)
            assert_int_equal(keys_stored(), 0);
    }
    if (filter == NULL)
        assert_ok(hibloom_open(&filter, stores[0], NAME, &spec), stores[0]);
    assert_int_equal(look(), WHOLE);
    assert_ok(hibloom_get_info(filter, &info), stores[0]);
    assert_true(info.bits_set == 0 || stored == WHOLE);
    assert_ok(hibloom_add(filter, "x", 1, NULL), stores[0]);
    drop_and_close(filter);
}

static int kills(void) /* of each filter */
{
    return slow() ? 3 : 15;
}

static void print_states(const char *what, const int counts[STATES])
{
    print_message("%s killed: nothing %d, creating %d, removing %d, whole %d times\n", what, counts[NOTHING],
                  counts[CREATING], counts[REMOVING], counts[WHOLE]);
}

static void what_a_killed_creator_has_begun_is_gone_on_with(void **state)
{
    struct test_random random = test_random_new();
    int counts[STATES] = {0};

    (void)state;
    for (int s = 0; s < 2; s++) {
        struct shared *shared = new_shared(s == 0 ? UNSEEDED_LARGE : UNSEEDED_MANY);
        const uint64_t time = microseconds_of(open_only, shared);
        assert_ok(hibloom_delete(stores[0], NAME), stores[0]);
        for (int i = 0; i < kills(); i++) {
            const uint64_t moment = test_random_below(&random, time);
            const enum stored stored = kill_in(open_only, shared, i % 4 == 0, CREATING, moment);
            counts[stored]++;
            assert_gone_on_with(stored, i, shared->text);
        }
        munmap(shared, sizeof *shared);
    }
    print_states("creators", counts);
    assert_true(counts[CREATING] > 0);
}

static void what_a_killed_dropper_has_begun_is_gone_on_with(void **state)
{
    struct test_random random = test_random_new();
    int counts[STATES] = {0};

    (void)state;
    for (int s = 0; s < 2; s++) {
        struct shared *shared = new_shared(s == 0 ? UNSEEDED_LARGE : UNSEEDED_MANY);
        hibloom_close(open_text(shared->text));
        const uint64_t time = microseconds_of(remove_only, shared);
        for (int i = 0; i < kills(); i++) {
            hibloom *filter = open_text(shared->text);
            bool found = true;
            assert_ok(hibloom_add(filter, "x", 1, NULL), stores[0]);
            const uint64_t moment = test_random_below(&random, time);
            const enum stored stored = kill_in(remove_only, shared, i % 4 == 0, REMOVING, moment);
            counts[stored]++;
            const hibloom_status expected = stored == WHOLE ? HIBLOOM_OK : HIBLOOM_ENOTFOUND;
            assert_status(hibloom_contains(filter, "x", 1, &found), expected, stores[0]);
            assert_true(found);
            assert_status(hibloom_add(filter, "y", 1, NULL), expected, stores[0]);
            assert_gone_on_with(stored, i, shared->text);
            hibloom_close(filter);
        }
        munmap(shared, sizeof *shared);
    }
    print_states("droppers", counts);
    assert_true(counts[REMOVING] > 0);
}

/* ---- Overtaken half-way -------------------------------------------------------------------------
 *
 * Who is stopped half-way may find, when he goes on, that the filter was
 * removed and begun anew by the very same spec: its segments are gone, and the
 * mark is another one's. */

/* Has a process work, and stops it where the filter is in this state; whether
 * it was. */
static bool stop_in(work *run, struct shared *shared, enum stored state, pid_t *pid)
{
    *pid = start(run, shared, 0);
    wait_until(state);
    kill(*pid, SIGSTOP);
    assert_int_equal(waitpid(*pid, NULL, WUNTRACED), *pid);
    (void)look(); /* what it has sent is carried out before this is answered, or at the latest before the next */
    return look() == state;
}

static void who_is_overtaken_does_not_declare_done_what_is_not(void **state)
{
    static const char script[] =
        "for i = 0, 299 do redis.call('del', '" NAME ":' .. i, '{" NAME ":' .. i .. '}:spec') end "
        "redis.call('set', KEYS[3], 'creating ffffffffffffffff ' .. redis.call('get', KEYS[3]):match('hash=.*'))";
    struct shared *shared = new_shared(MANY);
    int overtaken[2] = {0, 0};

    (void)state;
    for (int i = 0; i < (slow() ? 4 : 20); i++) {
        const bool removal = i % 2 != 0;
        pid_t pid;
        if (removal)
            hibloom_close(open_text(MANY));
        else
            test_command(redis, "FLUSHALL");
        if (stop_in(removal ? remove_only : open_only, shared, removal ? REMOVING : CREATING, &pid)) {
            inflict(&(struct damage){.script = script}, 0);
            overtaken[removal]++;
        }
        kill(pid, SIGCONT);
        (void)waitpid(pid, NULL, 0); /* whether the filter was there to be removed is not of interest */
        assert_int_not_equal(look(), HALF);
        hibloom_close(open_text(MANY)); /* begun by whomever, it is brought to its end */
        assert_int_equal(look(), WHOLE);
    }
    print_message("overtaken: %d creators, %d removers\n", overtaken[0], overtaken[1]);
    assert_true(overtaken[0] > 0 && overtaken[1] > 0);
    munmap(shared, sizeof *shared);
}

/* ---- Opened, added to and dropped at once -------------------------------------------------------- */

static bool is_loss(hibloom_status status)
{
    return status == HIBLOOM_ENOTFOUND || status == HIBLOOM_EMISMATCH || status == HIBLOOM_ECORRUPT;
}

static void note(struct shared *shared, int i, int what)
{
    if (shared->failed[i] == 0)
        shared->failed[i] = what;
}

/* Each filter made has a seed of its own, so what was added by this handle is
 * in the filter that this handle gets answers of. */
static void add_and_ask(struct shared *shared, int i, hibloom *filter)
{
    enum { N = 20 };
    static uint64_t number;
    uint64_t numbers[N];
    hibloom_item items[N];
    bool found[N];

    for (int j = 0; j < N; j++) {
        numbers[j] = number++ * PROCESSES + (uint64_t)i;
        items[j] = (hibloom_item){&numbers[j], sizeof numbers[j]};
    }
    hibloom_status status = hibloom_add_many(filter, items, N, NULL);
    if (status == HIBLOOM_OK)
        status = hibloom_contains_many(filter, items, N, found);
    else if (!is_loss(status))
        note(shared, i, -(int)status);
    for (int j = 0; status == HIBLOOM_OK && j < N; j++)
        if (!found[j])
            note(shared, i, 100);
    shared->answered[i] += status == HIBLOOM_OK;
}

/* What adds have left that came too late is to be deleted by hand, see
 * hibloom.h: bitmaps without a spec. How many there were. */
static long long delete_strays(redisContext *context)
{
    static const char script[] =
        "local n = 0 "
        "for i = 0, 299 do "
        "  if redis.call('exists', '{" NAME ":' .. i .. '}:spec') == 0 then "
        "    n = n + redis.call('del', '" NAME ":' .. i) end end "
        "return n";

    return test_command(context, "EVAL %s 0", script);
}

static void open_add_and_perhaps_drop(struct shared *shared, int i, hibloom_store *store)
{
    struct test_random random = {(uint64_t)i + 1};
    redisContext *outside = redis_server_connect(server);
    hibloom_spec spec;

    if (hibloom_spec_parse(&spec, shared->text) != HIBLOOM_OK)
        _exit(4);
    while (test_now_ms() < shared->until_ms && shared->failed[i] == 0) {
        hibloom *filter = NULL;
        hibloom_status status = hibloom_open(&filter, store, NAME, &spec);
        shared->opened[i] += status == HIBLOOM_OK;
        if (status == HIBLOOM_EMISMATCH)
            shared->in_the_way[i] += delete_strays(outside) > 0;
        else if (status != HIBLOOM_OK)
            note(shared, i, (int)status);
        for (uint64_t times = test_random_below(&random, 4); filter != NULL && times > 0; times--)
            add_and_ask(shared, i, filter);
        if (filter != NULL && i % 2 == 0) {
            status = hibloom_drop(filter);
            if (status != HIBLOOM_OK && status != HIBLOOM_ENOTFOUND && status != HIBLOOM_EMISMATCH)
                note(shared, i, (int)status);
        }
        hibloom_close(filter);
    }
    redisFree(outside);
}

static void a_race_of_all_calls_gives_no_wrong_answer_and_leaves_nothing(void **state)
{
    static const char *const texts[] = {"bits=100000 hashes=7 segments=5", UNSEEDED_MANY, UNSEEDED_LARGE};

    (void)state;
    for (int s = 0; s < 3; s++) {
        struct shared *shared = new_shared(texts[s]);
        size_t opened = 0, answered = 0, in_the_way = 0;
        shared->until_ms = test_now_ms() + 700;
        run_all(open_add_and_perhaps_drop, shared, 6);
        for (int i = 0; i < 6; i++) {
            if (shared->failed[i] != 0)
                fail_msg("%s: process %d: %d", texts[s], i, shared->failed[i]);
            opened += shared->opened[i];
            answered += shared->answered[i];
            in_the_way += shared->in_the_way[i];
        }
        print_message("%s: opened %zu times, answered %zu, a bitmap in the way %zu\n", texts[s], opened, answered,
                      in_the_way);
        const hibloom_status status = hibloom_delete(stores[0], NAME);
        if (status != HIBLOOM_ENOTFOUND)
            assert_ok(status, stores[0]);
        (void)delete_strays(redis);
        assert_int_equal(keys_stored(), 0);
        munmap(shared, sizeof *shared);
    }
}

/* ---- Opened and dropped at once ------------------------------------------------------------------- */

static void open_and_perhaps_drop(struct shared *shared, int i, hibloom_store *store)
{
    hibloom_spec spec;

    if (hibloom_spec_parse(&spec, shared->text) != HIBLOOM_OK)
        _exit(4);
    while (test_now_ms() < shared->until_ms && shared->failed[i] == 0) {
        hibloom *filter = NULL;
        hibloom_status status = hibloom_open(&filter, store, shared->name, &spec);
        shared->opened[i] += status == HIBLOOM_OK;
        note(shared, i, (int)status);
        if (filter != NULL && i % 2 == 0) {
            status = hibloom_drop(filter);
            if (status != HIBLOOM_OK && status != HIBLOOM_ENOTFOUND)
                note(shared, i, 1000 + (int)status);
        }
        hibloom_close(filter);
    }
}

/* The specs have their seed, so that a filter made anew is like the one before
 * to its last letter, and one look at 100 keys of a long name takes the server
 * several turns, between which the others have theirs. */
static void whoever_opens_it_while_others_drop_it_has_a_whole_one(void **state)
{
    static const struct {
        const char *text;
        size_t name_len;
        int processes;
    } races[] = {{MANY, 4, 6}, {LARGE, 4, 3}, {"bits=3000000 hashes=7 segments=100 seed=5eed", 400, 6}};

    (void)state;
    for (size_t r = 0; r < sizeof races / sizeof *races; r++) {
        struct shared *shared = new_shared(races[r].text);
        char name[HIBLOOM_NAME_MAX + 1] = {0};
        size_t opened = 0;
        memset(name, 'n', races[r].name_len);
        shared->name = name;
        shared->until_ms = test_now_ms() + 700;
        run_all(open_and_perhaps_drop, shared, races[r].processes);
        for (int i = 0; i < races[r].processes; i++) {
            if (shared->failed[i] != 0)
                fail_msg("%s: process %d: %d", races[r].text, i, shared->failed[i]);
            opened += shared->opened[i];
        }
        print_message("%s: opened %zu times\n", races[r].text, opened);
        const hibloom_status status = hibloom_delete(stores[0], name);
        if (status != HIBLOOM_ENOTFOUND)
            assert_ok(status, stores[0]);
        assert_int_equal(keys_stored(), 0);
        munmap(shared, sizeof *shared);
    }
}

/* ---- Added to by many ------------------------------------------------------------------------------ */

static void add_all(struct shared *shared, int i, hibloom_store *store)
{
    static uint64_t numbers[RACE_ITEMS];
    static hibloom_item items[RACE_ITEMS];
    static bool is_new[RACE_ITEMS];
    const size_t n = shared->items, step = i % 2 == 0 ? n : n / 100;
    hibloom *filter = open_in_child(shared, store);

    for (size_t j = 0; j < n; j++) {
        numbers[j] = i < 2 ? j : n - 1 - j;
        items[j] = (hibloom_item){&numbers[j], sizeof numbers[j]};
    }
    for (size_t at = 0; at < n; at += step)
        if (hibloom_add_many(filter, items + at, step, is_new + at) != HIBLOOM_OK)
            _exit(5);
    for (size_t j = 0; j < n; j++)
        shared->told[i][numbers[j]] = is_new[j];
    hibloom_close(filter);
}

static void of_all_who_add_an_item_exactly_one_is_told(void **state)
{
    static const char *const texts[] = {"capacity=10000 error=1e-12 segments=5 seed=5eed",
                                        "capacity=10000 error=1e-12 segments=5 layout=blocked seed=5eed",
                                        "capacity=1000000 error=1e-12 segments=300 seed=5eed"};

    (void)state;
    for (int s = 0; s < 3; s++) {
        struct shared *shared = new_shared(texts[s]);
        hibloom *filter = open_text(texts[s]);
        hibloom_item *items = make_items(RACE_ITEMS);
        static bool found[RACE_ITEMS];
        run_all(add_all, shared, 4);
        assert_ok(hibloom_contains_many(filter, items, shared->items, found), stores[0]);
        for (size_t j = 0; j < shared->items; j++) {
            assert_int_equal(shared->told[0][j] + shared->told[1][j] + shared->told[2][j] + shared->told[3][j], 1);
            assert_true(found[j]);
        }
        free_items(items);
        drop_and_close(filter);
        munmap(shared, sizeof *shared);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(the_bits_lie_where_positions_says_and_nowhere_else, leave_nothing),
        cmocka_unit_test_teardown(beside_each_segment_lies_a_copy_of_the_spec, leave_nothing),
        cmocka_unit_test_teardown(a_batch_in_any_order_is_answered_in_its_own, leave_nothing),
        cmocka_unit_test_teardown(so_is_one_longer_than_what_is_put_in_order_at_a_time, leave_nothing),
        cmocka_unit_test_teardown(a_batch_may_be_of_no_item_or_one_or_the_empty_one, leave_nothing),
        cmocka_unit_test_teardown(damage_to_any_one_segment_is_seen_by_all_that_touch_it, leave_nothing),
        cmocka_unit_test_teardown(a_repair_makes_only_the_damaged_segment_anew, leave_nothing),
        cmocka_unit_test_teardown(clear_expire_and_removal_are_of_all_segments, leave_nothing),
        cmocka_unit_test_teardown(a_time_to_live_takes_all_keys, leave_nothing),
        cmocka_unit_test_teardown(a_foreign_bitmap_is_in_the_way_and_stays_as_it_was, leave_nothing),
        cmocka_unit_test_teardown(a_server_that_takes_no_such_string_says_so_and_is_left_clean, leave_nothing),
        cmocka_unit_test_teardown(all_who_open_it_at_once_have_the_same_filter, leave_nothing),
        cmocka_unit_test_teardown(what_a_killed_creator_has_begun_is_gone_on_with, leave_nothing),
        cmocka_unit_test_teardown(what_a_killed_dropper_has_begun_is_gone_on_with, leave_nothing),
        cmocka_unit_test_teardown(who_is_overtaken_does_not_declare_done_what_is_not, leave_nothing),
        cmocka_unit_test_teardown(a_race_of_all_calls_gives_no_wrong_answer_and_leaves_nothing, leave_nothing),
        cmocka_unit_test_teardown(whoever_opens_it_while_others_drop_it_has_a_whole_one, leave_nothing),
        cmocka_unit_test_teardown(of_all_who_add_an_item_exactly_one_is_told, leave_nothing),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
