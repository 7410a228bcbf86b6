/* Four processes make filters grow while their server is killed and restarted on its append-only file, again and again.
 * It logs what it has acknowledged: that is in, was new to somebody, and the filters grow on. */
#include "support/growers.h"
#include "support/redis_server.h"

enum { KILLS = 12, CALLS = 15 };

static void kill_while_it_grows(const char *text)
{
    static const char *const keeps[] = {"--appendonly", "yes", "--appendfsync", "always", NULL};
    struct redis_server *server = redis_server_start(keeps);
    struct growers *growers = growers_new();
    struct test_random random = test_random_new();

    growers->uri = redis_server_uri(server);
    growers->prefix = "grows";
    growers->text = text;
    growers->options = (hibloom_connect_options){
        .size = sizeof growers->options, .retry_ms = 20000, .command_timeout_ms = 2000};
    growers_start(growers);
    for (int i = 0; i < (test_is_slow() ? 3 : KILLS); i++) {
        growers_wait_calls(growers, CALLS);
        test_sleep_ms((unsigned)test_random_below(&random, 30));
        redis_server_kill(server);
        redis_server_restart(server);
    }
    growers_wait_calls(growers, CALLS);
    growers_stop(growers);
    hibloom_store *store = test_connect(redis_server_uri(server), NULL);
    growers_check(growers, store, 1, GROWERS);
    hibloom_store_free(store);
    growers_free(growers);
    redis_server_stop(server);
}

static void nothing_is_lost_where_a_server_is_killed_while_it_grows(void **state)
{
    (void)state;
    kill_while_it_grows("capacity=10 error=1e-9 growth=2");
    kill_while_it_grows("capacity=10 error=1e-9 growth=3 segments=2");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_lost_where_a_server_is_killed_while_it_grows),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
