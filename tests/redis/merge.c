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

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        merge_each_way(texts[i], 2000, WAYS);
}

/* 2^27 bits are one piece; more are pieces of a key, by a script, or of several keys. */
static void the_union_of_large_filters_is_exact_in_pieces_and_segments(void **state)
{
    static const char *const texts[] = {"bits=134217728 hashes=3 seed=1", "bits=140000001 hashes=3 seed=3 segments=1",
                                        "bits=134217729 hashes=3 seed=4"};

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        merge_each_way(texts[i], 400, LARGE_WAYS);
}

/* The first and last bits of pieces, and of the parts in which they are sent. */
static void the_bits_at_the_edges_of_pieces_arrive_where_they_were(void **state)
{
    static const char *const texts[] = {"bits=134217728 hashes=3 seed=1", "bits=134217741 hashes=3 seed=2 segments=1"};
    static const uint64_t edges[] = {0,         7,         8,         2097151,   2097152,   2097159,
                                     134217720, 134217727, 134217728, 134217735, 134217736, 134217740};

    (void)state;
    for (size_t i = 0; i < 2; i++)
        for (size_t way = 0; way < LARGE_WAYS; way++) {
            hibloom *into = place_open(ways[way].into, "into", texts[i]);
            hibloom *from = place_open(ways[way].from, "from", texts[i]);
            unsigned char *expected = zeros(all_bits_len(into));

            for (size_t e = 0; e < sizeof edges / sizeof *edges && edges[e] < from->spec.bits; e++) {
                expected[edges[e] / 8] |= (unsigned char)(0x80u >> edges[e] % 8);
                set_bit(from, edges[e]);
            }
            assert_bits(from, expected);
            assert_ok(hibloom_merge(into, from), into->store);
            assert_bits(into, expected);
            assert_no_other_keys(into, from);
            place_drop(into);
            place_drop(from);
            free(expected);
        }
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

    (void)state;
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

    (void)state;
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

/* ---- One filter ---------------------------------------------------------------------------- */

static void a_filter_merged_into_itself_is_as_it_was(void **state)
{
    static const char *const texts[] = {"bits=70001 hashes=7 seed=1", "bits=100003 hashes=4 seed=a segments=5",
                                        "bits=140000001 hashes=3 seed=1 segments=1"};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        hibloom *one = place_open(REDIS, "one", texts[i]), *two = place_open(REDIS, "one", texts[i]);
        hibloom *again = place_open(REDIS_AGAIN, "one", texts[i]);

        add_items(one, 0, 0, 500);
        const uint64_t digest = digest_of(&places[REDIS], "one");
        assert_ok(hibloom_merge(one, one), one->store);
        assert_ok(hibloom_merge(one, two), one->store);
        assert_ok(hibloom_merge(again, one), again->store); /* which cannot be seen to be the same */
        assert_ok(hibloom_merge(one, again), one->store);
        assert_true(digest_of(&places[REDIS], "one") == digest);
        assert_keys(&places[REDIS], count_keys(one));
        assert_ok(hibloom_drop(two), two->store);
        assert_status(hibloom_merge(one, one), HIBLOOM_ENOTFOUND, one->store);
        assert_status(hibloom_merge(one, two), HIBLOOM_ENOTFOUND, one->store);
        assert_status(hibloom_merge(one, again), HIBLOOM_ENOTFOUND, one->store);
        assert_keys(&places[REDIS], 0);
        hibloom_close(one);
        hibloom_close(two);
        hibloom_close(again);
    }
}

/* ---- Time to live ------------------------------------------------------------------------------------- */

/* When a key goes, in milliseconds of the server's time. */
static long long end_of(const char *key)
{
    static const char script[] = "local now = redis.call('time') "
                                 "return now[1] * 1000 + math.floor(now[2] / 1000) + redis.call('pttl', KEYS[1])";

    assert_true(test_command(places[REDIS].outside, "PTTL %s", key) > 0);
    return test_command(places[REDIS].outside, "EVAL %s 1 %s", script, key);
}

static void merging_again_and_again_does_not_put_off_the_end(void **state)
{
    static const char *const texts[] = {"bits=134217728 hashes=3 seed=1", "bits=100003 hashes=4 seed=a segments=5"};

    (void)state;
    for (size_t t = 0; t < 2; t++) {
        hibloom *into = place_open(REDIS, "into", texts[t]), *from = place_open(MEMORY, "from", texts[t]);
        const char *key = t == 0 ? "into" : "into:3";
        add_items(from, 0, 0, test_is_slow() ? 2000 : 50000);
        assert_ok(hibloom_expire(into, 1000), into->store);
        const long long end = end_of(key);
        for (int i = 0; i < (test_is_slow() ? 5 : 20); i++)
            assert_ok(hibloom_merge(into, from), into->store);
        assert_in_range(end_of(key), end - 5, end + 5);
        place_drop(into);
        place_drop(from);
    }
}

/* ---- Files and numbers ----------------------------------------------------------------------------------- */

static void what_is_saved_from_redis_is_loaded_into_redis_and_memory(void **state)
{
    static const char *const texts[] = {"bits=70001 hashes=7 seed=1", "bits=8191 hashes=5 seed=9 layout=partitioned",
                                        "bits=100003 hashes=4 seed=a segments=5",
                                        "bits=140000001 hashes=3 seed=3 segments=1"};
    char *dir = temp_dir_make(), *path = temp_dir_path(dir, "filter");
    hibloom_spec spec;

    (void)state;
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

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        for (size_t j = 0; j < 4; j++)
            compare_with_overlap(texts[i], &ways[(i + j) % WAYS], overlaps[j]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PLACES_TEST(the_union_is_in_into_whatever_the_layout_and_the_stores),
        PLACES_TEST(the_union_of_large_filters_is_exact_in_pieces_and_segments),
        PLACES_TEST(the_bits_at_the_edges_of_pieces_arrive_where_they_were),
        PLACES_TEST(what_is_empty_is_not_sent),
        PLACES_TEST(of_a_sparse_filter_only_the_parts_that_hold_bits_are_sent),
        PLACES_TEST(a_filter_merged_into_itself_is_as_it_was),
        PLACES_TEST(merging_again_and_again_does_not_put_off_the_end),
        PLACES_TEST(what_is_saved_from_redis_is_loaded_into_redis_and_memory),
        PLACES_TEST(a_comparison_comes_within_a_few_per_cent_and_changes_nothing),
    };

    return cmocka_run_group_tests(tests, places_set_up, places_tear_down);
}
