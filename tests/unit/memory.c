/* The memory store: that bits lie where hibloom_positions says, in keys one
 * after the other, and that whole pieces of them go in and out unharmed. They
 * are read by the store's own functions, which have no other door yet. */
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spec/spec.h"
#include "base/store.h"

static hibloom *open_in(hibloom_store *store, const char *name, const char *text)
{
    hibloom_spec spec;
    hibloom *filter;

    assert_ok(hibloom_spec_parse(&spec, text), NULL);
    assert_ok(hibloom_open(&filter, store, name, &spec), store);
    return filter;
}

static hibloom *open_filter(const char *text)
{
    hibloom_store *store;

    assert_ok(hibloom_memory(&store), NULL);
    return open_in(store, "filter", text);
}

static void close_filter(hibloom *filter)
{
    hibloom_store *store = filter->store;

    hibloom_close(filter);
    hibloom_store_free(store);
}

/* ---- All bits, key after key ------------------------------------------------- */

static size_t bytes_in(const hibloom *filter)
{
    return (size_t)(spec_keys(&filter->spec) * spec_bitmap_bytes(&filter->spec));
}

static unsigned char *no_bits(const hibloom *filter)
{
    unsigned char *bits = calloc(1, bytes_in(filter));

    assert_non_null(bits);
    return bits;
}

/* In two pieces a key, so that a piece begins within one. */
static unsigned char *read_bits(hibloom *filter)
{
    const uint64_t len = spec_bitmap_bytes(&filter->spec), first = len / 3;
    unsigned char *bits = no_bits(filter), *at = bits;

    for (uint32_t key = 0; key < spec_keys(&filter->spec); key++, at += len) {
        assert_ok(filter->store->class->read(filter, &(struct piece){.key = key, .len = first}, at), filter->store);
        assert_ok(filter->store->class->read(filter, &(struct piece){.key = key, .from = first, .len = len - first},
                                             at + first),
                  filter->store);
    }
    return bits;
}

static void assert_bits(hibloom *filter, const unsigned char *expected)
{
    unsigned char *bits = read_bits(filter);

    assert_memory_equal(bits, expected, bytes_in(filter));
    free(bits);
}

/* ---- Items -------------------------------------------------------------------- */

static void set_positions(const hibloom_spec *spec, unsigned item, unsigned char *bits)
{
    hibloom_position positions[HIBLOOM_HASHES_MAX];

    assert_ok(hibloom_positions(spec, &item, sizeof item, positions), NULL);
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

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        hibloom *filter = open_filter(texts[i]);
        unsigned char *expected = no_bits(filter);
        for (unsigned item = 0; item < 20; item++) {
            assert_ok(hibloom_add(filter, &item, sizeof item, NULL), filter->store);
            set_positions(&filter->spec, item, expected);
        }
        assert_bits(filter, expected);
        free(expected);
        close_filter(filter);
    }
}

#define ITEMS 20000

/* A call with the numbers from `from` on as items. */
static void many(hibloom *filter, unsigned from, bool add, bool *answers)
{
    static unsigned numbers[ITEMS];
    static hibloom_item items[ITEMS];

    for (unsigned i = 0; i < ITEMS; i++) {
        numbers[i] = from + i;
        items[i] = (hibloom_item){&numbers[i], sizeof numbers[i]};
    }
    if (add)
        assert_ok(hibloom_add_many(filter, items, ITEMS, answers), filter->store);
    else
        assert_ok(hibloom_contains_many(filter, items, ITEMS, answers), filter->store);
}

static unsigned count_true(const bool *answers)
{
    unsigned count = 0;

    for (unsigned i = 0; i < ITEMS; i++)
        count += answers[i];
    return count;
}

/* 400,000 that are not in, of which 4,000 are expected: 5 deviations are 320,
 * and some more for how full the filter happens to be. */
static void assert_error_rate(const char *text)
{
    hibloom *filter = open_filter(text);
    static bool answers[ITEMS];
    unsigned wrong = 0;
    bool found;

    many(filter, 0, true, answers);
    assert_in_range(count_true(answers), ITEMS - ITEMS / 200, ITEMS); /* on the way to 1 % */
    many(filter, 0, true, answers);
    assert_int_equal(count_true(answers), 0);
    many(filter, 0, false, answers);
    assert_int_equal(count_true(answers), ITEMS);
    for (unsigned i = 0; i < ITEMS; i++) {
        assert_ok(hibloom_contains(filter, &i, sizeof i, &found), filter->store);
        assert_true(found);
    }
    for (unsigned i = 1; i <= 20; i++) {
        many(filter, i * ITEMS, false, answers);
        wrong += count_true(answers);
    }
    const double expected = hibloom_spec_error_at(&filter->spec, ITEMS) * 20 * ITEMS;
    print_message("%s: %u wrong, %.0f expected\n", text, wrong, expected);
    assert_true(wrong > expected - 500 && wrong < expected + 500);
    close_filter(filter);
}

static void segments_keep_the_error_rate_and_lose_no_item(void **state)
{
    (void)state;
    assert_error_rate("capacity=20000 error=0.01 segments=8 seed=1");
    assert_error_rate("capacity=20000 error=0.01 segments=8 seed=1 layout=blocked");
    assert_error_rate("capacity=20000 error=0.01 segments=1 seed=1");
}

static void an_item_that_comes_twice_in_a_batch_is_new_once(void **state)
{
    const hibloom_item items[] = {{"a", 1}, {"b", 1}, {"a", 1}, {"a", 1}, {"b", 1}, {"c", 1}};
    const bool expected[] = {true, true, false, false, false, true};
    hibloom *filter = open_filter("bits=100003 hashes=7 seed=1");
    bool is_new[6];

    (void)state;
    assert_ok(hibloom_add_many(filter, items, 6, is_new), filter->store);
    assert_memory_equal(is_new, expected, sizeof expected);
    close_filter(filter);
}

static void excluded_items_amid_a_batch_do_not_disturb_the_others(void **state)
{
    const hibloom_item items[] = {{"", 0}, {"a", 1}, {NULL, 0}, {"b", 1}, {"", 0}};
    const bool expected[] = {false, true, false, true, false};
    hibloom *filter = open_filter("bits=100003 hashes=7 seed=1 empty=excluded");
    bool answers[5];

    (void)state;
    assert_ok(hibloom_add_many(filter, items, 5, answers), filter->store);
    assert_memory_equal(answers, expected, sizeof expected);
    assert_ok(hibloom_contains_many(filter, items, 5, answers), filter->store);
    assert_memory_equal(answers, expected, sizeof expected);
    for (int i = 0; i < 5; i++) { /* each where it belongs, and not where its neighbour does */
        assert_ok(hibloom_contains(filter, items[i].data, items[i].len, answers), filter->store);
        assert_int_equal(answers[0], expected[i]);
    }
    close_filter(filter);
}

/* ---- Pieces ------------------------------------------------------------------- */

static void merge(hibloom *filter, const struct piece *piece, const unsigned char *bits)
{
    assert_ok(filter->store->class->merge(filter, piece, bits), filter->store);
}

/* Against the same done byte by byte. The pieces are sparse, so that bits which
 * they do not set lie beside those they do. */
static void merge_sets_bits_and_clears_none(void **state)
{
    hibloom *filter = open_filter("bits=100003 hashes=7 segments=8");
    const uint64_t bytes = spec_bitmap_bytes(&filter->spec);
    unsigned char *expected = no_bits(filter), piece_bits[1563];
    struct test_random random = test_random_new();

    (void)state;
    assert_int_equal(bytes, sizeof piece_bits); /* no whole number of words */
    for (int i = 0; i < 300; i++) {
        const uint64_t from = test_random_below(&random, bytes + 1);
        const uint64_t most = i % 2 == 0 ? 20 : bytes;
        const uint64_t len = test_random_below(&random, (bytes - from < most ? bytes - from : most) + 1);
        const struct piece piece = {.key = (uint32_t)test_random_below(&random, 8), .from = from, .len = len};
        for (size_t at = 0; at < len; at++) {
            piece_bits[at] = test_random_below(&random, 50) == 0 ? (unsigned char)test_random_u64(&random) : 0;
            expected[piece.key * bytes + from + at] |= piece_bits[at];
        }
        merge(filter, &piece, piece_bits);
        assert_bits(filter, expected);
    }
    free(expected);
    close_filter(filter);
}

static void what_is_read_and_merged_is_found_there(void **state)
{
    hibloom *from = open_filter("bits=200003 hashes=7 segments=5 seed=1");
    hibloom *into = open_filter("bits=200003 hashes=7 segments=5 seed=1");
    const uint64_t len = spec_bitmap_bytes(&from->spec);
    static bool answers[ITEMS];
    unsigned char *bits;

    (void)state;
    many(from, 0, true, NULL);
    bits = read_bits(from);
    for (uint32_t key = 0; key < 5; key++)
        merge(into, &(struct piece){.key = key, .len = len}, bits + key * len);
    many(into, 0, false, answers);
    assert_int_equal(count_true(answers), ITEMS);
    free(bits);
    close_filter(from);
    close_filter(into);
}

static void counting_agrees_with_counting_bit_by_bit(void **state)
{
    struct test_random random = test_random_new();
    unsigned char piece_bits[40];
    hibloom_info info;
    char text[64];

    (void)state;
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
            assert_ok(hibloom_get_info(filter, &info), filter->store);
            assert_int_equal(info.bits_set, expected * segments);
            assert_int_equal(info.bytes, len * segments);
            close_filter(filter);
        }
    }
}

static void clearing_leaves_no_bit_in_any_key(void **state)
{
    hibloom *filter = open_filter("bits=1000 hashes=3 layout=partitioned");
    unsigned char ones[125], *none = no_bits(filter);

    (void)state;
    memset(ones, 0xff, sizeof ones);
    for (uint32_t key = 0; key < 3; key++)
        merge(filter, &(struct piece){.key = key, .len = sizeof ones}, ones);
    assert_ok(hibloom_clear(filter), filter->store);
    assert_bits(filter, none);
    free(none);
    close_filter(filter);
}

/* Neither the caller's buffer nor a filter that came after. */
static void pieces_of_a_dropped_filter_are_refused_and_change_nothing(void **state)
{
    const struct piece piece = {.len = 100};
    unsigned char bits[100], out[100];
    hibloom *stale = open_filter("bits=800 hashes=3 seed=1");
    hibloom_store *store = stale->store;
    hibloom_info info;

    (void)state;
    memset(bits, 0xff, sizeof bits);
    memset(out, 0x55, sizeof out);
    assert_ok(hibloom_drop(stale), store);
    assert_status(store->class->read(stale, &piece, out), HIBLOOM_ENOTFOUND, store);
    assert_status(store->class->merge(stale, &piece, bits), HIBLOOM_ENOTFOUND, store);

    hibloom *other = open_in(store, "filter", "bits=800 hashes=3 seed=2");
    assert_status(store->class->read(stale, &piece, out), HIBLOOM_EMISMATCH, store);
    assert_status(store->class->merge(stale, &piece, bits), HIBLOOM_EMISMATCH, store);
    for (size_t i = 0; i < sizeof out; i++)
        assert_int_equal(out[i], 0x55);
    assert_ok(hibloom_get_info(other, &info), store);
    assert_int_equal(info.bits_set, 0);
    assert_ok(hibloom_drop(other), store);
    hibloom_close(other);

    other = open_in(store, "filter", "bits=800 hashes=3 seed=1"); /* made anew just so, it is another one */
    assert_status(store->class->merge(stale, &piece, bits), HIBLOOM_EMISMATCH, store);
    assert_ok(hibloom_get_info(other, &info), store);
    assert_int_equal(info.bits_set, 0);
    hibloom_close(other);
    close_filter(stale);
}

/* ---- Names, handles and time -------------------------------------------------------------- */

static void assert_words(const hibloom_store *store, const char *words)
{
    if (strstr(hibloom_store_error(store), words) == NULL)
        fail_msg("\"%s\" has no \"%s\"", hibloom_store_error(store), words);
}

static void a_filter_made_anew_is_a_new_one_until_it_is_opened(void **state)
{
    static const char text[] = "bits=800 hashes=3 seed=1";
    hibloom *old = open_filter(text), *other;
    hibloom_store *store = old->store;
    bool found;

    (void)state;
    assert_ok(hibloom_add(old, "x", 1, NULL), store);
    other = open_in(store, "filter", text);
    assert_ok(hibloom_contains(other, "x", 1, &found), store);
    assert_true(found);
    assert_ok(hibloom_drop(other), store);
    hibloom_close(other);
    assert_status(hibloom_contains(old, "x", 1, &found), HIBLOOM_ENOTFOUND, store);
    assert_words(store, "'filter': was dropped or has expired; open it again");
    assert_status(hibloom_drop(old), HIBLOOM_ENOTFOUND, store);
    other = open_in(store, "filter", text);
    for (int i = 0; i < 2; i++) { /* the first refusal does not lead to the second being let through */
        assert_status(hibloom_contains(old, "x", 1, &found), HIBLOOM_EMISMATCH, store);
        assert_words(store, "'filter': was dropped or has expired, and is a new filter now; open it again");
        assert_status(hibloom_add(old, "y", 1, NULL), HIBLOOM_EMISMATCH, store);
        assert_status(hibloom_clear(old), HIBLOOM_EMISMATCH, store);
        assert_status(hibloom_expire(old, 1), HIBLOOM_EMISMATCH, store);
        assert_status(hibloom_drop(old), HIBLOOM_EMISMATCH, store);
    }
    assert_ok(hibloom_contains(other, "y", 1, &found), store);
    assert_false(found);
    hibloom_close(old);
    old = open_in(store, "filter", text);
    assert_ok(hibloom_add(old, "y", 1, NULL), store);
    assert_ok(hibloom_contains(other, "y", 1, &found), store);
    assert_true(found);
    hibloom_close(other);
    close_filter(old);
}

static void the_time_to_live_is_told_and_runs_out(void **state)
{
    hibloom *filter = open_filter("bits=800 hashes=3 seed=1"), *other;
    hibloom_store *store = filter->store;
    hibloom_info info;

    (void)state;
    assert_ok(hibloom_get_info(filter, &info), store);
    assert_int_equal(info.ttl_ms, -1);
    assert_ok(hibloom_expire(filter, 1000), store);
    test_sleep_ms(20);
    assert_ok(hibloom_get_info(filter, &info), store);
    assert_in_range(info.ttl_ms, 1, 1000 * 1000 - 20);
    assert_true(info.ttl_ms > 900 * 1000);
    assert_ok(hibloom_expire(filter, 0), store);
    assert_ok(hibloom_get_info(filter, &info), store);
    assert_int_equal(info.ttl_ms, -1);

    assert_ok(hibloom_expire(filter, 1), store);
    test_sleep_ms(1050);
    assert_status(hibloom_get_info(filter, &info), HIBLOOM_ENOTFOUND, store);
    assert_status(hibloom_open(&other, store, "filter", NULL), HIBLOOM_ENOTFOUND, store);
    assert_words(store, "'filter': there is no such filter");
    assert_status(hibloom_delete(store, "filter"), HIBLOOM_ENOTFOUND, store);
    assert_status(hibloom_repair(store, "filter"), HIBLOOM_ENOTFOUND, store);
    assert_status(hibloom_drop(filter), HIBLOOM_ENOTFOUND, store);
    other = open_in(store, "filter", "bits=800 hashes=3 seed=1");
    assert_status(hibloom_get_info(filter, &info), HIBLOOM_EMISMATCH, store);
    hibloom_close(other);
    close_filter(filter);
}

static void a_refused_open_says_what_to_do(void **state)
{
    hibloom *filter = open_filter("bits=800 hashes=3 seed=1"), *bare, *none;
    hibloom_store *store = filter->store;
    hibloom_spec spec;

    (void)state;
    assert_ok(hibloom_spec_parse(&spec, "bits=900 hashes=3"), NULL);
    assert_status(hibloom_open(&none, store, "filter", &spec), HIBLOOM_EMISMATCH, store);
    assert_words(store, "'filter': is there with another spec or seed; open it without a spec, or drop it first");
    assert_status(hibloom_attach(&none, store, "filter", &spec), HIBLOOM_EMISMATCH, store);
    assert_words(store, "'filter': is no bare bitmap, it has a spec; open it");
    assert_ok(hibloom_attach(&bare, store, "bare", &spec), store);
    assert_status(hibloom_open(&none, store, "bare", &spec), HIBLOOM_EMISMATCH, store);
    assert_words(store, "'bare': is a bare bitmap; attach it");
    assert_status(hibloom_delete(store, "bare"), HIBLOOM_ENOTFOUND, store);
    assert_words(store, "'bare': is a bare bitmap; attach it to drop it");
    assert_status(hibloom_repair(store, "none"), HIBLOOM_ENOTFOUND, store);
    assert_words(store, "'none': there is no such filter; open it with a spec to make one");
    spec.bits = 1000;
    assert_status(hibloom_attach(&none, store, "bare", &spec), HIBLOOM_EMISMATCH, store);
    assert_words(store, "'bare': is attached with another spec; attach it with that one");
    assert_ok(hibloom_delete(store, "filter"), store);
    assert_ok(hibloom_drop(bare), store);
    hibloom_close(bare);
    close_filter(filter);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bits_lie_where_their_positions_say),
        cmocka_unit_test(segments_keep_the_error_rate_and_lose_no_item),
        cmocka_unit_test(an_item_that_comes_twice_in_a_batch_is_new_once),
        cmocka_unit_test(excluded_items_amid_a_batch_do_not_disturb_the_others),
        cmocka_unit_test(merge_sets_bits_and_clears_none),
        cmocka_unit_test(what_is_read_and_merged_is_found_there),
        cmocka_unit_test(counting_agrees_with_counting_bit_by_bit),
        cmocka_unit_test(clearing_leaves_no_bit_in_any_key),
        cmocka_unit_test(pieces_of_a_dropped_filter_are_refused_and_change_nothing),
        cmocka_unit_test(a_filter_made_anew_is_a_new_one_until_it_is_opened),
        cmocka_unit_test(the_time_to_live_is_told_and_runs_out),
        cmocka_unit_test(a_refused_open_says_what_to_do),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
