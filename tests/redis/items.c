/* Items at two ends: all their positions are one, and their keys have the longest names. That any bytes are an item, in
 * every layout and preset, fuzz.c and tests/share show. */
#include "support/backend.h"
#include "support/items.h"
#include "support/pieces.h"

#include <stdlib.h>
#include <string.h>

/* The counter of a repeated position counts an item once. Else a remove could go below 0. */
static void an_item_counts_once_in_each_of_its_counters(void **state)
{
    struct backend *b = *state;
    hibloom *filter = backend_open(b, TEST_NAME, "bits=1 hashes=3 counters=8");

    for (unsigned in = 1; in <= 3; in++) {
        assert_int_equal(backend_add(b, filter, "x", 1), in == 1);
        unsigned char *count = all_bits_read(filter);
        assert_int_equal(*count, in);
        free(count);
    }
    backend_drop(b, filter);
}

/* The guard of so many keys with so long names is more than a pipeline holds
 * otherwise; items must come with it all the same. */
static void the_guard_may_be_longer_than_a_pipeline(void **state)
{
    enum { N = 5 };
    struct backend *b = *state;
    hibloom_item *items = items_new("long", N);
    char name[HIBLOOM_NAME_MAX + 1], prefix[TEST_NAME_SIZE];
    bool answers[N];

    memset(name, 'n', HIBLOOM_NAME_MAX);
    name[HIBLOOM_NAME_MAX] = '\0';
    test_name(prefix);
    memcpy(name, prefix, strlen(prefix));
    hibloom *filter = backend_open(b, name, "bits=10000 hashes=128 layout=partitioned");
    assert_ok(hibloom_add_many(filter, items, N, answers), b->store);
    for (int i = 0; i < N; i++)
        assert_true(answers[i]);
    assert_false(backend_add(b, filter, items[0].data, items[0].len));
    assert_ok(hibloom_add_many(filter, items, N, NULL), b->store);
    assert_ok(hibloom_contains_many(filter, items, N, answers), b->store);
    for (int i = 0; i < N; i++)
        assert_true(answers[i]);
    assert_false(backend_contains(b, filter, "none", 4));
    backend_drop(b, filter);
    items_free(items);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_ALL(an_item_counts_once_in_each_of_its_counters),
        ON_REDIS(the_guard_may_be_longer_than_a_pipeline),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
