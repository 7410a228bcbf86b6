/* spec.c: spec texts there and back, and the presets against the programs they stand for. No server. */
#include "support/temp_dir.h"
#include "support/test.h"
#include "spec/positions.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Text ------------------------------------------------------------------- */

static void assert_text(const char *given, const char *canonical)
{
    char text[SPEC_TEXT_SIZE], again[SPEC_TEXT_SIZE];

    if (hibloom_spec_check(given, text, sizeof text) != HIBLOOM_OK || strcmp(text, canonical) != 0)
        fail_msg("\"%s\": \"%s\", not \"%s\"", given, text, canonical);
    assert_ok(hibloom_spec_check(text, again, sizeof again), NULL);
    assert_string_equal(again, canonical);
}

#define CLASSIC "hash=xxh3 layout=classic"

/* The presets compute as their programs do: see the source documents. */
static const struct {
    const char *given, *canonical;
} texts[] = {
    {"capacity=1000000 error=0.01", CLASSIC " bits=9592955 hashes=7 capacity=1000000 error=0.01"},
    {"  error=1e-2\tcapacity=1000000 hash=xxh3 ", CLASSIC " bits=9592955 hashes=7 capacity=1000000 error=0.01"},
    {"capacity=1000000 error=0.01 hashes=4", CLASSIC " bits=10522705 hashes=4 capacity=1000000 error=0.01"},
    {"bits=1000 hashes=3 seed=AbC", CLASSIC " bits=1000 hashes=3 seed=0000000000000abc"},
    {"hash=siphash bits=1000 hashes=3 seed=000102030405060708090a0b0c0d0e0f",
     "hash=siphash layout=classic bits=1000 hashes=3 seed=000102030405060708090a0b0c0d0e0f"},
    {"hash=murmur3 bits=99 seeds=1,0,4294967295", "hash=murmur3 layout=classic bits=99 hashes=3 seeds=1,0,4294967295"},
    {"hash=poly bits=4294967296 seeds=7 layout=partitioned empty=excluded",
     "hash=poly layout=partitioned bits=4294967296 hashes=1 seeds=7 empty=excluded"},
    {"capacity=1000 error=0.01 layout=partitioned",
     "hash=xxh3 layout=partitioned bits=1371 hashes=7 capacity=1000 error=0.01"},
    {"bits=1024 hashes=3 layout=blocked hash=siphash", "hash=siphash layout=blocked bits=1024 hashes=3"},
    {"segments=5 bits=1001 hashes=3", CLASSIC " bits=1001 hashes=3 segments=5"},
    {"bits=1001 hashes=3 segments=1", CLASSIC " bits=1001 hashes=3"},
    {"bits=134217729 hashes=3", CLASSIC " bits=134217729 hashes=3 segments=13"},
    {"bits=134217729 hashes=3 segments=1", CLASSIC " bits=134217729 hashes=3 segments=1"},
    {"bits=134217729 hashes=3 layout=partitioned", "hash=xxh3 layout=partitioned bits=134217729 hashes=3"},
    {"capacity=1000000 error=0.01 counters=4", CLASSIC " bits=9592955 hashes=7 counters=4 capacity=1000000 error=0.01"},
    {"counters=8 segments=5 bits=1001 hashes=3 seed=1",
     CLASSIC " bits=1001 hashes=3 segments=5 counters=8 seed=0000000000000001"},
    /* segments are of so many bytes, not counters */
    {"bits=67108864 hashes=3 counters=2", CLASSIC " bits=67108864 hashes=3 counters=2"},
    {"bits=67108865 hashes=3 counters=2", CLASSIC " bits=67108865 hashes=3 segments=13 counters=2"},
    /* a rate that needs all 17 digits */
    {"bits=10 hashes=1 error=0.10000000000000002", CLASSIC " bits=10 hashes=1 error=0.10000000000000002"},
    /* documents 000 and 002: ceil(10/2 * log 2) = 4 */
    {"php-mt bits=10 capacity=2", "hash=php-mt layout=classic bits=10 hashes=4 capacity=2"},
    {"php-mt-legacy capacity=2 bits=10", "hash=php-mt-legacy layout=classic bits=10 hashes=4 capacity=2"},
    /* "k = 10, m = 20 n" is not what its formula gives: ceil(20 log 2) = 14 */
    {"php-mt bits=20000 capacity=1000", "hash=php-mt layout=classic bits=20000 hashes=14 capacity=1000"},
    /* document 001 */
    {"php-poly8", "hash=poly layout=partitioned bits=1073741824 hashes=8 seeds=3,5,7,11,13,31,37,61 empty=excluded"},
    {"php-poly8 seeds=3,5 bits=1024", "hash=poly layout=partitioned bits=1024 hashes=2 seeds=3,5 empty=excluded"},
    /* document 003: ceil(-1.43 ln 0.01) = 7, ceil(1.43 * 7 * 1000) = 10010 */
    {"py-mmh3 capacity=1000 error=0.01",
     "hash=murmur3 layout=classic bits=10010 hashes=7 seeds=17,18,19,20,21,22,23 capacity=1000 error=0.01"},
    {"py-mmh3-redis capacity=1000 error=0.01",
     "hash=murmur3 layout=classic bits=10010 hashes=10 seeds=101,103,107,109,113,127,131,137,139,149 capacity=1000 "
     "error=0.01"},
    /* 1.43 * 10 * 100 is 1430.0000000000002 or less by rounding; ceil sees it */
    {"py-mmh3-redis capacity=100 error=0.001",
     "hash=murmur3 layout=classic bits=1430 hashes=10 seeds=101,103,107,109,113,127,131,137,139,149 capacity=100 "
     "error=0.001"},
    /* document 004 */
    {"php-uids", "hash=poly layout=classic bits=67108864 hashes=7 seeds=7,11,13,17,19,23,29"},
    {"bits=1kb hashes=7", CLASSIC " bits=1024 hashes=7"},
    {"bits=1000 hashes=7 new.hash=siphash", "hash=siphash layout=classic bits=1000 hashes=7"},
    {"bits=1024 hashes=7 new.layout=blocked new.segments=2 new.ttl=1d create=only",
     "hash=xxh3 layout=blocked bits=1024 hashes=7 segments=2"},
    {"go-zero bits=1000 new.ttl=1h", "hash=go-zero layout=classic bits=1000 hashes=14"},
    {"bits=4096 hashes=3 capacity=100 error=0.1 window=1h",
     CLASSIC " bits=4096 hashes=3 capacity=100 error=0.1 window=3600s slices=4"},
    {"bits=4096 hashes=3 capacity=100 error=0.1 window=2000ms slices=2",
     CLASSIC " bits=4096 hashes=3 capacity=100 error=0.1 window=2s slices=2"},
};

static void texts_have_one_canonical_form(void **state)
{
    char text[SPEC_TEXT_SIZE];

    for (size_t i = 0; i < COUNT(texts); i++)
        assert_text(texts[i].given, texts[i].canonical);
    assert_int_equal(hibloom_spec_check("bits=1000 hashes=7", text, 8), HIBLOOM_ERANGE);
}

static void the_longest_text_fits_and_a_shorter_buffer_is_refused(void **state)
{
    char text[SPEC_TEXT_SIZE];
    struct spec spec = {.bits = (UINT64_C(1) << 62) / HIBLOOM_HASHES_MAX,
                        .hashes = HIBLOOM_HASHES_MAX,
                        .capacity = UINT64_MAX,
                        .error_rate = 1.2345678901234567e-300,
                        .hash = HASH_MURMUR3,
                        .layout = LAYOUT_PARTITIONED,
                        .empty_excluded = true};

    for (uint32_t i = 0; i < HIBLOOM_HASHES_MAX; i++)
        spec.seeds[i] = UINT32_MAX;
    assert_ok(spec_format(&spec, text, sizeof text), NULL);
    const size_t len = strlen(text);
    assert_status(spec_format(&spec, text, len), HIBLOOM_ERANGE, NULL);
    assert_ok(spec_format(&spec, text, len + 1), NULL);
    assert_status(spec_format(&spec, text, 0), HIBLOOM_ERANGE, NULL);
}

/* Makes and sets a locale that writes 0,01; it is made here because few
 * machines have one. Of Debian's package locales. */
static void set_comma_locale(const char *dir)
{
    char command[256];

    assert_int_equal(setenv("LOCPATH", dir, 1), 0);
    snprintf(command, sizeof command, "localedef %s -i de_DE -f UTF-8 %s/de_DE.UTF-8",
             __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? "--big-endian" : "--little-endian", dir);
    assert_int_equal(system(command), 0);
    assert_non_null(setlocale(LC_ALL, "de_DE.UTF-8"));
    assert_string_equal(localeconv()->decimal_point, ",");
}

static void texts_do_not_depend_on_the_locale(void **state)
{
    char *dir = temp_dir_make(), buf[64];

    set_comma_locale(dir);
    assert_string_equal(hibloom_sized(buf, sizeof buf, 1000, 0.01), "capacity=1000 error=0.01");
    assert_text(buf, CLASSIC " bits=9593 hashes=7 capacity=1000 error=0.01");
    assert_string_equal(localeconv()->decimal_point, ","); /* and it is left as it was */
    setlocale(LC_ALL, "C");
    temp_dir_remove(dir);
}

/* ---- Positions -------------------------------------------------------------- */

static void the_empty_item_has_positions_unless_excluded(void **state)
{
    struct position positions[HIBLOOM_HASHES_MAX];
    struct spec spec = test_spec("php-uids");

    assert_ok(positions_of(&spec, NULL, 0, positions), NULL);
    assert_int_equal(positions[6].bit, 0);
    assert_status(positions_of(&spec, NULL, 1, positions), HIBLOOM_EINVAL, NULL);
    assert_ok(spec_parse(&spec, "php-poly8"), NULL);
    assert_status(positions_of(&spec, "", 0, positions), HIBLOOM_EINVAL, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_have_one_canonical_form),
        cmocka_unit_test(the_longest_text_fits_and_a_shorter_buffer_is_refused),
        cmocka_unit_test(texts_do_not_depend_on_the_locale),
        cmocka_unit_test(the_empty_item_has_positions_unless_excluded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
