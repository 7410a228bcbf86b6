/* Others' bitmaps merged into and from: their own bits stay, only the filter's are
 * taken, and one that is missing is an error. */
#include "support/places.h"

#include "base/store.h"

#include <hiredis/hiredis.h>
#include <stdlib.h>

static const char bare_texts[][64] = {"bits=70001 hashes=4 seed=1", "bits=140000001 hashes=4 seed=1 segments=1"};

/* Missing, short, as long, or longer and with bits of others behind the last
 * one of the filter: in its last byte, and far away. */
enum bare { BARE_MISSING, BARE_SHORT, BARE_WHOLE, BARE_LONGER, BARES };

static void make_bare(const char *name, const hibloom_spec *spec, enum bare how)
{
    redisContext *outside = places[REDIS].outside;
    const unsigned long long bits = (unsigned long long)spec->bits;

    if (how == BARE_SHORT || how == BARE_LONGER)
        test_command(outside, "SETBIT %s 41 1", name);
    if (how == BARE_WHOLE)
        test_command(outside, "SETBIT %s %llu 1", name, bits - 1);
    if (how == BARE_SHORT)
        test_command(outside, "EXPIRE %s 1000", name);
}

/* What is so long already is not attached. */
static hibloom *attach_bare(const char *name, size_t text, enum bare how)
{
    hibloom *bare = place_attach(REDIS, name, bare_texts[text]);
    const unsigned long long bits = (unsigned long long)hibloom_spec_of(bare)->bits;

    if (how == BARE_LONGER) {
        test_command(places[REDIS].outside, "SETBIT %s %llu 1", name, bits);
        test_command(places[REDIS].outside, "SETBIT %s %llu 1", name, bits + 5000);
    }
    return bare;
}

static void a_bare_bitmap_takes_a_filter_and_keeps_what_is_others(void **state)
{
    (void)state;
    for (size_t t = 0; t < 2; t++)
        for (int how = 0; how < BARES; how++)
            for (int source = MEMORY; source <= (t == 0 ? REDIS : MEMORY); source++) {
                const hibloom_spec spec = test_spec(bare_texts[t]);
                make_bare("into", &spec, (enum bare)how);
                hibloom *into = attach_bare("into", t, (enum bare)how),
                        *from = place_open(source, "from", bare_texts[t]);
                add_items(from, 0, 0, 1000);
                unsigned char *expected = bits_stored(into), *more = bits_stored(from);
                or_into(expected, more, all_bits_len(from));

                assert_ok(hibloom_merge(into, from), into->store);
                assert_bits(into, expected);
                assert_int_equal(count_missing(into, 0, 0, 1000), 0);
                assert_no_other_keys(into, from);
                assert_time_to_live(into, how == BARE_SHORT ? 1000 : 0);
                if (how == BARE_LONGER) {
                    const unsigned long long bits = (unsigned long long)spec.bits;
                    assert_int_equal(test_command(places[REDIS].outside, "GETBIT into %llu", bits), 1);
                    assert_int_equal(test_command(places[REDIS].outside, "GETBIT into %llu", bits + 5000), 1);
                }
                place_drop(into);
                place_drop(from);
                free(expected);
                free(more);
            }
}

static void of_a_bare_bitmap_only_the_filters_bits_are_taken(void **state)
{
    (void)state;
    for (size_t t = 0; t < 2; t++)
        for (int how = BARE_SHORT; how < BARES; how++)
            for (int target = MEMORY; target <= (t == 0 ? REDIS_AGAIN : REDIS); target++) {
                const hibloom_spec spec = test_spec(bare_texts[t]);
                make_bare("from", &spec, (enum bare)how);
                hibloom *from = attach_bare("from", t, (enum bare)how),
                        *into = place_open(target, "into", bare_texts[t]);
                const uint64_t digest = digest_of(&places[REDIS], "from");
                add_items(into, 0, 0, 1000);
                unsigned char *expected = bits_stored(into), *more = bits_stored(from);
                const unsigned used = (unsigned)(spec.bits % 8);
                more[all_bits_len(from) - 1] &= (unsigned char)~(0xffu >> used);
                or_into(expected, more, all_bits_len(from));

                assert_ok(hibloom_merge(into, from), into->store);
                assert_bits(into, expected); /* nothing is in its last byte that is not its own */
                assert_int_equal(count_missing(into, 0, 0, 1000), 0);
                assert_true(digest_of(&places[REDIS], "from") == digest);
                assert_no_other_keys(into, from);
                place_drop(into);
                place_drop(from);
                free(expected);
                free(more);
            }
}

static void a_missing_bare_bitmap_is_nothing_to_merge(void **state)
{
    hibloom *from = place_attach(REDIS, "from", bare_texts[0]), *into = place_open(REDIS, "into", bare_texts[0]);
    hibloom *memory = place_open(MEMORY, "into", bare_texts[0]), *empty = place_attach(REDIS, "empty", bare_texts[0]);

    (void)state;
    add_items(into, 0, 0, 100);
    const uint64_t digest = digest_of(&places[REDIS], "");
    assert_status(hibloom_merge(into, from), HIBLOOM_ENOTFOUND, into->store);
    assert_status(hibloom_merge(memory, from), HIBLOOM_ENOTFOUND, memory->store);
    assert_string_not_equal(hibloom_store_error(memory->store), "");
    assert_ok(hibloom_merge(empty, memory), empty->store); /* nothing to be added, and so nothing made */
    assert_true(digest_of(&places[REDIS], "") == digest);
    hibloom_close(from);
    hibloom_close(empty);
    place_drop(memory);
    place_drop(into);
}

/* As an add would: what this handle has put there, it has seen. */
static void a_bare_bitmap_that_a_merge_has_made_is_missed_when_it_is_gone(void **state)
{
    (void)state;
    for (int source = MEMORY; source <= REDIS; source++) {
        hibloom *into = place_attach(REDIS, "into", bare_texts[0]), *from = place_open(source, "from", bare_texts[0]);
        bool found = true;

        add_items(from, 0, 0, 100);
        assert_ok(hibloom_merge(into, from), into->store);
        test_command(places[REDIS].outside, "DEL into");
        assert_status(hibloom_add(into, "y", 1, NULL), HIBLOOM_ENOTFOUND, into->store);
        assert_status(hibloom_contains(into, "x", 1, &found), HIBLOOM_ECORRUPT, into->store);
        assert_true(found);
        assert_status(hibloom_merge(into, from), HIBLOOM_ECORRUPT, into->store);
        assert_status(hibloom_merge(from, into), HIBLOOM_ECORRUPT, from->store);
        place_drop(from);
        place_drop(into);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PLACES_TEST(a_bare_bitmap_takes_a_filter_and_keeps_what_is_others),
        PLACES_TEST(of_a_bare_bitmap_only_the_filters_bits_are_taken),
        PLACES_TEST(a_missing_bare_bitmap_is_nothing_to_merge),
        PLACES_TEST(a_bare_bitmap_that_a_merge_has_made_is_missed_when_it_is_gone),
    };

    return cmocka_run_group_tests(tests, places_set_up, places_tear_down);
}
