/* Growing filters: they keep their error rate, whoever has not seen the growth learns of it,
 * and what is lost, left over or half made is never a wrong answer. */
#include "support/backend.h"
#include "support/items.h"
#include "support/record.h"

#include <hiredis/hiredis.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SMALL "capacity=100 error=1e-9 growth=2"

enum { ITEMS = 2000 };

static hibloom *reopen(struct backend *b, const char *name)
{
    hibloom *filter;

    assert_ok(hibloom_open(&filter, b->store, name, NULL), b->store);
    return filter;
}

static size_t count_yes(struct backend *b, hibloom *filter, const char *prefix, size_t n,
                        hibloom_status (*call)(hibloom *, const hibloom_item *, size_t n, bool *))
{
    hibloom_item *items = items_new(prefix, n);
    bool *answers = calloc(n, sizeof *answers);

    assert_ok(call(filter, items, n, answers), b->store);
    const size_t count = test_count_true(answers, n);
    free(answers);
    items_free(items);
    return count;
}

static size_t add_items(struct backend *b, hibloom *filter, const char *prefix, size_t n)
{
    return count_yes(b, filter, prefix, n, hibloom_add_many);
}

static size_t count_found(struct backend *b, hibloom *filter, const char *prefix, size_t n)
{
    return count_yes(b, filter, prefix, n, hibloom_contains_many);
}

static bool count_listed(const char *name, void *count)
{
    ++*(size_t *)count;
    return true;
}

/* ---- Growing -------------------------------------------------------------------- */

static void grow_to(struct backend *b, const char *text, size_t n, double error)
{
    char name[TEST_NAME_SIZE];
    hibloom *filter = backend_open(b, test_name(name), text);
    hibloom_info info;
    size_t is_new = 0;

    for (size_t done = 0, part = 1; done < n; done += part, part *= 3) {
        char prefix[16];
        snprintf(prefix, sizeof prefix, "in%zu,", done);
        is_new += add_items(b, filter, prefix, part);
        assert_int_equal(count_found(b, filter, prefix, part), part);
    }
    assert_int_equal(count_found(b, filter, "in0,", 1), 1);
    assert_ok(hibloom_get_info(filter, &info), b->store);
    assert_true(info.keys > (test_is_slow() ? 2 : 4));
    assert_true(info.estimated_items > (double)is_new * 0.9 && info.estimated_items < (double)is_new * 1.1);
    assert_true(info.estimated_error_rate > error / 8 && info.estimated_error_rate <= error * 1.1);
    const size_t others = 20000, wrong = count_found(b, filter, "other", others);
    print_message("%s: %zu new, %u keys, %zu of %zu others found\n", text, is_new, info.keys, wrong, others);
    assert_true((double)wrong <= (double)others * error * 1.2);
    assert_true((double)(n - is_new) <= (double)n * error + 4 * sqrt((double)n * error)); /* four standard deviations */
    backend_drop(b, filter);
    if (b->redis)
        assert_int_equal(keys_with(b->outside, name), 0);
}

/* By one seed: small links differ by more than a bound that shows anything allows. */
static void it_grows_and_keeps_its_error_rate(void **state)
{
    const size_t n = test_is_slow() ? 1093 : 9841; /* 1 + 3 + 9 ... */

    grow_to(*state, "capacity=300 error=0.01 growth=2 seed=5eed", n, 0.01);
    grow_to(*state,
            "capacity=100 error=0.02 growth=4 layout=blocked hash=siphash seed=000102030405060708090a0b0c0d0e0f", n,
            0.02);
    grow_to(*state, "capacity=300 error=0.01 growth=2 segments=3 seed=5eed", n, 0.01);
    grow_to(*state, "redisbloom capacity=300 error=0.01 growth=2", n, 0.01);
}

/* A thousand times the capacity, which is ten links: at most 2.2 times the memory of a filter that would have fitted. */
static void it_takes_little_more_memory_than_one_that_fits(void **state)
{
    struct backend *b = *state;
    char name[TEST_NAME_SIZE];
    hibloom *filter = backend_open(b, test_name(name), "capacity=100 error=0.001 growth=2 seed=5eed");
    const size_t n = test_is_slow() ? 12000 : 100000, others = 100000;
    hibloom_spec fits;
    hibloom_info info;

    (void)add_items(b, filter, "in", n);
    assert_int_equal(count_found(b, filter, "in", n), n);
    assert_ok(hibloom_get_info(filter, &info), b->store);
    assert_ok(hibloom_spec_for(&fits, n, 0.001), NULL);
    const double ratio = (double)info.bytes * 8 / (double)fits.bits;
    const size_t wrong = count_found(b, filter, "other", others);
    print_message("%.2f times the memory, %zu of %zu others found\n", ratio, wrong, others);
    assert_true(ratio < 2.2);
    assert_true((double)wrong <= (double)others * 0.001 * 1.3); /* three standard deviations */
    backend_drop(b, filter);
}

static void it_is_listed_as_one(void **state)
{
    struct backend *b = *state;
    char name[TEST_NAME_SIZE], pattern[TEST_NAME_SIZE + 1];
    hibloom *filter = backend_open(b, test_name(name), SMALL " segments=2");
    size_t listed = 0;

    add_items(b, filter, "x", ITEMS);
    snprintf(pattern, sizeof pattern, "%s*", name);
    assert_ok(hibloom_list(b->store, pattern, count_listed, &listed), b->store);
    assert_int_equal(listed, 1);
    backend_drop(b, filter);
}

static void an_item_is_new_once_over_all_links(void **state)
{
    struct backend *b = *state;
    char name[TEST_NAME_SIZE];
    hibloom *filter = backend_open(b, test_name(name), SMALL), *other = reopen(b, name);

    assert_int_equal(add_items(b, filter, "x", ITEMS), ITEMS);
    assert_int_equal(add_items(b, other, "x", ITEMS), 0);
    assert_int_equal(count_found(b, other, "x", ITEMS), ITEMS);
    assert_int_equal(count_found(b, other, "y", ITEMS), 0);
    assert_int_equal(add_items(b, other, "y", ITEMS), ITEMS);
    assert_int_equal(add_items(b, filter, "y", ITEMS), 0);
    assert_ok(hibloom_clear(filter), b->store);
    assert_int_equal(count_found(b, other, "x", ITEMS), 0);
    assert_int_equal(add_items(b, other, "x", ITEMS), ITEMS);
    hibloom_close(other);
    backend_drop(b, filter);
}

static uint64_t round_trips(const struct backend *b)
{
    hibloom_stats stats;

    hibloom_get_stats(b->store, &stats);
    return stats.round_trips;
}

static void who_has_not_seen_it_learns_of_it_by_the_guard(void **state)
{
    static const char *const texts[] = {SMALL, SMALL " segments=3"};
    struct backend *b = *state;
    char name[TEST_NAME_SIZE];

    for (size_t i = 0; i < 2; i++) {
        hibloom *filter = backend_open(b, test_name(name), texts[i]), *asks = reopen(b, name), *adds = reopen(b, name);
        assert_true(backend_add(b, adds, "early", 5));
        assert_int_equal(add_items(b, filter, "x", ITEMS), ITEMS);
        assert_true(backend_contains(b, asks, "x1999", 5)); /* which is in the last link */
        assert_false(backend_add(b, adds, "x1998", 5));
        assert_false(backend_add(b, adds, "early", 5));
        const uint64_t before = round_trips(b);
        assert_true(backend_contains(b, asks, "x1997", 5));
        assert_false(backend_contains(b, asks, "nothing", 7));
        assert_int_equal(round_trips(b) - before, 2); /* all links at once */
        hibloom_close(asks);
        hibloom_close(adds);
        backend_drop(b, filter);
    }
}

static void its_links_say_what_they_are(void **state)
{
    struct backend *b = *state;
    char name[TEST_NAME_SIZE], link[TEST_NAME_SIZE + 8], word[40];
    hibloom *filter = backend_open(b, test_name(name), SMALL), *wrong;
    struct stored_record first, record;
    char before = 'g';

    add_items(b, filter, "x", 400);
    record_stored(b->outside, name, &first);
    assert_int_equal(first.state, 'g');
    assert_non_null(strstr(first.text, " capacity=100 error=1e-09 growth=2"));
    for (unsigned i = 1; i <= 2; i++) {
        snprintf(link, sizeof link, "%s:+%u", name, i);
        snprintf(word, sizeof word, " growth=2 link=%u chain=%016llx", i, first.id);
        record_stored(b->outside, link, &record);
        assert_non_null(strstr(record.text, word));
        assert_int_equal(before, 'g');
        before = record.state;
        assert_status(hibloom_open(&wrong, b->store, link, NULL), HIBLOOM_EMISMATCH, b->store);
        assert_non_null(strstr(hibloom_store_error(b->store), "further link of a growing filter"));
        assert_status(hibloom_delete(b->store, link), HIBLOOM_EMISMATCH, b->store);
    }
    assert_int_equal(before, 'r');
    backend_drop(b, filter);
}

/* ---- Lost, left over, half made ---------------------------------------------------- */

static void of_a_lost_link_there_is_no_answer(void **state)
{
    struct backend *b = *state;
    char name[TEST_NAME_SIZE], link[TEST_NAME_SIZE + 8];
    bool found;

    for (unsigned i = 1; i <= 3; i++) {
        hibloom *filter = backend_open(b, test_name(name), SMALL), *stale = reopen(b, name), *fresh;
        add_items(b, filter, "x", 1000);
        snprintf(link, sizeof link, "%s:+%u", name, i);
        assert_int_equal(test_command(b->outside, "DEL %s", link), 1);
        assert_status(hibloom_contains(filter, "x1", 2, &found), HIBLOOM_ECORRUPT, b->store);
        assert_status(hibloom_contains(stale, "x999", 4, &found), HIBLOOM_ECORRUPT, b->store);
        assert_status(hibloom_add(stale, "x999", 4, NULL), HIBLOOM_ECORRUPT, b->store);
        assert_status(hibloom_open(&fresh, b->store, name, NULL), HIBLOOM_ECORRUPT, b->store);
        assert_status(hibloom_repair(b->store, name), HIBLOOM_ECORRUPT, b->store);
        assert_non_null(strstr(hibloom_store_error(b->store), "no repair mends"));
        hibloom_close(stale);
        hibloom_close(filter);
        assert_ok(hibloom_delete(b->store, name), b->store);
        assert_int_equal(keys_with(b->outside, name), 0);
    }
}

static void lost_segments_of_links_are_repaired(void **state)
{
    struct backend *b = *state;
    char name[TEST_NAME_SIZE];
    hibloom *filter = backend_open(b, test_name(name), SMALL " segments=3");

    add_items(b, filter, "x", 1000);
    hibloom_close(filter);
    assert_int_equal(test_command(b->outside, "DEL %s:1 %s:+1:2 %s:+3:1", name, name, name), 3);
    const hibloom_spec spec = test_spec(SMALL " segments=3");
    assert_status(hibloom_open(&filter, b->store, name, &spec), HIBLOOM_ECORRUPT, b->store);
    assert_ok(hibloom_repair(b->store, name), b->store);
    filter = backend_open(b, name, SMALL " segments=3");
    assert_true(count_found(b, filter, "x", 1000) > 300);
    add_items(b, filter, "x", 1000);
    assert_int_equal(count_found(b, filter, "x", 1000), 1000);
    backend_drop(b, filter);
    assert_int_equal(keys_with(b->outside, name), 0);
}

/* The first link was deleted by hand: its further links are not those of the next filter. */
static void what_another_filter_left_over_is_not_taken(void **state)
{
    struct backend *b = *state;
    char name[TEST_NAME_SIZE];
    hibloom *filter = backend_open(b, test_name(name), SMALL " seed=5eed");

    add_items(b, filter, "old", ITEMS);
    hibloom_close(filter);
    assert_int_equal(test_command(b->outside, "DEL %s", name), 1);
    filter = backend_open(b, name, SMALL " seed=5eed");
    assert_int_equal(count_found(b, filter, "old", ITEMS), 0);
    assert_int_equal(add_items(b, filter, "new", 400), 400);
    assert_int_equal(count_found(b, filter, "old", ITEMS), 0);
    assert_int_equal(add_items(b, filter, "old", ITEMS), ITEMS);
    backend_drop(b, filter);
    assert_int_equal(keys_with(b->outside, name), 0);
}

/* A grower that died before it said so. */
static void a_link_that_is_half_made_is_gone_on_with(void **state)
{
    struct backend *b = *state;
    char name[TEST_NAME_SIZE];
    hibloom *filter = backend_open(b, test_name(name), SMALL);
    struct stored_record record;

    assert_int_equal(add_items(b, filter, "x", 150), 150);
    record_stored(b->outside, name, &record);
    assert_int_equal(record.state, 'g');
    test_command(b->outside, "SETRANGE %s %llu r", name, (unsigned long long)record.length - TRAILER + STATE_AT);
    hibloom *next = reopen(b, name);
    const size_t before = count_found(b, next, "x", 150); /* nobody could have added to that link */
    assert_true(before >= 75 && before < 150);
    add_items(b, next, "y", 20);
    assert_int_equal(count_found(b, next, "x", 150), 150);
    assert_int_equal(keys_with(b->outside, name), 2);
    hibloom_close(next);
    backend_drop(b, filter);
}

/* As it, and its server failed over before its replica had all of the link: what nobody was told of held nothing. */
static void a_link_that_lost_a_key_before_it_was_told_of_is_mended(void **state)
{
    static const char *const lost[] = {":+1:0", ":+1:1", ":+1:2"};
    struct backend *b = *state;
    char name[TEST_NAME_SIZE], root[TEST_NAME_SIZE + 2];

    for (size_t i = 0; i < sizeof lost / sizeof *lost; i++) {
        hibloom *filter = backend_open(b, test_name(name), SMALL " segments=3");
        struct stored_record record;
        size_t in = 0;
        for (hibloom_info info = {.keys = 3}; info.keys == 3; in++) {
            assert_ok(hibloom_get_info(filter, &info), b->store);
            add_items(b, filter, "x", in + 1);
        }
        snprintf(root, sizeof root, "%s:0", name);
        record_stored(b->outside, root, &record);
        assert_int_equal(record.state, 'g');
        test_command(b->outside, "SETRANGE %s %llu r", root, (unsigned long long)record.length - TRAILER + STATE_AT);
        assert_int_equal(test_command(b->outside, "DEL %s%s", name, lost[i]), 1);
        hibloom *next = reopen(b, name);
        assert_true(count_found(b, next, "x", in) >= in - 2);
        assert_int_equal(add_items(b, next, "y", 150), 150);
        assert_int_equal(count_found(b, next, "y", 150), 150);
        hibloom_close(next);
        hibloom_close(filter);
        filter = backend_open(b, name, SMALL " segments=3");
        assert_int_equal(count_found(b, filter, "y", 150), 150);
        backend_drop(b, filter);
        assert_int_equal(keys_with(b->outside, name), 0);
    }
}

/* Whoever finds it marked goes on, however much of it is gone. */
static void a_removal_that_was_cut_is_gone_on_with(void **state)
{
    struct backend *b = *state;
    char name[TEST_NAME_SIZE];
    const hibloom_spec spec = test_spec(SMALL);

    for (int i = 0; i < 6; i++) {
        hibloom *filter = backend_open(b, test_name(name), SMALL), *fresh;
        struct stored_record record;
        bool found;
        add_items(b, filter, "x", 1000);
        record_stored(b->outside, name, &record);
        test_command(b->outside, "SETRANGE %s %llu x", name, (unsigned long long)record.length - TRAILER + STATE_AT);
        if (i % 2 == 1)
            test_command(b->outside, "DEL %s:+1 %s:+3", name, name);
        assert_status(hibloom_contains(filter, "x1", 2, &found), HIBLOOM_ENOTFOUND, b->store);
        if (i / 2 == 0) {
            assert_ok(hibloom_drop(filter), b->store);
        } else if (i / 2 == 1) {
            assert_ok(hibloom_delete(b->store, name), b->store);
        } else {
            assert_ok(hibloom_open(&fresh, b->store, name, &spec), b->store);
            assert_int_equal(keys_with(b->outside, name), 1);
            assert_int_equal(count_found(b, fresh, "x", 1000), 0);
            backend_drop(b, fresh);
        }
        hibloom_close(filter);
        assert_int_equal(keys_with(b->outside, name), 0);
    }
}

/* ---- Time to live, and what cannot be ------------------------------------------------- */

static void assert_lives(struct backend *b, const char *name, const char *link, bool for_ever)
{
    const long long ms = test_command(b->outside, "PTTL %s%s", name, link);

    if (for_ever)
        assert_int_equal(ms, -1);
    else
        assert_true(ms > 900000 && ms <= 1000000 + (link[0] != '\0' ? 2000 : 0));
}

static void all_links_expire_those_to_come_too(void **state)
{
    struct backend *b = *state;
    char name[TEST_NAME_SIZE];
    hibloom *filter = backend_open(b, test_name(name), SMALL), *stale = reopen(b, name);
    hibloom_info info;

    add_items(b, filter, "x", 250);
    assert_ok(hibloom_expire(stale, 1000), b->store); /* it has not seen the growth */
    assert_lives(b, name, "", false);
    assert_lives(b, name, ":+1", false);
    add_items(b, filter, "x", 1000);
    assert_lives(b, name, ":+3", false);
    assert_ok(hibloom_get_info(filter, &info), b->store);
    assert_true(info.ttl_ms > 900000 && info.ttl_ms <= 1000000);
    assert_ok(hibloom_expire(filter, 0), b->store);
    assert_lives(b, name, "", true);
    assert_lives(b, name, ":+3", true);
    add_items(b, stale, "x", ITEMS);
    assert_lives(b, name, ":+4", true);
    hibloom_close(stale);
    backend_drop(b, filter);
}

static void what_it_cannot_do_is_refused_in_words(void **state)
{
    struct backend *b = *state;
    char name[TEST_NAME_SIZE];
    const hibloom_spec spec = test_spec(SMALL);
    hibloom *filter = backend_open(b, test_name(name), SMALL), *bare;

    assert_status(hibloom_attach(&bare, b->store, "bare", &spec), HIBLOOM_ENOTSUP, b->store);
    assert_non_null(strstr(hibloom_store_error(b->store), "does not grow"));
    assert_status(hibloom_near_cache(filter, 0), b->redis ? HIBLOOM_ENOTSUP : HIBLOOM_OK, b->store);
    backend_drop(b, filter);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_ALL(it_grows_and_keeps_its_error_rate),
        ON(it_takes_little_more_memory_than_one_that_fits, memory),
        ON(it_is_listed_as_one, memory),
        ON(it_is_listed_as_one, setbit),
        ON_ALL(an_item_is_new_once_over_all_links),
        ON_REDIS(who_has_not_seen_it_learns_of_it_by_the_guard),
        ON(its_links_say_what_they_are, setbit),
        ON(of_a_lost_link_there_is_no_answer, setbit),
        ON(lost_segments_of_links_are_repaired, setbit),
        ON(what_another_filter_left_over_is_not_taken, setbit),
        ON(a_link_that_is_half_made_is_gone_on_with, setbit),
        ON(a_link_that_lost_a_key_before_it_was_told_of_is_mended, setbit),
        ON(a_removal_that_was_cut_is_gone_on_with, setbit),
        ON(all_links_expire_those_to_come_too, setbit),
        ON_ALL(what_it_cannot_do_is_refused_in_words),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
