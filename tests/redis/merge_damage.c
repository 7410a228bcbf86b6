/* Filters of different specs, and filters that are not there any more, are not
 * merged: an error, and neither has changed. */
#include "support/places.h"

#include "base/store.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

    (void)state;
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

/* ---- What is no longer there ------------------------------------------------------------------------ */

enum damage { DROPPED, ANOTHER_SEED, ANOTHER_SIZE, THE_SAME, UNREADABLE, DELETED, BEGUN_ANEW, WRONG_TYPE, DAMAGES };

/* Of a filter that has one key, and where it is one of several. */
static const struct {
    const char *name;
    hibloom_status one, of_several;
} damages[] = {
    [DROPPED] = {"dropped", HIBLOOM_ENOTFOUND, HIBLOOM_ENOTFOUND},
    [ANOTHER_SEED] = {"made anew with another seed", HIBLOOM_EMISMATCH, HIBLOOM_EMISMATCH},
    [ANOTHER_SIZE] = {"made anew in another size", HIBLOOM_EMISMATCH, HIBLOOM_EMISMATCH},
    [THE_SAME] = {"made anew with its very spec", HIBLOOM_EMISMATCH, HIBLOOM_EMISMATCH},
    [UNREADABLE] = {"trailer altered", HIBLOOM_ECORRUPT, HIBLOOM_ECORRUPT},
    [DELETED] = {"key deleted", HIBLOOM_ENOTFOUND, HIBLOOM_ECORRUPT},
    [BEGUN_ANEW] = {"key begun anew", HIBLOOM_ENOTFOUND, HIBLOOM_ECORRUPT},
    [WRONG_TYPE] = {"wrong type", HIBLOOM_EMISMATCH, HIBLOOM_EMISMATCH},
};

/* A filter in two texts: as it is, and larger. Seeds are appended. */
struct path {
    const char *text, *larger;
    bool many; /* keys; the second is the one to be damaged, so the first may have been merged */
    bool large;
};

static const struct path paths[] = {
    {"bits=10001 hashes=3", "bits=20001 hashes=3", false, false},
    {"bits=10001 hashes=3 layout=partitioned", "bits=20001 hashes=3 layout=partitioned", true, false},
    {"bits=30001 hashes=3 segments=3", "bits=60001 hashes=3 segments=3", true, false},
    {"bits=134217729 hashes=3 segments=1", "bits=140000001 hashes=3 segments=1", false, true},
};

static hibloom_status damage_status(const struct path *path, enum damage damage)
{
    return path->many ? damages[damage].of_several : damages[damage].one;
}

static hibloom *open_seeded(int place, const char *name, const char *text, int seed)
{
    char seeded[HIBLOOM_SPEC_TEXT_SIZE];

    snprintf(seeded, sizeof seeded, "%s seed=%d", text, seed);
    return place_open(place, name, seeded);
}

static void make_anew(int place, const char *name, const char *text, int seed)
{
    assert_ok(hibloom_delete(places[place].store, name), places[place].store);
    hibloom *filter = open_seeded(place, name, text, seed);
    add_items(filter, 7, 0, 3000);
    hibloom_close(filter);
}

static void do_damage(int place, const char *name, const struct path *path, enum damage damage)
{
    redisContext *outside = places[place].outside;
    const char *second = path->many ? ":1" : "";

    if (damage == DROPPED)
        assert_ok(hibloom_delete(places[place].store, name), places[place].store);
    if (damage == ANOTHER_SEED)
        make_anew(place, name, path->text, 2);
    if (damage == ANOTHER_SIZE)
        make_anew(place, name, path->larger, 1);
    if (damage == THE_SAME)
        make_anew(place, name, path->text, 1);
    if (damage == UNREADABLE)
        test_command(outside, "SETRANGE %s%s %lld 2", name, second,
                     test_command(outside, "STRLEN %s%s", name, second) - 1);
    if (damage >= DELETED)
        test_command(outside, "DEL %s%s", name, second);
    if (damage == BEGUN_ANEW)
        test_command(outside, "SETBIT %s%s 5 1", name, second);
    if (damage == WRONG_TYPE)
        test_command(outside, "RPUSH %s%s x", name, second);
}

/* What is left of both by names, as they may be neither opened nor dropped. */
static void forget(hibloom *into, hibloom *from, const struct way *way)
{
    hibloom_status status = HIBLOOM_OK;

    hibloom_close(into);
    hibloom_close(from);
    if (way->into == MEMORY)
        status = hibloom_delete(places[MEMORY].store, "into");
    if (way->from == MEMORY)
        status = hibloom_delete(places[MEMORY].store, "from");
    assert_true(status == HIBLOOM_OK || status == HIBLOOM_ENOTFOUND);
    empty_servers();
}

static void merge_from_damaged(const struct path *path, const struct way *way, enum damage damage)
{
    hibloom *into = open_seeded(way->into, "into", path->text, 1);
    hibloom *from = open_seeded(way->from, "from", path->text, 1);

    add_items(into, 0, 0, 300);
    add_items(from, 0, 200, 500);
    unsigned char *before = bits_stored(into), *both = bits_stored(from);
    or_into(both, before, all_bits_len(into));
    do_damage(way->from, "from", path, damage);
    const long long keys = test_command(places[REDIS].outside, "DBSIZE");

    const hibloom_status status = hibloom_merge(into, from);
    if (status != damage_status(path, damage))
        fail_msg("from %s, %s: %s", damages[damage].name, path->text, hibloom_strerror(status));
    assert_string_not_equal(hibloom_store_error(into->store), "");
    assert_keys(&places[REDIS], keys);
    unsigned char *after = bits_stored(into);
    if (!is_subset(before, after, all_bits_len(into)))
        fail_msg("from %s, %s: what was in `into` was lost", damages[damage].name, path->text);
    if (!is_subset(after, both, all_bits_len(into)))
        fail_msg("from %s, %s: bits of another filter are in `into`", damages[damage].name, path->text);
    if ((!path->many || damage < UNREADABLE) && memcmp(before, after, all_bits_len(into)) != 0)
        fail_msg("from %s, %s: `into` was changed", damages[damage].name, path->text);
    assert_int_equal(count_missing(into, 0, 0, 300), 0); /* and its guard holds */
    free(before);
    free(both);
    free(after);
    forget(into, from, way);
}

static void merge_into_damaged(const struct path *path, const struct way *way, enum damage damage)
{
    hibloom *into = open_seeded(way->into, "into", path->text, 1);
    hibloom *from = open_seeded(way->from, "from", path->text, 1);

    add_items(into, 0, 0, 300);
    add_items(from, 0, 200, 500);
    unsigned char *before = bits_stored(from);
    do_damage(way->into, "into", path, damage);
    const long long keys = test_command(places[REDIS].outside, "DBSIZE");
    const uint64_t digest = digest_of(&places[REDIS], "into");

    const hibloom_status status = hibloom_merge(into, from);
    if (status != damage_status(path, damage))
        fail_msg("into %s, %s: %s", damages[damage].name, path->text, hibloom_strerror(status));
    assert_string_not_equal(hibloom_store_error(into->store), "");
    assert_keys(&places[REDIS], keys);
    if ((!path->many || damage < UNREADABLE) && digest_of(&places[REDIS], "into") != digest)
        fail_msg("into %s, %s: what is there now was changed", damages[damage].name, path->text);
    assert_bits(from, before);
    assert_int_equal(count_missing(from, 0, 200, 500), 0);
    free(before);
    forget(into, from, way);
}

static void for_each_damage(void (*merge)(const struct path *, const struct way *, enum damage), bool of_from)
{
    for (size_t p = 0; p < sizeof paths / sizeof *paths; p++)
        for (size_t way = paths[p].large ? LARGE_WAYS - 1 : 0; way < (paths[p].large ? LARGE_WAYS : WAYS); way++)
            for (int damage = 0; damage < DAMAGES; damage++) {
                const int victim = of_from ? ways[way].from : ways[way].into;
                if (victim != MEMORY || damage <= THE_SAME)
                    merge(&paths[p], &ways[way], (enum damage)damage);
            }
}

static void from_a_filter_that_is_not_there_any_more_nothing_is_merged(void **state)
{
    (void)state;
    for_each_damage(merge_from_damaged, true);
}

static void into_a_filter_that_is_not_there_any_more_nothing_is_merged(void **state)
{
    (void)state;
    for_each_damage(merge_into_damaged, false);
}

static void one_that_was_made_anew_is_merged_once_it_is_opened_again(void **state)
{
    (void)state;
    for (size_t way = 0; way < WAYS; way++)
        for (size_t p = 0; p < 3; p++) {
            hibloom *into = open_seeded(ways[way].into, "into", paths[p].text, 1);
            hibloom *from = open_seeded(ways[way].from, "from", paths[p].text, 1);
            add_items(into, 0, 0, 100);
            add_items(from, 0, 0, 100);
            make_anew(ways[way].from, "from", paths[p].text, 1);
            assert_status(hibloom_merge(into, from), HIBLOOM_EMISMATCH, into->store);
            hibloom_close(from);
            from = open_seeded(ways[way].from, "from", paths[p].text, 1);
            assert_ok(hibloom_clear(into), into->store);
            assert_ok(hibloom_merge(into, from), into->store);
            unsigned char *expected = bits_stored(from);
            assert_bits(into, expected);
            assert_int_equal(count_missing(into, 7, 0, 3000), 0);
            place_drop(into);
            place_drop(from);
            free(expected);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PLACES_TEST(filters_of_different_specs_are_not_merged_and_not_changed),
        PLACES_TEST(from_a_filter_that_is_not_there_any_more_nothing_is_merged),
        PLACES_TEST(into_a_filter_that_is_not_there_any_more_nothing_is_merged),
        PLACES_TEST(one_that_was_made_anew_is_merged_once_it_is_opened_again),
    };

    return cmocka_run_group_tests(tests, places_set_up, places_tear_down);
}
