/* double.c: index rules that take all offsets from two values by steps of the second. Other
 * libraries do so (Kirsch and Mitzenmacher, "Less hashing, same performance", 2008).
 *
 * Never better than the default's (spread.h). If the step and m have a common divisor, an item
 * has fewer different offsets than k. */
#include "hash/hash.h"

/* rueidisprob and Orestes: the step is added modulo 2^64. */
static uint32_t double_hashing(const uint64_t *values, const struct hasher *hasher, uint64_t *out)
{
    uint64_t h = values[0];

    for (uint32_t i = 0; i < hasher->hashes; i++, h += values[1])
        out[i] = h % hasher->bits;
    return 0;
}

/* RedisBloom counts the bits of a byte from its lowest one, SETBIT from its highest. */
static uint32_t redisbloom(const uint64_t *values, const struct hasher *hasher, uint64_t *out)
{
    (void)double_hashing(values, hasher, out);
    for (uint32_t i = 0; i < hasher->hashes; i++)
        out[i] ^= 7;
    return 0;
}

/* Redisson: the sign is masked, and the steps are the second value and the first in turn. */
static uint32_t redisson(const uint64_t *values, const struct hasher *hasher, uint64_t *out)
{
    uint64_t h = values[0];

    for (uint32_t i = 0; i < hasher->hashes; i++) {
        out[i] = (h & INT64_MAX) % hasher->bits;
        h += values[i % 2 == 0 ? 1 : 0];
    }
    return 0;
}

/* taganaka's redis-bloomfilter: four words of 32 bits. The first two are the starts, the other
 * two the steps, in the order 2, 3, 3, 2. Nothing overflows. */
static uint32_t taganaka(const uint64_t *values, const struct hasher *hasher, uint64_t *out)
{
    const uint64_t words[4] = {values[0] >> 32, values[0] & UINT32_MAX, values[1] >> 32, values[1] & UINT32_MAX};

    for (uint32_t i = 0; i < hasher->hashes; i++)
        out[i] = (words[i % 2] + i * words[2 + (i + i % 2) % 4 / 2]) % hasher->bits;
    return 0;
}

const struct index_rule index_double = {false, double_hashing};
const struct index_rule index_redisbloom = {false, redisbloom};
const struct index_rule index_redisson = {false, redisson};
const struct index_rule index_taganaka = {false, taganaka};
