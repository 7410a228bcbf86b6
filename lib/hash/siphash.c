/* siphash.c: SipHash-2-4 with 128 bits of output, for items an adversary chooses. Without the key nobody can aim at
 * bits, fill a filter with few items, or craft a false positive.
 *
 * After Aumasson and Bernstein, "SipHash: a fast short-input PRF" (2012). The 128-bit output is their later addition.
 * v1 ^= 0xee at the start; 0xee in place of 0xff before the first output word, 0xdd before the second. */
#include "hash/hash.h"
#include "hash/load.h"

struct sip {
    uint64_t v0, v1, v2, v3;
};

static inline void rounds(struct sip *s, int n)
{
    while (n-- > 0) {
        s->v0 += s->v1;
        s->v2 += s->v3;
        s->v1 = hash_rotl64(s->v1, 13) ^ s->v0;
        s->v3 = hash_rotl64(s->v3, 16) ^ s->v2;
        s->v0 = hash_rotl64(s->v0, 32);
        s->v2 += s->v1;
        s->v0 += s->v3;
        s->v1 = hash_rotl64(s->v1, 17) ^ s->v2;
        s->v3 = hash_rotl64(s->v3, 21) ^ s->v0;
        s->v2 = hash_rotl64(s->v2, 32);
    }
}

static inline void absorb(struct sip *s, uint64_t word)
{
    s->v3 ^= word;
    rounds(s, 2);
    s->v0 ^= word;
}

static inline uint64_t squeeze(struct sip *s)
{
    rounds(s, 4);
    return s->v0 ^ s->v1 ^ s->v2 ^ s->v3;
}

void digest_siphash(const struct hasher *hasher, const void *item, size_t len, uint64_t *values)
{
    const unsigned char *bytes = item;
    const uint64_t k0 = hasher->seeds[0], k1 = hasher->seeds[1];
    struct sip s = {
        k0 ^ 0x736f6d6570736575u,
        k1 ^ 0x646f72616e646f6du ^ 0xee,
        k0 ^ 0x6c7967656e657261u,
        k1 ^ 0x7465646279746573u,
    };
    size_t at = 0;

    for (; len - at >= 8; at += 8)
        absorb(&s, hash_load64(bytes + at));
    absorb(&s, (uint64_t)len << 56 | hash_load_rest(bytes, at, len));

    s.v2 ^= 0xee;
    values[0] = squeeze(&s);
    s.v1 ^= 0xdd;
    values[1] = squeeze(&s);
}
