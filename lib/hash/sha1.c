/* sha1.c: the first 128 bits of SHA-1, for sharing with the Ruby gem redis-bloomfilter.
 *
 * It is not from libcrypto, since the library has that only with TLS, and 50 lines are lighter.
 * FIPS 180-4, section 6.1. */
#include "hash/hash.h"
#include "hash/load.h"

enum { BLOCK = 64 };

static void absorb(uint32_t state[5], const unsigned char *block)
{
    uint32_t w[80], a = state[0], b = state[1], c = state[2], d = state[3], e = state[4];

    for (size_t t = 0; t < 16; t++)
        w[t] = (uint32_t)block[4 * t] << 24 | (uint32_t)block[4 * t + 1] << 16 | (uint32_t)block[4 * t + 2] << 8 |
               block[4 * t + 3];
    for (size_t t = 16; t < 80; t++)
        w[t] = hash_rotl32(w[t - 3] ^ w[t - 8] ^ w[t - 14] ^ w[t - 16], 1);
    for (size_t t = 0; t < 80; t++) {
        const uint32_t f = t < 20   ? ((b & c) | (~b & d)) + 0x5a827999u
                           : t < 40 ? (b ^ c ^ d) + 0x6ed9eba1u
                           : t < 60 ? ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdcu
                                    : (b ^ c ^ d) + 0xca62c1d6u;
        const uint32_t next = hash_rotl32(a, 5) + f + e + w[t];
        e = d;
        d = c;
        c = hash_rotl32(b, 30);
        b = a;
        a = next;
    }
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
    state[4] += e;
}

/* The rest of the item, then a bit 1, zeros, and its length in bits as a block's last eight bytes. */
static void absorb_end(uint32_t state[5], const unsigned char *item, size_t len)
{
    unsigned char end[2 * BLOCK] = {0};
    const size_t left = len % BLOCK, bytes = left < BLOCK - 8 ? BLOCK : 2 * BLOCK;

    for (size_t i = 0; i < left; i++)
        end[i] = item[len - left + i];
    end[left] = 0x80;
    for (size_t i = 0; i < 8; i++)
        end[bytes - 1 - i] = (unsigned char)((uint64_t)len * 8 >> 8 * i);
    for (size_t at = 0; at < bytes; at += BLOCK)
        absorb(state, end + at);
}

void digest_sha1(const struct hasher *hasher, const void *item, size_t len, uint64_t *values)
{
    uint32_t state[5] = {0x67452301u, 0xefcdab89u, 0x98badcfeu, 0x10325476u, 0xc3d2e1f0u};
    const unsigned char *const bytes = item;

    for (size_t at = 0; len - at >= BLOCK; at += BLOCK)
        absorb(state, bytes + at);
    absorb_end(state, bytes, len);
    values[0] = (uint64_t)state[0] << 32 | state[1];
    values[1] = (uint64_t)state[2] << 32 | state[3];
}
