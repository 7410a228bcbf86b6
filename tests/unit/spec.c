/* spec.c: spec texts there and back, and the presets against the programs they stand for. No server. */
#include "support/temp_dir.h"
#include "support/test.h"
#include "spec/positions.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Text ------------------------------------------------------------------- */

static void assert_text(const char *given, const char *canonical)
{
    char text[SPEC_TEXT_SIZE], again[SPEC_TEXT_SIZE];
    struct spec spec, back;

    assert_status(spec_parse(&spec, given), HIBLOOM_OK, NULL);
    assert_ok(spec_format(&spec, text, sizeof text), NULL);
    assert_string_equal(text, canonical);
    assert_ok(spec_parse(&back, text), NULL);
    assert_ok(spec_format(&back, again, sizeof again), NULL);
    assert_string_equal(again, canonical);
}

static void texts_have_one_canonical_form(void **state)
{
    assert_text("capacity=1000000 error=0.01",
                "hash=xxh3 layout=classic bits=9592955 hashes=7 capacity=1000000 error=0.01");
    assert_text("  error=1e-2\tcapacity=1000000 hash=xxh3 ",
                "hash=xxh3 layout=classic bits=9592955 hashes=7 capacity=1000000 error=0.01");
    assert_text("capacity=1000000 error=0.01 hashes=4",
                "hash=xxh3 layout=classic bits=10522705 hashes=4 capacity=1000000 error=0.01");
    assert_text("bits=1000 hashes=3 seed=AbC", "hash=xxh3 layout=classic bits=1000 hashes=3 seed=0000000000000abc");
    assert_text("hash=siphash bits=1000 hashes=3 seed=000102030405060708090a0b0c0d0e0f",
                "hash=siphash layout=classic bits=1000 hashes=3 seed=000102030405060708090a0b0c0d0e0f");
    assert_text("hash=murmur3 bits=99 seeds=1,0,4294967295",
                "hash=murmur3 layout=classic bits=99 hashes=3 seeds=1,0,4294967295");
    assert_text("hash=poly bits=4294967296 seeds=7 layout=partitioned empty=excluded",
                "hash=poly layout=partitioned bits=4294967296 hashes=1 seeds=7 empty=excluded");
    assert_text("capacity=1000 error=0.01 layout=partitioned",
                "hash=xxh3 layout=partitioned bits=1371 hashes=7 capacity=1000 error=0.01");
    assert_text("bits=1024 hashes=3 layout=blocked hash=siphash", "hash=siphash layout=blocked bits=1024 hashes=3");
    assert_text("segments=5 bits=1001 hashes=3", "hash=xxh3 layout=classic bits=1001 hashes=3 segments=5");
    assert_text("bits=1001 hashes=3 segments=1", "hash=xxh3 layout=classic bits=1001 hashes=3");
    assert_text("bits=134217729 hashes=3", "hash=xxh3 layout=classic bits=134217729 hashes=3 segments=13");
    assert_text("bits=134217729 hashes=3 segments=1", "hash=xxh3 layout=classic bits=134217729 hashes=3 segments=1");
    assert_text("bits=134217729 hashes=3 layout=partitioned", "hash=xxh3 layout=partitioned bits=134217729 hashes=3");
    assert_text("capacity=1000000 error=0.01 counters=4",
                "hash=xxh3 layout=classic bits=9592955 hashes=7 counters=4 capacity=1000000 error=0.01");
    assert_text("counters=8 segments=5 bits=1001 hashes=3 seed=1",
                "hash=xxh3 layout=classic bits=1001 hashes=3 segments=5 counters=8 seed=0000000000000001");
    /* segments are of so many bytes, not counters */
    assert_text("bits=67108864 hashes=3 counters=2", "hash=xxh3 layout=classic bits=67108864 hashes=3 counters=2");
    assert_text("bits=67108865 hashes=3 counters=2",
                "hash=xxh3 layout=classic bits=67108865 hashes=3 segments=13 counters=2");
    /* a rate that needs all 17 digits */
    assert_text("bits=10 hashes=1 error=0.10000000000000002",
                "hash=xxh3 layout=classic bits=10 hashes=1 error=0.10000000000000002");
}

static void presets_compute_as_their_programs_do(void **state)
{
    /* documents 000 and 002: ceil(10/2 * log 2) = 4 */
    assert_text("php-mt bits=10 capacity=2", "hash=php-mt layout=classic bits=10 hashes=4 capacity=2");
    assert_text("php-mt-legacy capacity=2 bits=10", "hash=php-mt-legacy layout=classic bits=10 hashes=4 capacity=2");
    /* "k = 10, m = 20 n" is not what its formula gives: ceil(20 log 2) = 14 */
    assert_text("php-mt bits=20000 capacity=1000", "hash=php-mt layout=classic bits=20000 hashes=14 capacity=1000");
    /* document 001 */
    assert_text("php-poly8", "hash=poly layout=partitioned bits=1073741824 hashes=8 "
                             "seeds=3,5,7,11,13,31,37,61 empty=excluded");
    assert_text("php-poly8 seeds=3,5 bits=1024",
                "hash=poly layout=partitioned bits=1024 hashes=2 seeds=3,5 empty=excluded");
    /* document 003: ceil(-1.43 ln 0.01) = 7, ceil(1.43 * 7 * 1000) = 10010 */
    assert_text("py-mmh3 capacity=1000 error=0.01",
                "hash=murmur3 layout=classic bits=10010 hashes=7 seeds=17,18,19,20,21,22,23 capacity=1000 error=0.01");
    assert_text("py-mmh3-redis capacity=1000 error=0.01",
                "hash=murmur3 layout=classic bits=10010 hashes=10 seeds=101,103,107,109,113,127,131,137,139,149 "
                "capacity=1000 error=0.01");
    /* 1.43 * 10 * 100 is 1430.0000000000002 or less by rounding; ceil sees it */
    assert_text("py-mmh3-redis capacity=100 error=0.001",
                "hash=murmur3 layout=classic bits=1430 hashes=10 seeds=101,103,107,109,113,127,131,137,139,149 "
                "capacity=100 error=0.001");
    /* document 004 */
    assert_text("php-uids", "hash=poly layout=classic bits=67108864 hashes=7 seeds=7,11,13,17,19,23,29");
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

static void invalid_specs_are_refused(void **state)
{
    const struct spec good = {.bits = 100, .hashes = 3};
    struct position positions[HIBLOOM_HASHES_MAX];
    char text[SPEC_TEXT_SIZE];
    struct spec bad[] = {good, good, good, good, good, good, good, good, good};

    bad[0].bits = 0;
    bad[1].hashes = 0;
    bad[2].hashes = HIBLOOM_HASHES_MAX + 1;
    bad[3].hash = (enum hash_id)16;
    bad[4].layout = (enum layout)3;
    bad[5].error_rate = (double)NAN;
    bad[6].hash = HASH_MURMUR3;
    bad[6].seeds[2] = UINT64_C(1) << 32;
    bad[7].bits = (UINT64_C(1) << 62) + 1;
    bad[8].hash = HASH_PHP_MT;
    bad[8].seeded = true;
    assert_ok(positions_of(&good, "x", 1, positions), NULL);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_not_equal(positions_of(&bad[i], "x", 1, positions), HIBLOOM_OK);
        assert_status(spec_format(&bad[i], text, sizeof text), HIBLOOM_EINVAL, NULL);
    }
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
    char *dir = temp_dir_make();

    set_comma_locale(dir);
    assert_text("capacity=1000 error=0.01", "hash=xxh3 layout=classic bits=9593 hashes=7 capacity=1000 error=0.01");
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
        cmocka_unit_test(presets_compute_as_their_programs_do),
        cmocka_unit_test(the_longest_text_fits_and_a_shorter_buffer_is_refused),
        cmocka_unit_test(invalid_specs_are_refused),
        cmocka_unit_test(texts_do_not_depend_on_the_locale),
        cmocka_unit_test(the_empty_item_has_positions_unless_excluded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
