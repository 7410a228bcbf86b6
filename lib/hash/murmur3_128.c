/* murmur3_128.c: MurmurHash3 x64 128-bit with seed 0, for sharing with the Go
 * libraries rueidisprob and go-zero.
 *
 * go-zero hashes the item with one more byte behind it, another one for each of its
 * hashes. So the blocks of the item are read once, and only the end is different.
 *
 * The function is Appleby's, put by him in the public domain (SMHasher). */
#include "hash/hash.h"
#include "hash/load.h"

#include <string.h>

enum { BLOCK = 16 };

struct murmur {
    uint64_t h1, h2;
    unsigned char rest[BLOCK]; /* less than a block */
    size_t len;                /* of all */
};

static inline uint64_t rotl(uint64_t x, unsigned n)
{
    return x << n | x >> (64 - n);
}

static inline uint64_t scramble1(uint64_t word)
{
    return rotl(word * 0x87c37b91114253d5u, 31) * 0x4cf5ad432745937fu;
}

static inline uint64_t scramble2(uint64_t word)
{
    return rotl(word * 0x4cf5ad432745937fu, 33) * 0x87c37b91114253d5u;
}

static inline uint64_t mix(uint64_t h)
{
    h = (h ^ h >> 33) * 0xff51afd7ed558ccdu;
    h = (h ^ h >> 33) * 0xc4ceb9fe1a85ec53u;
    return h ^ h >> 33;
}

static inline void absorb(struct murmur *m, const unsigned char *block)
{
    m->h1 ^= scramble1(hash_load64(block));
    m->h1 = (rotl(m->h1, 27) + m->h2) * 5 + 0x52dce729u;
    m->h2 ^= scramble2(hash_load64(block + 8));
    m->h2 = (rotl(m->h2, 31) + m->h1) * 5 + 0x38495ab5u;
}

static struct murmur begin(const unsigned char *bytes, size_t len)
{
    struct murmur m = {.len = len};
    size_t at = 0;

    for (; len - at >= BLOCK; at += BLOCK)
        absorb(&m, bytes + at);
    if (at < len)
        memcpy(m.rest, bytes + at, len - at);
    return m;
}

/* A copy is changed: there may be more ends. */
static struct murmur append(struct murmur m, unsigned char byte)
{
    m.rest[m.len++ % BLOCK] = byte;
    if (m.len % BLOCK == 0)
        absorb(&m, m.rest);
    return m;
}

static void finish(struct murmur m, uint64_t values[2])
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
    const struct murmur of_item = begin(item, len);

    for (uint32_t i = 0; i < hasher->hashes; i++) {
        uint64_t both[2];
        finish(append(of_item, (unsigned char)i), both);
        values[i] = both[0];
    }
}
