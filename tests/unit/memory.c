/* The memory store: that bits lie where hibloom_positions says, in keys one
 * after the other, and that whole pieces of them go in and out unharmed. They
 * are read by the store's own functions, which have no other door yet. */
#include "support/bits.h"
#include "support/tiny.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spec/spec.h"
#include "base/store.h"
#include "spec/positions.h"

static hibloom *open_filter(const char *text)
{
    return test_open(test_connect("memory:", NULL), "filter", text);
}

static void close_filter(hibloom *filter)
{
    hibloom_store *store = filter->store;

    test_close(filter, store);
}

/* ---- Items -------------------------------------------------------------------- */

static void set_positions(const struct spec *spec, unsigned item, unsigned char *bits)
{
    struct position positions[HIBLOOM_HASHES_MAX];

    assert_ok(positions_of(spec, &item, sizeof item, positions), NULL);
    for (uint32_t i = 0; i < spec->hashes; i++) {
        unsigned char *key = bits + positions[i].key * spec_bitmap_bytes(spec);
        key[positions[i].bit / 8] = (unsigned char)(key[positions[i].bit / 8] | 0x80 >> positions[i].bit % 8);
    }
}

static void bits_lie_where_their_positions_say(void **state)
{
    static const char *const texts[] = {
        "bits=100003 hashes=7 segments=8",
        "bits=99840 hashes=8 segments=7 layout=blocked",
        "bits=100003 hashes=30 segments=3 hash=siphash",
        "bits=10003 hashes=7",
        "bits=51200 hashes=128 layout=blocked hash=siphash",
        "bits=1003 hashes=9 layout=partitioned",
        "php-uids",
        "bits=20000003 hashes=7", /* huge pages where the system has them */
        "bits=20000003 hashes=7 segments=2",
    };

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        hibloom *filter = open_filter(texts[i]);
        unsigned char *expected = calloc(1, all_bits_len(filter));
        assert_non_null(expected);
        for (unsigned item = 0; item < 20; item++) {
            assert_ok(hibloom_add(filter, &item, sizeof item, NULL), filter->store);
            set_positions(&filter->spec, item, expected);
        }
        unsigned char *bits = all_bits_read(filter);
        assert_memory_equal(bits, expected, all_bits_len(filter));
        free(bits);
        free(expected);
        close_filter(filter);
    }
}

/* ---- Pieces ------------------------------------------------------------------- */

static void merge(hibloom *filter, const struct piece *piece, const unsigned char *bits)
{
    assert_ok(filter->store->class->merge(filter, piece, bits), filter->store);
}

static void counting_agrees_with_counting_bit_by_bit(void **state)
{
    struct test_random random = test_random_new();
    unsigned char piece_bits[40];
    hibloom_info info;
    char text[64];

    for (unsigned len = 1; len <= sizeof piece_bits; len++) { /* less than a word, whole ones, a rest */
        for (unsigned segments = 1; segments <= 3; segments += 2) {
            snprintf(text, sizeof text, "bits=%u hashes=3 segments=%u", 8 * len * segments, segments);
            hibloom *filter = open_filter(text);
            uint64_t expected = 0;
            test_random_bytes(&random, piece_bits, sizeof piece_bits);
            piece_bits[len - 1] |= 1; /* the last bit of all, too */
            for (size_t bit = 0; bit < 8 * len; bit++)
                expected += piece_bits[bit / 8] >> bit % 8 & 1;
            for (uint32_t key = 0; key < segments; key++)
                merge(filter, &(struct piece){.key = key, .len = len}, piece_bits);
            assert_ok(hibloom_get_info(filter, &info, sizeof info), filter->store);
            assert_int_equal(info.bits_set, expected * segments);
            assert_int_equal(info.bytes, len * segments);
            close_filter(filter);
        }
    }
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

/* ---- Names, handles and time -------------------------------------------------------------- */

static void assert_words(const hibloom_store *store, const char *words)
{
    if (strstr(hibloom_store_error(store), words) == NULL)
        fail_msg("\"%s\" has no \"%s\"", hibloom_store_error(store), words);
}

static void a_refused_open_says_what_to_do(void **state)
{
    hibloom *filter = open_filter("bits=800 hashes=3 seed=1"), *bare, *none;
    hibloom_store *store = filter->store;
    struct spec spec = test_spec("bits=900 hashes=3");

    assert_status(hibloom_open(&none, store, "filter", test_text(&spec)), HIBLOOM_EMISMATCH, store);
    assert_words(store, "'filter': has bits=800, and the text says bits=900");
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
    assert_dropped(bare, store);
    close_filter(filter);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bits_lie_where_their_positions_say),
        cmocka_unit_test(counting_agrees_with_counting_bit_by_bit),
        cmocka_unit_test(pieces_of_a_dropped_filter_are_refused_and_change_nothing),
        cmocka_unit_test(a_refused_open_says_what_to_do),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
