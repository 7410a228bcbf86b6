/* highway.c: HighwayHash-128 with Redisson's key, for sharing with Redisson.
 *
 * It reads the item as its codec encodes it, 32 bytes at a time. Debian's library of it wants
 * one stretch of memory, so an encoded item would have to be put together there. It is keyed,
 * but the key is public.
 *
 * Alakuijala, Cox and Wassenberg, "Fast keyed hash/pseudo-random function using SIMD multiply
 * and permute" (2016). The initial numbers are digits of pi. */
#include "hash/hash.h"
#include "hash/kryo5.h"
#include "hash/load.h"

#include <string.h>

enum { PACKET = 32, LANES = 4 };

struct highway {
    uint64_t v0[LANES], v1[LANES], mul0[LANES], mul1[LANES];
};

static inline uint64_t swap_halves(uint64_t x)
{
    return x << 32 | x >> 32;
}

static void begin(struct highway *h)
{
    static const uint64_t key[LANES] = {0x9e3779b97f4a7c15u, 0xf39cc0605cedc834u, 0x1082276bf3a27251u,
                                        0xf86c6a11d0c18e95u};
    static const uint64_t mul0[LANES] = {0xdbe6d5d5fe4cce2fu, 0xa4093822299f31d0u, 0x13198a2e03707344u,
                                         0x243f6a8885a308d3u};
    static const uint64_t mul1[LANES] = {0x3bd39e10cb0ef593u, 0xc0acf169b5f18a8cu, 0xbe5466cf34e90c6cu,
                                         0x452821e638d01377u};

    for (size_t i = 0; i < LANES; i++) {
        h->mul0[i] = mul0[i];
        h->mul1[i] = mul1[i];
        h->v0[i] = mul0[i] ^ key[i];
        h->v1[i] = mul1[i] ^ swap_halves(key[i]);
    }
}

static inline uint64_t byte_of(uint64_t word, unsigned i)
{
    return word >> 8 * i & 0xff;
}

/* Spreads the bytes of two products: the middle ones are good and the outer ones are not. */
static inline void zipper_merge(uint64_t v1, uint64_t v0, uint64_t *add1, uint64_t *add0)
{
    *add0 += byte_of(v0, 3) | byte_of(v1, 4) << 8 | byte_of(v0, 2) << 16 | byte_of(v0, 5) << 24 | byte_of(v1, 6) << 32 |
             byte_of(v0, 1) << 40 | byte_of(v1, 7) << 48 | byte_of(v0, 0) << 56;
    *add1 += byte_of(v1, 3) | byte_of(v0, 4) << 8 | byte_of(v1, 2) << 16 | byte_of(v1, 5) << 24 | byte_of(v1, 1) << 32 |
             byte_of(v0, 6) << 40 | byte_of(v1, 0) << 48 | byte_of(v0, 7) << 56;
}

static void update(struct highway *h, const uint64_t lanes[LANES])
{
    for (size_t i = 0; i < LANES; i++) {
        h->v1[i] += h->mul0[i] + lanes[i];
        h->mul0[i] ^= (h->v1[i] & UINT32_MAX) * (h->v0[i] >> 32);
        h->v0[i] += h->mul1[i];
        h->mul1[i] ^= (h->v0[i] & UINT32_MAX) * (h->v1[i] >> 32);
    }
    zipper_merge(h->v1[1], h->v1[0], &h->v0[1], &h->v0[0]);
    zipper_merge(h->v1[3], h->v1[2], &h->v0[3], &h->v0[2]);
    zipper_merge(h->v0[1], h->v0[0], &h->v1[1], &h->v1[0]);
    zipper_merge(h->v0[3], h->v0[2], &h->v1[3], &h->v1[2]);
}

static void absorb(struct highway *h, const unsigned char packet[PACKET])
{
    uint64_t lanes[LANES];

    for (size_t i = 0; i < LANES; i++)
        lanes[i] = hash_load64(packet + 8 * i);
    update(h, lanes);
}

static inline uint64_t rotate_halves(uint64_t x, unsigned n)
{
    const uint32_t low = (uint32_t)x, high = (uint32_t)(x >> 32);

    return (uint64_t)(high << n | high >> (32 - n)) << 32 | (low << n | low >> (32 - n));
}

/* 1 to 31 bytes: the length goes into the state. The last one to three bytes have a place of their own. */
static void absorb_rest(struct highway *h, const unsigned char *bytes, size_t len)
{
    const size_t last = len % 4, words = len - last;
    unsigned char packet[PACKET] = {0};

    for (size_t i = 0; i < LANES; i++) {
        h->v0[i] += (uint64_t)len << 32 | len;
        h->v1[i] = rotate_halves(h->v1[i], (unsigned)len);
    }
    memcpy(packet, bytes, words);
    if (len >= 16) {
        memcpy(packet + 28, bytes + len - 4, 4);
    } else if (last != 0) {
        packet[16] = bytes[words];
        packet[17] = bytes[words + last / 2];
        packet[18] = bytes[len - 1];
    }
    absorb(h, packet);
}

static void finish(struct highway *h, uint64_t values[2])
{
    for (int i = 0; i < 6; i++) {
        const uint64_t permuted[LANES] = {swap_halves(h->v0[2]), swap_halves(h->v0[3]), swap_halves(h->v0[0]),
                                          swap_halves(h->v0[1])};
        update(h, permuted);
    }
    values[0] = h->v0[0] + h->mul0[0] + h->v1[2] + h->mul1[2];
    values[1] = h->v0[1] + h->mul0[1] + h->v1[3] + h->mul1[3];
}

void digest_highway(const struct hasher *hasher, const void *item, size_t len, uint64_t *values)
{
    const unsigned char *const bytes = item;
    struct highway h;
    size_t at = 0;

    begin(&h);
    for (; len - at >= PACKET; at += PACKET)
        absorb(&h, bytes + at);
    if (at < len)
        absorb_rest(&h, bytes + at, len - at);
    finish(&h, values);
}

void digest_highway_kryo5(const struct hasher *hasher, const void *item, size_t len, uint64_t *values)
{
    unsigned char packet[PACKET];
    struct kryo5 encoded;
    struct highway h;
    size_t got;

    begin(&h);
    kryo5_begin(&encoded, item, len);
    while ((got = kryo5_read(&encoded, packet, PACKET)) == PACKET)
        absorb(&h, packet);
    if (got > 0)
        absorb_rest(&h, packet, got);
    finish(&h, values);
}
