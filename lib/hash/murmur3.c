/* murmur3.c: MurmurHash3 x86 32-bit, one seed a hash, for sharing with Python
 * programs that index a bitmap with mmh3.hash(item, seed) % m.
 *
 * Never better than the default: it reads the item k times, and 32 bits cannot
 * reach every bit of a bitmap above 2^32.
 *
 * The function is Appleby's MurmurHash3_x86_32, put by him in the public domain
 * (SMHasher); seeds beyond 32 bits do not exist for it. */
#include "hash/hash.h"
#include "hash/load.h"

static inline uint32_t rotl(uint32_t x, unsigned n)
{
    return x << n | x >> (32 - n);
}

static inline uint32_t scramble(uint32_t word)
{
    return rotl(word * 0xcc9e2d51u, 15) * 0x1b873593u;
}

static uint32_t murmur3(const unsigned char *bytes, size_t len, uint32_t seed)
{
    uint32_t h = seed;
    size_t at = 0;

    for (; len - at >= 4; at += 4)
        h = rotl(h ^ scramble(hash_load32(bytes + at)), 13) * 5 + 0xe6546b64u;
    h ^= scramble((uint32_t)hash_load_rest(bytes, at, len));

    h ^= (uint32_t)len;
    h = (h ^ h >> 16) * 0x85ebca6bu;
    h = (h ^ h >> 13) * 0xc2b2ae35u;
    return h ^ h >> 16;
}

static void compute(const void *item, size_t len, const uint64_t *seeds, uint64_t *values)
{
    values[0] = murmur3(item, len, (uint32_t)seeds[0]);
}

const struct digest digest_murmur3 = {true, compute};
