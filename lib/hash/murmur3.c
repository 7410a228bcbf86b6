/* murmur3.c: MurmurHash3 x86 32-bit, one seed a hash. It is for sharing with Python programs
 * that index a bitmap with mmh3.hash(item, seed) % m.
 *
 * Never better than the default: it reads the item k times. 32 bits cannot reach every bit of a
 * bitmap above 2^32.
 *
 * The function is Appleby's MurmurHash3_x86_32, put by him in the public domain (SMHasher). Its
 * seeds have 32 bits at most. */
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

void digest_murmur3(const struct hasher *hasher, const void *item, size_t len, uint64_t *values)
{
    for (uint32_t i = 0; i < hasher->hashes; i++)
        values[i] = murmur3(item, len, (uint32_t)hasher->seeds[i]);
}

/* Orestes, "Murmur3KirschMitzenmacher": the first value seeds the second. */
void digest_murmur3_pair(const struct hasher *hasher, const void *item, size_t len, uint64_t *values)
{
    values[0] = murmur3(item, len, 0);
    values[1] = murmur3(item, len, (uint32_t)values[0]);
}

/* Orestes, "Murmur3": each value seeds the next, and is taken as an int32 without its sign. A
 * value that would make small remainders more likely is skipped. If no further value is good,
 * Orestes does not return. So no item that would need more is in its filters. */
#define CHAIN_MOST (1u << 16)

void digest_murmur3_chain(const struct hasher *hasher, const void *item, size_t len, uint64_t *values)
{
    const uint64_t largest = INT32_MAX - INT32_MAX % hasher->bits;
    uint32_t value = 0, found = 0;

    for (uint32_t i = 0; i < CHAIN_MOST && found < hasher->hashes; i++) {
        value = murmur3(item, len, value);
        const uint32_t size = value <= INT32_MAX ? value : 0 - value;
        if (size <= largest && size <= INT32_MAX)
            values[found++] = size;
    }
    while (found < hasher->hashes)
        values[found++] = 0;
}
