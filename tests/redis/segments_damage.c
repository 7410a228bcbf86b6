/* Damage to one segment of several: every call that touches it sees it, the
 * others go on, and repair, clear, expire and removal reach every segment. */
#include "support/segments.h"

#include <hiredis/hiredis.h>
#include <string.h>

struct damage {
    const char *script; /* KEYS: bitmap, copy of the spec, the filter's own; ARGV: another valid spec */
    hibloom_status status;
    bool own;              /* to the filter's own spec: of all segments */
    bool cleared;          /* clear makes it good */
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
    hibloom *filter = segments_open(text);
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
    hibloom_item *items = items_new("", KNOWN);

    (void)state;
    for (int s = 0; s < SMALL_SPECS; s++)
        for (int d = 0; d < DAMAGES; d++)
            for (uint32_t segment = 0; segment < 5; segment++)
                damage_once(&damages[d], segment_specs[s], segment, items);
    for (int d = 0; d < DAMAGES; d++)
        damage_once(&damages[d], LARGE, (uint32_t)d % 3, items);
    items_free(items);
}

/* Beside a bitmap that is whole a copy that is gone is only written again. */
static void a_repair_makes_only_the_damaged_segment_anew(void **state)
{
    hibloom_item *items = items_new("", KNOWN);

    (void)state;
    for (int i = 0; i < SEGMENT_SPECS * DAMAGES; i++) {
        const struct damage *damage = &damages[i % DAMAGES];
        if (damage->own || i / DAMAGES == 3)
            continue;
        hibloom *filter = segments_open(segment_specs[i / DAMAGES]);
        const uint32_t segment = (uint32_t)i % hibloom_spec_of(filter)->segments;
        assert_ok(hibloom_add_many(filter, items, KNOWN, NULL), stores[0]);
        const bool kept = strcmp(damage->script, COPY_DELETED) == 0;
        const uint64_t lost = kept ? 0 : (uint64_t)test_command(redis, "BITCOUNT " NAME ":%u", segment) - SEAL_BITS;
        const uint64_t before = segments_count(hibloom_spec_of(filter)->segments) - lost;
        inflict(damage, segment);
        for (int times = 0; times < 2; times++) {
            assert_ok(hibloom_repair(stores[1], NAME), stores[1]);
            for (size_t j = 0; j < KNOWN; j++)
                assert_found(filter, &items[j], kept || segment_of(filter, &items[j]) != segment);
            assert_int_equal(segments_count(hibloom_spec_of(filter)->segments), before);
        }
        assert_ok(hibloom_add_many(filter, items, KNOWN, NULL), stores[0]);
        assert_ok(hibloom_repair(stores[1], NAME), stores[1]); /* whole: nothing is undone */
        for (size_t j = 0; j < KNOWN; j++)
            assert_found(filter, &items[j], true);
        segments_drop(filter);
    }
    items_free(items);
}

/* How many keys have a time to live. */
static long long keys_that_expire(void)
{
    return test_command(redis, "EVAL %s 0",
                        "local n = 0 for _, k in ipairs(redis.call('keys', '*')) do "
                        "if redis.call('ttl', k) > 900 then n = n + 1 end end return n");
}

static void clear_expire_and_removal_are_of_all_segments(void **state)
{
    hibloom_item *items = items_new("", KNOWN);

    (void)state;
    for (int s = 0; s < SEGMENT_SPECS; s++) {
        hibloom *filter = segments_open(segment_specs[s]);
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
        assert_int_equal(segments_count(hibloom_spec_of(filter)->segments), 0);
        assert_ok(hibloom_get_info(filter, &after), stores[0]);
        assert_true(after.bits_set == 0 && after.bytes == before.bytes && after.keys == before.keys);
        assert_ok(hibloom_expire(filter, 0), stores[0]);
        assert_int_equal(keys_that_expire(), 0);
        assert_int_equal(keys_stored(), keys);
        if (s % 2 == 0) {
            segments_drop(filter);
            continue;
        }
        hibloom_close(filter);
        inflict(&damages[0], 3 % (uint32_t)(keys / 2));
        assert_ok(hibloom_delete(stores[0], NAME), stores[0]);
        assert_int_equal(keys_stored(), 0);
    }
    items_free(items);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SEGMENTS_TEST(damage_to_any_one_segment_is_seen_by_all_that_touch_it),
        SEGMENTS_TEST(a_repair_makes_only_the_damaged_segment_anew),
        SEGMENTS_TEST(clear_expire_and_removal_are_of_all_segments),
    };

    return cmocka_run_group_tests(tests, segments_set_up, segments_tear_down);
}
