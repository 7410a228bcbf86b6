/* modulo.c: index rules of other programs that take each offset from a value of its own, by
 * remainder or mask. */
#include "hash/hash.h"

/* The values are int32, as mmh3.hash gives them. Python's remainder has the sign of the divisor:
 * -1 % m is m - 1. The bit pattern ~h is -h - 1 without its overflow. */
static uint32_t python_modulo(const uint64_t *values, const struct hasher *hasher, uint64_t *out)
{
    for (uint32_t i = 0; i < hasher->hashes; i++) {
        const uint32_t h = (uint32_t)values[i];
        out[i] = h <= INT32_MAX ? h % hasher->bits : hasher->bits - 1 - ~h % hasher->bits;
    }
    return 0;
}

/* If m is no power of two, most bits of the bitmap are never reached, as in the programs. */
static uint32_t mask(const uint64_t *values, const struct hasher *hasher, uint64_t *out)
{
    for (uint32_t i = 0; i < hasher->hashes; i++)
        out[i] = values[i] & (hasher->bits - 1);
    return 0;
}

static uint32_t modulo(const uint64_t *values, const struct hasher *hasher, uint64_t *out)
{
    for (uint32_t i = 0; i < hasher->hashes; i++)
        out[i] = values[i] % hasher->bits;
    return 0;
}

const struct index_rule index_modulo = {false, modulo};
const struct index_rule index_python_modulo = {false, python_modulo};
const struct index_rule index_mask = {false, mask};
