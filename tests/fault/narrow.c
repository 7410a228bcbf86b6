/* Large calls through a proxy with sockets of 4 KB, which takes no commands while it cannot pass on answers. What a call
 * has on its way fits into the buffers of its own socket, so that proxy never stops. */
#include "support/narrow.h"
#include "support/served.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>

enum { ITEMS = 800 };

static void call_all(hibloom_store *store, const char *text)
{
    hibloom *filter = test_open(store, "narrow", text);
    uint64_t(*numbers)[1] = calloc(ITEMS, sizeof *numbers);
    hibloom_item *items = calloc(ITEMS, sizeof *items);
    bool *answers = calloc(ITEMS, sizeof *answers);

    for (uint64_t i = 0; i < ITEMS; i++) {
        numbers[i][0] = i;
        items[i] = (hibloom_item){numbers[i], sizeof numbers[i]};
    }
    assert_ok(hibloom_add_many(filter, items, ITEMS, answers), store);
    assert_ok(hibloom_contains_many(filter, items, ITEMS, answers), store);
    assert_int_equal(test_count_true(answers, ITEMS), ITEMS);
    assert_dropped(filter, store);
    free(numbers);
    free(items);
    free(answers);
}

static void large_calls_go_through_a_proxy_that_stops_while_it_cannot_write(void **state)
{
    static const char *const texts[] = {
        "capacity=800 error=1e-6",
        "capacity=800 error=1e-6 layout=blocked",
        "capacity=800 error=1e-6 window=86400s slices=4",
        "capacity=800 error=1e-6 window=86400s slices=4 layout=blocked",
        "capacity=800 error=1e-6 window=86400s slices=24",
        "capacity=800 error=1e-6 window=86400s slices=24 segments=3",
    };
    struct narrow narrow;

    narrow_start(&narrow, redis_server_socket(server));
    hibloom_store *store = test_connect(narrow.listener.uri, NULL);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        print_message("%s\n", texts[i]);
        call_all(store, texts[i]);
    }
    hibloom_store_free(store);
    narrow_stop(&narrow);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(large_calls_go_through_a_proxy_that_stops_while_it_cannot_write,
                                  served_leave_nothing),
    };

    return cmocka_run_group_tests(tests, served_set_up, served_tear_down);
}
