/* A clear empties the filter that the handle opened, or nothing: not one whose
 * trailer was altered, and not a part of one where the server refuses the rest. */
#include "support/items.h"
#include "support/record.h"
#include "support/served.h"
#include "support/test.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>

#define NAME "seen"

enum { N = 200 };

static hibloom_store *store;
static hibloom_item *items;

static int set_up(void **state)
{
    (void)served_set_up(state);
    store = test_connect(redis_server_uri(server), NULL);
    items = items_new("item", N);
    return 0;
}

static int tear_down(void **state)
{
    items_free(items);
    hibloom_store_free(store);
    return served_tear_down(state);
}

static void a_clear_that_is_refused_clears_no_bit(void **state)
{
    static const char *const denied[] = {"unlink", "setrange", "pexpire", "pttl"};
    static const char *const texts[] = {"php-mt bits=1000 capacity=200", "bits=10000 hashes=7 seed=5eed"};
    char uri[128];
    bool found[N];

    (void)state;
    snprintf(uri, sizeof uri, "redis://mary:pw@127.0.0.1:%d", redis_server_port(server));
    for (size_t d = 0; d < 2 * sizeof denied / sizeof *denied; d++) {
        test_command(redis, "ACL SETUSER mary reset on >pw ~* +@all -%s", denied[d / 2]);
        hibloom_store *mary = test_connect(uri, NULL);
        if (d % 2)
            hibloom_close(test_open(store, NAME, texts[1]));
        hibloom *filter = d % 2 ? test_open(mary, NAME, texts[1]) : test_attach(mary, NAME, texts[0]);
        assert_ok(hibloom_add_many(filter, items, N, NULL), mary);
        test_command(redis, "PEXPIRE " NAME " 100000"); /* so a clear needs PEXPIRE */
        assert_status(hibloom_clear(filter), HIBLOOM_EDENIED, mary);
        assert_ok(hibloom_contains_many(filter, items, N, found), mary);
        for (int i = 0; i < N; i++)
            if (!found[i])
                fail_msg("item %d is gone, though %s is denied", i, denied[d / 2]);
        hibloom_close(filter);
        hibloom_store_free(mary);
        served_leave_nothing(NULL);
    }
    test_command(redis, "ACL DELUSER mary");
}

static void a_filter_whose_trailer_was_altered_is_not_cleared(void **state)
{
    bool found = false;

    (void)state;
    for (int column = 0; column < TRAILER; column++) {
        hibloom *filter = test_open(store, NAME, "bits=10000 hashes=7 seed=5eed");
        assert_ok(hibloom_add_many(filter, items, N, NULL), store);
        const long long size = test_command(redis, "STRLEN " NAME),
                        set = test_command(redis, "BITCOUNT " NAME " 0 1249");
        test_command(redis, "SETRANGE " NAME " %lld z", size - TRAILER + column);
        const hibloom_status status = hibloom_contains(filter, "item", 4, &found);
        assert_int_not_equal(status, HIBLOOM_OK);
        assert_status(hibloom_clear(filter), status, store);
        assert_int_equal(test_command(redis, "BITCOUNT " NAME " 0 1249"), set);
        hibloom_close(filter);
        served_leave_nothing(NULL);
    }
}

#define TEST(function) cmocka_unit_test_teardown(function, served_leave_nothing)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_clear_that_is_refused_clears_no_bit),
        TEST(a_filter_whose_trailer_was_altered_is_not_cleared),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
