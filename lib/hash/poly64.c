/* poly64.c: the polynomial r = seed * r + character of scrapy-redis-bloomfilter, over Python's
 * characters, to share the bitmaps it has filled. Never chosen for new ones.
 *
 * Python's integers are unbounded; the result keeps only low bits, so 2^64 is enough. The first
 * of its seeds is 1: that value is the sum of the characters. It is small, and all orders of the
 * characters share it. */
#include "hash/hash.h"
#include "hash/text.h"

/* Each byte is a character: Latin-1. */
void digest_poly64(const struct hasher *hasher, const void *item, size_t len, uint64_t *values)
{
    const unsigned char *bytes = item;

    for (uint32_t i = 0; i < hasher->hashes; i++) {
        values[i] = 0;
        for (size_t at = 0; at < len; at++)
            values[i] = values[i] * hasher->seeds[i] + bytes[at];
    }
}

/* The item is UTF-8, and its code points count. */
void digest_poly64_text(const struct hasher *hasher, const void *item, size_t len, uint64_t *values)
{
    const unsigned char *const end = len > 0 ? (const unsigned char *)item + len : item; /* it may be NULL */

    for (uint32_t i = 0; i < hasher->hashes; i++) {
        values[i] = 0;
        for (const unsigned char *at = item; at < end;)
            values[i] = values[i] * hasher->seeds[i] + text_next(&at);
    }
}
