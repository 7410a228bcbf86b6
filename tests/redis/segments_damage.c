/* Damage to one segment of several: every call that touches it sees it, the
 * others go on, and repair, clear, expire and removal reach every segment. */
#include "support/record.h"
#include "support/segments.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>

/* What a repair makes of a key that is not the root: it makes it anew, takes it as
 * it is, or refuses until the key is deleted. */
enum repaired { ANEW, TAKEN, REFUSED };

struct damage {
    const char *script;            /* KEYS: the key, its root, the same key of another filter; ARGV: its number */
    hibloom_status status, opened; /* of calls on the key; of opening it */
    hibloom_status root_status, root_opened; /* the same where the key is the root */
    enum repaired repaired;
};

#define LEN "local len = redis.call('strlen', KEYS[1]) "
#define BYTE(from_end, byte) LEN "redis.call('setrange', KEYS[1], len - " from_end ", '" byte "')"
/* Over the key's id in the list of a root of five. */
#define ENTRY(text) \
    "local at = redis.call('strlen', KEYS[2]) - 92 " \
    "at = at - tonumber(redis.call('getrange', KEYS[2], at + 1, at + 4)) - 16 * (5 - ARGV[1]) " \
    "redis.call('setrange', KEYS[2], at, '" text "')"
#define FOREIGN "redis.call('set', KEYS[1], redis.call('get', KEYS[3]))"

/* Columns are counted from the end: the first of the generation is number 53. */
static const struct damage damages[] = {
    {"redis.call('del', KEYS[1])", HIBLOOM_ECORRUPT, HIBLOOM_ECORRUPT, HIBLOOM_ENOTFOUND, HIBLOOM_ENOTFOUND, ANEW},
    {"redis.call('set', KEYS[1], redis.call('getrange', KEYS[1], 0, -2))", HIBLOOM_ECORRUPT, HIBLOOM_ECORRUPT,
     HIBLOOM_ECORRUPT, HIBLOOM_EMISMATCH, REFUSED},
    {"redis.call('set', KEYS[1], 'x')", HIBLOOM_ECORRUPT, HIBLOOM_ECORRUPT, HIBLOOM_ENOTFOUND, HIBLOOM_EMISMATCH,
     REFUSED},
    {"redis.call('set', KEYS[1], '\\0\\0')", HIBLOOM_ECORRUPT, HIBLOOM_ECORRUPT, HIBLOOM_ENOTFOUND, HIBLOOM_ENOTFOUND,
     ANEW},
    {"redis.call('del', KEYS[1]) redis.call('rpush', KEYS[1], 'x')", HIBLOOM_EMISMATCH, HIBLOOM_EMISMATCH,
     HIBLOOM_EMISMATCH, HIBLOOM_EMISMATCH, REFUSED},
    {BYTE("1", "2"), HIBLOOM_ECORRUPT, HIBLOOM_ECORRUPT, HIBLOOM_ECORRUPT, HIBLOOM_EMISMATCH, REFUSED},
    {BYTE("53", "2"), HIBLOOM_ECORRUPT, HIBLOOM_ECORRUPT, HIBLOOM_EMISMATCH, HIBLOOM_ECORRUPT, REFUSED}, /* newer */
    {BYTE("53", "0"), HIBLOOM_ECORRUPT, HIBLOOM_ECORRUPT, HIBLOOM_EMISMATCH, HIBLOOM_ECORRUPT, ANEW},    /* older */
    {LEN "local i = redis.call('getrange', KEYS[1], len - 36, len - 36) "
         "redis.call('setrange', KEYS[1], len - 36, i == '5' and '6' or '5')", /* its id */
     HIBLOOM_ECORRUPT, HIBLOOM_ECORRUPT, HIBLOOM_ECORRUPT, HIBLOOM_ECORRUPT, TAKEN},
    {FOREIGN, HIBLOOM_ECORRUPT, HIBLOOM_ECORRUPT, HIBLOOM_EMISMATCH, HIBLOOM_ECORRUPT, ANEW},
    /* not in the way of calls on the keys: another entry in the list; the text behind the root's bits */
    {ENTRY("0123456789abcdef"), HIBLOOM_OK, HIBLOOM_ECORRUPT, HIBLOOM_OK, HIBLOOM_ECORRUPT, TAKEN},
    /* one that is no id */
    {ENTRY("p"), HIBLOOM_OK, HIBLOOM_ECORRUPT, HIBLOOM_OK, HIBLOOM_ECORRUPT, TAKEN},
    {"local len = redis.call('strlen', KEYS[2]) redis.call('setrange', KEYS[2], len - 93, 'x')", HIBLOOM_OK,
     HIBLOOM_ECORRUPT, HIBLOOM_OK, HIBLOOM_ECORRUPT, REFUSED},
};
enum { NEWER = 6, DAMAGES = sizeof damages / sizeof *damages, FOR_FIVE_KEYS = 3 };

/* Another filter of the same spec, older than the one that is damaged, whose keys
 * may be put in the place of its own. */
static void make_foreign(const char *text)
{
    hibloom_close(test_open(stores[0], "foreign", text));
}

static void inflict(const struct damage *damage, uint32_t segment)
{
    redisReply *reply = redisCommand(redis, "EVAL %s 3 " NAME ":%u " NAME ":0 foreign:%u %u", damage->script, segment,
                                     segment, segment);

    assert_non_null(reply);
    if (reply->type == REDIS_REPLY_ERROR)
        fail_msg("%s: %s", damage->script, reply->str);
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
                              hibloom_status status)
{
    hibloom_store *store = stores[0];
    bool answers[KNOWN];
    hibloom_info info;

    memset(answers, 0xA5, sizeof answers);
    assert_status(hibloom_contains(filter, item->data, item->len, answers), status, store);
    assert_status(hibloom_contains_many(filter, items, KNOWN, answers), status, store);
    assert_status(hibloom_get_info(filter, &info), status, store);
    assert_status(hibloom_expire(filter, 1000), status, store);
    assert_unwritten(answers, KNOWN);
}

/* Without a spec, what lies at the root's place and is no root is no filter. */
static void assert_opening_fails(hibloom *filter, const struct damage *damage, bool root)
{
    const hibloom_status status = root ? damage->root_opened : damage->opened;
    hibloom *opened = filter;

    if (status != HIBLOOM_ENOTFOUND) /* with a spec it would be made */
        assert_status(hibloom_open(&opened, stores[0], NAME, hibloom_spec_of(filter)), status, stores[0]);
    assert_status(hibloom_open(&opened, stores[0], NAME, NULL),
                  root && status == HIBLOOM_EMISMATCH ? HIBLOOM_ENOTFOUND : status, stores[0]);
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

static void damage_once(const struct damage *damage, const char *text, uint32_t segment, const hibloom_item *items)
{
    make_foreign(text);
    hibloom *filter = segments_open(text);
    const hibloom_item *inside = one_of(filter, items, segment, true);
    const hibloom_status status = segment == 0 ? damage->root_status : damage->status;

    assert_ok(hibloom_add_many(filter, items, KNOWN, NULL), stores[0]);
    inflict(damage, segment);
    if (status != HIBLOOM_OK) {
        assert_calls_fail(filter, items, inside, status);
        assert_adds_fail(filter, items, inside);
        assert_status(hibloom_clear(filter), status, stores[0]);
    } else {
        assert_found(filter, inside, true);
        assert_ok(hibloom_add_many(filter, items, KNOWN, NULL), stores[0]);
    }
    assert_opening_fails(filter, damage, segment == 0);
    hibloom_close(filter);
    test_command(redis, "FLUSHALL");
}

/* Items of other segments are answered all the while; they are added, too, but
 * where the root is damaged, which may be asked first. */
static void damage_to_others_is_no_matter(const struct damage *damage, const char *text, uint32_t segment,
                                          const hibloom_item *items)
{
    make_foreign(text);
    hibloom *filter = segments_open(text);
    const hibloom_item *outside = one_of(filter, items, segment, false);

    assert_ok(hibloom_add_many(filter, items, KNOWN, NULL), stores[0]);
    inflict(damage, segment);
    assert_found(filter, outside, true);
    const hibloom_status status = hibloom_add(filter, outside->data, outside->len, NULL);
    if (segment != 0 || status != damage->root_status)
        assert_ok(status, stores[0]);
    assert_found(filter, outside, true);
    hibloom_close(filter);
    test_command(redis, "FLUSHALL");
}

static void damage_to_any_one_segment_is_seen_by_all_that_touch_it(void **state)
{
    hibloom_item *items = items_new("", KNOWN);

    (void)state;
    for (int s = 0; s < SMALL_SPECS; s++)
        for (int d = 0; d < DAMAGES; d++)
            for (uint32_t segment = 0; segment < 5; segment++) {
                damage_once(&damages[d], segment_specs[s], segment, items);
                damage_to_others_is_no_matter(&damages[d], segment_specs[s], segment, items);
            }
    for (int d = 0; d < DAMAGES - FOR_FIVE_KEYS; d++)
        damage_once(&damages[d], LARGE, (uint32_t)d % 3, items);
    items_free(items);
}

static void repair(const struct damage *damage, uint32_t segment)
{
    if (damage->repaired == REFUSED) {
        const hibloom_status refused = damage->status == HIBLOOM_OK ? HIBLOOM_ECORRUPT : HIBLOOM_EMISMATCH;
        assert_status(hibloom_repair(stores[1], NAME), refused, stores[1]);
        if (refused == HIBLOOM_ECORRUPT)
            return;
        test_command(redis, "DEL " NAME ":%u", segment);
    }
    assert_ok(hibloom_repair(stores[1], NAME), stores[1]);
}

/* What was added since to the others, and to the key itself once it was repaired,
 * is not undone by another repair. */
static void damage_and_repair(const struct damage *damage, const char *text, uint32_t segment,
                              const hibloom_item *items)
{
    make_foreign(text);
    hibloom *filter = segments_open(text);
    const bool kept = damage->repaired == TAKEN;
    bool found = true;

    const hibloom_item *inside = one_of(filter, items, segment, true);
    assert_ok(hibloom_add_many(filter, items, KNOWN, NULL), stores[0]);
    inflict(damage, segment);
    repair(damage, segment);
    if (damage->status != HIBLOOM_OK) /* the handle from before does not know the key that there is now */
        assert_status(hibloom_contains(filter, inside->data, inside->len, &found), HIBLOOM_ECORRUPT, stores[0]);
    assert_true(found);
    hibloom_close(filter);
    if (damage->status == HIBLOOM_OK && damage->repaired == REFUSED)
        return;
    filter = segments_open(text);
    for (int times = 0; times < 2; times++) {
        for (size_t j = 0; j < KNOWN; j++)
            assert_found(filter, &items[j], kept || segment_of(filter, &items[j]) != segment);
        assert_ok(hibloom_repair(stores[1], NAME), stores[1]);
    }
    assert_ok(hibloom_add_many(filter, items, KNOWN, NULL), stores[0]);
    assert_ok(hibloom_repair(stores[1], NAME), stores[1]); /* whole: nothing is undone */
    for (size_t j = 0; j < KNOWN; j++)
        assert_found(filter, &items[j], true);
    assert_ok(hibloom_drop(filter), stores[0]);
    hibloom_close(filter);
    assert_ok(hibloom_delete(stores[0], "foreign"), stores[0]);
    assert_int_equal(keys_stored(), 0);
}

static void a_repair_makes_only_the_damaged_segment_anew(void **state)
{
    hibloom_item *items = items_new("", KNOWN);

    (void)state;
    for (int s = 0; s < SEGMENT_SPECS; s++)
        for (int d = 0; d < DAMAGES; d++) {
            const uint32_t segments = test_spec(segment_specs[s]).segments;
            if (segments == 300 || (segments != 5 && damages[d].status == HIBLOOM_OK))
                continue;
            damage_and_repair(&damages[d], segment_specs[s], 1 + (uint32_t)d % (segments - 1), items);
            test_command(redis, "FLUSHALL");
        }
    items_free(items);
}

/* Without the root there is no filter; one that is damaged is not made anew over
 * keys that somebody may still want. (One that says it is newer than all its keys
 * has lost all of them.) */
static void a_repair_does_not_make_a_root(void **state)
{
    (void)state;
    for (int d = 0; d < DAMAGES; d++) {
        make_foreign(SMALL);
        hibloom_close(segments_open(SMALL));
        inflict(&damages[d], 0);
        const long long keys = keys_stored();
        const hibloom_status status = hibloom_repair(stores[0], NAME);
        if (status != HIBLOOM_ENOTFOUND && status != HIBLOOM_ECORRUPT && status != HIBLOOM_EMISMATCH &&
            damages[d].repaired != TAKEN && d != NEWER)
            fail_msg("%s: %s", damages[d].script, hibloom_strerror(status));
        assert_int_equal(keys_stored(), keys);
        test_command(redis, "FLUSHALL");
    }
}

/* How many keys have a time to live. */
static long long keys_that_expire(void)
{
    return test_command(redis, "EVAL %s 0",
                        "local n = 0 for _, k in ipairs(redis.call('keys', '*')) do "
                        "if redis.call('ttl', k) > 900 then n = n + 1 end end return n");
}

static void assert_epochs(const hibloom_spec *spec, unsigned long long epoch, uint32_t but)
{
    struct stored_record record;
    char key[32];

    for (uint32_t i = 0; i < spec->segments; i++) {
        snprintf(key, sizeof key, NAME ":%u", i);
        record_stored(redis, key, &record);
        assert_int_equal(record.epoch, i == but ? 0 : epoch);
    }
}

static void clear_expire_and_removal_are_of_all_segments(void **state)
{
    hibloom_item *items = items_new("", KNOWN);

    (void)state;
    for (int s = 0; s < SEGMENT_SPECS; s++) {
        hibloom *filter = segments_open(segment_specs[s]);
        const long long keys = hibloom_spec_of(filter)->segments;
        hibloom_info before, after;
        assert_ok(hibloom_get_info(filter, &before), stores[0]);
        assert_ok(hibloom_add_many(filter, items, KNOWN, NULL), stores[0]);
        assert_ok(hibloom_expire(filter, 1000), stores[0]);
        assert_int_equal(keys_that_expire(), keys);
        assert_ok(hibloom_clear(filter), stores[0]);
        assert_int_equal(keys_that_expire(), keys);
        assert_epochs(hibloom_spec_of(filter), 1, UINT32_MAX);
        inflict(&damages[0], 2);
        assert_status(hibloom_clear(filter), HIBLOOM_ECORRUPT, stores[0]);
        assert_int_equal(keys_stored(), keys - 1); /* it is not made anew by that */
        assert_ok(hibloom_repair(stores[0], NAME), stores[0]);
        assert_int_equal(keys_that_expire(), keys);
        assert_status(hibloom_expire(filter, 0), HIBLOOM_ECORRUPT, stores[0]); /* it does not know all keys */
        hibloom_close(filter);
        filter = segments_open(segment_specs[s]);
        assert_ok(hibloom_add_many(filter, items, KNOWN, NULL), stores[0]);
        assert_ok(hibloom_clear(filter), stores[0]);
        assert_int_equal(keys_that_expire(), keys);
        assert_int_equal(segments_count(hibloom_spec_of(filter)), 0);
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
        inflict(&damages[0], 1 + (uint32_t)s % 2);
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
        SEGMENTS_TEST(a_repair_does_not_make_a_root),
        SEGMENTS_TEST(clear_expire_and_removal_are_of_all_segments),
    };

    return cmocka_run_group_tests(tests, segments_set_up, segments_tear_down);
}
