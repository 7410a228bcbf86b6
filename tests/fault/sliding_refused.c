/* Sliding windows under an ACL that lacks a word: no slice is emptied, and no add is OK that was not. Periods
 * pass as the server's clock steps. */
#include "support/acl_lines.h"
#include "support/served.h"
#include "support/stepped.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>

#define NAME "seen"
#define TEXT "capacity=1000 error=1e-9 window=1000s slices=2"

enum { PERIOD_S = 500, START = 4000000, EACH = 10, ITEMS = 3 * EACH };

static struct stepped_clock *server_clock;
static hibloom_store *store;

static void set_period(int period)
{
    const int64_t now = (int64_t)stepped_now_us(server_clock) - stepped_ahead(server_clock) * 1000;

    stepped_set(server_clock, ((int64_t)START + period) * PERIOD_S * 1000 + 10 - now / 1000);
}

/* Ten items in each of the periods 0, 1 and 2; then it is 2. */
static hibloom *fill(void)
{
    hibloom *filter = test_open(store, NAME, TEXT);

    for (int item = 0; item < ITEMS; item++) {
        set_period(item / EACH);
        assert_ok(hibloom_add(filter, &item, sizeof item, NULL), store);
    }
    return filter;
}

static unsigned count_in(hibloom *filter, hibloom_store *its)
{
    unsigned in = 0;

    for (int item = 0; item < ITEMS; item++) {
        bool found;
        assert_ok(hibloom_contains(filter, &item, sizeof item, &found), its);
        in += found;
    }
    return in;
}

static void drop(hibloom *filter)
{
    assert_dropped(filter, store);
}

/* ---- ACL ------------------------------------------------------------------------------------------ */

static hibloom_store *connect_as(const char *words)
{
    char uri[128], line[512];
    hibloom_store *its;

    snprintf(line, sizeof line, "ACL SETUSER user reset on >secret %s", words);
    test_command(redis, line);
    snprintf(uri, sizeof uri, "redis://user:secret@127.0.0.1:%d", redis_server_port(server));
    its = test_connect(uri, NULL);
    return its;
}

static void a_reader_needs_time_beside_its_line(void **state)
{
    hibloom *filter = fill(), *his = NULL;

    for (int has_time = 0; has_time < 2; has_time++) {
        hibloom_store *its = connect_as(has_time ? READING " +time" : READING);
        assert_ok(hibloom_open(&his, its, NAME, NULL), its);
        if (has_time)
            assert_int_equal(count_in(his, its), ITEMS);
        else
            assert_status(hibloom_contains(his, "x", 1, &(bool){false}), HIBLOOM_EDENIED, its);
        test_close(his, its);
    }
    drop(filter);
}

/* As an add needs them where it empties a slice that has a time to live. */
static const char *const adding[] = {"+eval", "+getrange", "+strlen", "+time", "+pttl", "+setrange", "+set", "+setbit"};

enum { WORDS = sizeof adding / sizeof *adding };

/* Without word number `without`, none if there is no such. */
static hibloom_store *connect_without(size_t without)
{
    char words[256] = KEYS " +getbit +pttl +getrange";

    for (size_t i = 0; i < WORDS; i++)
        if (i != without)
            strcat(strcat(words, " "), adding[i]);
    if (without < WORDS)
        strcat(strcat(words, " -"), adding[without] + 1);
    return connect_as(words);
}

static void of_an_adders_words_each_is_needed_and_without_it_nothing_is_emptied(void **state)
{
    for (size_t without = 0; without <= WORDS; without++) {
        hibloom *filter = fill(), *his = NULL;
        assert_ok(hibloom_expire(filter, 100000000), store);
        hibloom_store *its = connect_without(without);
        hibloom_status status = hibloom_open(&his, its, NAME, NULL);
        set_period(3); /* the add would empty the slice of period 0 */
        if (status == HIBLOOM_OK)
            status = hibloom_add(his, "more", 4, NULL);
        assert_status(status, without < WORDS ? HIBLOOM_EDENIED : HIBLOOM_OK, its);
        set_period(2);
        const bool was_emptied = without >= WORDS || strcmp(adding[without], "+setbit") == 0; /* its period was over */
        assert_int_equal(count_in(filter, store), was_emptied ? ITEMS - EACH : ITEMS);
        assert_true(test_command(redis, "PTTL " NAME) > 0 && test_command(redis, "PTTL " NAME ":+1") > 0 &&
                    test_command(redis, "PTTL " NAME ":+2") > 0);
        test_close(his, its);
        drop(filter);
    }
}

/* ---- Borrowed ------------------------------------------------------------------------------------------- */

static int set_up(void **state)
{
    server = stepped_server_start(&server_clock, redis_server_start_tcp);
    store = test_connect(redis_server_uri(server), NULL);
    return served_set_up(state);
}

/* Also where a test has failed in the middle. */
static int leave_nothing(void **state)
{
    test_command(redis, "CONFIG SET maxmemory 0");
    return served_leave_nothing(state);
}

static int tear_down(void **state)
{
    hibloom_store_free(store);
    (void)served_tear_down(state);
    stepped_free(server_clock);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_reader_needs_time_beside_its_line, leave_nothing),
        cmocka_unit_test_teardown(of_an_adders_words_each_is_needed_and_without_it_nothing_is_emptied, leave_nothing),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
