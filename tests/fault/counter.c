/* The counter beside a filter of rueidis is right wherever an add is cut and sent again: its items are counted once. */
#include "support/items.h"
#include "support/proxied.h"
#include "support/test.h"

#include <hiredis/hiredis.h>

enum { ITEMS = 1500, RETRY_MS = 5000 };

/* Cuts an add behind so many bytes of one way; whether it was that long. */
static bool check_cut(const hibloom_item *items, enum proxy_way way, uint64_t after)
{
    hibloom_store *store = test_connect(with_options(proxy_uri(proxy), "retry=%ums&accept_restarts=yes", RETRY_MS),
                                        NULL);
    hibloom *filter = test_attach(store, "seen", "rueidis capacity=10000 error=0.000001");
    bool is_new[ITEMS];
    hibloom_stats stats;

    proxy_cut(proxy, way, after);
    assert_ok(hibloom_add_many(filter, items, ITEMS, is_new), store);
    hibloom_get_stats(store, &stats, sizeof stats);
    proxy_heal(proxy);
    for (size_t i = 0; i < ITEMS; i++)
        assert_true(is_new[i]); /* or it is not known */
    assert_int_equal(test_command(redis, "INCRBY {seen}:c 0"), ITEMS);
    assert_ok(hibloom_add_many(filter, items, ITEMS, NULL), store);
    assert_int_equal(test_command(redis, "INCRBY {seen}:c 0"), ITEMS);
    assert_dropped(filter, store);
    hibloom_store_free(store);
    proxy_wait_idle(proxy);
    return stats.retries > 0;
}

static void an_add_that_is_cut_counts_its_items_once(void **state)
{
    static const uint64_t steps[] = {[PROXY_REQUESTS] = 120000, [PROXY_REPLIES] = 9000};
    hibloom_item *items = items_new("counted", ITEMS);

    for (enum proxy_way way = PROXY_REQUESTS; way <= PROXY_REPLIES; way++) {
        unsigned cuts = 0;
        for (uint64_t after = 1; cuts < 20 && check_cut(items, way, after); after += steps[way])
            cuts++;
        assert_in_range(cuts, 3, 19); /* up to its end */
    }
    items_free(items);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_add_that_is_cut_counts_its_items_once),
    };

    return cmocka_run_group_tests_name("counter", tests, proxied_set_up, proxied_tear_down);
}
