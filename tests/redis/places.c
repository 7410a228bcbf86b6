/* What an open and an attach find at the places of a name, where no other test
 * looks: a lost key beyond the first 128, bits in the way that may be late ones,
 * a root that may not be looked at, and a filter where the root has to be. */
#include "support/items.h"
#include "support/served.h"
#include "support/test.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>

enum { N = 20000, KEYS = 300 };

static hibloom_store *store;

static int set_up(void **state)
{
    (void)served_set_up(state);
    store = test_connect(redis_server_uri(server), NULL);
    return 0;
}

static int tear_down(void **state)
{
    hibloom_store_free(store);
    return served_tear_down(state);
}

/* A length that was seen when it was attached is missed in every one of the keys. */
static void an_attach_sees_the_length_of_every_key(void **state)
{
    hibloom_item *items = items_new("a", N);
    bool found[N];

    (void)state;
    for (int lost = 100; lost < KEYS; lost += 99) {
        for (int i = 0; i < KEYS; i++)
            test_command(redis, "SETBIT seen:%d 3327 1", i); /* 416 bytes */
        hibloom *filter = test_attach(store, "seen", "bits=1000000 hashes=7 seed=5eed segments=300");
        test_command(redis, "DEL seen:%d", lost);
        test_command(redis, "SETBIT seen:%d 7 1", lost);
        assert_status(hibloom_contains_many(filter, items, N, found), HIBLOOM_ECORRUPT, store);
        hibloom_close(filter);
        served_leave_nothing(NULL);
    }
    items_free(items);
}

static void bits_in_the_way_of_an_open_are_waited_for(void **state)
{
    hibloom *none = NULL;

    (void)state;
    test_command(redis, "SETBIT seen 3 1");
    const uint64_t start = test_now_ms();
    assert_status(hibloom_open(&none, store, "seen", NULL), HIBLOOM_EMISMATCH, store);
    assert_true(test_now_ms() - start >= 100);
    assert_non_null(strstr(hibloom_store_error(store), "'seen' is a bitmap without a spec"));
}

static void a_root_that_may_not_be_looked_at_may_be_there(void **state)
{
    hibloom *none = NULL;
    char uri[300];

    (void)state;
    test_command(redis, "ACL SETUSER app on >secret %%R~seen %%W~* &* +@all");
    snprintf(uri, sizeof uri, "redis://app:secret@127.0.0.1:%d", redis_server_port(server));
    hibloom_store *app = test_connect(uri, NULL);
    assert_status(hibloom_open(&none, app, "seen", NULL), HIBLOOM_EDENIED, app);
    hibloom_store_free(app);
    test_command(redis, "ACL DELUSER app");
    /* but what is no string is no root */
    test_command(redis, "LPUSH seen:0 x");
    assert_status(hibloom_open(&none, store, "seen", NULL), HIBLOOM_ENOTFOUND, store);
}

static void a_filter_where_the_root_has_to_be_is_told_as_one(void **state)
{
    const hibloom_spec spec = test_spec("bits=20000 hashes=4 segments=4");
    hibloom *none = NULL;

    (void)state;
    hibloom_close(test_open(store, "a:0", "bits=800 hashes=3 seed=1"));
    assert_status(hibloom_open(&none, store, "a", &spec), HIBLOOM_EMISMATCH, store);
    assert_non_null(strstr(hibloom_store_error(store), "'a:0' is a filter of its own"));
}

/* Both wait for a while, since they might be late bits; not for twice as long, or for ever. */
static void bits_in_the_way_of_two_keys_are_waited_for_once(void **state)
{
    const hibloom_spec spec = test_spec("bits=20000 hashes=4 segments=4");
    hibloom *none = NULL;

    (void)state;
    test_command(redis, "SETBIT seen 3 1");
    test_command(redis, "SETBIT seen:3 3 1");
    const uint64_t start = test_now_ms();
    assert_status(hibloom_open(&none, store, "seen", &spec), HIBLOOM_EMISMATCH, store);
    assert_true(test_now_ms() - start < 20000);
    assert_non_null(strstr(hibloom_store_error(store), "'seen:3' is a bitmap without a spec"));
    assert_int_equal(test_command(redis, "DBSIZE"), 2);
}

#define TEST(function) cmocka_unit_test_teardown(function, served_leave_nothing)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_attach_sees_the_length_of_every_key),          TEST(bits_in_the_way_of_an_open_are_waited_for),
        TEST(a_root_that_may_not_be_looked_at_may_be_there),   TEST(a_filter_where_the_root_has_to_be_is_told_as_one),
        TEST(bits_in_the_way_of_two_keys_are_waited_for_once),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
