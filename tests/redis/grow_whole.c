/* Growing filters as a whole: their links are found and made, and their bits read, merged, saved and loaded. */
#include "support/backend.h"
#include "support/items.h"
#include "support/temp_dir.h"
#include "base/store.h"
#include "spec/spec.h"

#include <stdlib.h>
#include <string.h>

#define SMALL "capacity=100 error=1e-9 growth=2"

enum { MANY = 500 }; /* three links */

static hibloom *reopen(struct backend *b, const char *name)
{
    hibloom *filter;

    assert_ok(hibloom_open(&filter, b->store, name, NULL), b->store);
    return filter;
}

static uint32_t links_of(hibloom *filter, uint32_t at_least)
{
    assert_ok(filter->store->class->reach(filter, at_least), filter->store);
    return filter->store->class->links(filter);
}

static size_t count_yes(hibloom *filter, const char *prefix, size_t n,
                        hibloom_status (*call)(hibloom *, const hibloom_item *, size_t n, bool *))
{
    hibloom_item *items = items_new(prefix, n);
    bool *answers = calloc(n, sizeof *answers);

    assert_ok(call(filter, items, n, answers), filter->store);
    const size_t count = test_count_true(answers, n);
    free(answers);
    items_free(items);
    return count;
}

static size_t add_items(hibloom *filter, const char *prefix, size_t n)
{
    return count_yes(filter, prefix, n, hibloom_add_many);
}

static size_t count_found(hibloom *filter, const char *prefix, size_t n)
{
    return count_yes(filter, prefix, n, hibloom_contains_many);
}

/* ---- Links, and their pieces ------------------------------------------------------- */

static void links_are_found_and_made(void **state)
{
    static const char *const kinds[] = {SMALL, SMALL " segments=3", "capacity=2000 error=1e-9"};
    struct backend *b = *state;
    char name[TEST_NAME_SIZE];

    for (size_t i = 0; i < 3; i++) {
        hibloom *filter = backend_open(b, test_name(name), kinds[i]), *stale = reopen(b, name);
        const uint32_t more = i < 2 ? 2 : 1;
        assert_int_equal(links_of(filter, 0), 1);
        assert_int_equal(links_of(filter, more), more);
        assert_int_equal(links_of(filter, 1), more);
        assert_int_equal(links_of(stale, 2), more);
        assert_int_equal(add_items(filter, "x", MANY), MANY);
        assert_int_equal(count_found(stale, "x", MANY), MANY);
        assert_true(i == 2 || links_of(stale, 1) > more);
        hibloom_close(stale);
        backend_drop(b, filter);
    }
}

/* What is merged into the newest link is counted before the next item is added there. */
static void a_piece_goes_to_its_link(void **state)
{
    struct backend *b = *state;
    char name[TEST_NAME_SIZE];
    hibloom *filter = backend_open(b, test_name(name), SMALL), *stale = reopen(b, name);
    hibloom_spec last;
    hibloom_info info;

    assert_int_equal(links_of(filter, 3), 3);
    assert_int_equal(add_items(filter, "x", 1), 1);
    assert_int_equal(links_of(stale, 1), 3);
    assert_ok(spec_link(&last, &filter->spec, 2, 1), NULL);
    const struct piece piece = {.link = 2, .len = spec_bitmap_bytes(&last)};
    unsigned char *bits = malloc(piece.len), *back = malloc(piece.len);
    memset(bits, 0xff, piece.len - 1); /* full */
    bits[piece.len - 1] = 0;
    assert_ok(b->store->class->merge(filter, &piece, bits), b->store);
    assert_ok(b->store->class->read(stale, &piece, back), b->store);
    for (size_t i = 0; i + 1 < piece.len; i++)
        assert_int_equal(back[i], 0xff);
    assert_ok(b->store->class->read(stale, &(struct piece){.link = 1, .len = 1}, back), b->store);
    assert_int_equal(back[0], 0);
    (void)add_items(filter, "y", 1);
    assert_int_equal(links_of(filter, 1), 4);
    assert_ok(hibloom_get_info(filter, &info), b->store);
    assert_int_equal(info.keys, 4);
    free(bits);
    free(back);
    hibloom_close(stale);
    backend_drop(b, filter);
}

/* ---- Merging ------------------------------------------------------------------------ */

/* The last one's sizes take long to compute. */
static const char *const texts[] = {SMALL, "capacity=50 error=1e-9 growth=4 hash=siphash", SMALL " segments=3",
                                    "capacity=100 error=1e-9 growth=3 layout=blocked"};
enum { TEXTS = sizeof texts / sizeof *texts };

static size_t count_texts(void)
{
    return test_is_slow() ? 2 : TEXTS;
}

static hibloom_info info_of(hibloom *filter)
{
    hibloom_info info;

    assert_ok(hibloom_get_info(filter, &info), filter->store);
    return info;
}

static hibloom *same_spec(hibloom_store *store, const char *name, const hibloom *as)
{
    hibloom *filter;

    assert_ok(hibloom_open(&filter, store, name, hibloom_spec_of(as)), store);
    return filter;
}

static void assert_same_bits(hibloom *one, hibloom *other)
{
    const hibloom_info a = info_of(one), b = info_of(other);

    assert_true(a.bits_set > 0);
    assert_int_equal(a.bits_set, b.bits_set);
    assert_true(a.estimated_error_rate == b.estimated_error_rate);
}

/* From memory, within the store, and into memory: the bits are those of the original. */
static void into_an_empty_filter_it_is_exact(void **state)
{
    struct backend *b = *state;
    hibloom_store *memory;

    assert_ok(hibloom_memory(&memory), NULL);
    for (size_t i = 0; i < count_texts(); i++) {
        char name[TEST_NAME_SIZE], other[TEST_NAME_SIZE];
        hibloom *here = test_open(memory, "here", texts[i]), *there = same_spec(b->store, test_name(name), here);
        hibloom *copy = same_spec(b->store, test_name(other), here), *back = same_spec(memory, "back", here);
        assert_int_equal(add_items(here, "x", MANY), MANY);
        assert_ok(hibloom_merge(there, here), b->store);
        assert_same_bits(there, here);
        assert_int_equal(count_found(there, "x", MANY), MANY);
        assert_int_equal(add_items(there, "x", MANY), 0);
        assert_int_equal(add_items(there, "y", MANY), MANY);
        assert_ok(hibloom_merge(copy, there), b->store);
        assert_same_bits(copy, there);
        assert_int_equal(count_found(copy, "y", MANY), MANY);
        assert_ok(hibloom_merge(back, copy), memory);
        assert_same_bits(back, copy);
        assert_int_equal(add_items(back, "x", MANY), 0);
        assert_int_equal(add_items(back, "z", MANY), MANY);
        assert_ok(hibloom_merge(there, there), b->store);
        assert_same_bits(copy, there);
        assert_ok(hibloom_drop(here), memory);
        assert_ok(hibloom_drop(back), memory);
        hibloom_close(here);
        hibloom_close(back);
        backend_drop(b, copy);
        backend_drop(b, there);
    }
    hibloom_store_free(memory);
}

/* One of them has more links; no handle of either has seen it grow. All of both are found, by stale handles, too. */
static void two_that_have_grown_are_joined(void **state)
{
    struct backend *b = *state;

    for (size_t i = 0; i < 2 * count_texts(); i++) {
        char name[TEST_NAME_SIZE], other[TEST_NAME_SIZE];
        const size_t few = 130, x = i % 2 == 0 ? MANY : few, y = MANY + few - x;
        hibloom *into = backend_open(b, test_name(name), texts[i / 2]), *stale_into = reopen(b, name);
        hibloom *from = same_spec(b->store, test_name(other), into), *stale_from = reopen(b, other);
        hibloom *asks = reopen(b, name);
        add_items(into, "x", x);
        add_items(from, "y", y);
        assert_ok(hibloom_merge(stale_into, stale_from), b->store);
        assert_int_equal(count_found(asks, "x", x), x);
        assert_int_equal(count_found(asks, "y", y), y);
        assert_int_equal(add_items(into, "y", y), 0);
        assert_int_equal(count_found(from, "x", x), 0);
        assert_true(info_of(into).estimated_items > 0.9 * (double)(x + y));
        assert_true(add_items(stale_into, "z", MANY) >= MANY - 10); /* its first links have more than they are for */
        assert_int_equal(count_found(asks, "z", MANY), MANY);
        hibloom_close(asks);
        hibloom_close(stale_into);
        hibloom_close(stale_from);
        backend_drop(b, into);
        backend_drop(b, from);
    }
}

/* ---- Files -------------------------------------------------------------------------- */

static void it_comes_back_from_its_file(void **state)
{
    struct backend *b = *state;
    char *dir = temp_dir_make(), *path = temp_dir_path(dir, "file");
    hibloom_spec spec;

    for (size_t i = 0; i < count_texts(); i++) {
        char name[TEST_NAME_SIZE], other[TEST_NAME_SIZE];
        hibloom *filter = backend_open(b, test_name(name), texts[i]), *stale = reopen(b, name), *loaded;
        assert_ok(hibloom_save(filter, path), b->store); /* of one link, empty */
        add_items(filter, "x", MANY);
        assert_ok(hibloom_load(filter, path), b->store); /* which is a part of it */
        assert_ok(hibloom_save(stale, path), b->store);  /* that has not seen it grow */
        assert_ok(hibloom_spec_load(&spec, path), NULL);
        assert_memory_equal(&spec, hibloom_spec_of(filter), sizeof spec);
        assert_ok(hibloom_open(&loaded, b->store, test_name(other), &spec), b->store);
        add_items(loaded, "y", 120);
        assert_ok(hibloom_load(loaded, path), b->store);
        assert_int_equal(count_found(loaded, "x", MANY), MANY);
        assert_int_equal(count_found(loaded, "y", 120), 120);
        assert_ok(hibloom_clear(loaded), b->store);
        assert_ok(hibloom_load(loaded, path), b->store);
        assert_same_bits(loaded, filter);
        assert_int_equal(add_items(loaded, "x", MANY), 0);
        assert_int_equal(add_items(loaded, "y", MANY), MANY);
        hibloom_close(stale);
        backend_drop(b, loaded);
        backend_drop(b, filter);
    }
    free(path);
    temp_dir_remove(dir);
}

/* ---- Refused --------------------------------------------------------------------------- */

static void what_they_have_in_common_is_refused_in_words(void **state)
{
    struct backend *b = *state;
    char name[TEST_NAME_SIZE], other[TEST_NAME_SIZE];
    hibloom *filter = backend_open(b, test_name(name), SMALL), *same = same_spec(b->store, test_name(other), filter);
    hibloom *plain = backend_open(b, test_name(name), "capacity=100 error=1e-9");
    hibloom_comparison comparison;

    assert_status(hibloom_compare(filter, same, &comparison), HIBLOOM_ENOTSUP, b->store);
    assert_non_null(strstr(hibloom_store_error(b->store), "cannot be counted"));
    assert_status(hibloom_merge(filter, plain), HIBLOOM_EMISMATCH, b->store);
    assert_status(hibloom_merge(plain, filter), HIBLOOM_EMISMATCH, b->store);
    backend_drop(b, plain);
    backend_drop(b, same);
    backend_drop(b, filter);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_ALL(links_are_found_and_made),         ON_ALL(a_piece_goes_to_its_link),
        ON_ALL(into_an_empty_filter_it_is_exact), ON_ALL(two_that_have_grown_are_joined),
        ON_ALL(it_comes_back_from_its_file),      ON_ALL(what_they_have_in_common_is_refused_in_words),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
