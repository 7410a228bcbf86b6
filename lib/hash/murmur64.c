/* murmur64.c: MurmurHash64A, for sharing with pyreBloom and RedisBloom.
 *
 * Never better than the default: it is slower. Items that collide for any seed are known, so it
 * is no help where an adversary chooses the items.
 *
 * The function is Appleby's, put by him in the public domain (SMHasher, MurmurHash2.cpp). */
#include "hash/hash.h"
#include "hash/load.h"

#define MULTIPLIER UINT64_C(0xc6a4a7935bd1e995)

static uint64_t murmur64(const unsigned char *bytes, size_t len, uint64_t seed)
{
    uint64_t h = seed ^ (uint64_t)len * MULTIPLIER;
    size_t at = 0;

    for (; len - at >= 8; at += 8) {
        uint64_t word = hash_load64(bytes + at) * MULTIPLIER;
        word ^= word >> 47;
        h = (h ^ word * MULTIPLIER) * MULTIPLIER;
    }
    if (at < len)
        h = (h ^ hash_load_rest(bytes, at, len)) * MULTIPLIER;
    h = (h ^ h >> 47) * MULTIPLIER;
    return h ^ h >> 47;
}

/* pyreBloom. */
void digest_murmur64(const struct hasher *hasher, const void *item, size_t len, uint64_t *values)
{
    for (uint32_t i = 0; i < hasher->hashes; i++)
        values[i] = murmur64(item, len, hasher->seeds[i]);
}

/* RedisBloom: the first value seeds the second. */
void digest_murmur64_pair(const struct hasher *hasher, const void *item, size_t len, uint64_t *values)
{
    values[0] = murmur64(item, len, MULTIPLIER);
    values[1] = murmur64(item, len, values[0]);
}
