/* A grower that sleeps before any of its steps, while others do what they like to the filter: grow it and lose a link,
 * remove it, make it anew, give it other times to live. When it goes on it does no harm: what was acknowledged is found,
 * or there is an error; no link is left that nobody can find; and who comes later can grow it. */
#include "support/items.h"
#include "support/record.h"
#include "support/second_driver.h"
#include "support/served.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME "seen"

enum { EARLY = 10, MINE = 3, MORE = 30, LATER = 60, STEPS = 80, FOUND = 100 };

static const char *const texts[] = {"capacity=12 error=1e-9 growth=2", "capacity=12 error=1e-9 growth=2 segments=2"};

static hibloom_store *plain, *sleepy;
static hibloom_item *early, *more, *mine, *later;

/* What is done while it sleeps. */
struct meanwhile {
    const char *text;
    hibloom *filter; /* as it was opened before */
    bool done;
};

static hibloom *open_anew(const char *text)
{
    const hibloom_spec spec = test_spec(text);
    hibloom *filter;

    assert_ok(hibloom_open(&filter, plain, NAME, &spec), plain);
    return filter;
}

static void add_ok(hibloom *filter, const hibloom_item *items, size_t n)
{
    assert_ok(hibloom_add_many(filter, items, n, NULL), plain);
}

static bool has_all(hibloom *filter, const hibloom_item *items, size_t n)
{
    bool found[FOUND];

    assert_ok(hibloom_contains_many(filter, items, n, found), plain);
    return test_count_true(found, n) == n;
}

/* What is told is acknowledged; of an error nobody is misled. */
static void assert_no_wrong_no(const hibloom_item *items, size_t n)
{
    hibloom *filter;
    bool found[FOUND];

    if (hibloom_open(&filter, plain, NAME, NULL) != HIBLOOM_OK)
        return;
    if (hibloom_contains_many(filter, items, n, found) == HIBLOOM_OK)
        assert_int_equal(test_count_true(found, n), n);
    hibloom_close(filter);
}

static void remove_all(void)
{
    assert_ok(hibloom_delete(plain, NAME), plain);
    assert_int_equal(keys_with(redis, NAME), 0);
}

/* ---- Sleeping at each of its steps ---------------------------------------------------- */

/* ttl: in seconds, when it begins; 0: none. `after` is told what its add came to. */
static void sleep_everywhere(const char *text, uint64_t ttl, void (*meanwhile)(void *),
                             void (*after)(const struct meanwhile *, hibloom_status))
{
    unsigned at = 0;

    for (struct meanwhile m = {.done = true}; m.done && at < STEPS; at++) {
        hibloom *sleeper;
        m = (struct meanwhile){.text = text, .filter = open_anew(text)};
        add_ok(m.filter, early, EARLY);
        assert_ok(hibloom_expire(m.filter, ttl), plain);
        assert_ok(hibloom_open(&sleeper, sleepy, NAME, NULL), sleepy);
        second_store_hold(sleepy, at, meanwhile, &m);
        const hibloom_status status = hibloom_add_many(sleeper, mine, MINE, NULL);
        after(&m, status);
        hibloom_close(sleeper);
        hibloom_close(m.filter);
        test_command(redis, "FLUSHALL");
    }
    print_message("%s: %u steps\n", text, at);
    assert_true(at > 8 && at < STEPS);
}

static void in_each_form(uint64_t ttl, void (*meanwhile)(void *),
                         void (*after)(const struct meanwhile *, hibloom_status))
{
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        sleep_everywhere(texts[i], ttl, meanwhile, after);
}

/* ---- A link is lost --------------------------------------------------------------------- */

static void delete_link(const char *link)
{
    freeReplyObject(redisCommand(redis, "DEL " NAME ":%s " NAME ":%s:0 " NAME ":%s:1", link, link, link));
}

static void grow_and_lose_a_link(void *argument)
{
    struct meanwhile *m = argument;

    m->done = true;
    add_ok(m->filter, more, MORE);
    assert_true(has_all(m->filter, more, MORE));
    delete_link("+1");
}

static void nothing_is_denied(const struct meanwhile *m, hibloom_status status)
{
    assert_no_wrong_no(early, EARLY);
    if (m->done)
        assert_no_wrong_no(more, MORE);
    if (status == HIBLOOM_OK)
        assert_no_wrong_no(mine, MINE);
    remove_all();
}

static void a_lost_link_is_not_made_anew(void **state)
{
    in_each_form(0, grow_and_lose_a_link, nothing_is_denied);
}

/* ---- The filter is removed, or made anew ------------------------------------------------- */

static void remove_it(void *argument)
{
    ((struct meanwhile *)argument)->done = true;
    assert_ok(hibloom_delete(plain, NAME), plain);
}

static void nothing_is_left(const struct meanwhile *m, hibloom_status status)
{
    if (m->done) {
        assert_true(status == HIBLOOM_OK || status == HIBLOOM_ENOTFOUND);
        assert_int_equal(keys_with(redis, NAME), 0);
    }
}

static void of_a_filter_that_was_removed_nothing_is_left(void **state)
{
    in_each_form(0, remove_it, nothing_is_left);
}

static void make_it_anew(void *argument)
{
    struct meanwhile *m = argument;

    remove_it(m);
    hibloom_close(m->filter);
    m->filter = open_anew(m->text);
    add_ok(m->filter, early, EARLY);
}

static void make_it_anew_and_grow(void *argument)
{
    struct meanwhile *m = argument;

    make_it_anew(m);
    add_ok(m->filter, more, MORE);
}

static void the_newer_one_is_whole(const struct meanwhile *m, hibloom_status status)
{
    if (m->done) {
        assert_true(status == HIBLOOM_OK || status == HIBLOOM_EMISMATCH || status == HIBLOOM_ENOTFOUND);
        assert_true(has_all(m->filter, early, EARLY));
        add_ok(m->filter, more, MORE);
        add_ok(m->filter, later, LATER);
        assert_true(has_all(m->filter, early, EARLY) && has_all(m->filter, more, MORE));
        assert_true(has_all(m->filter, later, LATER));
    }
    remove_all();
}

static void a_newer_filter_stays_whole_and_can_grow(void **state)
{
    in_each_form(0, make_it_anew, the_newer_one_is_whole);
    in_each_form(0, make_it_anew_and_grow, the_newer_one_is_whole);
}

/* Its grower died, and made it when the newer filter was there already: so its generation is the later one. */
static void a_link_of_a_filter_that_is_gone_gives_way(void **state)
{
    for (int whole = 0; whole < 2; whole++) {
        hibloom *filter = open_anew(texts[0]);
        struct stored_record record;

        add_ok(filter, more, MORE);
        test_command(redis, "COPY " NAME ":+1 aside");
        assert_ok(hibloom_drop(filter), plain);
        hibloom_close(filter);
        filter = open_anew(texts[0]);
        test_command(redis, "COPY aside " NAME ":+1");
        record_stored(redis, NAME ":+1", &record);
        test_command(redis, "SETRANGE " NAME ":+1 %llu %s", (unsigned long long)record.length - TRAILER + STATE_AT,
                     whole ? "r 9900000000000000" : "c 9900000000000000");
        add_ok(filter, later, LATER);
        assert_true(has_all(filter, later, LATER));
        assert_int_equal(test_command(redis, "DEL aside"), 1);
        hibloom_close(filter);
        remove_all();
    }
}

/* ---- Times to live -------------------------------------------------------------------------- */

static long long ttl_of(const char *link, const char *text)
{
    return test_command(redis, "PTTL " NAME "%s%s", link, strstr(text, "segments") != NULL ? ":0" : "");
}

/* No link goes before the first one, nor stays for ever when that goes. */
static void the_first_goes_first(const struct meanwhile *m, hibloom_status status)
{
    char link[8];
    const long long first = ttl_of("", m->text);

    assert_ok(status, sleepy);
    for (int i = 1; i < 6; i++) {
        snprintf(link, sizeof link, ":+%d", i);
        const long long ms = ttl_of(link, m->text);
        if (ms != -2 && (first < 0 ? ms != -1 : ms < first))
            fail_msg("link %d lives for %lld ms, the first for %lld", i, ms, first);
    }
    remove_all();
}

static void expire_it(void *argument)
{
    struct meanwhile *m = argument;

    m->done = true;
    assert_ok(hibloom_expire(m->filter, 1000), plain);
}

static void keep_it(void *argument)
{
    struct meanwhile *m = argument;

    m->done = true;
    assert_ok(hibloom_expire(m->filter, 0), plain);
}

static void a_time_to_live_is_that_of_all_links(void **state)
{
    in_each_form(0, expire_it, the_first_goes_first);
    in_each_form(10, expire_it, the_first_goes_first);
    in_each_form(10, keep_it, the_first_goes_first);
}

/* The other way round: who sets it stops, or is killed, before any of its commands, while the filter grows. What has
 * got a further link stays for ever only if the first one does. */
static void grow_it(void *argument)
{
    struct meanwhile *m = argument;

    m->done = true;
    add_ok(m->filter, more, MORE);
}

static bool expire_while_it_grows(const char *text, unsigned at, bool cut)
{
    struct meanwhile m = {.text = text, .filter = open_anew(text)};
    hibloom *other;

    assert_ok(hibloom_open(&other, sleepy, NAME, NULL), sleepy);
    second_store_hold(sleepy, at, grow_it, &m);
    if (cut)
        second_store_cut(sleepy, at + 1);
    const hibloom_status status = hibloom_expire(other, 1000);
    assert_status(status, cut && second_store_sent(sleepy) > at + 1 ? HIBLOOM_EIO : HIBLOOM_OK, sleepy);
    if (m.done && (!cut || ttl_of("", text) > 0))
        the_first_goes_first(&m, HIBLOOM_OK);
    (void)second_store_lost(sleepy);
    hibloom_close(other);
    hibloom_close(m.filter);
    test_command(redis, "FLUSHALL");
    return m.done;
}

static void what_is_left_half_set_goes_with_the_first(void **state)
{
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        for (unsigned at = 0; expire_while_it_grows(texts[i], at, false); at++)
            assert_true(expire_while_it_grows(texts[i], at, true));
}

/* ---- Set-up ---------------------------------------------------------------------------------- */

static int set_up(void **state)
{
    (void)served_set_up(state);
    plain = test_connect(redis_server_uri(server), NULL);
    sleepy = second_store(redis_server_socket(server), HIBLOOM_COMMANDS_SETBIT);
    test_item_by_item(sleepy, true);
    early = items_new("early", EARLY);
    more = items_new("more", MORE);
    mine = items_new("mine", MINE);
    later = items_new("later", LATER);
    return 0;
}

static int tear_down(void **state)
{
    items_free(early);
    items_free(more);
    items_free(mine);
    items_free(later);
    hibloom_store_free(plain);
    hibloom_store_free(sleepy);
    return served_tear_down(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_lost_link_is_not_made_anew, served_leave_nothing),
        cmocka_unit_test_teardown(of_a_filter_that_was_removed_nothing_is_left, served_leave_nothing),
        cmocka_unit_test_teardown(a_newer_filter_stays_whole_and_can_grow, served_leave_nothing),
        cmocka_unit_test_teardown(a_link_of_a_filter_that_is_gone_gives_way, served_leave_nothing),
        cmocka_unit_test_teardown(a_time_to_live_is_that_of_all_links, served_leave_nothing),
        cmocka_unit_test_teardown(what_is_left_half_set_goes_with_the_first, served_leave_nothing),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
