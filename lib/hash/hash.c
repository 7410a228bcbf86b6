/* hash.c: the default's offsets, the table of hashes, and the way from an item to its offsets.
 *
 * A hash is added by its number in base/spec.h and its line here. */
#define XXH_INLINE_ALL
#include <xxhash.h>

/* 0.7.3 compiles, too. But in 0.8 XXH3 became another hash, so a filter of the one would deny items of the other. */
#if defined XXH_VERSION_NUMBER && XXH_VERSION_NUMBER < 800
#error "xxHash 0.8 or later is needed"
#endif

#include "hash/hash.h"

/* XXH3-128, the default: the fastest here that spreads evenly. Compiled in from the xxHash package's header. So the
 * library needs no xxHash at run time, and short items cost no call. The seed keeps two filters from sharing their
 * false positives. It does not make this a cryptographic hash: where an adversary chooses the items, take siphash. */
static inline void digest_xxh3(const struct hasher *hasher, const void *item, size_t len, uint64_t *values)
{
    const XXH128_hash_t h = XXH3_128bits_withSeed(item, len, hasher->seeds[0]);

    values[0] = h.low64;
    values[1] = h.high64;
}

/* ---- k offsets from one 128-bit value ---------------------------------------------
 *
 * 64 bits become an offset by multiply-high, h * m / 2^64 (Lemire, "Fast random integer generation in an
 * interval", 2019). There is no division, and every m is as even as 64 bits allow. It looks at the top bits of h
 * only, and that rules out the usual double hashing, lo + i * hi. Two items that agree in the top bits of both
 * halves would share all k offsets. No larger k takes away that false positive. A linear congruential step
 * instead carries the low bits of lo upwards with every offset. The multiplier is Knuth's for MMIX (TAOCP 2,
 * 3.3.4). The increment is the second half, made odd for the full period.
 *
 * In the blocked layout the first 64 bits choose the block. The top nine bits of those after them choose the bits
 * in there. The segment comes from hi. The offsets show only what the multiplications leave of hi. */

#ifdef __SIZEOF_INT128__
__extension__ typedef unsigned __int128 spread_uint128;

static inline uint64_t spread_below(uint64_t h, uint64_t bound)
{
    return (uint64_t)(((spread_uint128)h * bound) >> 64);
}
#else
/* The same where registers have 32 bits: from four products of halves. */
static inline uint64_t spread_below(uint64_t h, uint64_t bound)
{
    const uint64_t h_low = (uint32_t)h, h_high = h >> 32, low = (uint32_t)bound, high = bound >> 32;
    const uint64_t middle = h_high * low + (h_low * low >> 32), other = h_low * high + (uint32_t)middle;

    return h_high * high + (middle >> 32) + (other >> 32);
}
#endif

static inline uint64_t spread_next(uint64_t h, uint64_t hi)
{
    return h * 6364136223846793005u + (hi | 1);
}

static inline void spread(const uint64_t *values, const struct hasher *hasher, uint64_t *out)
{
    const uint64_t hi = values[1], bits = hasher->bits;
    const uint32_t hashes = hasher->hashes;
    uint64_t h = values[0];

    for (uint32_t i = 0; i < hashes; i++) {
        out[i] = spread_below(h, bits);
        h = spread_next(h, hi);
    }
}

static inline void spread_blocked(const uint64_t *values, const struct hasher *hasher, uint64_t *out)
{
    const uint64_t hi = values[1], block = spread_below(values[0], hasher->bits / SPEC_BLOCK_BITS);
    const uint32_t hashes = hasher->hashes;
    uint64_t h = values[0];

    for (uint32_t i = 0; i < hashes; i++) {
        h = spread_next(h, hi);
        out[i] = block * SPEC_BLOCK_BITS + spread_below(h, SPEC_BLOCK_BITS);
    }
}

/* The segment of an item, from the same value. */
static inline uint32_t segment_of(const uint64_t *values, const struct hasher *hasher)
{
    return (uint32_t)spread_below(values[1], hasher->segments);
}

/* ---- The table ---------------------------------------------------------------------- */

const struct hash hash_table[HASH_COUNT] = {
    [HASH_XXH3] = {"xxh3", SEEDING_KEY, {digest_xxh3}, .rule = spread, .blocked = spread_blocked, .key_bytes = 8},
    [HASH_SIPHASH] =
        {"siphash", SEEDING_KEY, {digest_siphash}, .rule = spread, .blocked = spread_blocked, .key_bytes = 16},
    [HASH_MURMUR3] = {"murmur3", SEEDING_PER_HASH, {digest_murmur3}, .rule = index_python_modulo},
    [HASH_POLY] = {"poly", SEEDING_PER_HASH, {digest_poly}, .rule = index_mask},
    [HASH_PHP_MT] = {"php-mt", SEEDING_NONE, {digest_crc32}, .rule = index_php_mt},
    [HASH_PHP_MT_LEGACY] = {"php-mt-legacy", SEEDING_NONE, {digest_crc32}, .rule = index_php_mt_legacy},
    [HASH_PYREBLOOM] = {"pyrebloom", SEEDING_PER_HASH, {digest_murmur64}, .rule = index_modulo, .keys = KEYS_PYREBLOOM},
    [HASH_SCRAPY_REDIS] = {"scrapy-redis", SEEDING_PER_HASH, {digest_poly64, digest_poly64_text}, .rule = index_mask},
    [HASH_GO_ZERO] = {"go-zero", SEEDING_NONE, {digest_go_zero}, .rule = index_modulo},
    [HASH_RUEIDIS] = {"rueidis", SEEDING_NONE, {digest_murmur3_128}, .rule = index_double, .keys = KEYS_RUEIDIS},
    [HASH_REDISSON] = {"redisson",
                       SEEDING_NONE,
                       {digest_highway, digest_highway, digest_highway_kryo5},
                       .rule = index_redisson,
                       .keys = KEYS_REDISSON},
    [HASH_BLOOMFILTER_RB] = {"bloomfilter-rb", SEEDING_PER_HASH, {digest_crc32_numbered}, .rule = index_modulo},
    [HASH_TAGANAKA] = {"taganaka", SEEDING_NONE, {digest_sha1}, .rule = index_taganaka},
    [HASH_ORESTES] = {"orestes", SEEDING_NONE, {digest_murmur3_pair}, .rule = index_double, .keys = KEYS_ORESTES},
    [HASH_ORESTES_MURMUR3] = {"orestes-murmur3",
                              SEEDING_NONE,
                              {digest_murmur3_chain},
                              .rule = index_modulo,
                              .most = INT32_MAX,
                              .keys = KEYS_ORESTES},
    [HASH_REDISBLOOM] = {"redisbloom", SEEDING_NONE, {digest_murmur64_pair}, .rule = index_redisbloom, .unit = 8},
};

/* ---- From an item to its offsets ------------------------------------------------------ */

uint32_t hasher_offsets(const struct hasher *hasher, const uint64_t *values, uint64_t *out)
{
    hasher->rule(values, hasher, out);
    return hasher->segments > 1 ? segment_of(values, hasher) : 0;
}

static uint32_t two_steps(const struct hasher *hasher, const void *item, size_t len, uint64_t *out)
{
    uint64_t values[HIBLOOM_HASHES_MAX];

    hasher->digest(hasher, item, len, values);
    return hasher_offsets(hasher, values, out);
}

/* The same with XXH3, the default, where the compiler makes one step of the two. */
__attribute__((flatten)) static uint32_t one_step(const struct hasher *hasher, const void *item, size_t len,
                                                  uint64_t *out)
{
    uint64_t values[2];

    digest_xxh3(hasher, item, len, values);
    if (hasher->rule == spread)
        spread(values, hasher, out);
    else
        spread_blocked(values, hasher, out);
    return segment_of(values, hasher);
}

void hasher_set(struct hasher *hasher, const struct hash *hash, enum codec codec, bool blocked)
{
    hasher->digest = hash->digest[codec];
    hasher->rule = blocked ? hash->blocked : hash->rule;
    hasher->indexes = hash == &hash_table[HASH_XXH3] ? one_step : two_steps;
}
