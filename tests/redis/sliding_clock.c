/* Sliding windows on a server whose clock steps (tests/support/stepped.h): back by a slice and by more than the window,
 * forward by more than the window, and while a call is under way. What was added within the window, as the clock has shown
 * it since, is found; what is older is not. */
#include "support/proxied.h"
#include "support/record.h"
#include "support/stepped.h"

#include <hiredis/hiredis.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT "capacity=2000 error=1e-12 window=1000 slices=2"
#define NAME "slides"

enum { WINDOW_S = 1000, PERIOD_S = 500, SLICES = 2, START = 4000000 };

static struct stepped_clock *server_clock;
static hibloom_store *store;

/* The clock shows so many seconds after the beginning of period START; the tests take less time than a period. */
static void set_clock(int64_t seconds)
{
    const int64_t now = (int64_t)stepped_now_us(server_clock) - stepped_ahead(server_clock) * 1000;

    stepped_set(server_clock, ((int64_t)START * PERIOD_S + seconds) * 1000 - now / 1000);
}

static hibloom *open_window(void)
{
    return test_open(store, NAME, TEXT);
}

static bool add(hibloom *filter, const char *item)
{
    bool is_new;

    assert_ok(hibloom_add(filter, item, strlen(item), &is_new), store);
    return is_new;
}

static void add_plain(hibloom *filter, const char *item)
{
    assert_ok(hibloom_add(filter, item, strlen(item), NULL), store);
}

static bool has(hibloom *filter, const char *item)
{
    bool found;

    assert_ok(hibloom_contains(filter, item, strlen(item), &found), store);
    return found;
}

static void drop(hibloom *filter)
{
    assert_ok(hibloom_drop(filter), store);
    hibloom_close(filter);
}

static void a_step_back_by_a_slice_loses_nothing(void **state)
{
    hibloom *one = open_window(), *two = open_window();

    (void)state;
    set_clock(10);
    stepped_assert(server_clock, server);
    assert_true(add(one, "a"));
    set_clock(PERIOD_S + 10);
    assert_true(add(one, "b"));
    set_clock(10);
    assert_true(add(two, "c"));
    assert_false(add(one, "c"));
    add_plain(one, "d");
    hibloom *three = open_window();
    assert_false(add(three, "a"));
    for (int at = 20; at <= 2 * PERIOD_S; at += PERIOD_S / 2) {
        set_clock(at);
        assert_true(has(one, "a") && has(two, "b") && has(three, "c") && has(one, "d"));
    }
    set_clock((1 + SLICES + 1) * PERIOD_S + 10);
    assert_false(has(one, "a") || has(two, "b") || has(three, "c") || has(one, "d"));
    hibloom_close(two);
    hibloom_close(three);
    drop(one);
}

static void a_step_back_by_more_than_the_window_loses_nothing(void **state)
{
    hibloom *one = open_window(), *two = open_window();

    (void)state;
    set_clock(10);
    assert_true(add(one, "a"));
    assert_false(has(two, "b"));
    set_clock(-20 * PERIOD_S);
    assert_true(has(one, "a") && has(two, "a"));
    assert_true(add(two, "b"));
    assert_false(add(one, "b"));
    for (int at = -19; at <= SLICES; at++) {
        char item[16];
        snprintf(item, sizeof item, "at %d", at);
        set_clock(at * PERIOD_S + 10);
        assert_true(has(one, "a") && has(two, "b"));
        add_plain(two, item);
        assert_true(has(one, item));
    }
    set_clock((SLICES + 1) * PERIOD_S + 10);
    assert_false(has(one, "a") || has(two, "b"));
    hibloom_close(two);
    drop(one);
}

static void a_step_forward_by_more_than_the_window_forgets_all_and_goes_on(void **state)
{
    hibloom *one = open_window(), *two = open_window();

    (void)state;
    set_clock(10);
    assert_true(add(one, "a"));
    set_clock(100 * PERIOD_S);
    assert_false(has(one, "a") || has(two, "a"));
    assert_true(add(two, "a"));
    assert_false(add(one, "a"));
    assert_true(has(one, "a") && has(two, "a"));
    hibloom_close(two);
    drop(one);
}

/* A clock that is wrong for a moment, in which somebody looks, but adds nothing: what is in stays. */
static void a_step_that_only_look_ups_have_seen_empties_nothing(void **state)
{
    (void)state;
    for (int ahead = 1; ahead <= 4; ahead++)
        for (int exact = 0; exact < 2; exact++) {
            hibloom *filter = open_window(), *other = open_window();
            set_clock(10);
            assert_true(add(filter, "0"));
            set_clock(PERIOD_S + 10);
            assert_true(add(filter, "1"));
            set_clock(2 * PERIOD_S + 10);
            assert_true(add(filter, "2"));
            set_clock((2 + ahead) * PERIOD_S + 10);
            (void)has(filter, "x");
            set_clock(2 * PERIOD_S + 20);
            assert_ok(hibloom_add(filter, "y", 1, exact ? &(bool){false} : NULL), store);
            assert_true(has(other, "0") && has(other, "1") && has(other, "2") && has(other, "y"));
            hibloom_close(other);
            drop(filter);
        }
}

/* ---- At random ---------------------------------------------------------------------------------- */

enum { ITEMS = 40, HANDLES = 3 };

/* When it was added last: what the clock showed; the latest that it has shown since; the latest that any add had seen. */
struct oracle {
    bool in;
    int64_t at, highest, newest;
    unsigned steps_back;
} oracle[ITEMS];

static int64_t shown, newest_seen;
static unsigned steps_back;

static void step(struct test_random *random)
{
    const int64_t by = (int64_t)test_random_below(random, 4 * PERIOD_S);
    const bool back = test_random_below(random, 25) == 0; /* in between the clock catches up */

    shown += back ? -by : test_random_below(random, 15) == 0 ? by : by / 10;
    steps_back += back;
    set_clock(shown);
    for (int i = 0; i < ITEMS; i++)
        if (oracle[i].in && shown > oracle[i].highest)
            oracle[i].highest = shown;
}

static int64_t period_of(int64_t seconds)
{
    return (seconds + 1000 * PERIOD_S) / PERIOD_S;
}

/* A second is given to what the test takes itself. */
static void look(hibloom *filter, int i)
{
    const struct oracle *o = &oracle[i];
    bool found;

    assert_ok(hibloom_contains(filter, &i, sizeof i, &found), store);
    if (o->in && o->highest + 1 <= o->at + WINDOW_S && !found)
        fail_msg("item %d was added at %lld, and is not found at %lld", i, (long long)o->at, (long long)shown);
    if (found && (!o->in || period_of(shown) > period_of(o->newest) + SLICES))
        fail_msg("item %d was added at %lld, and is found at %lld", i, (long long)o->at, (long long)shown);
}

static void add_item(hibloom *filter, int i, bool exact)
{
    struct oracle *o = &oracle[i];
    bool is_new = false;

    assert_ok(hibloom_add(filter, &i, sizeof i, exact ? &is_new : NULL), store);
    if (exact && !o->in)
        assert_true(is_new);
    if (exact && o->in && o->steps_back == steps_back && o->highest + 1 <= o->at + WINDOW_S)
        assert_false(is_new);
    newest_seen = shown > newest_seen ? shown : newest_seen;
    *o = (struct oracle){true, shown, shown, newest_seen, steps_back};
}

static void at_random(const char *text)
{
    struct test_random random = test_random_new();
    hibloom *handles[HANDLES];

    memset(oracle, 0, sizeof oracle);
    shown = newest_seen = steps_back = 0;
    set_clock(0);
    for (int h = 0; h < HANDLES; h++)
        handles[h] = test_open(store, NAME, text);
    for (int round = 0; round < (test_is_slow() ? 500 : 4000); round++) {
        hibloom *filter = handles[test_random_below(&random, HANDLES)];
        const int i = (int)test_random_below(&random, ITEMS);
        switch (test_random_below(&random, 5)) {
        case 0: step(&random); break;
        case 1: add_item(filter, i, true); break;
        case 2: add_item(filter, i, false); break;
        default: look(filter, i); break;
        }
    }
    for (int i = 0; i < ITEMS; i++)
        for (int h = 0; h < HANDLES; h++)
            look(handles[h], i);
    for (int h = 1; h < HANDLES; h++)
        hibloom_close(handles[h]);
    drop(handles[0]);
}

static void however_it_steps_what_is_in_is_found_and_what_is_old_is_not(void **state)
{
    (void)state;
    at_random(TEXT);
    at_random(TEXT " layout=blocked");
}

/* ---- While a call is under way -------------------------------------------------------------------- */

static hibloom_store *connect_patiently(void)
{
    hibloom_connect_options options = HIBLOOM_CONNECT_OPTIONS_INIT;

    options.command_timeout_ms = 300;
    options.retry_ms = 20000;
    return test_connect(proxy_uri(proxy), &options);
}

/* Once the item is in, whose answer the proxy keeps, a period passes: then it is sent again, and comes too late. */
static void *let_a_period_pass(void *filter)
{
    for (int tries = 0; tries < 500 && !has(filter, "held"); tries++)
        test_sleep_ms(2);
    set_clock(PERIOD_S + 10);
    return NULL;
}

static void what_was_set_by_a_sending_that_was_lost_is_new_to_its_caller(void **state)
{
    hibloom_store *patient = connect_patiently();
    hibloom *filter = test_open(patient, NAME, TEXT), *other = open_window();
    bool is_new = false, known;
    pthread_t thread;

    (void)state;
    set_clock(10);
    assert_ok(hibloom_add(filter, "first", 5, &is_new), patient);
    proxy_mark(proxy);
    assert_ok(hibloom_add(filter, "second", 6, &is_new), patient);
    proxy_hold(proxy, PROXY_REPLIES, proxy_bytes(proxy, PROXY_REPLIES) - 4);
    assert_int_equal(pthread_create(&thread, NULL, let_a_period_pass, other), 0);
    is_new = false;
    assert_ok(hibloom_add(filter, "held", 4, &is_new), patient);
    pthread_join(thread, NULL);
    assert_true(is_new);
    known = true;
    assert_ok(hibloom_add(filter, "first", 5, &known), patient); /* as it is in an older slice now */
    assert_false(known);
    hibloom_close(other);
    assert_ok(hibloom_drop(filter), patient);
    hibloom_close(filter);
    hibloom_store_free(patient);
}

/* A handle that has long not looked knows another epoch, and its first sending does not come through. */
static void a_clear_that_is_sent_again_clears_what_it_did_not_know(void **state)
{
    hibloom_store *patient = connect_patiently();
    hibloom *filter = test_open(patient, NAME, TEXT), *other = open_window();

    (void)state;
    for (int period = 0; period <= SLICES; period++) {
        set_clock(period * PERIOD_S + 10);
        assert_true(add(other, period == 0 ? "0" : period == 1 ? "1" : "2"));
    }
    proxy_cut(proxy, PROXY_REQUESTS, 0);
    assert_ok(hibloom_clear(filter), patient);
    assert_false(has(other, "0") || has(other, "1") || has(other, "2"));
    hibloom_close(other);
    assert_ok(hibloom_drop(filter), patient);
    hibloom_close(filter);
    hibloom_store_free(patient);
}

/* ---- The last millisecond --------------------------------------------------------------------------- */

static uint64_t now_us(void)
{
    return stepped_now_us(server_clock);
}

/* The slice of period START is emptied by an add in the very millisecond in which it expires: nothing may be left that no
 * record ends. */
static void a_slice_that_is_emptied_as_it_expires_leaves_nothing(void **state)
{
    char key[64];

    (void)state;
    snprintf(key, sizeof key, START % (SLICES + 1) == 0 ? "%s" : "%s:+%d", NAME, START % (SLICES + 1));
    for (int round = 0; round < 60; round++) {
        hibloom *filter = open_window();
        set_clock(10);
        assert_false(has(filter, "x")); /* it knows the time */
        const uint64_t end_ms = now_us() / 1000 + 3;
        test_command(redis, "PEXPIREAT %s %llu", key, (unsigned long long)end_ms);
        while (now_us() < end_ms * 1000 + 16 * (uint64_t)round)
            continue;
        const hibloom_status status = hibloom_add(filter, "x", 1, NULL);
        assert_true(status == HIBLOOM_OK || status == HIBLOOM_ENOTFOUND || status == HIBLOOM_ECORRUPT); /* it is lost */
        test_sleep_ms(3);
        assert_int_equal(test_command(redis, "EXISTS %s", key), 0);
        hibloom_close(filter);
        test_command(redis, "FLUSHALL");
    }
}

/* ---- ------------------------------------------------------------------------------------------------ */

static int set_up(void **state)
{
    server = stepped_server_start(&server_clock, redis_server_start_tcp);
    (void)proxied_set_up(state);
    store = test_connect(redis_server_uri(server), NULL);
    return 0;
}

static int tear_down(void **state)
{
    hibloom_store_free(store);
    (void)proxied_tear_down(state);
    stepped_free(server_clock);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_step_back_by_a_slice_loses_nothing, served_leave_nothing),
        cmocka_unit_test_teardown(a_step_back_by_more_than_the_window_loses_nothing, served_leave_nothing),
        cmocka_unit_test_teardown(a_step_forward_by_more_than_the_window_forgets_all_and_goes_on, served_leave_nothing),
        cmocka_unit_test_teardown(a_step_that_only_look_ups_have_seen_empties_nothing, served_leave_nothing),
        cmocka_unit_test_teardown(however_it_steps_what_is_in_is_found_and_what_is_old_is_not, served_leave_nothing),
        cmocka_unit_test_teardown(what_was_set_by_a_sending_that_was_lost_is_new_to_its_caller, served_leave_nothing),
        cmocka_unit_test_teardown(a_clear_that_is_sent_again_clears_what_it_did_not_know, served_leave_nothing),
        cmocka_unit_test_teardown(a_slice_that_is_emptied_as_it_expires_leaves_nothing, served_leave_nothing),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
