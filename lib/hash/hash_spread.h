/* hash_spread.h: k numbers in [0, m) from one 128-bit hash value, for every
 * hash that makes one.
 *
 * A number comes of 64 bits by multiply-high, h * m / 2^64: no division, and
 * every m is as even as 64 bits allow (Lemire, "Fast random integer generation
 * in an interval", 2019). It looks at the top bits of h only, and that rules
 * out the usual double hashing, lo + i * hi: two items that agree in the top
 * bits of both halves would share all k numbers, a false positive that no
 * larger k takes away. A linear congruential step instead carries the low bits
 * of lo upwards with every number, by Knuth's multiplier for MMIX (TAOCP 2,
 * 3.3.4); the increment is the second half, odd as full period wants it.
 *
 * In the blocked layout the first number picks the block, and those after it
 * the bits in there, by their top nine bits. The segment comes of hi, of which
 * the numbers only show what the multiplications leave of it. */
#ifndef HIBLOOM_HASH_SPREAD_H
#define HIBLOOM_HASH_SPREAD_H

#include "hash/hash.h"
#include "spec/spec.h"

__extension__ typedef unsigned __int128 hash_uint128;

static inline uint64_t hash_below(uint64_t h, uint64_t bound)
{
    return (uint64_t)(((hash_uint128)h * bound) >> 64);
}

static inline uint64_t hash_next(uint64_t h, uint64_t hi)
{
    return h * 6364136223846793005u + (hi | 1);
}

/* Returns the segment. */
static inline uint32_t hash_spread(const hibloom_spec *spec, uint64_t lo, uint64_t hi, uint64_t *out)
{
    const uint32_t hashes = spec->hashes;
    const uint64_t bits = spec_bitmap_bits(spec);
    const uint32_t segment = (uint32_t)hash_below(hi, spec_segments(spec));
    uint64_t h = lo;

    if (spec->layout == HIBLOOM_LAYOUT_BLOCKED) {
        const uint64_t block = hash_below(h, bits / HIBLOOM_BLOCK_BITS) * HIBLOOM_BLOCK_BITS;
        for (uint32_t i = 0; i < hashes; i++) {
            h = hash_next(h, hi);
            out[i] = block + hash_below(h, HIBLOOM_BLOCK_BITS);
        }
        return segment;
    }
    for (uint32_t i = 0; i < hashes; i++) {
        out[i] = hash_below(h, bits);
        h = hash_next(h, hi);
    }
    return segment;
}

#endif
