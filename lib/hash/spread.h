/* spread.h: k offsets from one 128-bit value, for every digest that makes one.
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
#ifndef HIBLOOM_SPREAD_H
#define HIBLOOM_SPREAD_H

#include "hash/hash.h"

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

static inline uint32_t spread(const uint64_t *values, const struct hasher *hasher, uint64_t *out)
{
    const uint64_t hi = values[1], bits = hasher->bits;
    const uint32_t hashes = hasher->hashes;
    uint64_t h = values[0];

    for (uint32_t i = 0; i < hashes; i++) {
        out[i] = spread_below(h, bits);
        h = spread_next(h, hi);
    }
    return (uint32_t)spread_below(hi, hasher->segments);
}

static inline uint32_t spread_blocked(const uint64_t *values, const struct hasher *hasher, uint64_t *out)
{
    const uint64_t hi = values[1], block = spread_below(values[0], hasher->bits / HIBLOOM_BLOCK_BITS);
    const uint32_t hashes = hasher->hashes;
    uint64_t h = values[0];

    for (uint32_t i = 0; i < hashes; i++) {
        h = spread_next(h, hi);
        out[i] = block * HIBLOOM_BLOCK_BITS + spread_below(h, HIBLOOM_BLOCK_BITS);
    }
    return (uint32_t)spread_below(hi, hasher->segments);
}

#endif
