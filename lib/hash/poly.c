/* poly.c: polynomials of other programs, to share the bitmaps that they have filled. Never chosen for new ones. */
#include "hash/hash.h"
#include "hash/load.h"

#include <math.h>

/* ---- Of PHP programs --------------------------------------------------------------
 *
 * r = seed * r + byte, with PHP's arithmetic. Its weaknesses have to be reproduced. PHP's int has 64 bits; an operation
 * that overflows gives a double instead. From then on r stays a double. The & at the end takes it back to an int
 * modulo 2^64, infinity and NaN as 0. A double of 2^(52+b) and more is a multiple of 2^b. So a long item loses its low
 * bits, the ones the mask keeps, and lands on bit 0. With a mask of 30 bits that begins at some 14 bytes (seed 61) to
 * 48 (seed 3).
 *
 * Facts from php-src: Zend/zend_multiply.h, fast_long_add_function in Zend/zend_operators.h, zend_dval_to_lval in the
 * same; compared with PHP 8.2. */

/* From where r becomes a double. It is 2^63 or, rounded, hardly less. There doubles lie 1,024
 * and more apart, so adding a byte changes nothing: only the number of bytes left counts. From
 * 2^116 on r is a multiple of 2^64, or infinite: 0 either way, and it never gets smaller. */
static uint64_t poly_double(double r, double seed, size_t left)
{
    for (; left > 0 && r < 0x1p116; left--)
        r *= seed;
    return r < 0x1p116 ? (uint64_t)fmod(r, 0x1p64) : 0;
}

static uint64_t poly(const unsigned char *bytes, size_t len, int64_t seed)
{
    int64_t r = 0, product;

    for (size_t at = 0; at < len; at++) {
        if (__builtin_mul_overflow(seed, r, &product))
            return poly_double((double)r, (double)seed, len - at);
        if (__builtin_add_overflow(product, bytes[at], &r))
            return poly_double((double)product, (double)seed, len - at - 1);
    }
    return (uint64_t)r;
}

void digest_poly(const struct hasher *hasher, const void *item, size_t len, uint64_t *values)
{
    for (uint32_t i = 0; i < hasher->hashes; i++)
        values[i] = poly(item, len, (int64_t)hasher->seeds[i]);
}

/* ---- Of scrapy-redis-bloomfilter ----------------------------------------------------
 *
 * r = seed * r + character, over Python's characters. Python's integers are unbounded; the result keeps only low bits,
 * so 2^64 is enough. The first of its seeds is 1: that value is the sum of the characters. It is small, and all orders
 * of the characters share it. */

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
            values[i] = values[i] * hasher->seeds[i] + hash_load_character(&at);
    }
}
