/* Whole filters between memory and Redis, where they are large, sparse, bare or no match. That the union, a file and
 * a comparison are right bit by bit, whatever the spec and the stores, fuzz.c shows of small ones. */
#include "support/items.h"
#include "support/pieces.h"
#include "support/served.h"
#include "support/temp_dir.h"
#include "support/test.h"

#include "base/store.h"
#include "spec/spec.h"

#include <hiredis/hiredis.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static hibloom_store *stores[2]; /* in memory, on the server */
enum { MEMORY, REDIS };

static int set_up(void **state)
{
    served_set_up(state);
    assert_ok(hibloom_connect(&stores[MEMORY], "memory:", NULL), NULL);
    stores[REDIS] = test_connect(redis_server_uri(server), NULL);
    return 0;
}

static int tear_down(void **state)
{
    hibloom_store_free(stores[MEMORY]);
    hibloom_store_free(stores[REDIS]);
    return served_tear_down(state);
}

/* With items prefix0, prefix1, ... */
static hibloom *make(int where, const char *name, const char *text, const char *prefix, size_t n)
{
    hibloom *filter = test_open(stores[where], name, text);

    if (n > 0)
        items_add(filter, filter->store, prefix, n);
    return filter;
}

static void drop(hibloom *filter)
{
    assert_dropped(filter, filter->store);
}

static void assert_bits(hibloom *filter, const unsigned char *expected)
{
    unsigned char *bits = all_bits_read(filter);

    assert_true(memcmp(bits, expected, all_bits_len(filter)) == 0);
    free(bits);
}

/* The bits of both, to be freed. */
static unsigned char *union_of(hibloom *one, hibloom *other)
{
    unsigned char *bits = all_bits_read(one), *more = all_bits_read(other);

    for (size_t i = 0; i < all_bits_len(other); i++)
        bits[i] |= more[i];
    free(more);
    return bits;
}

/* ---- The union ------------------------------------------------------------------------- */

/* 2^27 bits are one piece; more are pieces of a key, by a script, or of several keys. */
static void the_union_of_large_filters_is_exact_in_pieces_and_segments(void **state)
{
    static const struct {
        const char *text;
        int into, from;
    } cases[] = {{"bits=134217728 hashes=3 seed=1", REDIS, REDIS},
                 {"bits=140000001 hashes=3 seed=3 segments=1", MEMORY, REDIS},
                 {"bits=140000001 hashes=3 seed=3 segments=1", REDIS, MEMORY},
                 {"bits=140000001 hashes=3 seed=3 segments=1", REDIS, REDIS},
                 {"bits=134217729 hashes=3 seed=4", REDIS, MEMORY}};
    char *dir = temp_dir_make(), *path = temp_dir_path(dir, "filter");

    for (size_t i = 0; i < COUNT(cases); i++) {
        hibloom *into = make(cases[i].into, "into", cases[i].text, "a", 400);
        hibloom *from = make(cases[i].from, "from", cases[i].text, "b", 400);
        unsigned char *expected = union_of(into, from);
        hibloom_info info;
        assert_ok(hibloom_expire(into, 1000000), into->store);
        assert_ok(hibloom_merge(into, from), into->store);
        assert_bits(into, expected);
        assert_ok(hibloom_get_info(into, &info, sizeof info), into->store);
        assert_in_range(info.ttl_ms, 900000, 1000000);
        assert_ok(hibloom_save(into, path), into->store);
        assert_ok(hibloom_restore(from, path), from->store);
        assert_bits(from, expected);
        free(expected);
        drop(into);
        drop(from);
    }
    free(path);
    temp_dir_remove(dir);
}

/* ---- Little and nothing ------------------------------------------------------------------ */

static long long bytes_received(void)
{
    redisReply *reply = redisCommand(redis, "INFO stats");
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
        hibloom *into = make(REDIS, "into", texts[i], "a", 100), *from = make(MEMORY, "from", texts[i], NULL, 0);
        unsigned char *before = all_bits_read(into);
        const long long scripts = redis_server_calls_of(redis, "eval"), received = bytes_received();

        assert_ok(hibloom_merge(into, from), into->store);
        assert_in_range(bytes_received() - received, 1, pieces[i] * 4000);
        assert_int_equal(redis_server_calls_of(redis, "eval") - scripts, pieces[i]);
        assert_bits(into, before);
        assert_ok(hibloom_merge(from, into), from->store); /* and into an empty one */
        assert_bits(from, before);
        drop(into);
        drop(from);
        free(before);
    }
}

/* Two bits in 64 MB: two parts of 1 MB are sent, and one script for each other 16 MB. */
static void of_a_sparse_filter_only_the_parts_that_hold_bits_are_sent(void **state)
{
    static const char text[] = "bits=536870912 hashes=1 seed=1 segments=1";
    hibloom *into = make(REDIS, "into", text, NULL, 0), *from = make(MEMORY, "from", text, NULL, 0);

    piece_merge(from, &(struct piece){.from = 320000003 / 8, .len = 1}, &(unsigned char){0x80u >> 320000003 % 8});
    piece_merge(from, &(struct piece){.from = 268800003 / 8, .len = 1}, &(unsigned char){0x80u >> 268800003 % 8});
    const long long scripts = redis_server_calls_of(redis, "eval"), received = bytes_received();
    assert_ok(hibloom_merge(into, from), into->store);
    assert_int_equal(redis_server_calls_of(redis, "eval") - scripts, 2 + 3);
    assert_in_range(bytes_received() - received, 2 << 20, (2 << 20) + 20000);
    assert_int_equal(test_command(redis, "BITCOUNT into 0 67108863"), 2);
    assert_int_equal(test_command(redis, "GETBIT into 320000003"), 1);
    assert_int_equal(test_command(redis, "GETBIT into 268800003"), 1);
    drop(into);
    drop(from);
}

/* ---- Numbers ----------------------------------------------------------------------------- */

/* a has so many items, b as many, of which so many are in both. */
static void compare_with_overlap(const char *text, size_t overlap)
{
    enum { N = 10000 };
    hibloom *a = make(REDIS, "a", text, "a", N - overlap), *b = make(MEMORY, "b", text, "b", N - overlap);
    hibloom_comparison c;

    if (overlap > 0) {
        items_add(a, a->store, "both", overlap);
        items_add(b, b->store, "both", overlap);
    }
    assert_ok(hibloom_compare(a, b, &c, sizeof c), a->store);
    const double in_both = (double)overlap, in_any = 2 * N - in_both;
    if (fabs(c.union_items - in_any) > 0.03 * N || fabs(c.intersection_items - in_both) > 0.05 * N ||
        fabs(c.similarity - in_both / in_any) > 0.04)
        fail_msg("%s: overlap %zu: union %g, intersection %g, similarity %g", text, overlap, c.union_items,
                 c.intersection_items, c.similarity);
    drop(a);
    drop(b);
}

static void a_comparison_comes_within_a_few_per_cent(void **state)
{
    static const char *const texts[] = {"bits=400001 hashes=7 seed=1", "bits=60001 hashes=6 seed=2 layout=partitioned",
                                        "bits=400000 hashes=5 seed=3 segments=5",
                                        "bits=400384 hashes=5 seed=4 layout=blocked"};
    static const size_t overlaps[] = {0, 1000, 5000, 9999};

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        for (size_t j = 0; j < 4; j++)
            compare_with_overlap(texts[i], overlaps[j]);
}

static void filters_of_different_specs_are_not_merged_and_not_changed(void **state)
{
    static const char spec[] = "capacity=1000 error=0.01 seed=1";
    static const struct {
        const char *spec, *words;
    } others[] = {
        {"capacity=1000 error=0.01 seed=2", "another seed"},
        {"capacity=1001 error=0.01 seed=1", " and capacity=100"},
        {"capacity=1000 error=0.02 seed=1", " and error=0.0"},
        {"capacity=1000 error=0.01 seed=1 layout=partitioned", "layout="},
        {"capacity=1000 error=0.01 hashes=4 seed=1", "hashes="},
        {"capacity=1000 error=0.01 seed=1 segments=2", "segments="},
        {"capacity=1000 error=0.01 seed=1 empty=excluded", "empty=excluded"},
        {"capacity=1000 error=0.01 hash=siphash seed=000102030405060708090a0b0c0d0e0f", "siphash"},
        {"php-poly8 bits=65536", "hash="},
    };
    hibloom_comparison comparison;

    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        for (int to = MEMORY; to <= REDIS; to++) {
            hibloom *into = make(to, "into", spec, "a", 500), *from = make(!to, "from", others[i].spec, "b", 700);
            unsigned char *into_bits = all_bits_read(into), *from_bits = all_bits_read(from);

            assert_fails(hibloom_merge(into, from), HIBLOOM_EMISMATCH, into->store, others[i].words);
            assert_status(hibloom_compare(into, from, &comparison, sizeof comparison), HIBLOOM_EMISMATCH, into->store);
            assert_bits(into, into_bits);
            assert_bits(from, from_bits);
            drop(into);
            drop(from);
            free(into_bits);
            free(from_bits);
        }
}

/* ---- Into bare bitmaps: their own bits stay ----------------------------------------------- */

static const char bare_texts[][64] = {"bits=70001 hashes=4 seed=1", "bits=140000001 hashes=4 seed=1 segments=1"};

/* Missing, short, as long, or longer and with bits of others behind the last
 * one of the filter: in its last byte, and far away. */
enum bare { BARE_MISSING, BARE_SHORT, BARE_WHOLE, BARE_LONGER, BARES };

static void make_bare(const char *name, const struct spec *spec, enum bare how)
{
    const unsigned long long bits = (unsigned long long)spec->bits;

    if (how == BARE_SHORT || how == BARE_LONGER)
        test_command(redis, "SETBIT %s 41 1", name);
    if (how == BARE_WHOLE)
        test_command(redis, "SETBIT %s %llu 1", name, bits - 1);
    if (how == BARE_SHORT)
        test_command(redis, "EXPIRE %s 1000", name);
}

/* What is so long already is not attached. */
static hibloom *attach_bare(const char *name, size_t text, enum bare how)
{
    hibloom *bare = test_attach(stores[REDIS], name, bare_texts[text]);
    const unsigned long long bits = (unsigned long long)bare->spec.bits;

    if (how == BARE_LONGER) {
        test_command(redis, "SETBIT %s %llu 1", name, bits);
        test_command(redis, "SETBIT %s %llu 1", name, bits + 5000);
    }
    return bare;
}

/* One command on it would stall the server for longer than 15 ms. */
static void a_key_of_twelve_megabytes_goes_in_parts(void **state)
{
    static const char *const texts[] = {"bits=95999992 hashes=3 seed=1", "bits=96000000 hashes=3 seed=1"};

    for (int large = 0; large < 2; large++) {
        hibloom *into = make(REDIS, "into", texts[large], "a", 100),
                *from = make(MEMORY, "from", texts[large], "b", 100);
        const long long whole = redis_server_calls_of(redis, "rename");

        assert_ok(hibloom_merge(into, from), into->store);
        assert_int_equal(redis_server_calls_of(redis, "rename") - whole, large ? 0 : 1);
        assert_int_equal(test_command(redis, "DBSIZE"), 1); /* temporary keys are gone */
        assert_int_equal(items_count(into, into->store, "a", 100), 100);
        assert_int_equal(items_count(into, into->store, "b", 100), 100);
        drop(into);
        drop(from);
    }
}

static void a_bare_bitmap_takes_a_filter_and_keeps_what_is_others(void **state)
{
    for (size_t t = 0; t < 2; t++)
        for (int how = 0; how < BARES; how++)
            for (int source = MEMORY; source <= (t == 0 ? REDIS : MEMORY); source++) {
                const struct spec spec = test_spec(bare_texts[t]);
                make_bare("into", &spec, (enum bare)how);
                hibloom *into = attach_bare("into", t, (enum bare)how),
                        *from = make(source, "from", bare_texts[t], "a", 1000);
                unsigned char *expected = how == BARE_MISSING ? all_bits_read(from) : union_of(into, from);

                assert_ok(hibloom_merge(into, from), into->store);
                assert_bits(into, expected);
                assert_int_equal(test_command(redis, "TTL into") > 0, how == BARE_SHORT);
                if (how == BARE_LONGER) {
                    const unsigned long long bits = (unsigned long long)spec.bits;
                    assert_int_equal(test_command(redis, "GETBIT into %llu", bits), 1);
                    assert_int_equal(test_command(redis, "GETBIT into %llu", bits + 5000), 1);
                }
                drop(into);
                drop(from);
                free(expected);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(filters_of_different_specs_are_not_merged_and_not_changed, served_leave_nothing),
        cmocka_unit_test_teardown(the_union_of_large_filters_is_exact_in_pieces_and_segments, served_leave_nothing),
        cmocka_unit_test_teardown(what_is_empty_is_not_sent, served_leave_nothing),
        cmocka_unit_test_teardown(of_a_sparse_filter_only_the_parts_that_hold_bits_are_sent, served_leave_nothing),
        cmocka_unit_test_teardown(a_key_of_twelve_megabytes_goes_in_parts, served_leave_nothing),
        cmocka_unit_test_teardown(a_bare_bitmap_takes_a_filter_and_keeps_what_is_others, served_leave_nothing),
        cmocka_unit_test_teardown(a_comparison_comes_within_a_few_per_cent, served_leave_nothing),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
