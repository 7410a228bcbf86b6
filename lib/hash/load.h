/* load.h: little-endian words out of an item's bytes, and their rotation; and characters.
 *
 * The hashes that read words must give the same numbers on every machine. An item may lie at any address. So words are
 * built by bytes and shifts. Compilers turn these into one load where the machine allows it. */
#ifndef HIBLOOM_LOAD_H
#define HIBLOOM_LOAD_H

#include <stddef.h>
#include <stdint.h>

static inline uint32_t hash_load32(const unsigned char *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static inline uint64_t hash_load64(const unsigned char *p)
{
    return (uint64_t)hash_load32(p) | (uint64_t)hash_load32(p + 4) << 32;
}

/* The rest of an item that is no whole number of words: bytes `from` to `len`, zeros above. */
static inline uint64_t hash_load_rest(const unsigned char *p, size_t from, size_t len)
{
    uint64_t word = 0;

    while (len > from)
        word = word << 8 | p[--len];
    return word;
}

static inline uint32_t hash_rotl32(uint32_t x, unsigned n)
{
    return x << n | x >> (32 - n);
}

static inline uint64_t hash_rotl64(uint64_t x, unsigned n)
{
    return x << n | x >> (64 - n);
}

/* The character at *at, and the next one's place. Only of valid UTF-8: see positions_refuse. */
static inline uint32_t hash_load_character(const unsigned char **at)
{
    const unsigned char *p = *at;
    const unsigned more = p[0] < 0xc0 ? 0 : p[0] < 0xe0 ? 1 : p[0] < 0xf0 ? 2 : 3;
    uint32_t code = more == 0 ? p[0] : p[0] & (0x3fu >> more);

    for (unsigned i = 1; i <= more; i++)
        code = code << 6 | (p[i] & 0x3fu);
    *at = p + 1 + more;
    return code;
}

#endif
