/* rules.c: index rules of other programs and libraries. None is better than the default's (hash.c). */
#include "hash/hash.h"

/* ---- Each offset from a value of its own ------------------------------------------- */

/* The values are int32, as mmh3.hash gives them. Python's remainder has the sign of the divisor:
 * -1 % m is m - 1. The bit pattern ~h is -h - 1 without its overflow. */
void index_python_modulo(const uint64_t *values, const struct hasher *hasher, uint64_t *out)
{
    for (uint32_t i = 0; i < hasher->hashes; i++) {
        const uint32_t h = (uint32_t)values[i];
        out[i] = h <= INT32_MAX ? h % hasher->bits : hasher->bits - 1 - ~h % hasher->bits;
    }
}

/* If m is no power of two, most bits of the bitmap are never reached, as in the programs. */
void index_mask(const uint64_t *values, const struct hasher *hasher, uint64_t *out)
{
    for (uint32_t i = 0; i < hasher->hashes; i++)
        out[i] = values[i] & (hasher->bits - 1);
}

void index_modulo(const uint64_t *values, const struct hasher *hasher, uint64_t *out)
{
    for (uint32_t i = 0; i < hasher->hashes; i++)
        out[i] = values[i] % hasher->bits;
}

/* ---- All offsets from two values, by steps of the second ---------------------------
 *
 * Kirsch and Mitzenmacher, "Less hashing, same performance", 2008. If the step and m have a common divisor, an item
 * has fewer different offsets than k. */

/* rueidisprob and Orestes: the step is added modulo 2^64. */
void index_double(const uint64_t *values, const struct hasher *hasher, uint64_t *out)
{
    uint64_t h = values[0];

    for (uint32_t i = 0; i < hasher->hashes; i++, h += values[1])
        out[i] = h % hasher->bits;
}

/* RedisBloom counts the bits of a byte from its lowest one, SETBIT from its highest. */
void index_redisbloom(const uint64_t *values, const struct hasher *hasher, uint64_t *out)
{
    index_double(values, hasher, out);
    for (uint32_t i = 0; i < hasher->hashes; i++)
        out[i] ^= 7;
}

/* Redisson: the sign is masked, and the steps are the second value and the first in turn. */
void index_redisson(const uint64_t *values, const struct hasher *hasher, uint64_t *out)
{
    uint64_t h = values[0];

    for (uint32_t i = 0; i < hasher->hashes; i++) {
        out[i] = (h & INT64_MAX) % hasher->bits;
        h += values[i % 2 == 0 ? 1 : 0];
    }
}

/* taganaka's redis-bloomfilter: four words of 32 bits. The first two are the starts, the other
 * two the steps, in the order 2, 3, 3, 2. Nothing overflows. */
void index_taganaka(const uint64_t *values, const struct hasher *hasher, uint64_t *out)
{
    const uint64_t words[4] = {values[0] >> 32, values[0] & UINT32_MAX, values[1] >> 32, values[1] & UINT32_MAX};

    for (uint32_t i = 0; i < hasher->hashes; i++)
        out[i] = (words[i % 2] + i * words[2 + (i + i % 2) % 4 / 2]) % hasher->bits;
}
