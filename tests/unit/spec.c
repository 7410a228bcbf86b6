/* spec.c: spec texts there and back, the presets against the programs they stand for; and what is said of a text that is no
 * spec, word by word, and of such a struct. No server. */
#include "base/error.h"
#include "spec/positions.h"
#include "spec/spec.h"
#include "support/temp_dir.h"
#include "support/test.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Text ------------------------------------------------------------------- */

static void assert_text(const char *given, const char *expected)
{
    char text[SPEC_TEXT_SIZE], again[SPEC_TEXT_SIZE];

    if (hibloom_spec_check(given, text, sizeof text) != HIBLOOM_OK || strcmp(text, expected) != 0)
        fail_msg("\"%s\": \"%s\", not \"%s\"", given, text, expected);
    assert_ok(hibloom_spec_check(text, again, sizeof again), NULL);
    assert_string_equal(again, expected);
}

#define CLASSIC "hash=xxh3 layout=classic"

/* The presets compute as their programs do: see the source documents. */
static const struct {
    const char *given, *text;
} canonical[] = {
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

    for (size_t i = 0; i < COUNT(canonical); i++)
        assert_text(canonical[i].given, canonical[i].text);
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

/* Makes and sets a locale that writes 0,01; it is made here because few machines have one. Of Debian's package locales.
 * It has no more than that, since those of languages take seconds. */
static void set_comma_locale(const char *dir)
{
    char command[512];

    assert_int_equal(setenv("LOCPATH", dir, 1), 0);
    snprintf(
        command, sizeof command,
        "cd %s && printf 'LC_NUMERIC\ndecimal_point \",\"\nthousands_sep \"\"\ngrouping -1\nEND LC_NUMERIC\n' >source"
        " && localedef --quiet %s --force -i source -f ANSI_X3.4-1968 %s/comma",
        dir, __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? "--big-endian" : "--little-endian", dir);
    (void)!system(command); /* 1: it warns of what is left out */
    assert_non_null(setlocale(LC_NUMERIC, "comma"));
    assert_string_equal(localeconv()->decimal_point, ",");
}

static void texts_do_not_depend_on_the_locale(void **state)
{
    char *dir = temp_dir_make(), buf[64];

    set_comma_locale(dir);
    assert_string_equal(hibloom_sized(buf, sizeof buf, 1000, 0.01), "capacity=1000 error=0.01");
    assert_text(buf, CLASSIC " bits=9593 hashes=7 capacity=1000 error=0.01");
    assert_string_equal(localeconv()->decimal_point, ","); /* and it is left as it was */
    setlocale(LC_NUMERIC, "C");
    temp_dir_remove(dir);
}

/* ---- Positions -------------------------------------------------------------- */

static void the_empty_item_has_positions_unless_excluded(void **state)
{
    hibloom_position positions[HIBLOOM_HASHES_MAX];
    struct spec spec = test_spec("php-uids");

    assert_ok(positions_of(&spec, NULL, 0, positions), NULL);
    assert_int_equal(positions[6].bit, 0);
    assert_status(positions_of(&spec, NULL, 1, positions), HIBLOOM_EINVAL, NULL);
    assert_ok(spec_parse(&spec, "php-poly8"), NULL);
    assert_status(positions_of(&spec, "", 0, positions), HIBLOOM_EINVAL, NULL);
}

/* ---- Texts that are none ----------------------------------------------------------------- */

#define NO_NUMBER ": not a whole number, such as 1000000 or 1m, with k, m, g, kb, mb or gb behind it or not"
#define NO_DECIMAL ": not a decimal number, such as 0.01 or 1e-2"
#define NO_TIME ": not a time: a whole number with its unit, ms, s, min, h or d"
#define NO_WORD \
    ": no such word; there are capacity, error, bits, hashes, hash, seed, seeds, layout, segments, counters, " \
    "empty, codec, keys, chars, index, growth, window, slices, create, new.ttl, new.prefer, new.hash, new.layout, " \
    "new.segments"
#define NO_HASH \
    ": no such value; there are xxh3, siphash, murmur3, poly, php-mt, php-mt-legacy, pyrebloom, scrapy-redis, " \
    "go-zero, rueidis, redisson, bloomfilter-rb, taganaka, orestes, orestes-murmur3, redisbloom"

struct refused {
    const char *text, *words;
};

static const struct refused malformed[] = {
    {"", "the text says nothing; NULL takes any filter"},
    {"capacity=10", "error= is missing: capacity= needs it"},
    {"error=0.1", "capacity= is missing: error= needs it"},
    {"bits=10", "hashes= is missing: bits= needs it"},
    {"hashes=3", "a size is missing: capacity= and error=, or bits= and hashes=, or a preset"},
    {"capacity=10 error=0.1 capacity=10", "capacity=: given twice"},
    {"capacity=10 error=0.1 colour=red", "colour" NO_WORD},
    {"capcity=10 error=0.1", "capcity: no such word; did you mean capacity?"},
    {"capacity=10 error=0.1 new.tll=1d", "new.tll: no such word; did you mean new.ttl?"},
    {"capacity=10 error=0.1 blocked", "'blocked': is no NAME=VALUE, and a preset is the first word"},
    {"capacity= error=0.1", "capacity=" NO_NUMBER},
    {"capacity=-1 error=0.1", "capacity=-1" NO_NUMBER},
    {"capacity=10, error=0.1", "capacity=10," NO_NUMBER},
    {"capacity=10 error=0,1", "error=0,1: write a point, not a comma, as in 0.01"},
    {"capacity=10 error=nan", "error=nan" NO_DECIMAL},
    {"capacity=10 error=0.1 hash=md5", "hash=md5" NO_HASH},
    {"capacity=10 error=0.1 layout=round", "layout=round: no such value; there are classic, partitioned, blocked"},
    {"bits=1000 hashes=3 layout=blocked", "bits=1000: is no multiple of 512, as layout=blocked needs"},
    {"bits=1024 hash=murmur3 seeds=1,2 layout=blocked", "layout=blocked: not with hash=murmur3"},
    {"capacity=10 error=0.1 layout=partitioned segments=2", "segments=2: must be 1 with layout=partitioned"},
    {"bits=1024 hash=murmur3 seeds=1,2 segments=2", "segments=2: must be 1 with hash=murmur3"},
    {"capacity=10 error=0.1 counters=3", "counters=3: must be 2, 4 or 8"},
    {"capacity=10 error=0.1 counters=4 layout=blocked", "counters=4: with layout=classic only"},
    {"php-uids counters=4", "counters=: php-uids does not take it"},
    {"capacity=10 error=0.1 empty=maybe", "empty=maybe: only empty=excluded is known"},
    {"capacity=10 error=0.1 seed=", "seed=: not 1 to 32 hexadecimal digits"},
    {"capacity=10 error=0.1 seed=12345678901234567", "hash= is missing: this seed= is for another one than xxh3"},
    {"capacity=10 error=0.1 hash=siphash seed=00", "seed=: hash=siphash takes 32 hexadecimal digits"},
    {"capacity=10 error=0.1 seeds=1,2", "hash= is missing: seeds= needs one that takes so many"},
    {"capacity=10 error=0.1 hash=murmur3 seed=1", "seed=: hash=murmur3 takes seeds=A,B,.., a number for each hash"},
    {"bits=10 hashes=3 hash=php-mt seed=1", "seed=: hash=php-mt takes no seed"},
    {"capacity=10 error=0.1 hash=murmur3",
     "seeds= is missing: this hash takes a number for each of its hashes, seeds=A,B,.."},
    {"bits=10 hashes=3 hash=murmur3 seeds=1,2", "hashes=3: but there are 2 seeds"},
    {"bits=10 hash=murmur3 seeds=1,,2", "seeds=: number 2 is not a whole number below 2^32"},
    {"bits=10 hash=murmur3 seeds=1,", "seeds=: number 2 is not a whole number below 2^32"},
    {"bits=10 hash=murmur3 seeds=", "seeds=: number 1 is not a whole number below 2^32"},
    {"php-poly9", "php-poly9: no such preset; did you mean php-poly8?"},
    {"bits=10 php-uids", "'php-uids': is no NAME=VALUE, and a preset is the first word"},
    {"php-mt bits=10", "capacity= is missing: php-mt needs it"},
    {"php-mt bits=10 capacity=2 error=0.1", "error=: php-mt does not take it"},
    {"bits=64 hashes=2 chars=latin1", "chars=: only a preset takes it"},
    {"bits=64 hashes=2 growth=2", "growth=2: needs capacity= and error="},
    {"capacity=9 error=0.1 growth=2 counters=4", "growth=2: not with counters="},
    {"capacity=9 error=0.1 growth=2 link=1", "link" NO_WORD},
    {"capacity=9 error=0.1 growth=2 layout=partitioned",
     "growth=2: needs hash=xxh3 or siphash, and layout=classic or blocked; or hash=redisbloom and layout=classic"},
    {"bits=64 hashes=2 capacity=9 error=0.1 growth=2 hash=redisbloom layout=partitioned",
     "growth=2: needs hash=xxh3 or siphash, and layout=classic or blocked; or hash=redisbloom and layout=classic"},
    {"capacity=9 error=0.1 slices=3", "slices=3: needs window=, of 1 to 1000000000 seconds"},
    {"capacity=9 error=0.1 window=60s hash=redisbloom",
     "window=60: needs hash=xxh3 or siphash, and layout=classic or blocked"},
    {"capacity=9 error=0.1 hashes=5 hash=redisbloom",
     "hashes=5: hash=redisbloom has another number for this error rate"},
    {"bits=64 hashes=2 codec=string", "codec=: hash=xxh3 has not this one"},
    {"bits=64 seeds=1 hash=scrapy-redis codec=kryo5", "codec=: hash=scrapy-redis has not this one"},
    {"bits=64 hashes=2 codec=utf8", "codec=utf8: no such value; there are bytes, string, kryo5"},
    {"bits=64 hashes=2 keys=mine", "keys=mine: no such value; there are own, pyrebloom, rueidis, redisson, orestes"},
    {"bits=64 hashes=2 keys=orestes layout=partitioned", "keys=: with layout=classic only"},
    {"keys=redisson", "keys=: in these no library has a filter of hash=xxh3"},
    {"bits=65 hashes=2 hash=redisbloom", "bits=65: is no multiple of 8, as hash=redisbloom needs"},
    {"scrapy-redis bits=1024 hashes=6 chars=ucs", "chars=ucs: no such value; there are latin1, codepoints"},
    {"redisson capacity=1000", "capacity=: redisson takes capacity= and error=, or none of both"},
    {"orestes capacity=1000 error=0.01 index=md5", "index=md5: no such value; there are kirsch-mitzenmacher, murmur3"},
    {" \t", "the text says nothing; NULL takes any filter"},
    {"capacity=1000 error=0.1 window=24", "window=24" NO_TIME},
    {"capacity=1000 error=0.1 new.ttl=60", "new.ttl=60" NO_TIME},
    {"capacity=1000 error=0.1 hash=xxh3 new.hash=siphash", "hash= and new.hash=: not together"},
    {"capacity=10 error=0.1 hash=xxh", "hash=xxh: no such value; did you mean xxh3?"},
    {"capacity=10 error=0.1 hash=XXH3", "hash=XXH3" NO_HASH},
    {"capacity=10 error=0.1 new.prefer=speed", "new.prefer=speed: no such value; there are memory, add, lookup"},
    {"go-zero bits=1000 new.prefer=add", "bits= and new.prefer=: not together"},
    {"capacity = 1m error=0.1", "'capacity': no blanks may stand around its '='"},
    {"capacity=10 error=1e999", "error=..." NO_DECIMAL},
    {"capacity=10 error=1e", "error=1e" NO_DECIMAL},
};

static const struct refused out_of_range[] = {
    {"capacity=10 error=1", "error=1: must be above 0 and below 1"},
    {"bits=10 hashes=1 segments=65537", "segments=65537: must be 1 to 65536"},
    {"capacity=10 error=0.1 counters=0", "counters=0: must be 2 to 8"},
    {"capacity=10 error=0.1 counters=16", "counters=16: must be 2 to 8"},
    {"bits=4611686018427387904 hashes=2 counters=4", "bits=4611686018427387904: must be 1 to 1152921504606846976"},
    {"bits=10 hashes=129", "hashes=129: must be 1 to 128"},
    {"bits=0 hashes=1", "bits=0: must be 1 to 4611686018427387904"},
    {"bits=4611686018427387904 hashes=2 layout=partitioned",
     "bits=4611686018427387904: must be 1 to 2305843009213693952"},
    {"bits=10 hash=murmur3 seeds=4294967296", "seeds=: number 1 is not a whole number below 2^32"},
    {"capacity=1000 error=1e-70", "capacity= and error=: would take more than 2^62 bits, or more than 128 hashes"},
    {"php-mt bits=1000000 capacity=1", "php-mt: these numbers give less than 1 or more than 128 hashes"},
    {"py-mmh3 capacity=18446744073709551615 error=0.01",
     "py-mmh3: these numbers give less than 1 or more than 2^62 bits"},
    {"capacity=9 error=0.1 growth=0", "growth=0: must be 2 to 16"},
    {"redisbloom capacity=9 error=0.1 growth=17", "growth=17: must be 2 to 16"},
    {"redisbloom capacity=9 error=1e-40",
     "redisbloom: these numbers give more than 2^62 bits, or less than 1 or more than 128 hashes"},
    {"bits=2147483648 hashes=2 hash=orestes-murmur3",
     "bits=2147483648: must be 1 to 2147483647 with hash=orestes-murmur3"},
    {"scrapy-redis bits=1000 hashes=6", "scrapy-redis: bits= is a power of two, 1 << BLOOMFILTER_BIT"},
    {"scrapy-redis bits=8589934592 hashes=6", "scrapy-redis: 8589934592 bits are more than the 4294967296 it can have"},
    {"bloomfilter-rb bits=100 hashes=4 seeds=1,2",
     "bloomfilter-rb: seeds= is one number, its option seed, and the last of so many after it is below 2^32"},
    {"redisson capacity=1000000000 error=0.01", "redisson: 9585058377 bits are more than the 4294967294 it can have"},
    {"rueidis capacity=1000 error=0.8", "rueidis: these numbers give less than 1 or more than 128 hashes"},
    {"pyrebloom capacity=448089843 error=0.01",
     "pyrebloom: for so many bits it makes a key too few, and fails itself; choose another capacity"},
    {"pyrebloom capacity=4294967296 error=0.01", "pyrebloom: its capacity is below 2^32"},
    {"capacity=0 error=0.1", "capacity=0: must be 1 to 18446744073709551615"},
    {"capacity=1000 error=0.1 window=1500ms", "window=1500ms: must be whole seconds"},
    {"capacity=1000 error=0.1 window=0s", "window=0s: is too short, or too long"},
    {"go-zero bits=4294967297", "go-zero: 4294967297 bits are more than the 4294967296 it can have"},
    {"bloomfilter-rb bits=100 hashes=4 seeds=4294967293",
     "bloomfilter-rb: seeds= is one number, its option seed, and the last of so many after it is below 2^32"},
    {"orestes capacity=300000000 error=0.01", "orestes: 2875517514 bits are more than the 2147483647 it can have"},
    {"pyrebloom capacity=1 error=0.999", "pyrebloom: these numbers give less than 1 or more than 2^62 bits"},
};

static void assert_refused(hibloom_status status, const struct refused *refused, size_t n)
{
    char words[512];

    for (size_t i = 0; i < n; i++) {
        assert_int_equal(hibloom_spec_check(refused[i].text, words, sizeof words), status);
        if (strcmp(words, refused[i].words) != 0)
            fail_msg("\"%s\": \"%s\", not \"%s\"", refused[i].text, words, refused[i].words);
    }
}

static void the_words_name_the_wrong_word_and_why(void **state)
{
    char words[64];

    assert_refused(HIBLOOM_EINVAL, malformed, COUNT(malformed));
    assert_refused(HIBLOOM_ERANGE, out_of_range, COUNT(out_of_range));
    assert_int_equal(hibloom_spec_check(NULL, words, sizeof words), HIBLOOM_EINVAL);
    assert_non_null(strstr(words, "no text"));
}

static void a_text_too_long_is_said_to_be(void **state)
{
    static char text[HIBLOOM_TEXT_SIZE + 1];
    char words[64];

    memset(text, 'x', HIBLOOM_TEXT_SIZE);
    assert_int_equal(hibloom_spec_check(text, words, sizeof words), HIBLOOM_EINVAL);
    assert_string_equal(words, "longer than 2303 bytes");
    memcpy(text, "bits=", 5);
    text[HIBLOOM_TEXT_SIZE - 1] = '\0';
    assert_int_equal(hibloom_spec_check(text, words, sizeof words), HIBLOOM_EINVAL);
    assert_memory_equal(words, "bits=...: not a whole number", 28);
}

static void seeds_that_are_too_many_are_said_to_be(void **state)
{
    char text[512] = "hash=poly bits=8 seeds=1", words[64];

    for (int i = 1; i <= 128; i++)
        strcat(text, ",1");
    assert_int_not_equal(hibloom_spec_check(text, words, sizeof words), HIBLOOM_OK);
    assert_string_equal(words, "seeds=: more than 128");
}

/* Where the seed should be, and where somebody may put it by mistake. */
static void a_seed_is_never_repeated(void **state)
{
    static const char *const texts[] = {
        "bits=9 hashes=1 seed=%s",
        "bits=9 hashes=1 seed=%sx",
        "bits=9 hashes=1 seed=%s seed=%s",
        "bits=9 hashes=1 seeds=%s",
        "bits=9 seeds=%s hash=poly",
        "bits=9 hash=murmur3 seed=%s",
        "php-uids seed=%s",
        "%s",
        "bits=9 hashes=1 %s",
        "bits=9 hashes=1 seed:%s",
        "bits=9 hashes=1 sede=%s",
        "bits=9 hashes=1 %s=1",
        "hash=%s bits=9",
        "layout=%s bits=9",
        "hash=php-mt seed=%s bits=9 hashes=1",
        "bits=9,seed=%s hashes=1",
        "bits=9 hashes=1,seed=%s",
        "bits=9;hashes=1;seed=%s",
        "bits=%s hashes=1",
        "bits=9 hashes=1 seed=ab\t%s",
        "hash=xxh3,seed=%s bits=9",
        "capacity=9 error=0.1 window=%s",
        "empty=%s",
        "sede,%s=1",
        "seed-%s",
        "bits=9 hashes=%s",
        "bits=9 hashes=1 segments=%s",
        "capacity=9 error=0.1 new.ttl=%s",
    };
    static const char *const seeds[] = {"5ec2e7a98d4c6b3f5ec2e7a98d4c6b3f00", "facadebeefdeaddeafbed",
                                        "96420975318642097531"};
    char text[256], words[256];

    for (size_t i = 0; i < COUNT(texts) * COUNT(seeds); i++) {
        const char *const seed = seeds[i % COUNT(seeds)];
        char *at = text;
        for (const char *from = texts[i / COUNT(seeds)]; *from != '\0'; from++) {
            if (*from == '%')
                at = stpcpy(at, seed), from++;
            else
                *at++ = *from;
        }
        *at = '\0';
        assert_int_not_equal(hibloom_spec_check(text, words, sizeof words), HIBLOOM_OK);
        for (size_t j = 0; j + 4 <= strlen(seed); j++) {
            char piece[5] = "";
            memcpy(piece, seed + j, 4);
            if (strstr(words, piece) != NULL)
                fail_msg("\"%s\" shows it: \"%s\"", text, words);
        }
    }
}

static void what_cannot_be_printed_is_not(void **state)
{
    char words[256];

    assert_int_equal(hibloom_spec_check("bits=\033[1m\xff hashes=1", words, sizeof words), HIBLOOM_EINVAL);
    assert_string_equal(words, "bits=..." NO_NUMBER);
    assert_int_equal(hibloom_spec_check("\a\xff", words, sizeof words), HIBLOOM_EINVAL);
    assert_non_null(strstr(words, "...: no such preset; there are"));
}

static void a_struct_that_is_no_spec_gets_words_too(void **state)
{
    const struct spec good = {.bits = 1024, .hashes = 3};
    static const char *const words[] = {
        "bits=1000: is no multiple of 512, as layout=blocked needs",
        "error: must be 0 (not stated) or between 0 and 1",
        "hashes=0: must be 1 to 128",
        "bits=0: must be 1 to 4611686018427387904",
    };
    hibloom_position positions[HIBLOOM_HASHES_MAX];
    struct spec bad[COUNT(words)];
    char text[SPEC_TEXT_SIZE];
    struct error error;

    for (size_t i = 0; i < COUNT(bad); i++)
        bad[i] = good;
    bad[0].layout = LAYOUT_BLOCKED;
    bad[0].bits = 1000;
    bad[1].error_rate = (double)NAN;
    bad[2].hashes = 0;
    bad[3].bits = 0;
    assert_ok(spec_check_words(&good, &error), NULL);
    for (size_t i = 0; i < COUNT(bad); i++) {
        assert_int_equal(spec_check_words(&bad[i], &error), spec_check(&bad[i]));
        assert_int_not_equal(spec_check(&bad[i]), HIBLOOM_OK);
        assert_string_equal(error.words, words[i]);
        assert_int_not_equal(positions_of(&bad[i], "x", 1, positions), HIBLOOM_OK);
        assert_status(spec_format(&bad[i], text, sizeof text), HIBLOOM_EINVAL, NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_have_one_canonical_form),
        cmocka_unit_test(the_longest_text_fits_and_a_shorter_buffer_is_refused),
        cmocka_unit_test(texts_do_not_depend_on_the_locale),
        cmocka_unit_test(the_empty_item_has_positions_unless_excluded),
        cmocka_unit_test(the_words_name_the_wrong_word_and_why),
        cmocka_unit_test(a_text_too_long_is_said_to_be),
        cmocka_unit_test(seeds_that_are_too_many_are_said_to_be),
        cmocka_unit_test(a_seed_is_never_repeated),
        cmocka_unit_test(what_cannot_be_printed_is_not),
        cmocka_unit_test(a_struct_that_is_no_spec_gets_words_too),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
