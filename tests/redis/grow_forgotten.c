/* A growing filter whose root forgot its growth, under a user that may not write. */
#include "support/served.h"
#include "support/test.h"

#include <hiredis/hiredis.h>

#define NAME "seen"

enum { FIRST = 100, ALL = 200, STEPS = 40 }; /* numbers: from FIRST on they are in the further link */

static const char *const texts[] = {"capacity=100 error=1e-9 growth=2", "capacity=100 error=1e-9 growth=2 segments=2"};

static char state_of(const char *key)
{
    redisReply *reply = redis_server_must(server, "GETRANGE %s -55 -55", key);
    const char state = reply->str[0];

    freeReplyObject(reply);
    return state == '\0' ? '-' : state;
}

static bool has_segments(const char *text)
{
    return text == texts[1];
}

static char root_state(const char *text)
{
    return state_of(has_segments(text) ? NAME ":0" : NAME);
}

static void add_numbers(hibloom *filter, hibloom_store *of, unsigned from, unsigned to)
{
    for (; from < to; from++)
        assert_ok(hibloom_add(filter, &from, sizeof from, NULL), of);
}

static hibloom_status contains(hibloom *filter, unsigned number, bool *found)
{
    return hibloom_contains(filter, &number, sizeof number, found);
}

static void assert_all_found(hibloom *filter, hibloom_store *of, unsigned from, unsigned to)
{
    bool found;

    for (; from < to; from++) {
        assert_ok(contains(filter, from, &found), of);
        if (!found)
            fail_msg("%u is denied", from);
    }
}

static hibloom_store *connect_patiently(void)
{
    const hibloom_connect_options patient = {.size = sizeof patient, .retry_ms = 20000};

    return test_connect(redis_server_uri(server), &patient);
}

static void forget(void)
{
    const long long length = test_command(redis, "STRLEN " NAME);

    test_command(redis, "SETRANGE " NAME " %lld r", length - 55);
    assert_int_equal(root_state(texts[0]), 'r');
}

/* It asks the link all the same. Who adds must tell of it. */
static void who_may_not_write_is_not_denied_what_is_in(void **state)
{
    hibloom_store *store = connect_patiently();
    hibloom *filter = test_open(store, NAME, texts[0]), *anew;
    hibloom_status added;

    add_numbers(filter, store, 0, FIRST + 20);
    forget();
    test_command(redis, "ACL SETUSER default -eval -evalsha");
    const hibloom_status opened = hibloom_open(&anew, store, NAME, NULL);
    added = hibloom_add(filter, "x", 1, NULL);
    if (opened == HIBLOOM_OK) {
        assert_all_found(anew, store, FIRST, FIRST + 20);
        assert_all_found(filter, store, FIRST, FIRST + 20);
        hibloom_close(anew);
    }
    test_command(redis, "ACL SETUSER default +eval +evalsha");
    assert_int_equal(opened, HIBLOOM_OK);
    assert_int_equal(added, HIBLOOM_EDENIED);
    assert_int_equal(root_state(texts[0]), 'r');
    test_close(filter, store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(who_may_not_write_is_not_denied_what_is_in, served_leave_nothing),
    };

    return cmocka_run_group_tests(tests, served_set_up, served_tear_down);
}
