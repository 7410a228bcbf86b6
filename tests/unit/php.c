/* php.c: the hashes of PHP programs, against values that PHP 8.2 computed. Whole
 * filters are compared with PHP itself in share/peers.c. */
#include "unit/indexes.h"
#include "spec/spec.h"

#include <string.h>

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
    uint64_t bits, first, second, third, last, all_xored;
};

static void assert_draws(enum hash_id hash, const struct draws *known)
{
    const hibloom_item item = TEXT("test1");
    uint64_t out[DRAWS], all_xored = 0;

    indexes(hash, known->bits, DRAWS, NULL, item, out);
    for (size_t i = 0; i < DRAWS; i++)
        all_xored ^= out[i];
    assert_true(out[0] == known->first && out[1] == known->second && out[2] == known->third);
    assert_int_equal(out[DRAWS - 1], known->last);
    assert_int_equal(all_xored, known->all_xored);
}

/* By PHP 8.2. 3,000,000,000 and 3 * 2^60 reject a quarter of the draws and more,
 * and 2,362,646,007 is a draw itself, the least that is rejected:
 *   mt_srand(crc32("test1"));
 *   for ($i = 0; $i < 1000; $i++) $xored ^= $n[] = mt_rand(0, $bits - 1); */
static void php_mt_gives_what_php_draws(void **state)
{
    static const struct draws known[] = {
        {1u, 0u, 0u, 0u, 0u, 0u},
        {1000003u, 191442u, 638921u, 805740u, 819667u, 554530u},
        {67108864u, 63018377u, 13835767u, 26002622u, 9059053u, 63603590u},
        {2362646007u, 1405195657u, 152558689u, 1408269470u, 1561450398u, 3912282684u},
        {3000000000u, 1405195657u, 2362646007u, 2374812862u, 38416150u, 4118952742u},
        {4294967295u, 1405195657u, 2362646007u, 2374812862u, 478821101u, 3217720198u},
        {4294967296u, 1405195657u, 2362646007u, 2374812862u, 478821101u, 3217720198u},
        {4294967297u, 3337516947u, 3615651059u, 531332558u, 603840529u, 530929017u},
        {9007199254740994u, 5380972656823485u, 2902489733839198u, 7297067718630618u, 5212542510062862u,
         3767586326778689u},
        {3458764513820540928u, 3229958305854100873u, 2741091063175103678u, 1844765715685796466u, 3049847542578011836u,
         3265957839111224202u},
        {4611686018427387904u, 924115296640406921u, 3894012567781950654u, 1844765715685796466u, 4373704181059445976u,
         3291395314312228483u},
    };

    for (size_t i = 0; i < COUNT(known); i++)
        assert_draws(HASH_PHP_MT, &known[i]);
}

/* By PHP 8.2, as above after mt_srand(crc32("test1"), MT_RAND_PHP). */
static void php_mt_legacy_gives_what_php_5_drew(void **state)
{
    static const struct draws known[] = {
        {1u, 0u, 0u, 0u, 0u, 0u},
        {1000003u, 677103u, 446366u, 449634u, 406105u, 141797u},
        {2147483648u, 1454063538u, 958561165u, 965580585u, 872101327u, 44743732u},
        {3000000000u, 2031303296u, 1339094478u, 1348900494u, 1218311479u, 3065501736u},
        {4294967296u, 2908127076u, 1917122330u, 1931161170u, 1744202654u, 89487464u},
        {4294967297u, 2908127076u, 1917122330u, 1931161170u, 1744202654u, 89487464u},
        {9007199254740994u, 6098784513687552u, 4020496928604160u, 4049938509987840u, 3657858084241408u,
         187668814102528u},
        {4611686018427387904u, 3122577671008026624u, 2058494427445329920u, 2073568517113774080u, 1872823339131600896u,
         96086432820494336u},
    };

    for (size_t i = 0; i < COUNT(known); i++)
        assert_draws(HASH_PHP_MT_LEGACY, &known[i]);
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
        cmocka_unit_test(poly_gives_what_php_computes),
        cmocka_unit_test(php_mt_gives_what_php_draws),
        cmocka_unit_test(php_mt_legacy_gives_what_php_5_drew),
        cmocka_unit_test(php_mt_seeds_with_the_crc32_of_any_bytes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
