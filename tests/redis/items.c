/* Items, on every store: any bytes, alone and in batches, in every layout and
 * preset; and the bits that they set are the same on all. */
#include "support/backend.h"
#include "support/items.h"
#include "spec/spec.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void any_bytes_are_an_item(void **state)
{
    static const char *const texts[] = {"capacity=1000 error=0.000001",
                                        "capacity=1000 error=0.000001 hash=siphash",
                                        "py-mmh3 capacity=1000 error=0.000001",
                                        "capacity=1000 error=0.000001 layout=partitioned",
                                        "capacity=1000 error=0.000001 layout=blocked",
                                        "bits=20011 hashes=128", /* longer than a BITFIELD otherwise */
                                        "bits=20000 hashes=100 segments=5"};
    static const hibloom_item items[] = {
        {"", 0},
        {"\0", 1},
        {"\0\0", 2},
        {"a\r\nb", 4},
        {"a", 1},
        {"a\0", 2},
        {"%s%n", 4},
        {"\xff\xfe", 2},
        {"$6\r\nSETBIT\r\n", 12},
        {"\xe4\xb8\xad\xe6\x96\x87", 6},
    };
    const size_t n = sizeof items / sizeof *items;
    struct backend *b = *state;

    for (size_t t = 0; t < sizeof texts / sizeof *texts; t++) {
        hibloom *filter = backend_open(b, TEST_NAME, texts[t]);
        for (size_t i = 0; i < n; i++) {
            assert_false(backend_contains(b, filter, items[i].data, items[i].len));
            assert_true(backend_add(b, filter, items[i].data, items[i].len));
            assert_false(backend_add(b, filter, items[i].data, items[i].len));
            assert_true(backend_contains(b, filter, items[i].data, items[i].len));
        }
        assert_true(backend_contains(b, filter, NULL, 0));
        backend_drop(b, filter);
    }
}

static void an_excluded_item_is_never_added_and_never_found(void **state)
{
    static const hibloom_item items[] = {{"a", 1}, {"", 0}, {NULL, 0}, {"b", 1}, {"", 0}};
    struct backend *b = *state;
    bool answers[5];
    hibloom_info info;
    hibloom *filter = backend_open(b, TEST_NAME, "php-poly8 bits=65536");

    assert_false(backend_contains(b, filter, "", 0));
    assert_ok(hibloom_add(filter, "", 0, NULL), b->store);
    assert_false(backend_add(b, filter, "", 0));
    assert_ok(hibloom_get_info(filter, &info, sizeof info), b->store);
    assert_int_equal(info.bits_set, 0);
    assert_ok(hibloom_add_many(filter, items, 5, answers), b->store);
    assert_true(answers[0] && !answers[1] && !answers[2] && answers[3] && !answers[4]);
    assert_ok(hibloom_contains_many(filter, items, 5, answers), b->store);
    assert_true(answers[0] && !answers[1] && !answers[2] && answers[3] && !answers[4]);
    assert_ok(hibloom_get_info(filter, &info, sizeof info), b->store);
    assert_int_equal(info.bits_set, 16);
    backend_drop(b, filter);
}

/* On a server a fifth is some thousand pipelines, and the bounds below are as far from chance. */
static void many_items(struct backend *b, const char *layout, size_t many)
{
    const size_t n = test_is_slow() ? many / 50 : b->redis ? many / 5 : many;
    hibloom_item *items = items_new("many", n);
    bool *found = calloc(n, sizeof *found);
    char name[TEST_NAME_SIZE], text[SPEC_TEXT_SIZE];
    hibloom_info info;
    hibloom *filter;

    assert_non_null(found);
    snprintf(text, sizeof text, "capacity=%zu error=0.01 layout=%s", n, layout);
    filter = backend_open(b, test_name(name), text);
    assert_ok(hibloom_add_many(filter, items, n, NULL), b->store);
    assert_ok(hibloom_contains_many(filter, items, n, found), b->store);
    for (size_t i = 0; i < n; i++)
        assert_true(found[i]);
    assert_ok(hibloom_get_info(filter, &info, sizeof info), b->store);
    assert_true(fabs(info.estimated_items / (double)n - 1.0) < 0.03);
    assert_true(fabs(info.fill - 0.5) < 0.06);
    backend_drop(b, filter);
    free(found);
    items_free(items);
}

static void very_many_items_and_no_false_no(void **state)
{
    many_items(*state, "classic", 1000000);
}

static void no_false_no_in_blocks(void **state)
{
    many_items(*state, "blocked", 250000);
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
        ON_ALL(any_bytes_are_an_item),
        ON_ALL(an_excluded_item_is_never_added_and_never_found),
        ON_ALL(very_many_items_and_no_false_no),
        ON_ALL(no_false_no_in_blocks),
        ON_REDIS(the_guard_may_be_longer_than_a_pipeline),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
