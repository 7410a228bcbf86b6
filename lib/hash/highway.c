/* highway.c: HighwayHash-128 with Redisson's key, for sharing with Redisson.
 *
 * It reads the item as its codec encodes it, 32 bytes at a time. Debian's library of it wants one stretch of memory, so
 * an encoded item would have to be put together there. It is keyed, but the key is public.
 *
 * Alakuijala, Cox and Wassenberg, "Fast keyed hash/pseudo-random function using SIMD multiply and permute" (2016). The
 * initial numbers are digits of pi. */
#include "hash/hash.h"
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

/* ---- A string as Redisson's default codec, Kryo5Codec, writes it --------------------
 *
 *     03                         a String
 *     81                         the empty one
 *     h e l l 'o' | 80           2 to 32 characters, all of ASCII: the last one is marked
 *     varint(units + 1) ...      else: its UTF-16 units, and each of them as UTF-8 would write it, so a
 *                                character beyond U+FFFF takes twice three bytes. The first byte of the
 *                                number has 80, six bits, and 40 if more bytes follow
 *
 * (Kryo 5.6, Output.writeString.) It is absorbed byte by byte, so that an item of any length takes no memory. */

struct kryo5 {
    struct highway state;
    unsigned char packet[PACKET]; /* `count` bytes that are not absorbed yet */
    size_t count;
};

static void put(struct kryo5 *k, uint64_t byte)
{
    k->packet[k->count++] = (unsigned char)byte;
    if (k->count == PACKET) {
        absorb(&k->state, k->packet);
        k->count = 0;
    }
}

static void put_length(struct kryo5 *k, uint64_t number)
{
    put(k, 0x80 | (number & 0x3f) | (number >> 6 != 0 ? 0x40 : 0));
    for (number >>= 6; number != 0; number >>= 7)
        put(k, (number & 0x7f) | (number >> 7 != 0 ? 0x80 : 0));
}

static void put_unit(struct kryo5 *k, uint32_t unit)
{
    if (unit < 0x80) {
        put(k, unit);
    } else if (unit < 0x800) {
        put(k, 0xc0 | unit >> 6);
        put(k, 0x80 | (unit & 0x3f));
    } else {
        put(k, 0xe0 | unit >> 12);
        put(k, 0x80 | (unit >> 6 & 0x3f));
        put(k, 0x80 | (unit & 0x3f));
    }
}

static void put_string(struct kryo5 *k, const unsigned char *text, size_t len)
{
    const unsigned char *const end = len > 0 ? text + len : text; /* it may be NULL */
    uint64_t units = 0;
    bool ascii = true;

    for (const unsigned char *at = text; at < end;) {
        const uint32_t code = hash_load_character(&at);
        units += code > 0xffff ? 2 : 1;
        ascii = ascii && code < 0x80;
    }
    const bool marks_end = ascii && units >= 2 && units <= 32;
    put(k, 3);
    if (!marks_end)
        put_length(k, units + 1);
    for (const unsigned char *at = text; at < end;) {
        const uint32_t code = hash_load_character(&at);
        if (code > 0xffff) {
            put_unit(k, 0xd800 + ((code - 0x10000) >> 10));
            put_unit(k, 0xdc00 + ((code - 0x10000) & 0x3ff));
        } else if (marks_end && at == end) {
            put(k, code | 0x80);
        } else {
            put_unit(k, code);
        }
    }
}

void digest_highway_kryo5(const struct hasher *hasher, const void *item, size_t len, uint64_t *values)
{
    struct kryo5 k;

    begin(&k.state);
    k.count = 0;
    put_string(&k, item, len);
    if (k.count > 0)
        absorb_rest(&k.state, k.packet, k.count);
    finish(&k.state, values);
}
