/* Growing filters where an ACL denies a command, or one of their keys: each call in turn, as a link has to be made, and under
 * four processes that make filters grow. It is said so, what others have added stays, they go on meanwhile, and so does
 * who was denied, once the right is back. */
#include "support/growers.h"
#include "support/items.h"
#include "support/record.h"
#include "support/served.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>

#define NAME "seen"
#define ALONE "capacity=20 error=1e-9 growth=2 seed=5eed"
#define SEGMENTED "capacity=20 error=1e-9 growth=2 segments=2 seed=5eed"

enum { IN = 30, MORE = 40 }; /* two links, and what takes three */

static hibloom_store *all; /* who may do everything */
static hibloom_item *in, *fresh, *others;
static bool asks_first; /* a script may ask, from Redis 7 on, whether what it needs would be denied */

/* ---- Calls ---------------------------------------------------------------------------------- */

struct denied {
    const char *text;
    hibloom_store *store;
    hibloom *filter; /* his, open before it is denied */
    size_t added;    /* of fresh, that were acknowledged */
};

/* One by one, so that it is known what was acknowledged. */
static hibloom_status add_each(struct denied *d, bool exact)
{
    bool is_new = true;

    for (size_t i = 0; i < MORE; i++) {
        const hibloom_status status = hibloom_add(d->filter, fresh[i].data, fresh[i].len, exact ? &is_new : NULL);
        if (status != HIBLOOM_OK)
            return status;
        assert_true(is_new);
        d->added = i + 1;
    }
    return HIBLOOM_OK;
}

static hibloom_status add(struct denied *d)
{
    return add_each(d, false);
}

static hibloom_status add_is_new(struct denied *d)
{
    return add_each(d, true);
}

static hibloom_status look_up(struct denied *d)
{
    bool found[IN];
    const hibloom_status status = hibloom_contains_many(d->filter, in, IN, found);

    if (status == HIBLOOM_OK)
        assert_int_equal(test_count_true(found, IN), IN);
    return status;
}

static hibloom_status reopen(struct denied *d)
{
    hibloom *again = NULL;
    const hibloom_status status = hibloom_open(&again, d->store, NAME, NULL);

    hibloom_close(again);
    return status;
}

static hibloom_status count(struct denied *d)
{
    hibloom_info info;
    const hibloom_status status = hibloom_get_info(d->filter, &info);

    if (status == HIBLOOM_OK)
        assert_true(info.estimated_items > IN - 2 && info.estimated_items < IN + 2);
    return status;
}

static hibloom_status expire(struct denied *d)
{
    return hibloom_expire(d->filter, 1000);
}

static hibloom_status clear(struct denied *d)
{
    return hibloom_clear(d->filter);
}

static hibloom_status drop(struct denied *d)
{
    return hibloom_drop(d->filter);
}

static hibloom_status delete_it(struct denied *d)
{
    return hibloom_delete(d->store, NAME);
}

static const struct call {
    const char *name;
    hibloom_status (*run)(struct denied *);
    bool clears, removes;
} calls[] = {
    {"add", add, false, false},          {"add, is_new", add_is_new, false, false},
    {"contains", look_up, false, false}, {"open", reopen, false, false},
    {"info", count, false, false},       {"expire", expire, false, false},
    {"clear", clear, true, false},       {"drop", drop, false, true},
    {"delete", delete_it, false, true},
};

enum { CALLS = sizeof calls / sizeof *calls };

/* ---- What is denied -------------------------------------------------------------------------- */

static void assert_denied(const struct denied *d, const struct call *call, const char *what, hibloom_status status)
{
    const char *words = hibloom_store_error(d->store);
    /* of a command within a script Redis 7.0 names none, and 6 says it in other words */
    const bool in_script = strstr(words, "ACL failure in script") != NULL ||
                           strstr(words, "The user executing the script") != NULL;
    char named[32];

    snprintf(named, sizeof named, "'%s'", what);
    if (status != HIBLOOM_EDENIED || (!in_script && strstr(words, what[0] == '-' ? "NOPERM" : named) == NULL))
        fail_msg("%s, %s: %s: %s", call->name, what, hibloom_strerror(status), words);
    if (strstr(words, NAME) == NULL || strstr(words, "5eed") != NULL)
        fail_msg("%s, %s: %s", call->name, what, words);
}

static size_t count_in(hibloom *filter, const hibloom_item *items, size_t n, hibloom_store *its)
{
    bool found[IN + MORE];

    assert_ok(hibloom_contains_many(filter, items, n, found), its);
    return test_count_true(found, n);
}

/* Others go on, and he does once he may: what was acknowledged is in. (A clear that may not have all keys empties those
 * that it may, as of any filter of several.) */
static void assert_goes_on(struct denied *d, const struct call *call, hibloom_status status, const char *what)
{
    const bool keeps = !call->clears || (status != HIBLOOM_OK && what[0] != '-');
    hibloom *filter = test_open(all, NAME, d->text);
    bool is_new[MORE];

    if (!call->removes || (status != HIBLOOM_OK && what[0] != '-' && asks_first) || count_in(filter, in, IN, all) > 0) {
        if (keeps && count_in(filter, in, IN, all) != IN)
            fail_msg("%s, %s: what was in is denied", call->name, what);
        if (count_in(filter, fresh, d->added, all) != d->added)
            fail_msg("%s, %s: what was acknowledged is denied", call->name, what);
        assert_ok(hibloom_add_many(filter, others, MORE, is_new), all);
        assert_int_equal(test_count_true(is_new, MORE), MORE);
        assert_ok(hibloom_add_many(d->filter, fresh, MORE, NULL), d->store);
        assert_int_equal(count_in(d->filter, fresh, MORE, d->store), MORE);
        assert_int_equal(count_in(d->filter, others, MORE, d->store), MORE);
    }
    assert_ok(hibloom_drop(filter), all);
    hibloom_close(filter);
    assert_int_equal(keys_with(redis, NAME), 0);
}

/* Denies it to a call on a filter that has a further link and will need more. Whether it was denied. */
static bool deny(const struct call *call, const char *text, hibloom_commands commands, const char *rule,
                 const char *what)
{
    hibloom_connect_options options = {.size = sizeof options, .commands = commands};
    struct denied d = {.text = text};
    char uri[128];

    hibloom *filter = test_open(all, NAME, text);
    assert_ok(hibloom_add_many(filter, in, IN, NULL), all);
    test_command(redis, "ACL SETUSER app reset on >secret ~* &* +@all");
    snprintf(uri, sizeof uri, "redis://app:secret@127.0.0.1:%d", redis_server_port(server));
    d.store = test_connect(uri, &options);
    assert_ok(hibloom_open(&d.filter, d.store, NAME, NULL), d.store);
    test_command(redis, rule);
    const hibloom_status status = call->run(&d);
    test_command(redis, "ACL SETUSER app resetkeys ~* +@all");
    if (status != HIBLOOM_OK)
        assert_denied(&d, call, what, status);
    if (call->removes && status == HIBLOOM_OK)
        assert_int_equal(keys_with(redis, NAME), 0);
    assert_goes_on(&d, call, status, what);
    hibloom_close(filter);
    hibloom_close(d.filter);
    hibloom_store_free(d.store);
    return status != HIBLOOM_OK;
}

static const char *const texts[] = {ALONE, SEGMENTED};

static void a_command_that_is_denied_stops_nobody_else(void **state)
{
    static const char *const commands[] = {"setbit",   "getbit", "bitfield", "bitfield_ro", "bitcount",
                                           "getrange", "strlen", "pttl",     "eval",        "time",
                                           "setrange", "unlink", "pexpire",  "persist"};

    (void)state;
    for (size_t c = 0; c < sizeof commands / sizeof *commands; c++) {
        unsigned denied = 0;
        for (size_t t = 0; t < (test_is_slow() ? 1 : 2); t++)
            for (size_t i = 0; i < CALLS; i++) {
                char rule[64];
                snprintf(rule, sizeof rule, "ACL SETUSER app -%s", commands[c]);
                denied += deny(&calls[i], texts[t], t == 0 ? HIBLOOM_COMMANDS_SETBIT : HIBLOOM_COMMANDS_BITFIELD, rule,
                               commands[c]);
            }
        print_message("%s: %u calls denied\n", commands[c], denied);
        /* each of them is needed for something */
        assert_true(denied > 0 || (test_is_slow() && strncmp(commands[c], "bitfield", 8) == 0));
    }
}

/* All keys but one, or those of a link. */
static void a_key_that_is_denied_stops_nobody_else(void **state)
{
    static const struct {
        const char *text, *keys;
    } rules[] = {
        {ALONE, "~seen:*"},
        {ALONE, "~seen ~seen:[0-9]*"},
        {ALONE, "~seen ~seen:[0-9]* ~seen:+[^1]* ~seen:+1?*"},
        {ALONE, "~seen ~seen:[0-9]* ~seen:+[^2]* ~seen:+2?*"},
        {SEGMENTED, "~seen:[^0]* ~seen"},
        {SEGMENTED, "~seen:[^1]* ~seen"},
        {SEGMENTED, "~seen ~seen:[0-9]* ~seen:+[^1]* ~seen:+1:[^0]*"},
        {SEGMENTED, "~seen ~seen:[0-9]* ~seen:+[^1]* ~seen:+1:[^1]*"},
        {SEGMENTED, "~seen ~seen:[0-9]* ~seen:+[^2]* ~seen:+2:[^0]*"},
        {SEGMENTED, "~seen ~seen:[0-9]* ~seen:+[^2]* ~seen:+2:[^1]*"},
    };

    (void)state;
    for (size_t r = 0; r < sizeof rules / sizeof *rules; r += test_is_slow() ? 3 : 1) {
        unsigned denied = 0;
        for (size_t i = 0; i < CALLS; i++) {
            char rule[128];
            snprintf(rule, sizeof rule, "ACL SETUSER app resetkeys %s", rules[r].keys);
            denied += deny(&calls[i], rules[r].text, HIBLOOM_COMMANDS_BITFIELD, rule, "-key");
        }
        print_message("%s: %u calls denied\n", rules[r].keys, denied);
        assert_true(denied >= 2);
    }
}

/* ---- Under load --------------------------------------------------------------------------------- */

/* Rights come and go while links are made, so that any step of it is the first that is denied. */
static void rights_come_and_go_while_it_grows(void **state)
{
    static const char *const commands[] = {"eval", "setrange", "pttl", "persist", "time", "getrange", "bitcount"};
    char uri[128];

    (void)state;
    for (size_t t = 0; t < 2; t++) {
        struct growers *growers = growers_new();
        struct test_random random = test_random_new();
        test_command(redis, "ACL SETUSER app reset on >secret ~* &* +@all");
        snprintf(uri, sizeof uri, "redis://app:secret@127.0.0.1:%d", redis_server_port(server));
        growers->uri = uri;
        growers->prefix = NAME;
        growers->text = texts[t];
        growers->may_be_denied = true;
        growers->options = (hibloom_connect_options){.size = sizeof growers->options};
        growers_start(growers);
        for (int i = 0; i < (test_is_slow() ? 20 : 60); i++) {
            const char *command = commands[test_random_below(&random, sizeof commands / sizeof *commands)];
            growers_wait_calls(growers, 1);
            test_sleep_ms((unsigned)test_random_below(&random, 4));
            test_command(redis, "ACL SETUSER app -%s", command);
            test_sleep_ms((unsigned)test_random_below(&random, 4));
            test_command(redis, "ACL SETUSER app +%s", command);
        }
        growers_wait_calls(growers, 20);
        growers_stop(growers);
        growers_check(growers, all, 0, 1); /* a call that was denied tells nobody what was new */
        growers_free(growers);
        assert_int_equal(test_command(redis, "DBSIZE"), 0);
    }
}

static int set_up(void **state)
{
    const int result = served_set_up(state);

    all = test_connect(redis_server_uri(server), NULL);
    asks_first = test_command(redis, "EVAL %s 0", "return redis.acl_check_cmd and 1 or 0") == 1;
    in = items_new("in", IN);
    fresh = items_new("fresh", MORE);
    others = items_new("other", MORE);
    return result;
}

static int tear_down(void **state)
{
    hibloom_store_free(all);
    items_free(in);
    items_free(fresh);
    items_free(others);
    return served_tear_down(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_command_that_is_denied_stops_nobody_else, served_leave_nothing),
        cmocka_unit_test_teardown(a_key_that_is_denied_stops_nobody_else, served_leave_nothing),
        cmocka_unit_test_teardown(rights_come_and_go_while_it_grows, served_leave_nothing),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
