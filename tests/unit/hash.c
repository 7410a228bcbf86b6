/* hash.c: every hash against known answers: published vectors where there
 * are some, and for what PHP and Python compute, values that they computed.
 *
 * Whole filters are compared with both in share/peers.c; what is here tells which hash is wrong, and needs neither.
 * What is under test has its own ideas of k and m, which no valid spec has: m = 2^63, that shows nearly all of 64 bits,
 * and more than 128 hashes. */
#include "support/test.h"

#include "hash/hash.h"
#include "spec/spec.h"

#include <stdlib.h>
#include <string.h>

#define TEXT(literal) \
    { \
        literal, sizeof(literal) - 1 \
    }
#define URL "https://www.debian.org/doc/manuals/debian-reference/index.en.html"

/* The seeds after the first two are 0; seeds NULL: these, too. */
static void indexes(enum hash_id hash, uint64_t bits, uint32_t hashes, const uint64_t seeds[2], hibloom_item item,
                    uint64_t *out)
{
    const uint64_t all[HIBLOOM_HASHES_MAX] = {seeds != NULL ? seeds[0] : 0, seeds != NULL ? seeds[1] : 0};
    struct hasher hasher = {.seeds = all, .bits = bits, .hashes = hashes, .segments = 1};

    hasher_set(&hasher, &hash_table[hash], CODEC_BYTES, false);
    assert_int_equal(hasher.indexes(&hasher, item.data, item.len, out), 0);
}

/* The two offsets that tell a 128-bit value, by the rule in hash.c. */
static void assert_spread(enum hash_id hash, const uint64_t seeds[2], hibloom_item item, uint64_t lo, uint64_t hi)
{
    uint64_t out[2];

    indexes(hash, UINT64_C(1) << 63, 2, seeds, item, out);
    assert_int_equal(out[0], lo >> 1);
    assert_int_equal(out[1], (lo * 6364136223846793005u + (hi | 1)) >> 1);
}

/* The first offsets of the empty item's XXH3-128, 99aa06d3014798d8 6001c324468d497f, worked out with Python's unbounded
 * integers from the rule. Were they to change, no filter that is stored would be readable any more. */
static void a_128_bit_value_gives_these_indexes(void **state)
{
    static const struct {
        uint64_t bits, out[4];
    } known[] = {
        {1u, {0u, 0u, 0u, 0u}},
        {10u, {3u, 6u, 1u, 3u}},
        {1000003u, {375028u, 675436u, 118158u, 317370u}},
        {134217728u, {50335257u, 90655332u, 15858896u, 42596589u}},
        {4294967296u, {1610728228u, 2900970643u, 507484675u, 1363090878u}},
        {10000000000u, {3750268901u, 6754348622u, 1181579836u, 3173693265u}},
        {4611686018427387904u, {1729506265796923999u, 3114893510635921739u, 544907520990016869u, 1463607685817435074u}},
    };
    const hibloom_item empty = {NULL, 0};

    for (size_t i = 0; i < COUNT(known); i++) {
        uint64_t out[4];

        indexes(HASH_XXH3, known[i].bits, 4, NULL, empty, out);
        assert_memory_equal(out, known[i].out, sizeof out);
    }
}

/* Of the same value, and worked out likewise. */
static void a_128_bit_value_gives_this_block_and_segment(void **state)
{
    static const uint64_t in_block[4] = {375129, 374844, 374946, 375195}, no_seed;
    static const uint32_t segments[4][2] = {{2, 1}, {5, 3}, {1000, 600}, {65536, 39338}};
    struct hasher hasher = {.seeds = &no_seed, .bits = 999936, .hashes = 4};
    uint64_t out[4];

    for (int i = 0; i < 8; i++) {
        hasher.segments = segments[i / 2][0];
        hasher_set(&hasher, &hash_table[HASH_XXH3], CODEC_BYTES, i % 2 == 0);
        assert_int_equal(hasher.indexes(&hasher, NULL, 0, out), segments[i / 2][1]);
        if (i % 2 == 0)
            assert_memory_equal(out, in_block, sizeof out);
    }
}

/* Some of xxHash's own sanity vectors (cli/xsum_sanity_check.c, XXH128), over its generated buffer: that the
 * seed and both halves are where they belong. */
static void xxh3_gives_the_vectors_of_xxhash(void **state)
{
    enum { LONGEST = 2367 };
    const uint64_t prime32 = 2654435761u, prime64 = 11400714785074694797u;
    const struct {
        size_t len;
        uint64_t seed, lo, hi;
    } known[] = {
        {0, 0, 0x6001C324468D497Fu, 0x99AA06D3014798D8u},
        {0, prime32, 0x5444F7869C671AB0u, 0x92220AE55E14AB50u},
        {1, prime32, 0xB53D5557E7F76F8Du, 0x89B99554BA22467Cu},
        {12, prime32, 0x9BE9F9A67F3C7DFBu, 0xD7E09D518A3405D3u},
        {81, prime32, 0x703FBB3D7A5F755Cu, 0x2724EC7ADC750FB6u},
        {403, prime64, 0x6259F6ECFD6443FDu, 0xBED311971E0BE8F2u},
        {LONGEST, prime32, 0x6F5360AE69C2F406u, 0xD23AAE4B76C31ECBu},
    };
    unsigned char buffer[LONGEST];
    uint64_t generator = prime32;

    for (size_t i = 0; i < LONGEST; i++, generator *= prime64)
        buffer[i] = (unsigned char)(generator >> 56);
    for (size_t i = 0; i < COUNT(known); i++) {
        const hibloom_item item = {buffer, known[i].len};
        const uint64_t seeds[2] = {known[i].seed, 0};

        assert_spread(HASH_XXH3, seeds, item, known[i].lo, known[i].hi);
    }
}

static uint64_t word_of_hex(const char *hex)
{
    uint64_t word = 0;

    for (int i = 14; i >= 0; i -= 2) {
        const char byte[3] = {hex[i], hex[i + 1], '\0'};
        word = word << 8 | strtoul(byte, NULL, 16);
    }
    return word;
}

/* The first vectors_sip128 of the reference implementation (veorq/SipHash, vectors.h), of up to three words:
 * key 00 01 .. 0f, and of item number n the bytes 00 01 .. n-1. */
static void siphash_gives_the_official_vectors(void **state)
{
    static const char *const known[] = {
        "a3817f04ba25a8e66df67214c7550293", "da87c1d86b99af44347659119b22fc45", "8177228da4a45dc7fca38bdef60affe4",
        "9c70b60c5267a94e5f33b6b02985ed51", "f88164c12d9c8faf7d0f6e7c7bcd5579", "1368875980776f8854527a07690e9627",
        "14eeca338b208613485ea0308fd7a15e", "a1f1ebbed8dbc153c0b84aa61ff08239", "3b62a9ba6258f5610f83e264f31497b4",
        "264499060ad9baabc47f8b02bb6d71ed", "00110dc378146956c95447d3f3d0fbba", "0151c568386b6677a2b4dc6f81e5dc18",
        "d626b266905ef35882634df68532c125", "9869e247e9c08b10d029934fc4b952f7", "31fcefac66d7de9c7ec7485fe4494902",
        "5493e99933b0a8117e08ec0f97cfc3d9", "6ee2a4ca67b054bbfd3315bf85230577", "473d06e8738db89854c066c47ae47740",
        "a426e5e423bf4885294da481feaef723", "78017731cf65fab074d5208952512eb1", "9e25fc833f2290733e9344a5e83839eb",
        "568e495abe525a218a2214cd3e071d12", "4a29b54552d16b9a469c10528eff0aae", "c9d184ddd5a9f5e0cf8ce29a9abf691c",
    };
    const uint64_t key[2] = {0x0706050403020100u, 0x0f0e0d0c0b0a0908u};
    unsigned char bytes[COUNT(known)];

    for (size_t len = 0; len < COUNT(known); len++) {
        const hibloom_item item = {bytes, len};

        assert_spread(HASH_SIPHASH, key, item, word_of_hex(known[len]), word_of_hex(known[len] + 16));
        bytes[len] = (unsigned char)len;
    }
}

static uint32_t murmur3(hibloom_item item, uint32_t seed)
{
    const uint64_t seeds[2] = {seed, 0};
    uint64_t out;

    /* A multiple of 2^32 as m keeps the low 32 bits as they are. */
    indexes(HASH_MURMUR3, UINT64_C(1) << 40, 1, seeds, item, &out);
    return (uint32_t)out;
}

/* SMHasher's verification value of MurmurHash3_x86_32: the items of 0 to 255
 * bytes 00 01 .. with seeds 256 down to 1, and the hash of their hashes. */
static void murmur3_gives_smhashers_verification_value(void **state)
{
    unsigned char bytes[256], hashes[4 * 256];

    for (uint32_t len = 0; len < 256; len++) {
        const uint32_t h = murmur3((hibloom_item){bytes, len}, 256 - len);

        for (unsigned i = 0; i < 4; i++)
            hashes[4 * len + i] = (unsigned char)(h >> 8 * i);
        bytes[len] = (unsigned char)len;
    }
    assert_int_equal(murmur3((hibloom_item){hashes, sizeof hashes}, 0), 0xB0F57EE3u);
    assert_int_equal(murmur3((hibloom_item){NULL, 0}, UINT32_MAX), 0x81F16F39u);
}

/* XXH3's one step gives what digest and rule give one after the other, as pipelines use them. */
static void one_step_gives_what_two_give(void **state)
{
    const uint64_t seed = 31;
    struct hasher hasher = {.seeds = &seed, .bits = 1 << 20, .hashes = 9, .segments = 5};

    for (uint32_t item = 0; item < 200; item++) {
        uint64_t values[2], expected[9], out[9];

        hasher_set(&hasher, &hash_table[HASH_XXH3], CODEC_BYTES, item % 2 == 0);
        hasher.digest(&hasher, &item, sizeof item, values);
        const uint32_t segment = hasher_offsets(&hasher, values, expected);
        assert_int_equal(hasher.indexes(&hasher, &item, sizeof item, out), segment);
        assert_memory_equal(out, expected, sizeof out);
    }
}

/* ---- PHP --------------------------------------------------------------------------------- */

/* The digits to the base 5 of a number just below 2^63 / 5, and a byte 0xff: in
 * its step the multiplication by 5 fits and the addition overflows. */
#define ADDS_OVER "\1\1\0\4\3\3\2\4\0\1\3\0\4\4\2\2\4\3\4\3\1\0\3\1\0\2\0\xff"

static unsigned char all_ff[400];

/* By PHP 8.2, a column for each seed and size:
 *   $r = 0;
 *   for ($i = 0; $i < strlen($item); $i++) $r = $seed * $r + ord($item[$i]);
 *   echo ($bits - 1) & $r; */
static void poly_gives_what_php_computes(void **state)
{
    static const struct {
        uint64_t seed, bits;
    } columns[8] = {
        {3, 1u << 30},
        {61, 1u << 30},
        {7, 1u << 26},
        {29, 1u << 26},
        {31, 1000},
        {5, UINT64_C(1) << 62},
        {65537, UINT64_C(1) << 62},
        {4294967291u, UINT64_C(1) << 62},
    };
    static const struct {
        hibloom_item item;
        uint64_t out[8];
    } known[] = {
        {TEXT(""), {0u, 0u, 0u, 0u, 0u, 0u, 0u, 0u}},
        {TEXT("abc"), {1266u, 367014u, 5538u, 84518u, 98u, 3014u, 416630964518u, 4611682273215905792u}},
        {TEXT("1234567890"), {1461423u, 284360217u, 33026339u, 15432057u, 643u, 120239233u, 0u, 0u}},
        {TEXT("http://php.net"), {256290701u, 0u, 5568293u, 55443456u, 0u, 162168716621u, 0u, 0u}},
        {TEXT("a\0\n\xff\0"), {8712u, 269357518u, 235172u, 1513198u, 68u, 62150u, 109214833627627520u, 0u}},
        {TEXT("D\xc3\xbcsseldorf \xe5\xb8\x83\xe9\x9a\x86"),
         {287498386u, 0u, 33224130u, 0u, 0u, 88245290181854u, 0u, 0u}},
        {TEXT(URL), {0u, 0u, 0u, 0u, 0u, 0u, 0u, 0u}},
        {{all_ff, sizeof all_ff}, {0u, 0u, 0u, 0u, 0u, 0u, 0u, 0u}},
        {TEXT(ADDS_OVER), {324035268u, 0u, 33554432u, 0u, 0u, 0u, 0u, 0u}},
    };

    memset(all_ff, 0xff, sizeof all_ff);
    for (size_t i = 0; i < COUNT(known); i++) {
        for (size_t c = 0; c < COUNT(columns); c++) {
            const uint64_t seeds[2] = {columns[c].seed, 0};
            uint64_t out;

            indexes(HASH_POLY, columns[c].bits, 1, seeds, known[i].item, &out);
            assert_int_equal(out, known[i].out[c]);
        }
    }
}

/* 1,000 numbers: more than one generation of the 624 words. */
enum { DRAWS = 1000 };

struct draws {
    enum hash_id hash;
    uint64_t bits, first, second, third, last, all_xored;
};

static void assert_draws(const struct draws *known)
{
    const hibloom_item item = TEXT("test1");
    uint64_t out[DRAWS], all_xored = 0;

    indexes(known->hash, known->bits, DRAWS, NULL, item, out);
    for (size_t i = 0; i < DRAWS; i++)
        all_xored ^= out[i];
    assert_true(out[0] == known->first && out[1] == known->second && out[2] == known->third);
    assert_int_equal(out[DRAWS - 1], known->last);
    assert_int_equal(all_xored, known->all_xored);
}

/* By PHP 8.2; legacy: after mt_srand(crc32("test1"), MT_RAND_PHP), as PHP 5 drew. 3,000,000,000 and 3 * 2^60 reject a
 * quarter of the draws and more, and 2,362,646,007 is a draw itself, the least that is rejected:
 *   mt_srand(crc32("test1"));
 *   for ($i = 0; $i < 1000; $i++) $xored ^= $n[] = mt_rand(0, $bits - 1); */
static void php_mt_gives_what_php_draws(void **state)
{
    static const struct draws known[] = {
        {HASH_PHP_MT, 1u, 0u, 0u, 0u, 0u, 0u},
        {HASH_PHP_MT, 1000003u, 191442u, 638921u, 805740u, 819667u, 554530u},
        {HASH_PHP_MT, 2362646007u, 1405195657u, 152558689u, 1408269470u, 1561450398u, 3912282684u},
        {HASH_PHP_MT, 3000000000u, 1405195657u, 2362646007u, 2374812862u, 38416150u, 4118952742u},
        {HASH_PHP_MT, 4294967296u, 1405195657u, 2362646007u, 2374812862u, 478821101u, 3217720198u},
        {HASH_PHP_MT, 4294967297u, 3337516947u, 3615651059u, 531332558u, 603840529u, 530929017u},
        {HASH_PHP_MT, 9007199254740994u, 5380972656823485u, 2902489733839198u, 7297067718630618u, 5212542510062862u,
         3767586326778689u},
        {HASH_PHP_MT, 3458764513820540928u, 3229958305854100873u, 2741091063175103678u, 1844765715685796466u,
         3049847542578011836u, 3265957839111224202u},
        {HASH_PHP_MT, 4611686018427387904u, 924115296640406921u, 3894012567781950654u, 1844765715685796466u,
         4373704181059445976u, 3291395314312228483u},
        {HASH_PHP_MT_LEGACY, 1000003u, 677103u, 446366u, 449634u, 406105u, 141797u},
        {HASH_PHP_MT_LEGACY, 2147483648u, 1454063538u, 958561165u, 965580585u, 872101327u, 44743732u},
        {HASH_PHP_MT_LEGACY, 4294967296u, 2908127076u, 1917122330u, 1931161170u, 1744202654u, 89487464u},
        {HASH_PHP_MT_LEGACY, 9007199254740994u, 6098784513687552u, 4020496928604160u, 4049938509987840u,
         3657858084241408u, 187668814102528u},
        {HASH_PHP_MT_LEGACY, 4611686018427387904u, 3122577671008026624u, 2058494427445329920u, 2073568517113774080u,
         1872823339131600896u, 96086432820494336u},
    };

    for (size_t i = 0; i < COUNT(known); i++)
        assert_draws(&known[i]);
}

/* mt_rand(0, 999999) once, by PHP 8.2, of items that crc32 could trip over. */
static void php_mt_seeds_with_the_crc32_of_any_bytes(void **state)
{
    static const struct {
        hibloom_item item;
        uint64_t out, legacy;
    } known[] = {
        {TEXT(""), 136044u, 448865u},
        {TEXT("a\0b\nc"), 790566u, 936290u},
        {TEXT(URL), 870253u, 488276u},
        {{all_ff, sizeof all_ff}, 793689u, 182485u},
    };

    memset(all_ff, 0xff, sizeof all_ff);
    for (size_t i = 0; i < COUNT(known); i++) {
        uint64_t out;

        indexes(HASH_PHP_MT, 1000000, 1, NULL, known[i].item, &out);
        assert_int_equal(out, known[i].out);
        indexes(HASH_PHP_MT_LEGACY, 1000000, 1, NULL, known[i].item, &out);
        assert_int_equal(out, known[i].legacy);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_128_bit_value_gives_these_indexes),
        cmocka_unit_test(a_128_bit_value_gives_this_block_and_segment),
        cmocka_unit_test(xxh3_gives_the_vectors_of_xxhash),
        cmocka_unit_test(siphash_gives_the_official_vectors),
        cmocka_unit_test(murmur3_gives_smhashers_verification_value),
        cmocka_unit_test(one_step_gives_what_two_give),
        cmocka_unit_test(poly_gives_what_php_computes),
        cmocka_unit_test(php_mt_gives_what_php_draws),
        cmocka_unit_test(php_mt_seeds_with_the_crc32_of_any_bytes),
    };

    return cmocka_run_group_tests_name("hash", tests, NULL, NULL);
}
