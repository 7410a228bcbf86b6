/* Spec texts, as callers say them: what a word leaves open, and how a wrong one is named. Canonical forms, and what
 * is said of a text that is none: spec.c. redis/texts.c shows who makes a filter. */
#include "support/test.h"

#include "spec/request.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* That a locale makes no difference is in spec.c. */
static void a_size_that_is_none_is_no_text(void **state)
{
    char buf[64], canonical[HIBLOOM_TEXT_SIZE];

    assert_string_equal(hibloom_sized(buf, 8, 1000000, 0.01), "");
    assert_string_equal(hibloom_sized(buf, sizeof buf, 1, (double)NAN), "");
    assert_string_equal(hibloom_sized(NULL, 0, 1, 0.1), "");
    assert_int_equal(hibloom_spec_check(hibloom_sized(buf, sizeof buf, 1, 1.5), canonical, sizeof canonical),
                     HIBLOOM_ERANGE);
}

/* ---- Against what is stored ----------------------------------------------------- */

#define PLAIN "bits=4096 hashes=3"
#define SIZED "capacity=100 error=0.1"

/* Each text against each stored filter: 'y' it is that, 'n' EMISMATCH. */
static const char *const stored[] = {
    PLAIN,                                      /* 0 */
    SIZED,                                      /* 1 */
    SIZED " hash=siphash",                      /* 2 */
    SIZED " layout=blocked",                    /* 3 */
    SIZED " counters=4",                        /* 4 */
    SIZED " growth=2",                          /* 5 */
    SIZED " window=1h",                         /* 6 */
    SIZED " window=1h slices=8",                /* 7 */
    "bits=4096 hashes=3 hash=poly seeds=3,5,7", /* 8 */
    SIZED " segments=2",                        /* 9 */
};
static const struct {
    const char *text, *matches;
} said[] = {
    {NULL, "yyyyyyyyyy"},
    {PLAIN, "ynnnnnnnyn"},
    {"hashes=3", "yyyyynnnyy"},
    {"error=0.1", "nyyyyyyyny"},
    {SIZED, "nyyynnnnny"},
    {"capacity=100 error=1e-1", "nyyynnnnny"},
    {"capacity=100", "nyyynnnnny"},
    {"capacity=101 error=0.1", "nnnnnnnnnn"},
    {SIZED " new.hash=siphash new.layout=blocked new.ttl=1d new.segments=4", "nyyynnnnny"},
    {SIZED " new.prefer=lookup", "nyyynnnnny"},
    {"hash=siphash", "nnynnnnnnn"},
    {"hash=xxh3", "yynyyyyyny"},
    {"layout=blocked", "nnnynnnnnn"},
    {"counters=4", "nnnnynnnnn"},
    {SIZED " counters=4", "nnnnynnnnn"},
    {"counters=8", "nnnnnnnnnn"},
    {"growth=2", "nnnnnynnnn"},
    {SIZED " growth=2", "nnnnnynnnn"},
    {"growth=3", "nnnnnnnnnn"},
    {"window=60min", "nnnnnnyynn"},
    {SIZED " window=3600s", "nnnnnnyynn"},
    {"slices=8", "nnnnnnnynn"},
    {"window=2h", "nnnnnnnnnn"},
    {"seeds=3,5,7", "nnnnnnnnyn"},
    {"seeds=3,5,8", "nnnnnnnnnn"},
    {"segments=2", "nnnnnnnnny"},
    {"segments=1", "yyyyyyyyyn"},
    {"create=no", "yyyyyyyyyy"},
};

static void what_a_text_leaves_out_is_taken_as_stored(void **state)
{
    hibloom_store *store = test_connect("memory:", NULL);
    hibloom *filter[COUNT(stored)] = {NULL}, *again = NULL;

    for (size_t i = 0; i < COUNT(stored); i++)
        assert_status(hibloom_open(&filter[i], store, (char[]){(char)('a' + i), '\0'}, stored[i]), HIBLOOM_OK, store);
    for (size_t t = 0; t < COUNT(said); t++)
        for (size_t i = 0; i < COUNT(stored); i++) {
            const hibloom_status status = hibloom_open(&again, store, (char[]){(char)('a' + i), '\0'}, said[t].text);
            if (status != (said[t].matches[i] == 'y' ? HIBLOOM_OK : HIBLOOM_EMISMATCH))
                fail_msg("\"%s\" of \"%s\": %s, %s", said[t].text, stored[i], hibloom_strerror(status),
                         hibloom_store_error(store));
            if (status != HIBLOOM_OK)
                continue;
            assert_string_equal(hibloom_spec_of(again), hibloom_spec_of(filter[i]));
            assert_false(hibloom_created(again));
            hibloom_close(again);
        }
    for (size_t i = 0; i < COUNT(stored); i++)
        hibloom_close(filter[i]);
    hibloom_store_free(store);
}

static void a_mismatch_names_the_word_and_both_values(void **state)
{
    static const struct {
        const char *stored, *text, *words;
    } rows[] = {
        {SIZED, "capacity=2k error=0.1", "has capacity=100, and the text says capacity=2000"},
        {SIZED, "growth=2", "has no growth=, and the text says growth=2"},
        {SIZED " growth=2", SIZED,
         "has growth=2, and the text says no growth= (a size without growth=, window= or counters= says plain)"},
        {SIZED " window=1h", "window=2h", "has window=3600s, and the text says window=7200s"},
        {SIZED " segments=2", "segments=1", "has segments=2, and the text says segments=1"},
        {PLAIN " seed=1", "seed=2", "has another seed="},
        {SIZED, SIZED " create=only", "is there already, and the text says create=only"},
    };
    hibloom_store *store = test_connect("memory:", NULL);
    hibloom *filter, *other;

    for (size_t i = 0; i < COUNT(rows); i++) {
        assert_status(hibloom_open(&filter, store, "f", rows[i].stored), HIBLOOM_OK, store);
        assert_fails(hibloom_open(&other, store, "f", rows[i].text), HIBLOOM_EMISMATCH, store, rows[i].words);
        assert_status(hibloom_drop(filter), HIBLOOM_OK, store);
        hibloom_close(filter);
    }
    hibloom_store_free(store);
}

/* ---- Handles ----------------------------------------------------------------------- */

static void a_twin_has_the_seed_and_merges(void **state)
{
    static const char *const texts[] = {SIZED, SIZED " hash=siphash", SIZED " growth=2", PLAIN " counters=4",
                                        "py-mmh3 capacity=100 error=0.1"};
    hibloom_store *store = test_connect("memory:", NULL);
    hibloom *filter, *twin, *again;

    for (size_t i = 0; i < COUNT(texts); i++) {
        bool found = false;
        assert_status(hibloom_open(&filter, store, "f", texts[i]), HIBLOOM_OK, store);
        assert_status(hibloom_open_like(&twin, store, "twin", filter), HIBLOOM_OK, store);
        assert_true(hibloom_created(twin));
        assert_status(hibloom_add(twin, "a", 1, NULL), HIBLOOM_OK, store);
        assert_status(hibloom_merge(filter, twin), HIBLOOM_OK, store);
        assert_status(hibloom_contains(filter, "a", 1, &found), HIBLOOM_OK, store);
        assert_true(found);
        assert_string_equal(hibloom_secret_spec_of(filter), hibloom_secret_spec_of(twin));
        assert_null(strstr(hibloom_spec_of(filter), "seed="));
        assert_status(hibloom_open(&again, store, "f", hibloom_spec_of(filter)), HIBLOOM_OK, store);
        hibloom_close(again);
        assert_status(hibloom_drop(filter), HIBLOOM_OK, store);
        assert_status(hibloom_drop(twin), HIBLOOM_OK, store);
        hibloom_close(filter);
        hibloom_close(twin);
    }
    assert_status(hibloom_open(&filter, store, "f", "bits=64 hashes=2 seed=1"), HIBLOOM_OK, store);
    assert_status(hibloom_open(&again, store, "more", "bits=64 hashes=2 seed=1 empty=excluded"), HIBLOOM_OK, store);
    assert_fails(hibloom_open_like(&twin, store, "more", filter), HIBLOOM_EMISMATCH, store, "empty=excluded");
    hibloom_close(filter);
    hibloom_close(again);
    hibloom_store_free(store);
}

static void all_of_a_bare_bitmap_is_said(void **state)
{
    static const struct {
        const char *text;
        hibloom_status status;
    } rows[] = {
        {"hash=xxh3 bits=4096 hashes=3", HIBLOOM_OK},
        {"go-zero bits=1000", HIBLOOM_OK},
        {PLAIN, HIBLOOM_EINVAL},
        {"hash=xxh3 " SIZED, HIBLOOM_EINVAL},
        {"hash=xxh3", HIBLOOM_EINVAL},
        {NULL, HIBLOOM_EINVAL},
        {"", HIBLOOM_EINVAL},
        {"hash=xxh3 bits=4096 hashes=3 new.ttl=1d", HIBLOOM_EINVAL},
        {"hash=xxh3 bits=4096 hashes=3 create=no", HIBLOOM_EINVAL},
        {"hash=xxh3 bits=4096 hashes=3 counters=4", HIBLOOM_ENOTSUP},
    };
    hibloom_store *store = test_connect("memory:", NULL);
    hibloom *filter, *again;

    for (size_t i = 0; i < COUNT(rows); i++) {
        char name[] = {(char)('a' + i), '\0'};
        assert_status(hibloom_attach(&filter, store, name, rows[i].text), rows[i].status, store);
        if (rows[i].status != HIBLOOM_OK)
            continue;
        assert_false(hibloom_created(filter));
        assert_status(hibloom_attach(&again, store, name, hibloom_secret_spec_of(filter)), HIBLOOM_OK, store);
        hibloom_close(again);
        hibloom_close(filter);
    }
    hibloom_store_free(store);
}

/* ---- Numbers ------------------------------------------------------------------------- */

static void positions_want_a_seed(void **state)
{
    hibloom_position at[HIBLOOM_HASHES_MAX];
    size_t n = 0;

    assert_int_equal(hibloom_positions(PLAIN, "a", 1, at, COUNT(at), &n), HIBLOOM_EINVAL);
    assert_int_equal(hibloom_positions(PLAIN " seed=0", "a", 1, at, COUNT(at), &n), HIBLOOM_OK);
    assert_int_equal(n, 3);
    assert_true(at[0].bit < 4096 && at[1].bit < 4096 && at[2].bit < 4096);
    assert_int_equal(hibloom_positions(PLAIN " seed=0", "a", 1, at, 2, &n), HIBLOOM_ERANGE);
    assert_int_equal(hibloom_positions("go-zero bits=1000", "a", 1, at, COUNT(at), &n), HIBLOOM_OK);
    assert_int_equal(n, 14);
    assert_int_equal(hibloom_positions("hash=xxh3 seed=0", "a", 1, at, COUNT(at), &n), HIBLOOM_EINVAL);
    assert_int_equal(hibloom_positions(NULL, "a", 1, at, COUNT(at), &n), HIBLOOM_EINVAL);
}

static void a_plan_says_what_a_filter_takes(void **state)
{
    struct {
        hibloom_plan plan;
        uint64_t later[2];
    } newer;
    hibloom_plan plan;

    memset(&newer, 0xff, sizeof newer);
    assert_int_equal(hibloom_get_plan(SIZED, 100, &newer.plan, sizeof newer), HIBLOOM_OK);
    assert_int_equal(newer.later[0] | newer.later[1], 0);
    assert_int_equal(newer.plan.capacity, 100);
    assert_int_equal(newer.plan.max_links, 1);
    assert_true(newer.plan.error_at_items <= 0.1 && newer.plan.error_at_items > 0.09);
    assert_true(newer.plan.bytes > newer.plan.bits / 8 + 92);
    assert_true(newer.plan.adds_setbit > 0 && newer.plan.look_ups_bitfield > 0);
    memset(&plan, 0xff, sizeof plan);
    assert_int_equal(hibloom_get_plan(SIZED, 100, &plan, 2 * sizeof(uint64_t)), HIBLOOM_OK);
    assert_int_equal(plan.bits, newer.plan.bits);
    assert_int_equal(plan.keys, UINT64_MAX); /* behind the caller's room */
    assert_int_equal(hibloom_get_plan(SIZED " growth=16", 100, &plan, sizeof plan), HIBLOOM_OK);
    assert_in_range(plan.max_links, 6, 12);
    assert_true(plan.max_capacity > 100 * 16 * 16);
    assert_int_equal(hibloom_get_plan(SIZED " window=1h", 100, &plan, sizeof plan), HIBLOOM_OK);
    assert_int_equal(plan.keys, 5);
    assert_in_range(plan.bytes - plan.bits / 8, 5 * 92, 5 * 300);
    assert_int_equal(hibloom_get_plan("capacity=10m error=0.01 new.prefer=add", 100, &plan, sizeof plan), HIBLOOM_OK);
    assert_int_equal(plan.keys, 9);
    assert_int_equal(plan.bits / 8 / plan.keys + 4096, 7 << 18); /* a size of the allocator, with room for the tail */
    assert_int_equal(hibloom_get_plan("hash=xxh3", 100, &plan, sizeof plan), HIBLOOM_EINVAL);
    assert_int_equal(hibloom_get_plan("redisson", 100, &plan, sizeof plan), HIBLOOM_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_size_that_is_none_is_no_text),
        cmocka_unit_test(what_a_text_leaves_out_is_taken_as_stored),
        cmocka_unit_test(a_mismatch_names_the_word_and_both_values),
        cmocka_unit_test(a_twin_has_the_seed_and_merges),
        cmocka_unit_test(all_of_a_bare_bitmap_is_said),
        cmocka_unit_test(positions_want_a_seed),
        cmocka_unit_test(a_plan_says_what_a_filter_takes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
