/* A connection that is cut, falls silent, waits or comes in two pieces at any byte of
 * a dialogue, either way, with and without retries: each call fails as hibloom.h says
 * or not at all, the next one works, and what is stored is right to the bit.
 *
 * Of one server and blocking calls; cluster.c does the same to a node of a cluster,
 * tests/async/bytes.c on event loops. */
#include "support/byte_faults.h"
#include "support/proxied.h"

static struct byte_faults faults;

static int set_up(void **state)
{
    (void)proxied_set_up(state);
    faults = (struct byte_faults){.proxy = proxy,
                                  .hold = dialogue_hold,
                                  .walks = 2 * BYTE_FAULT_WALKS,
                                  .dialogue.uri = proxy_uri(proxy),
                                  .dialogue.servers = &redis,
                                  .dialogue.server_count = 1};
    return 0;
}

static void on_one_key(void **state)
{
    byte_faults_on_one_key(&faults);
}

static void on_several_keys(void **state)
{
    byte_faults_on_several_keys(&faults);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(on_one_key, served_leave_nothing),
        cmocka_unit_test_teardown(on_several_keys, served_leave_nothing),
    };

    return cmocka_run_group_tests(tests, set_up, proxied_tear_down);
}
