/* unit_hash.c: every hash against known answers: published vectors where there
 * are some, and for what PHP and Python compute, values that they computed.
 *
 * Whole filters are compared with both in share_php.c and share_python.c; what
 * is here tells which hash is wrong, and needs neither. */
#include "support/test.h"

#include <stdlib.h>
#include <string.h>

#include "hash/hash.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])
#define TEXT(literal) {literal, sizeof(literal) - 1}
#define URL "https://www.debian.org/doc/manuals/debian-reference/index.en.html"
#define FOX "The quick brown fox jumps over the lazy dog"

/* The digits to the base 5 of a number just below 2^63 / 5, and a byte 0xff: in
 * its step the multiplication by 5 fits and the addition overflows. */
#define ADDS_OVER "\1\1\0\4\3\3\2\4\0\1\3\0\4\4\2\2\4\3\4\3\1\0\3\1\0\2\0\xff"

static unsigned char all_ff[400];

/* What is under test has its own ideas of k and m, which no valid spec has:
 * m = 2^63, that shows nearly all of 64 bits, and more than 128 numbers. */
static void numbers(hibloom_hash hash, uint64_t bits, uint32_t hashes, const uint64_t seeds[2], hibloom_item item,
                    uint64_t *out)
{
    hibloom_spec spec = {.bits = bits, .hashes = hashes, .hash = hash};

    if (seeds != NULL)
        memcpy(spec.seeds, seeds, 2 * sizeof seeds[0]);
    hash_by_id(hash)->numbers(&spec, item.data, item.len, out);
}

/* The two numbers that tell a 128-bit value, by the rule in hash_spread.h. */
static void assert_spread(hibloom_hash hash, const uint64_t seeds[2], hibloom_item item, uint64_t lo, uint64_t hi)
{
    uint64_t out[2];

    numbers(hash, UINT64_C(1) << 63, 2, seeds, item, out);
    assert_int_equal(out[0], lo >> 1);
    assert_int_equal(out[1], (lo * 6364136223846793005u + (hi | 1)) >> 1);
}

static void each_hash_is_found_by_its_name_and_number(void **state)
{
    static const char *const names[] = {"xxh3", "siphash", "murmur3", "poly", "php-mt", "php-mt-legacy"};

    (void)state;
    for (size_t i = 0; i < COUNT(names); i++) {
        hibloom_hash id = (hibloom_hash)99;
        const struct hash *hash = hash_by_name(names[i], strlen(names[i]), &id);

        assert_non_null(hash);
        assert_string_equal(hash->name, names[i]);
        assert_int_equal(id, i);
        assert_ptr_equal(hash_by_id(id), hash);
    }
}

static void other_names_and_numbers_are_no_hash(void **state)
{
    hibloom_hash id = (hibloom_hash)99;

    (void)state;
    assert_null(hash_by_name("", 0, &id));
    assert_null(hash_by_name("xxh", 3, &id));
    assert_null(hash_by_name("xxh32", 5, &id));
    assert_null(hash_by_name("XXH3", 4, &id));
    assert_null(hash_by_name("php-mt-", 7, &id));
    assert_int_equal(id, 99);
    assert_ptr_equal(hash_by_name("php-mt-legacy", 6, &id), hash_by_id(HIBLOOM_HASH_PHP_MT));
    assert_null(hash_by_id((hibloom_hash)6));
    assert_null(hash_by_id((hibloom_hash)-1));
}

/* The first numbers of the empty item's XXH3-128, 99aa06d3014798d8 6001c324468d497f,
 * worked out with Python's unbounded integers from the rule. Were they to
 * change, no filter that is stored would be readable any more. */
static void a_128_bit_value_gives_these_numbers(void **state)
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
        {4611686018427387904u,
         {1729506265796923999u, 3114893510635921739u, 544907520990016869u, 1463607685817435074u}},
    };
    const hibloom_item empty = {NULL, 0};

    (void)state;
    for (size_t i = 0; i < COUNT(known); i++) {
        uint64_t out[4];

        numbers(HIBLOOM_HASH_XXH3, known[i].bits, 4, NULL, empty, out);
        assert_memory_equal(out, known[i].out, sizeof out);
    }
}

/* xxHash's own sanity vectors (cli/xsum_sanity_check.c, XXH128), at least one of
 * every length class it tells apart, over its generated buffer. */
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
        {6, prime32, 0x269D8F70BE98856Eu, 0x5A865B5389ABD2B1u},
        {12, prime32, 0x9BE9F9A67F3C7DFBu, 0xD7E09D518A3405D3u},
        {24, prime32, 0xD7304C54EBAD40A9u, 0x3162026714A6A243u},
        {48, prime32, 0x7BA3C3E453A1934Eu, 0x163ADDE36C072295u},
        {81, 0, 0x5E8BAFB9F95FB803u, 0x4952F58181AB0042u},
        {81, prime32, 0x703FBB3D7A5F755Cu, 0x2724EC7ADC750FB6u},
        {222, prime32, 0xAE995BB8AF917A8Du, 0x91820016621E97F1u},
        {403, prime64, 0x6259F6ECFD6443FDu, 0xBED311971E0BE8F2u},
        {512, prime64, 0x3CE457DE14C27708u, 0x925D06B8EC5B8040u},
        {2048, prime32, 0x230D43F30206260Bu, 0x7FB03F7E7186C3EAu},
        {2240, prime32, 0xED385111126FBA6Fu, 0x50A1FE17B338995Fu},
        {LONGEST, 0, 0xCB37AEB9E5D361EDu, 0xE89C0F6FF369B427u},
        {LONGEST, prime32, 0x6F5360AE69C2F406u, 0xD23AAE4B76C31ECBu},
    };
    unsigned char buffer[LONGEST];
    uint64_t generator = prime32;

    (void)state;
    for (size_t i = 0; i < LONGEST; i++, generator *= prime64)
        buffer[i] = (unsigned char)(generator >> 56);
    for (size_t i = 0; i < COUNT(known); i++) {
        const hibloom_item item = {buffer, known[i].len};
        const uint64_t seeds[2] = {known[i].seed, 0};

        assert_spread(HIBLOOM_HASH_XXH3, seeds, item, known[i].lo, known[i].hi);
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

/* vectors_sip128 of the reference implementation (veorq/SipHash, vectors.h):
 * key 00 01 .. 0f, and of item number n the bytes 00 01 .. n-1. */
static void siphash_gives_the_official_vectors(void **state)
{
    static const char *const known[64] = {
        "a3817f04ba25a8e66df67214c7550293", "da87c1d86b99af44347659119b22fc45",
        "8177228da4a45dc7fca38bdef60affe4", "9c70b60c5267a94e5f33b6b02985ed51",
        "f88164c12d9c8faf7d0f6e7c7bcd5579", "1368875980776f8854527a07690e9627",
        "14eeca338b208613485ea0308fd7a15e", "a1f1ebbed8dbc153c0b84aa61ff08239",
        "3b62a9ba6258f5610f83e264f31497b4", "264499060ad9baabc47f8b02bb6d71ed",
        "00110dc378146956c95447d3f3d0fbba", "0151c568386b6677a2b4dc6f81e5dc18",
        "d626b266905ef35882634df68532c125", "9869e247e9c08b10d029934fc4b952f7",
        "31fcefac66d7de9c7ec7485fe4494902", "5493e99933b0a8117e08ec0f97cfc3d9",
        "6ee2a4ca67b054bbfd3315bf85230577", "473d06e8738db89854c066c47ae47740",
        "a426e5e423bf4885294da481feaef723", "78017731cf65fab074d5208952512eb1",
        "9e25fc833f2290733e9344a5e83839eb", "568e495abe525a218a2214cd3e071d12",
        "4a29b54552d16b9a469c10528eff0aae", "c9d184ddd5a9f5e0cf8ce29a9abf691c",
        "2db479ae78bd50d8882a8a178a6132ad", "8ece5f042d5e447b5051b9eacb8d8f6f",
        "9c0b53b4b3c307e87eaee08678141f66", "abf248af69a6eae4bfd3eb2f129eeb94",
        "0664da1668574b88b935f3027358aef4", "aa4b9dc4bf337de90cd4fd3c467c6ab7",
        "ea5c7f471faf6bde2b1ad7d4686d2287", "2939b0183223fafc1723de4f52c43d35",
        "7c3956ca5eeafc3e363e9d556546eb68", "77c6077146f01c32b6b69d5f4ea9ffcf",
        "37a6986cb8847edf0925f0f1309b54de", "a705f0e69da9a8f907241a2e923c8cc8",
        "3dc47d1f29c448461e9e76ed904f6711", "0d62bf01e6fc0e1a0d3c4751c5d3692b",
        "8c03468bca7c669ee4fd5e084bbee7b5", "528a5bb93baf2c9c4473cce5d0d22bd9",
        "df6a301e95c95dad97ae0cc8c6913bd8", "801189902c857f39e73591285e70b6db",
        "e617346ac9c231bb3650ae34ccca0c5b", "27d93437efb721aa401821dcec5adf89",
        "89237d9ded9c5e78d8b1c9b166cc7342", "4a6d8091bf5e7d651189fa94a250b14c",
        "0e33f96055e7ae893ffc0e3dcf492902", "e61c432b720b19d18ec8d84bdc63151b",
        "f7e5aef549f782cf379055a608269b16", "438d030fd0b7a54fa837f2ad201a6403",
        "a590d3ee4fbf04e3247e0d27f286423f", "5fe2c1a172fe93c4b15cd37caef9f538",
        "2c97325cbd06b36eb2133dd08b3a017c", "92c814227a6bca949ff0659f002ad39e",
        "dce850110bd8328cfbd50841d6911d87", "67f14984c7da791248e32bb5922583da",
        "1938f2cf72d54ee97e94166fa91d2a36", "74481e9646ed49fe0f6224301604698e",
        "57fca5de98a9d6d8006438d0583d8a1d", "9fecde1cefdc1cbed4763674d9575359",
        "e3040c00eb28f15366ca73cbd872e740", "7697009a6a831dfecca91c5993670f7a",
        "5853542321f567a005d547a4f04759bd", "5150d1772f50834a503e069a973fbd7c",
    };
    const uint64_t key[2] = {0x0706050403020100u, 0x0f0e0d0c0b0a0908u};
    unsigned char bytes[COUNT(known)];

    (void)state;
    for (size_t len = 0; len < COUNT(known); len++) {
        const hibloom_item item = {bytes, len};

        assert_spread(HIBLOOM_HASH_SIPHASH, key, item, word_of_hex(known[len]), word_of_hex(known[len] + 16));
        bytes[len] = (unsigned char)len;
    }
}

static uint32_t murmur3(hibloom_item item, uint32_t seed)
{
    const uint64_t seeds[2] = {seed, 0};
    uint64_t out;

    /* A multiple of 2^32 as m keeps the low 32 bits as they are. */
    numbers(HIBLOOM_HASH_MURMUR3, UINT64_C(1) << 40, 1, seeds, item, &out);
    return (uint32_t)out;
}

/* A collection of vectors that many implementations share ("MurmurHash3 test
 * vectors", Stack Overflow 14747343); the same from python3-murmurhash. */
static void murmur3_gives_the_public_vectors(void **state)
{
    static const struct {
        hibloom_item item;
        uint32_t seed, out;
    } known[] = {
        {TEXT(""), 0, 0},
        {TEXT(""), 1, 0x514E28B7u},
        {TEXT(""), 0xffffffffu, 0x81F16F39u},
        {TEXT("\xff\xff\xff\xff"), 0, 0x76293B50u},
        {TEXT("\x21\x43\x65\x87"), 0, 0xF55B516Bu},
        {TEXT("\x21\x43\x65\x87"), 0x5082EDEEu, 0x2362F9DEu},
        {TEXT("\x21\x43\x65"), 0, 0x7E4A8634u},
        {TEXT("\x21\x43"), 0, 0xA0F7B07Au},
        {TEXT("\x21"), 0, 0x72661CF4u},
        {TEXT("\0\0\0\0"), 0, 0x2362F9DEu},
        {TEXT("\0\0\0"), 0, 0x85F0B427u},
        {TEXT("\0\0"), 0, 0x30F4C306u},
        {TEXT("\0"), 0, 0x514E28B7u},
        {TEXT("aaaa"), 0x9747b28cu, 0x5A97808Au},
        {TEXT("abc"), 0x9747b28cu, 0xC84A62DDu},
        {TEXT("Hello, world!"), 0x9747b28cu, 0x24884CBAu},
        {TEXT(FOX), 0x9747b28cu, 0x2FA826CDu},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(known); i++)
        assert_int_equal(murmur3(known[i].item, known[i].seed), known[i].out);
}

/* SMHasher's verification value of MurmurHash3_x86_32: the items of 0 to 255
 * bytes 00 01 .. with seeds 256 down to 1, and the hash of their hashes. */
static void murmur3_gives_smhashers_verification_value(void **state)
{
    unsigned char bytes[256], hashes[4 * 256];

    (void)state;
    for (uint32_t len = 0; len < 256; len++) {
        const uint32_t h = murmur3((hibloom_item){bytes, len}, 256 - len);

        for (unsigned i = 0; i < 4; i++)
            hashes[4 * len + i] = (unsigned char)(h >> 8 * i);
        bytes[len] = (unsigned char)len;
    }
    assert_int_equal(murmur3((hibloom_item){hashes, sizeof hashes}, 0), 0xB0F57EE3u);
}

/* By Python, of b"test1" and the seeds 17 and 18, the second hash being negative:
 *   murmurhash.hash_bytes(b"test1", seed) % m */
static void murmur3_is_taken_modulo_m_as_python_does(void **state)
{
    static const struct {
        uint64_t bits, out[2];
    } known[] = {
        {1u, {0u, 0u}},
        {2u, {1u, 1u}},
        {10u, {5u, 9u}},
        {1000003u, {992220u, 447699u}},
        {600000001u, {305993135u, 70444311u}},
        {2147483648u, {305993135u, 1017927957u}},
        {2147483649u, {305993135u, 1017927958u}},
        {3000000000u, {305993135u, 1870444309u}},
        {4294967296u, {305993135u, 3165411605u}},
        {4294967297u, {305993135u, 3165411606u}},
        {10000000000u, {305993135u, 8870444309u}},
        {4611686018427387904u, {305993135u, 4611686017297832213u}},
    };
    const uint64_t seeds[2] = {17, 18};
    const hibloom_item item = TEXT("test1");

    (void)state;
    for (size_t i = 0; i < COUNT(known); i++) {
        uint64_t out[2];

        numbers(HIBLOOM_HASH_MURMUR3, known[i].bits, 2, seeds, item, out);
        assert_memory_equal(out, known[i].out, sizeof out);
    }
}

/* By PHP 8.2, a column for each seed and size:
 *   $r = 0;
 *   for ($i = 0; $i < strlen($item); $i++) $r = $seed * $r + ord($item[$i]);
 *   echo ($bits - 1) & $r; */
static void poly_gives_what_php_computes(void **state)
{
    static const struct {
        uint64_t seed, bits;
    } columns[8] = {
        {3, 1u << 30}, {61, 1u << 30}, {7, 1u << 26}, {29, 1u << 26}, {31, 1000},
        {5, UINT64_C(1) << 62}, {65537, UINT64_C(1) << 62}, {4294967291u, UINT64_C(1) << 62},
    };
    static const struct {
        hibloom_item item;
        uint64_t out[8];
    } known[] = {
        {TEXT(""), {0u, 0u, 0u, 0u, 0u, 0u, 0u, 0u}},
        {TEXT("0"), {48u, 48u, 48u, 48u, 32u, 48u, 48u, 48u}},
        {TEXT("ab"), {389u, 6015u, 777u, 2911u, 33u, 583u, 6357187u, 416611827325u}},
        {TEXT("abc"), {1266u, 367014u, 5538u, 84518u, 98u, 3014u, 416630964518u, 4611682273215905792u}},
        {TEXT("1234567890"), {1461423u, 284360217u, 33026339u, 15432057u, 643u, 120239233u, 0u, 0u}},
        {TEXT("http://php.net"), {256290701u, 0u, 5568293u, 55443456u, 0u, 162168716621u, 0u, 0u}},
        {TEXT("http://php.net/"), {768872150u, 0u, 38978098u, 62914560u, 0u, 810843583152u, 0u, 0u}},
        {TEXT("http://php.net/a"), {159132899u, 0u, 4411327u, 0u, 0u, 4054217915857u, 0u, 0u}},
        {TEXT("http://www.php.net"), {359211154u, 0u, 20844422u, 0u, 0u, 101355548325996u, 0u, 0u}},
        {TEXT("http://www.php.net/"), {3891685u, 0u, 11693273u, 0u, 0u, 506777741630027u, 0u, 0u}},
        {TEXT("http://www.php.net/a"), {11675152u, 0u, 14744144u, 0u, 0u, 2533888708150232u, 0u, 0u}},
        {TEXT("a\0\n\xff\0"), {8712u, 269357518u, 235172u, 1513198u, 68u, 62150u, 109214833627627520u, 0u}},
        {TEXT("D\xc3\xbcsseldorf \xe5\xb8\x83\xe9\x9a\x86"),
         {287498386u, 0u, 33224130u, 0u, 0u, 88245290181854u, 0u, 0u}},
        {TEXT(URL), {0u, 0u, 0u, 0u, 0u, 0u, 0u, 0u}},
        {{all_ff, sizeof all_ff}, {0u, 0u, 0u, 0u, 0u, 0u, 0u, 0u}},
        {TEXT(ADDS_OVER), {324035268u, 0u, 33554432u, 0u, 0u, 0u, 0u, 0u}},
    };

    (void)state;
    memset(all_ff, 0xff, sizeof all_ff);
    for (size_t i = 0; i < COUNT(known); i++) {
        for (size_t c = 0; c < COUNT(columns); c++) {
            const uint64_t seeds[2] = {columns[c].seed, 0};
            uint64_t out;

            numbers(HIBLOOM_HASH_POLY, columns[c].bits, 1, seeds, known[i].item, &out);
            assert_int_equal(out, known[i].out[c]);
        }
    }
}

/* 1,000 numbers: more than one generation of the 624 words. */
enum { DRAWS = 1000 };

struct draws {
    uint64_t bits, first[3], last, all_xored;
};

static void assert_draws(hibloom_hash hash, const struct draws *known)
{
    const hibloom_item item = TEXT("test1");
    uint64_t out[DRAWS], all_xored = 0;

    numbers(hash, known->bits, DRAWS, NULL, item, out);
    for (size_t i = 0; i < DRAWS; i++)
        all_xored ^= out[i];
    assert_memory_equal(out, known->first, sizeof known->first);
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
        {1u, {0u, 0u, 0u}, 0u, 0u},
        {2u, {1u, 1u, 0u}, 1u, 0u},
        {3u, {1u, 0u, 1u}, 2u, 1u},
        {10u, {7u, 7u, 2u}, 1u, 10u},
        {1000u, {657u, 7u, 862u}, 101u, 862u},
        {1000003u, {191442u, 638921u, 805740u}, 819667u, 554530u},
        {67108864u, {63018377u, 13835767u, 26002622u}, 9059053u, 63603590u},
        {2147483647u, {1405195657u, 215162360u, 227329215u}, 478821101u, 1070237139u},
        {2147483648u, {1405195657u, 215162359u, 227329214u}, 478821101u, 1070236550u},
        {2147483649u, {1405195657u, 152558689u, 1408269470u}, 416281420u, 952451857u},
        {2362646007u, {1405195657u, 152558689u, 1408269470u}, 1561450398u, 3912282684u},
        {3000000000u, {1405195657u, 2362646007u, 2374812862u}, 38416150u, 4118952742u},
        {4294967295u, {1405195657u, 2362646007u, 2374812862u}, 478821101u, 3217720198u},
        {4294967296u, {1405195657u, 2362646007u, 2374812862u}, 478821101u, 3217720198u},
        {4294967297u, {3337516947u, 3615651059u, 531332558u}, 603840529u, 530929017u},
        {10000000000u, {3495182729u, 4636726462u, 967960178u}, 9486833880u, 4973719171u},
        {1099511627776u, {1062262117769u, 878548141246u, 708556712562u}, 857394406616u, 659495005827u},
        {9007199254740994u, {5380972656823485u, 2902489733839198u, 7297067718630618u},
         5212542510062862u, 3767586326778689u},
        {2305843009213693953u, {924115296640406917u, 1588169558568256697u, 1844765715685796460u},
         1509444631291844458u, 1012977732405307402u},
        {3458764513820540928u, {3229958305854100873u, 2741091063175103678u, 1844765715685796466u},
         3049847542578011836u, 3265957839111224202u},
        {4611686018427387903u, {924115296640406923u, 3894012567781950656u, 1844765715685796469u},
         4373704181059445977u, 3291395314312230101u},
        {4611686018427387904u, {924115296640406921u, 3894012567781950654u, 1844765715685796466u},
         4373704181059445976u, 3291395314312228483u},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(known); i++)
        assert_draws(HIBLOOM_HASH_PHP_MT, &known[i]);
}

/* By PHP 8.2, as above after mt_srand(crc32("test1"), MT_RAND_PHP). */
static void php_mt_legacy_gives_what_php_5_drew(void **state)
{
    static const struct draws known[] = {
        {1u, {0u, 0u, 0u}, 0u, 0u},
        {2u, {1u, 0u, 0u}, 0u, 0u},
        {3u, {2u, 1u, 1u}, 1u, 3u},
        {10u, {6u, 4u, 4u}, 4u, 14u},
        {1000u, {677u, 446u, 449u}, 406u, 718u},
        {1000003u, {677103u, 446366u, 449634u}, 406105u, 141797u},
        {67108864u, {45439485u, 29955036u, 30174393u}, 27253166u, 1398241u},
        {2147483647u, {1454063537u, 958561164u, 965580584u}, 872101326u, 44745504u},
        {2147483648u, {1454063538u, 958561165u, 965580585u}, 872101327u, 44743732u},
        {2147483649u, {1454063538u, 958561165u, 965580585u}, 872101327u, 44743732u},
        {2362646007u, {1599750207u, 1054602073u, 1062324789u}, 959479584u, 4196828774u},
        {3000000000u, {2031303296u, 1339094478u, 1348900494u}, 1218311479u, 3065501736u},
        {4294967295u, {2908127075u, 1917122329u, 1931161169u}, 1744202653u, 89491008u},
        {4294967296u, {2908127076u, 1917122330u, 1931161170u}, 1744202654u, 89487464u},
        {4294967297u, {2908127076u, 1917122330u, 1931161170u}, 1744202654u, 89487464u},
        {10000000000u, {6771010989u, 4463648260u, 4496334982u}, 4061038265u, 14120830576u},
        {1099511627776u, {744480531456u, 490783316480u, 494377259520u}, 446515879424u, 22908790784u},
        {9007199254740994u, {6098784513687552u, 4020496928604160u, 4049938509987840u},
         3657858084241408u, 187668814102528u},
        {2305843009213693953u, {1561288835504013312u, 1029247213722664960u, 1036784258556887040u},
         936411669565800448u, 48043216410247168u},
        {3458764513820540928u, {2341933253256019968u, 1543870820583997440u, 1555176387835330560u},
         1404617504348700672u, 3613761525526822912u},
        {4611686018427387903u, {3122577671008026624u, 2058494427445329920u, 2073568517113774080u},
         1872823339131600896u, 96086432820494336u},
        {4611686018427387904u, {3122577671008026624u, 2058494427445329920u, 2073568517113774080u},
         1872823339131600896u, 96086432820494336u},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(known); i++)
        assert_draws(HIBLOOM_HASH_PHP_MT_LEGACY, &known[i]);
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

    (void)state;
    memset(all_ff, 0xff, sizeof all_ff);
    for (size_t i = 0; i < COUNT(known); i++) {
        uint64_t out;

        numbers(HIBLOOM_HASH_PHP_MT, 1000000, 1, NULL, known[i].item, &out);
        assert_int_equal(out, known[i].out);
        numbers(HIBLOOM_HASH_PHP_MT_LEGACY, 1000000, 1, NULL, known[i].item, &out);
        assert_int_equal(out, known[i].legacy);
    }
}

/* Each item also at every address modulo 8, and at the end of its own memory,
 * where sanitizers see a read past it. */
static void numbers_depend_on_the_bytes_alone(void **state)
{
    enum { LONGEST = 300, HASHES = 4 };
    const uint64_t seeds[2] = {31, 17};
    unsigned char bytes[LONGEST];
    struct test_random random = test_random_new();

    (void)state;
    test_random_bytes(&random, bytes, sizeof bytes);
    for (int hash = 0; hash_by_id((hibloom_hash)hash) != NULL; hash++) {
        for (size_t len = 1; len <= LONGEST; len++) {
            const size_t shift = len % 8;
            unsigned char *copy = malloc(shift + len);
            uint64_t expected[HASHES], out[HASHES];

            assert_non_null(copy);
            memcpy(copy + shift, bytes, len);
            numbers((hibloom_hash)hash, 1000003, HASHES, seeds, (hibloom_item){bytes, len}, expected);
            numbers((hibloom_hash)hash, 1000003, HASHES, seeds, (hibloom_item){copy + shift, len}, out);
            assert_memory_equal(out, expected, sizeof out);
            free(copy);
        }
    }
}

static void numbers_are_below_m(void **state)
{
    static const uint64_t sizes[] = {1, 2, 3, 1000003, (UINT64_C(1) << 32) - 1, UINT64_C(1) << 32,
                                     (UINT64_C(1) << 32) + 1, (UINT64_C(1) << 62) - 1, UINT64_C(1) << 62};
    enum { HASHES = 128 };
    const uint64_t seeds[2] = {4294967295u, 4294967295u};

    (void)state;
    for (int hash = 0; hash_by_id((hibloom_hash)hash) != NULL; hash++) {
        for (size_t i = 0; i < COUNT(sizes); i++) {
            for (uint64_t n = 0; n < 200; n++) {
                uint64_t out[HASHES];

                numbers((hibloom_hash)hash, sizes[i], HASHES, seeds, (hibloom_item){&n, sizeof n}, out);
                for (size_t k = 0; k < HASHES; k++)
                    assert_true(out[k] < sizes[i]);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_hash_is_found_by_its_name_and_number),
        cmocka_unit_test(other_names_and_numbers_are_no_hash),
        cmocka_unit_test(a_128_bit_value_gives_these_numbers),
        cmocka_unit_test(xxh3_gives_the_vectors_of_xxhash),
        cmocka_unit_test(siphash_gives_the_official_vectors),
        cmocka_unit_test(murmur3_gives_the_public_vectors),
        cmocka_unit_test(murmur3_gives_smhashers_verification_value),
        cmocka_unit_test(murmur3_is_taken_modulo_m_as_python_does),
        cmocka_unit_test(poly_gives_what_php_computes),
        cmocka_unit_test(php_mt_gives_what_php_draws),
        cmocka_unit_test(php_mt_legacy_gives_what_php_5_drew),
        cmocka_unit_test(php_mt_seeds_with_the_crc32_of_any_bytes),
        cmocka_unit_test(numbers_depend_on_the_bytes_alone),
        cmocka_unit_test(numbers_are_below_m),
    };

    return cmocka_run_group_tests_name("hash", tests, NULL, NULL);
}
