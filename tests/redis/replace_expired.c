/* hibloom_replace where the filter that has the name expires while its place is taken: it is replaced by a whole filter,
 * or by none. The servers' clock runs so fast (tests/support/stepped.h) that it goes on by seconds within a command. */
#include "support/served.h"
#include "support/stepped.h"
#include "support/test.h"

#include <hiredis/hiredis.h>
#include <string.h>

enum { SPEED = 1000000, MOST_US = 1000 }; /* what "seen" has to live, of this machine's time */

static struct stepped_clock *server_clock;
static hibloom_store *store;

static int set_up(void **state)
{
    server = stepped_server_start(&server_clock, redis_server_start_tcp);
    (void)served_set_up(state);
    store = test_connect(redis_server_uri(server), NULL);
    return 0;
}

static int tear_down(void **state)
{
    hibloom_store_free(store);
    (void)served_tear_down(state);
    stepped_free(server_clock);
    return 0;
}

/* What has the name is the new filter, or has expired like the old one; no string is left that is no filter. */
static void assert_whole_or_gone(void)
{
    hibloom *now = NULL;
    const hibloom_status status = hibloom_open(&now, store, "seen", NULL);

    if (status != HIBLOOM_OK)
        assert_status(status, HIBLOOM_ENOTFOUND, store);
    hibloom_close(now);
}

static void one_that_expires_meanwhile_leaves_a_whole_filter_or_none(void **state)
{
    static const char *const texts[] = {"bits=1000 hashes=3", "bits=1000 hashes=3 segments=3"};
    struct test_random random = test_random_new();
    int expired = 0;

    (void)state;
    stepped_run(server_clock, SPEED);
    for (int round = 0; round < (test_is_slow() ? 60 : 2000); round++) {
        hibloom *old = test_open(store, "seen", texts[0]), *filter = test_open(store, "aside", texts[round % 2]);

        assert_ok(hibloom_add(filter, "new", 3, NULL), store);
        test_command(redis, "PEXPIRE seen %lld", (long long)test_random_below(&random, MOST_US) * SPEED / 1000);
        assert_ok(hibloom_replace(filter, "seen"), store);
        expired += test_command(redis, "EXISTS seen seen:0") == 0;
        assert_whole_or_gone();
        hibloom_close(old);
        hibloom_close(filter);
        test_command(redis, "FLUSHALL");
    }
    print_message("%d had expired at once\n", expired);
    assert_true(expired > 0 || test_is_slow()); /* else no round has met the moment that this is about */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_that_expires_meanwhile_leaves_a_whole_filter_or_none),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
