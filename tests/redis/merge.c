/* Whole filters between memory and Redis: the union is what it should be, bit by
 * bit, whatever the stores and the layout; a file and a comparison are as good. */
#include "support/places.h"
#include "support/temp_dir.h"

#include "base/store.h"

#include <hiredis/hiredis.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- The union ------------------------------------------------------------------------- */

/* Merges, and looks at everything: `into` had items 0 to n, `from` n/2 to 3n/2. */
static void merge_and_look(hibloom *into, hibloom *from, size_t n, int into_seconds, int from_seconds)
{
    const size_t len = all_bits_len(into);
    unsigned char *from_bits = bits_stored(from), *expected = bits_stored(into);

    or_into(expected, from_bits, len);
    assert_ok(hibloom_merge(into, from), into->store);
    assert_bits(into, expected);
    assert_bits(from, from_bits);
    assert_int_equal(count_missing(into, 0, 0, n + n / 2), 0);
    assert_int_equal(count_missing(from, 0, n / 2, n + n / 2), 0);
    assert_no_other_keys(into, from);
    assert_time_to_live(into, into_seconds);
    assert_time_to_live(from, from_seconds);
    free(from_bits);
    free(expected);
}

static void merge_each_way(const char *text, size_t n, size_t count)
{
    for (size_t way = 0; way < count; way++) {
        hibloom *into = place_open(ways[way].into, "into", text), *from = place_open(ways[way].from, "from", text);
        const int into_seconds = way % 2 == 0 ? 1000 : 0, from_seconds = way % 3 == 0 ? 5000 : 0;

        assert_ok(hibloom_expire(into, (uint64_t)into_seconds), into->store);
        assert_ok(hibloom_expire(from, (uint64_t)from_seconds), from->store);
        add_items(into, 0, 0, n);
        add_items(from, 0, n / 2, n + n / 2);
        merge_and_look(into, from, n, into_seconds, from_seconds);
        if (count == WAYS)
            merge_and_look(into, from, n, into_seconds, from_seconds); /* once more is no more */
        place_drop(into);
        place_drop(from);
    }
}

static void the_union_is_in_into_whatever_the_layout_and_the_stores(void **state)
{
    static const char *const texts[] = {
        "bits=70001 hashes=7 seed=1",
        "bits=1 hashes=1 seed=1",
        "bits=9 hashes=2 seed=1",
        "bits=2097153 hashes=3 seed=2",
        "bits=8191 hashes=5 seed=9 layout=partitioned",
        "bits=70144 hashes=6 seed=3 layout=blocked",
        "bits=100003 hashes=4 seed=a segments=5",
        "bits=70144 hashes=6 seed=3 layout=blocked segments=5",
        "bits=70001 hashes=4 hash=siphash seed=000102030405060708090a0b0c0d0e0f",
        "bits=70001 hashes=4 hash=siphash segments=5 seed=000102030405060708090a0b0c0d0e0f",
        "php-poly8 bits=65531",
        "php-mt bits=70001 capacity=5000",
        "py-mmh3 capacity=1000 error=0.001",
    };

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        merge_each_way(texts[i], 2000, WAYS);
}

/* 2^27 bits are one piece; more are pieces of a key, by a script, or of several keys. */
static void the_union_of_large_filters_is_exact_in_pieces_and_segments(void **state)
{
    static const char *const texts[] = {"bits=134217728 hashes=3 seed=1", "bits=140000001 hashes=3 seed=3 segments=1",
                                        "bits=134217729 hashes=3 seed=4"};

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        merge_each_way(texts[i], 400, LARGE_WAYS);
}

/* ---- Little and nothing ------------------------------------------------------------------ */

static long long bytes_received(void)
{
    redisReply *reply = redisCommand(places[REDIS].outside, "INFO stats");
    const char *line = reply != NULL ? strstr(reply->str, "total_net_input_bytes:") : NULL;

    assert_non_null(line);
    const long long bytes = atoll(line + strlen("total_net_input_bytes:"));
    freeReplyObject(reply);
    return bytes;
}

/* For each 16 MB of a key there is one script, which proves that it is still that key. */
static void what_is_empty_is_not_sent(void **state)
{
    static const char *const texts[] = {"bits=70001 hashes=3 seed=1", "bits=140000001 hashes=3 seed=1 segments=1",
                                        "bits=100003 hashes=4 seed=a segments=5"};
    static const int pieces[] = {1, 2, 5};

    for (size_t i = 0; i < 3; i++) {
        hibloom *into = place_open(REDIS, "into", texts[i]), *from = place_open(MEMORY, "from", texts[i]);
        add_items(into, 0, 0, 100);
        unsigned char *before = bits_stored(into);
        const uint64_t digest = digest_of(&places[REDIS], "into");
        const long long scripts = redis_server_calls_of(places[REDIS].outside, "eval"), received = bytes_received();

        assert_ok(hibloom_merge(into, from), into->store);
        assert_in_range(bytes_received() - received, 1, pieces[i] * 4000);
        assert_int_equal(redis_server_calls_of(places[REDIS].outside, "eval") - scripts, pieces[i]);
        assert_true(digest_of(&places[REDIS], "into") == digest);
        assert_ok(hibloom_merge(from, into), from->store); /* and into an empty one */
        assert_bits(from, before);
        place_drop(into);
        place_drop(from);
        free(before);
    }
}

/* Two bits in 64 MB: two parts of 1 MB are sent, and one script for each other 16 MB. */
static void of_a_sparse_filter_only_the_parts_that_hold_bits_are_sent(void **state)
{
    static const char text[] = "bits=536870912 hashes=1 seed=1 segments=1";
    hibloom *into = place_open(REDIS, "into", text), *from = place_open(MEMORY, "from", text);

    set_bit(from, 320000003);
    set_bit(from, 268800003);
    const long long scripts = redis_server_calls_of(places[REDIS].outside, "eval"), received = bytes_received();
    assert_ok(hibloom_merge(into, from), into->store);
    assert_int_equal(redis_server_calls_of(places[REDIS].outside, "eval") - scripts, 2 + 3);
    assert_in_range(bytes_received() - received, 2 << 20, (2 << 20) + 20000);
    assert_int_equal(test_command(places[REDIS].outside, "BITCOUNT into 0 67108863"), 2);
    assert_int_equal(test_command(places[REDIS].outside, "GETBIT into 320000003"), 1);
    assert_int_equal(test_command(places[REDIS].outside, "GETBIT into 268800003"), 1);
    assert_no_other_keys(into, from);
    place_drop(into);
    place_drop(from);
}

/* ---- Files and numbers ----------------------------------------------------------------------------------- */

static void what_is_saved_from_redis_is_loaded_into_redis_and_memory(void **state)
{
    static const char *const texts[] = {"bits=70001 hashes=7 seed=1", "bits=8191 hashes=5 seed=9 layout=partitioned",
                                        "bits=100003 hashes=4 seed=a segments=5",
                                        "bits=140000001 hashes=3 seed=3 segments=1"};
    char *dir = temp_dir_make(), *path = temp_dir_path(dir, "filter");
    hibloom_spec spec;

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        hibloom *saved = place_open(REDIS, "saved", texts[i]);
        add_items(saved, 0, 0, 1000);
        assert_ok(hibloom_save(saved, path), saved->store);
        assert_ok(hibloom_spec_load(&spec, path), NULL);
        assert_memory_equal(&spec, hibloom_spec_of(saved), sizeof spec);
        for (int place = MEMORY; place <= OTHER_REDIS; place++) {
            hibloom *into;
            assert_ok(hibloom_open(&into, places[place].store, "into", &spec), places[place].store);
            add_items(into, 0, 800, 1800);
            unsigned char *expected = bits_stored(into), *more = bits_stored(saved);
            or_into(expected, more, all_bits_len(into));
            assert_ok(hibloom_load(into, path), into->store);
            assert_bits(into, expected);
            assert_int_equal(count_missing(into, 0, 0, 1800), 0);
            assert_no_other_keys(saved, into);
            place_drop(into);
            free(expected);
            free(more);
        }
        place_drop(saved);
    }
    free(path);
    temp_dir_remove(dir);
}

/* a has items 0 to 10,000, b as many, of which so many are in both. */
static void compare_with_overlap(const char *text, const struct way *way, uint32_t overlap)
{
    enum { N = 10000 };
    hibloom *a = place_open(way->into, "a", text), *b = place_open(way->from, "b", text);
    hibloom_comparison c;

    add_items(a, 0, 0, N);
    add_items(b, 0, N - overlap, 2 * N - overlap);
    unsigned char *a_bits = bits_stored(a), *b_bits = bits_stored(b);
    assert_ok(hibloom_compare(a, b, &c), a->store);
    if (fabs(c.union_items - (2 * N - overlap)) > 0.03 * N || fabs(c.intersection_items - overlap) > 0.05 * N ||
        fabs(c.similarity - (double)overlap / (2 * N - overlap)) > 0.04)
        fail_msg("%s: overlap %u: union %g, intersection %g, similarity %g", text, (unsigned)overlap, c.union_items,
                 c.intersection_items, c.similarity);
    assert_bits(a, a_bits);
    assert_bits(b, b_bits);
    assert_no_other_keys(a, b);
    place_drop(a);
    place_drop(b);
    free(a_bits);
    free(b_bits);
}

static void a_comparison_comes_within_a_few_per_cent_and_changes_nothing(void **state)
{
    static const char *const texts[] = {"bits=400001 hashes=7 seed=1", "bits=60001 hashes=6 seed=2 layout=partitioned",
                                        "bits=400000 hashes=5 seed=3 segments=5",
                                        "bits=400384 hashes=5 seed=4 layout=blocked"};
    static const uint32_t overlaps[] = {0, 1000, 5000, 10000};

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        for (size_t j = 0; j < 4; j++)
            compare_with_overlap(texts[i], &ways[(i + j) % WAYS], overlaps[j]);
}

static void filters_of_different_specs_are_not_merged_and_not_changed(void **state)
{
    static const char spec[] = "capacity=1000 error=0.01 seed=1";
    static const char *const others[] = {
        "capacity=1000 error=0.01 seed=2",
        "capacity=1001 error=0.01 seed=1",
        "capacity=1000 error=0.02 seed=1",
        "capacity=1000 error=0.01 seed=1 layout=partitioned",
        "capacity=1000 error=0.01 hashes=4 seed=1",
        "capacity=1000 error=0.01 seed=1 segments=2",
        "capacity=1000 error=0.01 seed=1 empty=excluded",
        "capacity=1000 error=0.01 hash=siphash seed=000102030405060708090a0b0c0d0e0f",
        "php-poly8 bits=65536",
    };
    hibloom_comparison comparison;

    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        for (size_t way = 0; way < WAYS; way++) {
            hibloom *into = place_open(ways[way].into, "into", spec),
                    *from = place_open(ways[way].from, "from", others[i]);
            add_items(into, 0, 0, 500);
            add_items(from, 0, 0, 700);
            unsigned char *into_bits = bits_stored(into), *from_bits = bits_stored(from);

            assert_status(hibloom_merge(into, from), HIBLOOM_EMISMATCH, into->store);
            assert_non_null(strstr(hibloom_store_error(into->store), "different specs"));
            assert_status(hibloom_merge(from, into), HIBLOOM_EMISMATCH, from->store);
            assert_status(hibloom_compare(into, from, &comparison), HIBLOOM_EMISMATCH, into->store);
            assert_bits(into, into_bits);
            assert_bits(from, from_bits);
            assert_no_other_keys(into, from);
            place_drop(into);
            place_drop(from);
            free(into_bits);
            free(from_bits);
        }
}

/* ---- Into bare bitmaps: their own bits stay ----------------------------------------------- */

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        PLACES_TEST(filters_of_different_specs_are_not_merged_and_not_changed),
        PLACES_TEST(the_union_is_in_into_whatever_the_layout_and_the_stores),
        PLACES_TEST(the_union_of_large_filters_is_exact_in_pieces_and_segments),
        PLACES_TEST(what_is_empty_is_not_sent),
        PLACES_TEST(of_a_sparse_filter_only_the_parts_that_hold_bits_are_sent),
        PLACES_TEST(what_is_saved_from_redis_is_loaded_into_redis_and_memory),
        PLACES_TEST(a_bare_bitmap_takes_a_filter_and_keeps_what_is_others),
        PLACES_TEST(a_comparison_comes_within_a_few_per_cent_and_changes_nothing),
    };

    return cmocka_run_group_tests(tests, places_set_up, places_tear_down);
}
