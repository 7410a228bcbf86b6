/* Eight processes add to a counting filter and remove from it while its server is killed and
 * restarted, again and again. It keeps a log of what it has acknowledged; each handle is told,
 * and a remove whose answer was lost is not sent to the next run. */
#include "support/ledger.h"
#include "support/redis_server.h"

enum { KILLS = 8, STEPS = 10 };

#define TEXT "capacity=2000 error=0.01 counters=4 seed=3"

static void no_item_is_denied_where_a_server_is_killed(void **state)
{
    /* while it waits for its disk, what it has carried out is in the log, and was not answered yet */
    static const char *const keeps[] = {"--appendonly", "yes", "--appendfsync", "always", NULL};
    const hibloom_connect_options options = {.size = sizeof options, .retry_ms = 20000, .command_timeout_ms = 2000};
    struct redis_server *server = redis_server_start(keeps);
    hibloom_store *store = test_connect(redis_server_uri(server), &options);
    hibloom *filter = test_open(store, "seen", TEXT);
    struct ledger *ledger = ledger_start(redis_server_uri(server), "seen", &options);

    (void)state;
    for (int i = 0; i < (test_is_slow() ? 2 : KILLS); i++) {
        ledger_wait(ledger, STEPS);
        redis_server_kill(server);
        redis_server_restart(server);
    }
    ledger_wait(ledger, STEPS);
    ledger_stop(ledger, filter, store);
    hibloom_close(filter);
    hibloom_store_free(store);
    redis_server_stop(server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_item_is_denied_where_a_server_is_killed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
