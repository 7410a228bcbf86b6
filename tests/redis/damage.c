/* Each damage from outside has its status of hibloom.h and docs/failures.md, in each call. The filter is gone, is another
 * one, or is damaged, or something else has its name. Times and other clients are simulated instead. */
#include "redis/scripts.h"
#include "support/items.h"
#include "support/served.h"
#include "support/test.h"

#include <hiredis/hiredis.h>
#include <string.h>

#define ONE "bits=256 hashes=3 seed=5eed"
#define SEVERAL "bits=384 hashes=3 segments=3 seed=5eed"
#define LARGER "bits=512 hashes=3 seed=5eed"
#define GROWING "capacity=2 error=1e-6 growth=2 seed=5eed"
#define GROWING_SEVERAL "capacity=2 error=1e-6 growth=2 segments=2 seed=5eed"

/* Overwrites bytes near the end of a string: the checksum of the spec, the format, the key's state. */
#define WRITE(key, from_end, bytes) \
    "EVAL return(redis.call('setrange',KEYS[1],redis.call('strlen',KEYS[1])-" from_end ",'" bytes "')) 1 " key
#define ALTER(key) WRITE(key, "64", "none")
#define ALTER_LAST(key) WRITE(key, "1", "x")
#define MARK_AS_REMOVED(key) WRITE(key, "55", "x")
#define TAKE(number) "RENAME other:" number " seen:" number
#define CUT_SHORT(key) "EVAL return(redis.call('set',KEYS[1],redis.call('getrange',KEYS[1],0,-2))) 1 " key

enum { OK, GONE = HIBLOOM_ENOTFOUND, OTHER = HIBLOOM_EMISMATCH, DAMAGED = HIBLOOM_ECORRUPT };
enum { ITEMS = 12, FEW = 5 }; /* ITEMS have bits in each key, and FEW make a filter grow once */

/* Of the filter "seen". Beside it are "other", with the same text, and "larger". */
static const struct damage {
    const char *text;
    const char *commands[3];
    int call, reopen, open, repair, drop_by_name, drop; /* call: look-up, add, info. open: without a text */
} damages[] = {
    /* dropped, evicted, expired; of several keys the first tells */
    {ONE, {"DEL seen"}, GONE, OK, GONE, GONE, GONE, GONE},
    {SEVERAL, {"DEL seen:0 seen:1 seen:2"}, GONE, OK, GONE, GONE, GONE, GONE},
    {SEVERAL, {"DEL seen:0"}, GONE, OK, GONE, GONE, GONE, GONE},
    {SEVERAL, {MARK_AS_REMOVED("seen:0")}, GONE, OK, GONE, GONE, OK, OK},
    {SEVERAL, {"DEL seen:0", WRITE("seen:1", "53", "2999999999999999")}, GONE, OK, GONE, GONE, GONE, GONE},
    {SEVERAL, {"DEL seen:0", WRITE("seen:1", "53", "9999999999999999")}, GONE, OTHER, GONE, GONE, GONE, GONE},
    {GROWING, {"DEL seen seen:+1"}, GONE, OK, GONE, GONE, GONE, GONE},
    /* replaced, or lost and made again */
    {ONE, {"RENAME other seen"}, OTHER, OK, OK, OK, OK, OTHER},
    {ONE, {"RENAME larger seen"}, OTHER, OTHER, OK, OK, OK, OTHER},
    {SEVERAL, {TAKE("0"), TAKE("1"), TAKE("2")}, OTHER, OK, OK, OK, OK, OTHER},
    {GROWING, {"RENAME other seen", "RENAME other:+1 seen:+1"}, OTHER, OK, OK, OK, OK, OTHER},
    {SEVERAL, {"DEL seen:0", "RENAME larger seen"}, GONE, OTHER, OK, OK, OK, GONE},
    /* one of several keys was lost, or something else is in its place */
    {SEVERAL, {"DEL seen:1"}, DAMAGED, DAMAGED, DAMAGED, OK, OK, OK},
    {SEVERAL, {"RENAME other:1 seen:1"}, DAMAGED, DAMAGED, DAMAGED, OTHER, OK, OK},
    {SEVERAL, {"SET seen:1 x"}, DAMAGED, DAMAGED, DAMAGED, OTHER, OK, OK},
    {SEVERAL, {"DEL seen:1", "LPUSH seen:1 x"}, OTHER, OTHER, OTHER, OTHER, OK, OK},
    /* a further link was lost */
    {GROWING, {"DEL seen:+1"}, DAMAGED, DAMAGED, DAMAGED, DAMAGED, OK, OK},
    {GROWING, {"RENAME other:+1 seen:+1"}, DAMAGED, DAMAGED, DAMAGED, OTHER, OK, OK},
    {GROWING_SEVERAL, {"DEL seen:+1:1"}, DAMAGED, DAMAGED, DAMAGED, OK, OK, OK},
    /* SET overwrote it */
    {ONE, {"SET seen x"}, GONE, OTHER, OTHER, GONE, GONE, GONE},
    {SEVERAL, {"SET seen:0 x"}, GONE, OTHER, GONE, GONE, GONE, GONE},
    /* its end was altered; it was cut short; something was appended */
    {ONE, {ALTER("seen")}, DAMAGED, DAMAGED, DAMAGED, DAMAGED, DAMAGED, OK},
    {SEVERAL, {ALTER("seen:0")}, DAMAGED, DAMAGED, DAMAGED, DAMAGED, DAMAGED, OK},
    {SEVERAL, {ALTER_LAST("seen:1")}, DAMAGED, DAMAGED, DAMAGED, OTHER, DAMAGED, DAMAGED},
    {ONE, {CUT_SHORT("seen")}, DAMAGED, OTHER, OTHER, GONE, GONE, DAMAGED},
    {SEVERAL, {CUT_SHORT("seen:0")}, DAMAGED, OTHER, GONE, GONE, GONE, DAMAGED},
    {SEVERAL, {CUT_SHORT("seen:1")}, DAMAGED, DAMAGED, DAMAGED, OTHER, DAMAGED, DAMAGED},
    {ONE, {"APPEND seen x"}, OK, OTHER, OTHER, GONE, GONE, OK},
    {SEVERAL, {"APPEND seen:1 x"}, OK, OK, OK, OK, OK, OK},
    /* the name holds something else, or two filters */
    {ONE, {"DEL seen", "LPUSH seen x"}, OTHER, OTHER, OTHER, OTHER, OTHER, OTHER},
    {SEVERAL, {"DEL seen:0", "LPUSH seen:0 x"}, OTHER, OTHER, GONE, GONE, GONE, OTHER},
    {SEVERAL, {"RENAME larger seen"}, OK, OTHER, OTHER, OTHER, OTHER, OK},
};

static hibloom_item items[ITEMS];

static hibloom *make(const char *name, const char *text)
{
    const size_t n = strstr(text, "growth") != NULL ? FEW : ITEMS;
    hibloom *filter = test_open(ours, name, text);

    for (size_t i = 0; i < n; i++)
        assert_ok(hibloom_add(filter, items[i].data, items[i].len, NULL), ours);
    return filter;
}

static hibloom *make_damaged(const struct damage *d)
{
    test_command(redis, "FLUSHALL");
    hibloom *filter = make("seen", d->text);
    hibloom_close(make("other", d->text));
    hibloom_close(make("larger", LARGER));
    for (size_t i = 0; i < COUNT(d->commands) && d->commands[i] != NULL; i++)
        test_command(redis, d->commands[i]);
    return filter;
}

/* ---- Calls ---------------------------------------------------------------------------------------------------- */

static hibloom_status look(hibloom *filter)
{
    bool found[ITEMS];

    return hibloom_contains_many(filter, items, ITEMS, found);
}

static hibloom_status add(hibloom *filter)
{
    return hibloom_add_many(filter, items, ITEMS, NULL);
}

static hibloom_status get_info(hibloom *filter)
{
    hibloom_info info;

    return hibloom_get_info(filter, &info, sizeof info);
}

static hibloom_status open_any(hibloom *filter)
{
    hibloom *opened;
    const hibloom_status status = hibloom_open(&opened, ours, "seen", NULL);

    if (status == HIBLOOM_OK)
        hibloom_close(opened);
    return status;
}

static hibloom_status repair(hibloom *filter)
{
    return hibloom_repair(ours, "seen");
}

static hibloom_status drop_by_name(hibloom *filter)
{
    return hibloom_drop_by_name(ours, "seen");
}

static void check(const struct damage *d, const char *name, hibloom_status (*call)(hibloom *), int expected)
{
    hibloom *filter = make_damaged(d);
    const hibloom_status status = call(filter);

    if ((int)status != expected)
        fail_msg("%s, %s, %s: %s (%s), not %s", d->text, d->commands[0], name, hibloom_strerror(status),
                 hibloom_store_error(ours), hibloom_strerror((hibloom_status)expected));
    hibloom_close(filter);
}

static void each_damage_has_its_status(void **state)
{
    for (const struct damage *d = damages; d < damages + COUNT(damages); d++) {
        check(d, "look", look, d->call);
        check(d, "add", add, d->call);
        check(d, "info", get_info, d->call);
        check(d, "reopen", hibloom_reopen, d->reopen);
        check(d, "open", open_any, d->open);
        check(d, "repair", repair, d->repair);
        check(d, "drop by name", drop_by_name, d->drop_by_name);
        check(d, "drop", hibloom_drop, d->drop);
    }
}

static hibloom_status expire(hibloom *filter)
{
    return hibloom_expire(filter, 100000);
}

/* Of several keys the first says so. A client that died in the middle leaves it so. */
static void a_filter_that_is_being_removed_gets_no_time_to_live(void **state)
{
    static const struct damage removed[] = {{ONE, {MARK_AS_REMOVED("seen")}, 0, 0, 0, 0, 0, 0},
                                            {SEVERAL, {MARK_AS_REMOVED("seen:0")}, 0, 0, 0, 0, 0, 0},
                                            {GROWING, {MARK_AS_REMOVED("seen")}, 0, 0, 0, 0, 0, 0},
                                            {GROWING_SEVERAL, {MARK_AS_REMOVED("seen:0")}, 0, 0, 0, 0, 0, 0}};

    for (size_t i = 0; i < COUNT(removed); i++)
        check(&removed[i], "expire", expire, GONE);
}

/* ---- Names ---------------------------------------------------------------------------------------------------- */

static void a_key_of_a_filter_is_no_filter_of_that_name(void **state)
{
    static const char *const names[] = {"several:1", "growing:+1"};
    hibloom *filter;

    test_command(redis, "FLUSHALL");
    hibloom_close(make("several", SEVERAL));
    hibloom_close(make("growing", GROWING));
    for (size_t i = 0; i < COUNT(names); i++)
        assert_status(hibloom_open(&filter, ours, names[i], NULL), HIBLOOM_EMISMATCH, ours);
}

/* Not those of a key that is whole: somebody might delete it. */
static void words_tell_of_what_is_no_string(void **state)
{
    hibloom *several, *other, *none;

    test_command(redis, "FLUSHALL");
    several = make("several", SEVERAL);
    other = make("other", SEVERAL);
    test_command(redis, "DEL several:1");
    test_command(redis, "LPUSH several:1 x");
    assert_fails(hibloom_merge(other, several), HIBLOOM_EMISMATCH, ours, "a key of 'other' or 'several' holds");
    test_command(redis, "LPUSH there:0 x");
    assert_fails(hibloom_open(&none, ours, "there", NULL), HIBLOOM_ENOTFOUND, ours, "something else at there:0");
    hibloom_close(several);
    hibloom_close(other);
}

static void a_filter_in_the_way_of_a_growing_one_is_a_mismatch(void **state)
{
    hibloom *filter;

    test_command(redis, "FLUSHALL");
    hibloom_close(make("growing:+1", ONE));
    assert_status(hibloom_open(&filter, ours, "growing", GROWING), HIBLOOM_EMISMATCH, ours);
    test_command(redis, "FLUSHALL");
    filter = test_open(ours, "growing", GROWING);
    hibloom_close(make("growing:+1", ONE));
    assert_status(add(filter), HIBLOOM_EMISMATCH, ours);
    hibloom_close(filter);
}

/* An add began in a larger filter, which this one replaced. It turned bits there, and then more than a few here. */
static void late_bits_of_a_tail_are_taken_back_and_no_others(void **state)
{
    enum { TAIL = 256, EACH = 100 };
    struct commands undo = {0};
    void *reply;

    test_command(redis, "FLUSHALL");
    hibloom_close(make("seen", ONE));
    script_start(&undo, SCRIPT_UNDO, 1, 4 + 2 * EACH);
    for (const char *const *word = (const char *[]){"seen", "9999", "x", "9999", "200", NULL}; *word != NULL; word++)
        command_text(&undo, *word);
    for (int late = 0; late < 2; late++)
        for (unsigned bit = TAIL, turned = 0; turned < EACH; bit++)
            if (test_command(redis, late ? "SETBIT seen %u 1" : "GETBIT seen %u", bit) == !late && ++turned)
                command_number(&undo, bit);
    assert_int_equal(redisAppendFormattedCommand(redis, undo.bytes, undo.len), REDIS_OK);
    assert_int_equal(redisGetReply(redis, &reply), REDIS_OK);
    freeReplyObject(reply);
    commands_free(&undo);
    assert_ok(open_any(NULL), ours);
}

/* Limits count what others do again and again, and not the keys of one filter. Each key is emptied by itself. */
static void many_keys_are_no_reason_to_give_up(void **state)
{
    static const char slices[] = "capacity=100 error=0.1 window=1h slices=31";
    hibloom_item *many = items_new("in", 400);
    hibloom *filter = test_open(ours, "f", "capacity=100000 error=0.01 counters=4 segments=32");
    hibloom *same = test_open(ours, "f", NULL);
    bool found;

    assert_ok(hibloom_clear(filter), ours);
    assert_ok(hibloom_add_many(filter, many, 400, NULL), ours);
    assert_ok(hibloom_remove_many(same, many, 400, NULL), ours);
    hibloom_close(same);
    assert_dropped(filter, ours);
    hibloom_close(test_open(ours, "f", slices));
    test_command(redis, "DEL f"); /* the further slices are left over */
    filter = test_open(ours, "f", slices);
    assert_dropped(filter, ours);
    filter = test_open(ours, "f", GROWING);
    test_command(redis, "SADD f:+5 x"); /* in the place of a link, and none */
    assert_dropped(filter, ours);
    filter = test_open(ours, "f", "capacity=100 error=0.1 window=10s slices=2 segments=2");
    same = test_open(ours, "f", NULL);
    for (int i = 0; i < 8; i++)
        assert_ok(hibloom_clear(filter), ours);
    assert_ok(hibloom_contains(same, "x", 1, &found), ours); /* it learns of the clears of one key */
    assert_ok(hibloom_clear(same), ours);
    hibloom_close(same);
    assert_dropped(filter, ours);
    items_free(many);
}

int main(void)
{
    static int numbers[ITEMS];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_damage_has_its_status),
        cmocka_unit_test(a_filter_that_is_being_removed_gets_no_time_to_live),
        cmocka_unit_test(a_key_of_a_filter_is_no_filter_of_that_name),
        cmocka_unit_test(words_tell_of_what_is_no_string),
        cmocka_unit_test(a_filter_in_the_way_of_a_growing_one_is_a_mismatch),
        cmocka_unit_test(late_bits_of_a_tail_are_taken_back_and_no_others),
        cmocka_unit_test_setup(many_keys_are_no_reason_to_give_up, served_leave_nothing),
    };

    for (int i = 0; i < ITEMS; i++) {
        numbers[i] = i;
        items[i] = (hibloom_item){&numbers[i], sizeof numbers[i]};
    }
    return cmocka_run_group_tests(tests, served_set_up_store, served_tear_down_store);
}
