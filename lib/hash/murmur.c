/* murmur.c: Appleby's MurmurHash in three forms, for sharing with other programs and libraries. He put it in the
 * public domain (SMHasher).
 *
 * Never better than the default: slower, or it reads the item k times. Items that collide for any seed are known, so
 * it is no help where an adversary chooses the items. */
#include "hash/hash.h"
#include "hash/load.h"

#include <string.h>

/* ---- MurmurHash3 x86 32-bit ---------------------------------------------------
 *
 * One seed a hash, of 32 bits at most: of Python programs that index a bitmap with mmh3.hash(item, seed) % m. 32 bits
 * cannot reach every bit of a bitmap above 2^32. */

static inline uint32_t scramble(uint32_t word)
{
    return hash_rotl32(word * 0xcc9e2d51u, 15) * 0x1b873593u;
}

static uint32_t murmur3(const unsigned char *bytes, size_t len, uint32_t seed)
{
    uint32_t h = seed;
    size_t at = 0;

    for (; len - at >= 4; at += 4)
        h = hash_rotl32(h ^ scramble(hash_load32(bytes + at)), 13) * 5 + 0xe6546b64u;
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

/* ---- MurmurHash64A ------------------------------------------------------------ */

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

/* ---- MurmurHash3 x64 128-bit with seed 0 ----------------------------------------
 *
 * go-zero hashes the item with one more byte behind it, another one for each of its hashes. So the blocks of the item
 * are read once, and only the end is different. */

enum { BLOCK = 16 };

struct murmur3_128 {
    uint64_t h1, h2;
    unsigned char rest[BLOCK]; /* less than a block */
    size_t len;                /* of all */
};

static inline uint64_t scramble1(uint64_t word)
{
    return hash_rotl64(word * 0x87c37b91114253d5u, 31) * 0x4cf5ad432745937fu;
}

static inline uint64_t scramble2(uint64_t word)
{
    return hash_rotl64(word * 0x4cf5ad432745937fu, 33) * 0x87c37b91114253d5u;
}

static inline uint64_t mix(uint64_t h)
{
    h = (h ^ h >> 33) * 0xff51afd7ed558ccdu;
    h = (h ^ h >> 33) * 0xc4ceb9fe1a85ec53u;
    return h ^ h >> 33;
}

static inline void absorb(struct murmur3_128 *m, const unsigned char *block)
{
    m->h1 ^= scramble1(hash_load64(block));
    m->h1 = (hash_rotl64(m->h1, 27) + m->h2) * 5 + 0x52dce729u;
    m->h2 ^= scramble2(hash_load64(block + 8));
    m->h2 = (hash_rotl64(m->h2, 31) + m->h1) * 5 + 0x38495ab5u;
}

static struct murmur3_128 begin(const unsigned char *bytes, size_t len)
{
    struct murmur3_128 m = {.len = len};
    size_t at = 0;

    for (; len - at >= BLOCK; at += BLOCK)
        absorb(&m, bytes + at);
    if (at < len)
        memcpy(m.rest, bytes + at, len - at);
    return m;
}

/* A copy is changed: there may be more ends. */
static struct murmur3_128 append(struct murmur3_128 m, unsigned char byte)
{
    m.rest[m.len++ % BLOCK] = byte;
    if (m.len % BLOCK == 0)
        absorb(&m, m.rest);
    return m;
}

static void finish(struct murmur3_128 m, uint64_t values[2])
{
    const size_t left = m.len % BLOCK;

    if (left > 8)
        m.h2 ^= scramble2(hash_load_rest(m.rest, 8, left));
    if (left > 0)
        m.h1 ^= scramble1(hash_load_rest(m.rest, 0, left < 8 ? left : 8));
    m.h1 ^= m.len;
    m.h2 ^= m.len;
    m.h1 += m.h2;
    m.h2 += m.h1;
    m.h1 = mix(m.h1);
    m.h2 = mix(m.h2);
    values[0] = m.h1 + m.h2;
    values[1] = m.h2 + values[0];
}

/* rueidisprob. */
void digest_murmur3_128(const struct hasher *hasher, const void *item, size_t len, uint64_t *values)
{
    finish(begin(item, len), values);
}

void digest_go_zero(const struct hasher *hasher, const void *item, size_t len, uint64_t *values)
{
    const struct murmur3_128 of_item = begin(item, len);

    for (uint32_t i = 0; i < hasher->hashes; i++) {
        uint64_t both[2];
        finish(append(of_item, (unsigned char)i), both);
        values[i] = both[0];
    }
}
