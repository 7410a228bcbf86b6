/* The memory store: pieces of a filter that is gone are refused, and each piece moves once. They are read by the store's own
 * functions, which have no other door yet. And whole filters, joined and compared; what a file may do to its reader is in
 * filter_file.c. That bits and counts are right, redis/fuzz shows. */
#include "support/pieces.h"
#include "support/items.h"
#include "support/temp_dir.h"
#include "support/tiny.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spec/spec.h"
#include "base/store.h"

static hibloom *open_filter(const char *text)
{
    return test_open(test_connect("memory:", NULL), "filter", text);
}

static void close_filter(hibloom *filter)
{
    hibloom_store *store = filter->store;

    test_close(filter, store);
}

/* Neither the caller's buffer nor a filter that came after. */
static void pieces_of_a_dropped_filter_are_refused_and_change_nothing(void **state)
{
    const struct piece piece = {.len = 100};
    unsigned char bits[100], out[100];
    hibloom *stale = open_filter("bits=800 hashes=3 seed=1");
    hibloom_store *store = stale->store;

    memset(bits, 0xff, sizeof bits);
    memset(out, 0x55, sizeof out);
    assert_ok(hibloom_drop(stale), store);
    assert_status(store->class->read(stale, &piece, out), HIBLOOM_ENOTFOUND, store);
    assert_status(store->class->merge(stale, &piece, bits), HIBLOOM_ENOTFOUND, store);

    hibloom *other = test_open(store, "filter", "bits=800 hashes=3 seed=2");
    assert_status(store->class->read(stale, &piece, out), HIBLOOM_EMISMATCH, store);
    assert_status(store->class->merge(stale, &piece, bits), HIBLOOM_EMISMATCH, store);
    for (size_t i = 0; i < sizeof out; i++)
        assert_int_equal(out[i], 0x55);
    assert_int_equal(bits_set(other), 0);
    assert_dropped(other, store);

    other = test_open(store, "filter", "bits=800 hashes=3 seed=1"); /* made anew just so, it is another one */
    assert_status(store->class->merge(stale, &piece, bits), HIBLOOM_EMISMATCH, store);
    assert_int_equal(bits_set(other), 0);
    hibloom_close(other);
    close_filter(stale);
}

static void a_refused_open_says_what_to_do(void **state)
{
    hibloom *filter = open_filter("bits=800 hashes=3 seed=1"), *bare, *none;
    hibloom_store *store = filter->store;
    struct spec spec = test_spec("bits=900 hashes=3");

    assert_fails(hibloom_open(&none, store, "filter", test_text(&spec)), HIBLOOM_EMISMATCH, store,
                 "'filter': has bits=800, and the text says bits=900");
    assert_status(hibloom_attach(&none, store, "filter", test_text(&spec)), HIBLOOM_EMISMATCH, store);
    assert_words(store, "'filter': is no bare bitmap, it has a spec; open it");
    assert_ok(hibloom_attach(&bare, store, "bare", test_text(&spec)), store);
    assert_status(hibloom_open(&none, store, "bare", test_text(&spec)), HIBLOOM_EMISMATCH, store);
    assert_words(store, "'bare': is a bare bitmap; attach it");
    assert_status(hibloom_drop_by_name(store, "bare"), HIBLOOM_ENOTFOUND, store);
    assert_words(store, "'bare': is a bare bitmap; attach it to drop it");
    assert_status(hibloom_repair(store, "none"), HIBLOOM_ENOTFOUND, store);
    assert_words(store, "'none': there is no such filter; open it with a spec to make one");
    spec.bits = 1000;
    assert_status(hibloom_attach(&none, store, "bare", test_text(&spec)), HIBLOOM_EMISMATCH, store);
    assert_words(store, "'bare': is attached with another spec; attach it with that one");
    assert_ok(hibloom_drop_by_name(store, "filter"), store);
    assert_ok(hibloom_drop(bare), store);
    assert_dropped(bare, store); /* it is OK again */
    close_filter(filter);
}

/* What the store is asked for, by a class that is the memory store's and writes it down. */
static struct {
    const struct store_class *real;
    unsigned reads, merges;
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

static struct store_class spying(hibloom_store *store)
{
    struct store_class class = *store->class;

    memset(&spied, 0, sizeof spied);
    spied.real = store->class;
    class.read = spy_read;
    class.merge = spy_merge;
    return class;
}

static void a_merge_moves_each_piece_once(void **state)
{
    hibloom_store *here = test_connect("memory:", NULL), *there = test_connect("memory:", NULL);
    const struct store_class class = spying(here);
    const char *large = "bits=300000003 hashes=3 segments=2 seed=7";

    here->class = there->class = &class;
    hibloom *into = test_open(here, "into", large), *other = test_open(there, "from", large);
    assert_int_equal(items_add(other, there, "item", 100), 100);
    assert_ok(hibloom_merge(into, other), here);
    assert_int_equal(spied.reads, 4); /* two pieces of each key */
    assert_int_equal(spied.merges, 4);
    assert_int_equal(spied.longest, STORE_PIECE);
    assert_int_equal(spied.bytes_read, all_bits_len(into));
    assert_int_equal(items_count(into, here, "item", 100), 100);
    hibloom_close(into);
    test_close(other, here);
    hibloom_store_free(there);
}

static void bits_behind_the_last_of_a_bare_bitmap_stay_there(void **state)
{
    const char *text = "bits=1013 hashes=3 hash=poly seeds=3,5,7";
    char *dir = temp_dir_make(), *path = temp_dir_path(dir, "file");
    hibloom_store *here = test_connect("memory:", NULL);
    const struct store_class class = spying(here);

    here->class = &class;
    hibloom *into = test_open(here, "into", text), *bare = test_attach(here, "bare", text);
    static const unsigned char full = 0xff;
    const struct piece last = {.from = 126, .len = 1};
    unsigned char byte;
    hibloom_comparison comparison;
    assert_ok(spied.real->merge(bare, &last, &full), here);
    assert_ok(hibloom_compare(into, bare, &comparison, sizeof comparison), here);
    assert_true(fabs(comparison.union_items - -1013.0 / 3.0 * log1p(-5.0 / 1013.0)) < 1e-9);
    assert_ok(hibloom_save(bare, path), here);
    assert_ok(hibloom_merge(into, bare), here);
    assert_ok(spied.real->read(into, &last, &byte), here);
    assert_int_equal(byte, 0xf8); /* 1013 = 126 * 8 + 5 */
    assert_ok(hibloom_clear(into), here);
    assert_ok(hibloom_restore(into, path), here);
    assert_int_equal(bits_set(into), 5);
    hibloom_close(into);
    test_close(bare, here);
    free(path);
    temp_dir_remove(dir);
}

static void extremes_are_exact(void **state)
{
    hibloom_store *store = test_connect("memory:", NULL);
    hibloom *a = test_open(store, "a", "bits=10007 hashes=7 seed=1"),
            *b = test_open(store, "b", "bits=10007 hashes=7 seed=1");
    hibloom *few = test_open(store, "few", "bits=16 hashes=2 seed=1");
    hibloom *full = test_open(store, "full", "bits=16 hashes=2 seed=1");
    hibloom *lower = test_open(store, "lower", "hash=poly bits=2 hashes=1 seeds=3");
    hibloom *upper = test_open(store, "upper", "hash=poly bits=2 hashes=1 seeds=3");
    hibloom_comparison comparison;

    assert_ok(hibloom_compare(a, b, &comparison, sizeof comparison), store);
    assert_true(comparison.union_items == 0.0 && comparison.intersection_items == 0.0 && comparison.similarity == 1.0);
    (void)items_add(a, store, "item", 500);
    assert_ok(hibloom_compare(a, b, &comparison, sizeof comparison), store);
    assert_true(comparison.intersection_items == 0.0 && comparison.similarity == 0.0);
    assert_ok(hibloom_merge(b, a), store);
    assert_ok(hibloom_compare(a, b, &comparison, sizeof comparison), store);
    assert_true(comparison.intersection_items == comparison.union_items && comparison.similarity == 1.0);
    assert_ok(hibloom_compare(a, a, &comparison, sizeof comparison), store);
    assert_true(comparison.similarity == 1.0);

    (void)items_add(few, store, "item", 1);
    (void)items_add(full, store, "item", 100);
    assert_int_equal(bits_set(full), 16);
    assert_ok(hibloom_compare(few, full, &comparison, sizeof comparison), store);
    assert_true(isinf(comparison.union_items) && isnan(comparison.intersection_items) && isnan(comparison.similarity));
    assert_ok(hibloom_add(lower, "0", 1, NULL), store);
    assert_ok(hibloom_add(upper, "1", 1, NULL), store);
    assert_ok(hibloom_compare(lower, upper, &comparison, sizeof comparison),
              store); /* neither is full, but the two are */
    assert_true(isinf(comparison.union_items) && isnan(comparison.intersection_items) && isnan(comparison.similarity));
    hibloom_close(lower);
    hibloom_close(upper);
    hibloom_close(a);
    hibloom_close(b);
    hibloom_close(few);
    test_close(full, store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_of_a_dropped_filter_are_refused_and_change_nothing),
        cmocka_unit_test(a_refused_open_says_what_to_do),
        cmocka_unit_test(a_merge_moves_each_piece_once),
        cmocka_unit_test(bits_behind_the_last_of_a_bare_bitmap_stay_there),
        cmocka_unit_test(extremes_are_exact),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
