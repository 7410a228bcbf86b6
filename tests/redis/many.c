/* One call over many filters: round trips, and names that fail alone. (The order of answers, dead servers, deadlines and
 * filters that are gone are simulated.) */
#include "support/backend.h"
#include "support/items.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>

enum { FILTERS = 500, MOST = 1200, FEW = 10 };

#define TEXT "capacity=100 error=0.0001"

static char prefix[TEST_NAME_SIZE], name_room[MOST][TEST_NAME_SIZE + 8];
static const char *names[MOST];
static hibloom *filters[MOST];
static hibloom_pair pairs[MOST];
static hibloom_status each[MOST];
static bool answers[MOST];

static void name_all(size_t n)
{
    test_name(prefix);
    for (size_t i = 0; i < n; i++) {
        snprintf(name_room[i], sizeof name_room[i], "%s:%zu", prefix, i);
        names[i] = name_room[i];
    }
}

static void open_all(struct backend *b, size_t n)
{
    name_all(n);
    assert_ok(hibloom_open_many(filters, b->store, names, n, TEXT, NULL), b->store);
    for (size_t i = 0; i < n; i++) {
        assert_string_equal(hibloom_name_of(filters[i]), names[i]);
        pairs[i] = (hibloom_pair){filters[i], {"x", 1}};
    }
}

static void drop_all(struct backend *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        backend_drop(b, filters[i]);
}

/* And one more wherever a second has passed, to ask which run the server is. */
static void filters_are_made_in_four_round_trips_and_opened_in_one(void **state)
{
    struct backend *b = *state;

    hibloom_close(backend_open(b, TEST_NAME, TEXT)); /* the connection, and the scripts */
    uint64_t before = test_stats(b->store).round_trips;
    open_all(b, FILTERS);
    assert_in_range(test_stats(b->store).round_trips - before, 1, 2 * 4);
    for (size_t i = 0; i < FILTERS; i++) {
        assert_true(hibloom_created(filters[i]));
        hibloom_close(filters[i]);
    }
    before = test_stats(b->store).round_trips;
    assert_ok(hibloom_open_many(filters, b->store, names, FILTERS, NULL, each), b->store);
    assert_in_range(test_stats(b->store).round_trips - before, 1, 2);
    assert_false(hibloom_created(filters[7]));
    drop_all(b, FILTERS);
    name_all(MOST);
    before = test_stats(b->store).calls;
    test_command(b->outside, "CONFIG SET maxmemory 1"); /* once the first thousand have failed, so has the call */
    assert_status(hibloom_open_many(filters, b->store, names, MOST, TEXT, NULL), HIBLOOM_EUNAVAILABLE, b->store);
    test_command(b->outside, "CONFIG SET maxmemory 0");
    assert_int_equal(test_stats(b->store).calls - before, 1000);
}

/* On a slow machine guards may be old when they are sent. Then all ask again, together. */
static void one_item_is_asked_of_all_in_a_round_trip_a_thousand(void **state)
{
    struct backend *b = *state;

    open_all(b, MOST);
    assert_ok(hibloom_add(filters[3], "x", 1, NULL), b->store);
    assert_ok(hibloom_add(filters[1100], "x", 1, NULL), b->store);
    uint64_t before = test_stats(b->store).round_trips;
    assert_ok(hibloom_contains_pairs(pairs, FILTERS, answers, NULL), b->store);
    assert_in_range(test_stats(b->store).round_trips - before, b->redis, FEW * b->redis);
    assert_int_equal(test_count_true(answers, FILTERS), 1);
    assert_true(answers[3]);
    before = test_stats(b->store).round_trips;
    assert_ok(hibloom_contains_pairs(pairs, MOST, answers, each), b->store);
    assert_in_range(test_stats(b->store).round_trips - before, 2 * b->redis, FEW * b->redis);
    assert_int_equal(test_count_true(answers, MOST), 2);
    assert_true(answers[1100]);
    before = test_stats(b->store).round_trips;
    assert_ok(hibloom_add_pairs(pairs, FILTERS, answers, NULL), b->store);
    assert_in_range(test_stats(b->store).round_trips - before, b->redis, FEW * b->redis);
    assert_int_equal(test_count_true(answers, FILTERS), FILTERS - 1);
    assert_false(answers[3]);
    before = test_stats(b->store).connections;
    hibloom_store_deadline(b->store, 1); /* the first thousand take it, so no connection is made for the others */
    assert_int_equal(hibloom_contains_pairs(pairs, MOST, answers, each), b->redis ? HIBLOOM_ETIMEDOUT : HIBLOOM_OK);
    assert_int_equal(test_stats(b->store).connections, before);
    hibloom_store_deadline(b->store, 0);
    drop_all(b, MOST);
}

static void one_that_is_another_opens_alone(void **state)
{
    static const hibloom_status expected[] = {HIBLOOM_EINVAL, HIBLOOM_OK, HIBLOOM_EMISMATCH, HIBLOOM_OK,
                                              HIBLOOM_ENOTFOUND};
    struct backend *b = *state;
    hibloom *unopened = (hibloom *)names; /* whatever: it must stay */

    open_all(b, 5);
    backend_drop(b, filters[2]);
    backend_drop(b, filters[4]);
    hibloom_close(backend_open(b, names[2], "bits=8192 hashes=3"));
    for (size_t i = 0; i < 4; i += i == 1 ? 2 : 1)
        hibloom_close(filters[i]);
    names[0] = "";
    assert_status(hibloom_open_many(filters, b->store, names, 5, TEXT " create=no", each), HIBLOOM_EINVAL, b->store);
    assert_null(filters[0]);
    assert_memory_equal(each, expected, sizeof expected);
    assert_true(filters[2] == NULL && filters[4] == NULL);
    hibloom_close(filters[1]);
    hibloom_close(filters[3]);
    names[0] = name_room[0];
    filters[0] = unopened;
    assert_status(hibloom_open_many(filters, b->store, names, 5, TEXT " create=no", NULL), HIBLOOM_EMISMATCH, b->store);
    assert_ptr_equal(filters[0], unopened);
    assert_status(hibloom_open_many(filters, b->store, names, 5, "capacity=ten", each), HIBLOOM_EINVAL, b->store);
    assert_null(filters[0]);
    assert_status(each[4], HIBLOOM_EINVAL, NULL);
    for (size_t i = 0; i < 4; i++)
        assert_ok(hibloom_drop_by_name(b->store, names[i]), b->store);
}

static void kinds_go_together(void **state)
{
    static const char *const texts[] = {"capacity=100 error=0.0001 growth=2",
                                        "capacity=100 error=0.0001 window=1h slices=2",
                                        "capacity=100 error=0.0001 counters=4", "capacity=100 error=0.0001 segments=3",
                                        "capacity=100 error=0.0001 layout=blocked"};
    enum { KINDS = COUNT(texts), ITEMS = 150 };
    static hibloom_pair all[KINDS * ITEMS];
    static hibloom_status statuses[KINDS * ITEMS];
    static bool found[KINDS * ITEMS];
    struct backend *b = *state;
    hibloom_item *items = items_new("in", ITEMS);

    for (size_t k = 0; k < KINDS; k++)
        filters[k] = backend_open(b, TEST_NAME, texts[k]);
    for (size_t i = 0; i < KINDS * ITEMS; i++)
        all[i] = (hibloom_pair){filters[i % KINDS], items[i / KINDS]};
    assert_ok(hibloom_add_pairs(all, KINDS * ITEMS, found, statuses), b->store);
    assert_in_range(test_count_true(found, KINDS * ITEMS), KINDS * ITEMS - 10, KINDS * ITEMS);
    assert_ok(hibloom_contains_pairs(all, KINDS * ITEMS, found, NULL), b->store);
    assert_int_equal(test_count_true(found, KINDS * ITEMS), KINDS * ITEMS);
    drop_all(b, KINDS);
    items_free(items);
}

static void all_are_of_one_store(void **state)
{
    struct backend *b = *state;
    hibloom_store *memory = NULL;

    open_all(b, 1);
    assert_ok(hibloom_connect(&memory, "memory:", NULL), memory);
    hibloom *other = test_open(memory, "other", TEXT);
    const hibloom_pair two[] = {{filters[0], {"x", 1}}, {other, {"x", 1}}};
    assert_status(hibloom_contains_pairs(two, 2, answers, each), HIBLOOM_EINVAL, b->store);
    assert_status(each[1], HIBLOOM_EINVAL, NULL);
    assert_status(hibloom_add_pairs(two, 2, NULL, NULL), HIBLOOM_EINVAL, b->store);
    assert_false(backend_contains(b, filters[0], "x", 1));
    test_close(other, memory);
    drop_all(b, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_REDIS(filters_are_made_in_four_round_trips_and_opened_in_one),
        ON_ALL(one_item_is_asked_of_all_in_a_round_trip_a_thousand),
        ON_ALL(one_that_is_another_opens_alone),
        ON_ALL(kinds_go_together),
        ON_ALL(all_are_of_one_store),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
