/* Whole filters in memory, joined, compared, and there and back through a
 * file. What a file may do to its reader is in unit_filter_file.c. */
#include "spec/spec.h"
#include "base/store.h"
#include "support/temp_dir.h"
#include "support/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One of each kind; bits that fill no byte, and bitmaps of two pieces. */
static const char *const specs[] = {
    "bits=10007 hashes=7 seed=1",
    "bits=10007 hashes=7 hash=siphash seed=000102030405060708090a0b0c0d0e0f",
    "bits=1009 hashes=7 layout=partitioned seed=2",
    "bits=10240 hashes=7 layout=blocked seed=3",
    "bits=10007 hashes=7 segments=5 seed=4",
    "bits=10240 hashes=7 layout=blocked segments=3 hash=siphash seed=f0e0d0c0b0a090807060504030201000",
    "bits=150000001 hashes=3 segments=1 seed=6",
    "bits=300000003 hashes=3 segments=2 seed=7",
    "bits=140000001 hashes=2 layout=partitioned seed=8",
    "php-poly8 bits=1013",
    "php-mt bits=10007 capacity=1000",
    "py-mmh3 capacity=1000 error=0.01",
};
#define N_SPECS (sizeof specs / sizeof *specs)

static hibloom_store *new_store(void)
{
    hibloom_store *store;

    assert_ok(hibloom_memory(&store), NULL);
    return store;
}

static hibloom *open_text(hibloom_store *store, const char *name, const char *text)
{
    hibloom_spec spec;
    hibloom *filter;

    assert_ok(hibloom_spec_parse(&spec, text), NULL);
    assert_ok(hibloom_open(&filter, store, name, &spec), store);
    return filter;
}

static hibloom *attach_text(hibloom_store *store, const char *name, const char *text)
{
    hibloom_spec spec;
    hibloom *filter;

    assert_ok(hibloom_spec_parse(&spec, text), NULL);
    assert_ok(hibloom_attach(&filter, store, name, &spec), store);
    return filter;
}

/* The numbers from `from` up to, not with, `to`. */
static void add_numbers(hibloom *filter, unsigned from, unsigned to)
{
    for (; from < to; from++)
        assert_ok(hibloom_add(filter, &from, sizeof from, NULL), filter->store);
}

static void assert_has_numbers(hibloom *filter, unsigned from, unsigned to)
{
    for (; from < to; from++) {
        bool found;
        assert_ok(hibloom_contains(filter, &from, sizeof from, &found), filter->store);
        assert_true(found);
    }
}

static size_t all_bytes(const hibloom *filter)
{
    return (size_t)(spec_bitmap_bytes(&filter->spec) * spec_keys(&filter->spec));
}

/* All its bits, key after key; to be freed. */
static unsigned char *bits_of(hibloom *filter)
{
    const uint64_t bytes = spec_bitmap_bytes(&filter->spec);
    unsigned char *bits = malloc(all_bytes(filter)), *at = bits;

    assert_non_null(bits);
    for (uint32_t key = 0; key < spec_keys(&filter->spec); key++)
        for (struct piece piece = {.key = key}; piece.from < bytes; piece.from += piece.len, at += piece.len) {
            piece.len = bytes - piece.from < STORE_PIECE ? bytes - piece.from : STORE_PIECE;
            assert_ok(filter->store->class->read(filter, &piece, at), filter->store);
        }
    return bits;
}

static void assert_bits(hibloom *filter, const unsigned char *expected)
{
    unsigned char *bits = bits_of(filter);

    assert_int_equal(memcmp(bits, expected, all_bytes(filter)), 0);
    free(bits);
}

static uint64_t bits_set(hibloom *filter)
{
    hibloom_info info;

    assert_ok(hibloom_get_info(filter, &info), filter->store);
    return info.bits_set;
}

/* ---- Merging ---------------------------------------------------------------- */

static void check_union(const char *text)
{
    hibloom_store *here = new_store(), *there = new_store();
    hibloom *into = open_text(here, "into", text), *from = open_text(there, "from", text);

    add_numbers(into, 0, 60);
    add_numbers(from, 40, 100);
    unsigned char *a = bits_of(into), *b = bits_of(from);
    for (size_t i = 0; i < all_bytes(into); i++)
        a[i] |= b[i];
    assert_ok(hibloom_merge(into, from), here);
    assert_bits(into, a);
    assert_bits(from, b);
    assert_has_numbers(into, 0, 100);
    free(a);
    free(b);
    hibloom_close(into);
    hibloom_close(from);
    hibloom_store_free(here);
    hibloom_store_free(there);
}

static void a_union_has_all_items_of_both_and_no_other_bits(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_SPECS; i++)
        check_union(specs[i]);
}

static void a_filter_merged_into_itself_is_as_it_was(void **state)
{
    hibloom_store *store = new_store();
    hibloom *filter = open_text(store, "one", specs[0]), *again = open_text(store, "one", specs[0]);

    (void)state;
    add_numbers(filter, 0, 100);
    unsigned char *bits = bits_of(filter);
    assert_ok(hibloom_merge(filter, filter), store);
    assert_ok(hibloom_merge(filter, again), store);
    assert_bits(filter, bits);
    assert_ok(hibloom_drop(filter), store);
    assert_status(hibloom_merge(filter, filter), HIBLOOM_ENOTFOUND, store);
    assert_status(hibloom_merge(filter, again), HIBLOOM_ENOTFOUND, store);
    free(bits);
    hibloom_close(filter);
    hibloom_close(again);
    hibloom_store_free(store);
}

/* What the store is asked for, by a class that is the memory store's and
 * writes it down. */
static struct {
    const struct store_class *real;
    unsigned reads, merges, merges_within;
    uint64_t bytes_read, longest;
} spied;

static hibloom_status spy_read(hibloom *filter, const struct piece *piece, unsigned char *out)
{
    spied.reads++;
    spied.bytes_read += piece->len;
    spied.longest = piece->len > spied.longest ? piece->len : spied.longest;
    assert_in_range(piece->key, 0, spec_keys(&filter->spec) - 1);
    assert_in_range(piece->from + piece->len, 1, spec_bitmap_bytes(&filter->spec));
    return spied.real->read(filter, piece, out);
}

static hibloom_status spy_merge(hibloom *filter, const struct piece *piece, const unsigned char *bits)
{
    spied.merges++;
    return spied.real->merge(filter, piece, bits);
}

static bool are_near(const hibloom *into, const hibloom *from)
{
    return into->store == from->store;
}

static hibloom_status spy_merge_within(hibloom *into, hibloom *from, const struct piece *piece)
{
    unsigned char *bits = malloc(STORE_PIECE);
    hibloom_status status;

    spied.merges_within++;
    assert_non_null(bits);
    status = spied.real->read(from, piece, bits);
    if (status == HIBLOOM_OK)
        status = spied.real->merge(into, piece, bits);
    free(bits);
    return status;
}

static struct store_class spying(hibloom_store *store)
{
    struct store_class class = *store->class;

    memset(&spied, 0, sizeof spied);
    spied.real = store->class;
    class.read = spy_read;
    class.merge = spy_merge;
    class.merge_within = spy_merge_within;
    class.together = are_near;
    return class;
}

static void filters_of_one_store_are_merged_by_the_store(void **state)
{
    hibloom_store *here = new_store(), *there = new_store();
    const struct store_class class = spying(here);
    const char *large = "bits=300000003 hashes=3 segments=2 seed=7";

    (void)state;
    here->class = there->class = &class;
    hibloom *into = open_text(here, "into", large), *from = open_text(here, "from", large);
    hibloom *other = open_text(there, "from", large);
    add_numbers(from, 0, 100);
    add_numbers(other, 100, 200);
    assert_ok(hibloom_merge(into, from), here);
    assert_int_equal(spied.merges_within, 4); /* two pieces of each key */
    assert_int_equal(spied.reads + spied.merges, 0);
    assert_has_numbers(into, 0, 100);
    assert_ok(hibloom_merge(into, other), here);
    assert_int_equal(spied.merges_within, 4);
    assert_int_equal(spied.reads, 4);
    assert_int_equal(spied.merges, 4);
    assert_int_equal(spied.longest, STORE_PIECE);
    assert_int_equal(spied.bytes_read, all_bytes(into));
    assert_has_numbers(into, 0, 200);
    assert_ok(hibloom_merge(into, into), here);
    assert_true(spied.bytes_read <= all_bytes(into) + 1); /* moves nothing */
    hibloom_close(into);
    hibloom_close(from);
    hibloom_close(other);
    hibloom_store_free(here);
    hibloom_store_free(there);
}

static void bits_behind_the_last_of_a_bare_bitmap_stay_there(void **state)
{
    const char *text = "bits=1013 hashes=3 hash=poly seeds=3,5,7";
    char *dir = temp_dir_make(), *path = temp_dir_path(dir, "file");
    hibloom_store *here = new_store();
    const struct store_class class = spying(here);

    (void)state;
    here->class = &class;
    hibloom *into = open_text(here, "into", text), *bare = attach_text(here, "bare", text);
    static const unsigned char full = 0xff;
    const struct piece last = {.from = 126, .len = 1};
    unsigned char byte;
    hibloom_comparison comparison;
    assert_ok(spied.real->merge(bare, &last, &full), here);
    assert_ok(hibloom_compare(into, bare, &comparison), here);
    assert_true(fabs(comparison.union_items - -1013.0 / 3.0 * log1p(-5.0 / 1013.0)) < 1e-9);
    assert_ok(hibloom_save(bare, path), here);
    assert_ok(hibloom_merge(into, bare), here);
    assert_int_equal(spied.merges_within, 0);
    assert_ok(spied.real->read(into, &last, &byte), here);
    assert_int_equal(byte, 0xf8); /* 1013 = 126 * 8 + 5 */
    assert_ok(hibloom_clear(into), here);
    assert_ok(hibloom_load(into, path), here);
    assert_int_equal(bits_set(into), 5);
    hibloom_close(into);
    hibloom_close(bare);
    hibloom_store_free(here);
    free(path);
    temp_dir_remove(dir);
}

/* ---- Refused ----------------------------------------------------------------- */

static void check_refused(hibloom *into, hibloom *from, const char *path)
{
    hibloom_store *store = into->store;
    hibloom_comparison comparison = {1.0, 2.0, 3.0};
    unsigned char *bits = bits_of(into);

    assert_status(hibloom_merge(into, from), HIBLOOM_EMISMATCH, store);
    assert_non_null(strstr(hibloom_store_error(store), "'into'"));
    assert_non_null(strstr(hibloom_store_error(store), "'from'"));
    assert_null(strstr(hibloom_store_error(store), "5eed"));
    assert_status(hibloom_compare(into, from, &comparison), HIBLOOM_EMISMATCH, store);
    assert_non_null(strstr(hibloom_store_error(store), "'from'"));
    assert_null(strstr(hibloom_store_error(store), "5eed"));
    assert_true(comparison.union_items == 1.0 && comparison.intersection_items == 2.0);
    assert_ok(hibloom_save(from, path), from->store);
    assert_status(hibloom_load(into, path), HIBLOOM_EMISMATCH, store);
    assert_non_null(strstr(hibloom_store_error(store), "'into'"));
    assert_null(strstr(hibloom_store_error(store), "5eed"));
    assert_bits(into, bits);
    free(bits);
}

static void another_spec_is_refused_and_nothing_changes(void **state)
{
    static const char *const others[] = {
        "bits=10007 hashes=7 seed=5eed2",
        "bits=10007 hashes=6 seed=5eed1",
        "bits=10006 hashes=7 seed=5eed1",
        "bits=10007 hashes=7 seed=5eed1 capacity=1",
        "bits=10007 hashes=7 seed=5eed1 empty=excluded",
        "bits=10240 hashes=7 seed=5eed1 layout=blocked",
    };
    char *dir = temp_dir_make(), *path = temp_dir_path(dir, "file");
    hibloom_store *here = new_store(), *there = new_store();
    hibloom *into = open_text(here, "into", "bits=10007 hashes=7 seed=5eed1");

    (void)state;
    add_numbers(into, 0, 10);
    for (size_t i = 0; i < 2 * sizeof others / sizeof *others; i++) {
        hibloom *from = open_text(i % 2 ? here : there, "from", others[i / 2]);
        add_numbers(from, 100, 200);
        check_refused(into, from, path);
        assert_ok(hibloom_drop(from), from->store);
        hibloom_close(from);
    }
    hibloom_close(into);
    hibloom_store_free(here);
    hibloom_store_free(there);
    free(path);
    temp_dir_remove(dir);
}

static void what_failed_in_the_other_store_is_told_by_the_first(void **state)
{
    hibloom_store *here = new_store(), *there = new_store();
    hibloom *into = open_text(here, "into", specs[0]), *from = open_text(there, "from", specs[0]);
    hibloom_comparison comparison;

    (void)state;
    add_numbers(into, 0, 10);
    unsigned char *bits = bits_of(into);
    assert_ok(hibloom_drop(from), there);
    assert_status(hibloom_merge(into, from), HIBLOOM_ENOTFOUND, here);
    assert_non_null(strstr(hibloom_store_error(here), "'from'"));
    assert_bits(into, bits);
    assert_status(hibloom_load(into, "/nonexistent/file"), HIBLOOM_EIO, here);
    assert_null(strstr(hibloom_store_error(here), "'from'"));
    assert_status(hibloom_compare(into, from, &comparison), HIBLOOM_ENOTFOUND, here);
    assert_non_null(strstr(hibloom_store_error(here), "'from'"));
    free(bits);
    hibloom_close(into);
    hibloom_close(from);
    hibloom_store_free(here);
    hibloom_store_free(there);
}

/* ---- Files ------------------------------------------------------------------- */

static void check_round_trip(const char *text, const char *path)
{
    hibloom_store *store = new_store();
    hibloom *saved = open_text(store, "saved", text), *loaded;
    hibloom_spec spec;

    add_numbers(saved, 0, 100);
    assert_ok(hibloom_save(saved, path), store);
    assert_ok(hibloom_spec_load(&spec, path), NULL);
    assert_memory_equal(&spec, hibloom_spec_of(saved), sizeof spec);
    assert_ok(hibloom_open(&loaded, store, "loaded", &spec), store);
    add_numbers(loaded, 100, 110);
    assert_ok(hibloom_load(loaded, path), store);
    assert_has_numbers(loaded, 0, 110);
    assert_ok(hibloom_clear(loaded), store);
    assert_ok(hibloom_load(loaded, path), store);
    unsigned char *bits = bits_of(saved);
    assert_bits(loaded, bits);
    free(bits);
    hibloom_close(saved);
    hibloom_close(loaded);
    hibloom_store_free(store);
}

static void a_filter_comes_back_from_its_file(void **state)
{
    char *dir = temp_dir_make(), *path = temp_dir_path(dir, "file");

    (void)state;
    for (size_t i = 0; i < N_SPECS; i++)
        check_round_trip(specs[i], path);
    check_round_trip("capacity=1000 error=0.01", path); /* with a seed that was drawn */
    free(path);
    temp_dir_remove(dir);
}

/* ---- Comparing ---------------------------------------------------------------- */

/* a has [0, 6000), b [4000, 10000): 10000 in all, 2000 in both. */
static void check_estimate(const char *text)
{
    hibloom_store *here = new_store(), *there = new_store();
    hibloom *a = open_text(here, "a", text), *b = open_text(there, "b", text);
    hibloom_comparison comparison, back;
    hibloom_info info;

    add_numbers(a, 0, 6000);
    add_numbers(b, 4000, 10000);
    assert_ok(hibloom_compare(a, b, &comparison), here);
    assert_true(fabs(comparison.union_items / 10000.0 - 1.0) < 0.03);
    assert_true(fabs(comparison.intersection_items / 2000.0 - 1.0) < 0.15);
    assert_true(fabs(comparison.similarity - comparison.intersection_items / comparison.union_items) < 1e-12);
    assert_ok(hibloom_compare(b, a, &back), there);
    assert_true(back.union_items == comparison.union_items);
    /* the union's estimate is that of the union */
    assert_ok(hibloom_merge(a, b), here);
    assert_ok(hibloom_get_info(a, &info), here);
    assert_true(comparison.union_items == info.estimated_items);
    hibloom_close(a);
    hibloom_close(b);
    hibloom_store_free(here);
    hibloom_store_free(there);
}

static void what_two_filters_have_in_common_is_estimated(void **state)
{
    (void)state;
    check_estimate("bits=100003 hashes=7 seed=1");
    check_estimate("bits=20011 hashes=7 layout=partitioned seed=1");
    check_estimate("bits=102400 hashes=7 layout=blocked seed=1");
    check_estimate("bits=100003 hashes=7 segments=3 seed=1");
    check_estimate("bits=140000001 hashes=2 layout=partitioned seed=8");
}

static void extremes_are_exact(void **state)
{
    hibloom_store *store = new_store();
    hibloom *a = open_text(store, "a", specs[0]), *b = open_text(store, "b", specs[0]);
    hibloom *few = open_text(store, "few", "bits=16 hashes=2 seed=1");
    hibloom *full = open_text(store, "full", "bits=16 hashes=2 seed=1");
    hibloom *lower = open_text(store, "lower", "hash=poly bits=2 hashes=1 seeds=3");
    hibloom *upper = open_text(store, "upper", "hash=poly bits=2 hashes=1 seeds=3");
    hibloom_comparison comparison;

    (void)state;
    assert_ok(hibloom_compare(a, b, &comparison), store);
    assert_true(comparison.union_items == 0.0 && comparison.intersection_items == 0.0 && comparison.similarity == 1.0);
    add_numbers(a, 0, 500);
    assert_ok(hibloom_compare(a, b, &comparison), store);
    assert_true(comparison.intersection_items == 0.0 && comparison.similarity == 0.0);
    assert_ok(hibloom_merge(b, a), store);
    assert_ok(hibloom_compare(a, b, &comparison), store);
    assert_true(comparison.intersection_items == comparison.union_items && comparison.similarity == 1.0);
    assert_ok(hibloom_compare(a, a, &comparison), store);
    assert_true(comparison.similarity == 1.0);

    add_numbers(few, 0, 1);
    add_numbers(full, 0, 100);
    assert_int_equal(bits_set(full), 16);
    assert_ok(hibloom_compare(few, full, &comparison), store);
    assert_true(isinf(comparison.union_items) && isnan(comparison.intersection_items) && isnan(comparison.similarity));
    assert_ok(hibloom_add(lower, "0", 1, NULL), store);
    assert_ok(hibloom_add(upper, "1", 1, NULL), store);
    assert_ok(hibloom_compare(lower, upper, &comparison), store); /* neither is full, but the two are */
    assert_true(isinf(comparison.union_items) && isnan(comparison.intersection_items) && isnan(comparison.similarity));
    hibloom_close(lower);
    hibloom_close(upper);
    hibloom_close(a);
    hibloom_close(b);
    hibloom_close(few);
    hibloom_close(full);
    hibloom_store_free(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_union_has_all_items_of_both_and_no_other_bits),
        cmocka_unit_test(a_filter_merged_into_itself_is_as_it_was),
        cmocka_unit_test(filters_of_one_store_are_merged_by_the_store),
        cmocka_unit_test(bits_behind_the_last_of_a_bare_bitmap_stay_there),
        cmocka_unit_test(another_spec_is_refused_and_nothing_changes),
        cmocka_unit_test(what_failed_in_the_other_store_is_told_by_the_first),
        cmocka_unit_test(a_filter_comes_back_from_its_file),
        cmocka_unit_test(what_two_filters_have_in_common_is_estimated),
        cmocka_unit_test(extremes_are_exact),
    };

    return cmocka_run_group_tests_name("unit: transfer", tests, NULL, NULL);
}
