/* Commands that come when nobody expects them any more, or come in part: a clear
 * that arrives behind another one, a drop that was cut, bits that were refused,
 * an undo that meets a filter whose magic somebody else has just hit. */
#include "redis/record.h"
#include "redis/scripts.h"
#include "support/record.h"
#include "support/segments.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>

#define SPEC "bits=20000 hashes=5 seed=5eed"

/* Where a key has its trailer, and "GENERATION ID" in it. */
static void expect(struct commands *out, const char *key)
{
    struct stored_record stored;

    record_stored(redis, key, &stored);
    command_number(out, stored.length - TRAILER);
    command_argument(out, (struct argument){stored.trailer + RECORD_IDENTITY_AT, RECORD_IDENTITY});
}

static redisReply *carry(struct commands *commands)
{
    void *reply = NULL;

    assert_false(commands->failed);
    assert_int_equal(redisAppendFormattedCommand(redis, commands->bytes, commands->len), REDIS_OK);
    assert_int_equal(redisGetReply(redis, &reply), REDIS_OK);
    commands_free(commands);
    return reply;
}

static redisReply *clear_of_epoch(uint64_t epoch)
{
    struct commands out = {0};

    script_start(&out, SCRIPT_CLEAR, 1, 4);
    command_text(&out, NAME);
    expect(&out, NAME);
    command_number(&out, 2500);
    command_number(&out, epoch);
    return carry(&out);
}

static void a_clear_that_arrives_behind_another_one_empties_nothing(void **state)
{
    hibloom *filter = test_open(stores[0], NAME, SPEC);
    bool found = false;

    (void)state;
    redisReply *reply = clear_of_epoch(0); /* its answer was lost, say; so it is made once more */
    assert_int_equal(reply->type, REDIS_REPLY_INTEGER);
    freeReplyObject(reply);
    assert_ok(hibloom_clear(filter), stores[0]); /* which finds another epoch than it knew */
    assert_ok(hibloom_add(filter, "x", 1, NULL), stores[0]);
    for (uint64_t epoch = 0; epoch < 2; epoch++) {
        reply = clear_of_epoch(epoch); /* and now the first one arrives */
        assert_int_equal(reply->type, REDIS_REPLY_STRING);
        freeReplyObject(reply);
    }
    assert_ok(hibloom_contains(filter, "x", 1, &found), stores[0]);
    assert_true(found);
    hibloom_close(filter);
}

static void a_drop_that_was_cut_goes_on_by_the_same_handle(void **state)
{
    hibloom *filter = test_open(stores[0], NAME, "bits=20000 hashes=5 seed=5eed segments=4");
    struct stored_record root;

    (void)state;
    record_stored(redis, NAME ":0", &root);
    test_command(redis, "SETRANGE %s:0 %llu x", NAME, (unsigned long long)root.length - TRAILER + STATE_AT);
    test_command(redis, "UNLINK %s:1", NAME); /* so far it came */
    assert_ok(hibloom_drop(filter), stores[0]);
    assert_int_equal(test_command(redis, "DBSIZE"), 0);
    hibloom_close(filter);
}

/* The server refuses the bits and takes UNLINK: what it has refused is no bit of
 * ours in the string that took the name meanwhile. */
static hibloom_status add_to_a_bitmap_on_a_full_server(bool *is_new)
{
    hibloom *stale = test_open(stores[0], NAME, SPEC), *bare;
    bool found = false;

    assert_ok(hibloom_add(stale, "y", 1, NULL), stores[0]); /* a fresh guard */
    test_command(redis, "DEL %s", NAME);
    bare = test_attach(stores[1], NAME, SPEC);
    assert_ok(hibloom_add(bare, "item", 4, NULL), stores[1]);
    test_command(redis, "CONFIG SET maxmemory 1");
    const hibloom_status status = hibloom_add(stale, "item", 4, is_new);
    test_command(redis, "CONFIG SET maxmemory 0");
    assert_ok(hibloom_contains(bare, "item", 4, &found), stores[1]);
    assert_true(found);
    hibloom_close(bare);
    hibloom_close(stale);
    test_command(redis, "DEL %s", NAME);
    return status;
}

static void bits_that_were_refused_are_nobodys_to_take_back(void **state)
{
    (void)state;
    for (int exact = 0; exact < 2; exact++) {
        hibloom_status status = HIBLOOM_ENOTFOUND;
        bool is_new;

        for (int tries = 0; tries < 20 && status == HIBLOOM_ENOTFOUND; tries++) /* a slow one asks first */
            status = add_to_a_bitmap_on_a_full_server(exact ? &is_new : NULL);
        assert_int_equal(status, HIBLOOM_EUNAVAILABLE);
    }
}

static void who_may_not_pexpire_loses_no_time_to_live(void **state)
{
    hibloom *filter = test_open(stores[0], NAME, SPEC);
    bool found = false;

    (void)state;
    assert_ok(hibloom_add(filter, "x", 1, NULL), stores[0]);
    test_command(redis, "EXPIRE %s 100", NAME);
    test_command(redis, "ACL SETUSER default -pexpire");
    const hibloom_status status = hibloom_clear(filter);
    test_command(redis, "ACL SETUSER default +pexpire");
    assert_status(status, HIBLOOM_EDENIED, stores[0]);
    assert_ok(hibloom_contains(filter, "x", 1, &found), stores[0]);
    assert_true(found);
    assert_in_range(test_command(redis, "TTL %s", NAME), 1, 100);
    hibloom_close(filter);
}

/* Bits that one adder takes back lie in the bitmap of a filter that another adder
 * has hit in its magic: an item of that filter may count on them by now. */
static void a_filter_whose_magic_was_hit_keeps_its_bits(void **state)
{
    static const char identity[] = "1763740000123456 0123456789abcdef"; /* of a filter that is gone */
    hibloom *filter = test_open(stores[0], NAME, SPEC);
    struct stored_record stored;
    struct commands out = {0};
    bool found = false;

    (void)state;
    assert_ok(hibloom_add(filter, "x", 1, NULL), stores[0]);
    record_stored(redis, NAME, &stored);
    const unsigned long long last = stored.length * 8 - 1, hit = last - 3; /* '1' is 0x31: 0x08 is unset there */
    test_command(redis, "SETBIT %s %llu 1", NAME, hit);

    hibloom_position at[5];
    assert_ok(hibloom_positions(hibloom_spec_of(filter), "x", 1, at), NULL);
    script_start(&out, SCRIPT_UNDO, 1, 4 + 5);
    command_text(&out, NAME);
    command_text(&out, "9000");
    command_text(&out, identity);
    command_text(&out, "8900");
    command_text(&out, "5"); /* are known to have been 0 when they were set */
    for (int i = 0; i < 5; i++)
        command_number(&out, at[i].bit);
    freeReplyObject(carry(&out));

    test_command(redis, "SETBIT %s %llu 0", NAME, hit); /* the other adder's undo */
    assert_ok(hibloom_contains(filter, "x", 1, &found), stores[0]);
    assert_true(found);
    hibloom_close(filter);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SEGMENTS_TEST(a_clear_that_arrives_behind_another_one_empties_nothing),
        SEGMENTS_TEST(a_drop_that_was_cut_goes_on_by_the_same_handle),
        SEGMENTS_TEST(bits_that_were_refused_are_nobodys_to_take_back),
        SEGMENTS_TEST(who_may_not_pexpire_loses_no_time_to_live),
        SEGMENTS_TEST(a_filter_whose_magic_was_hit_keeps_its_bits),
    };

    return cmocka_run_group_tests(tests, segments_set_up, segments_tear_down);
}
