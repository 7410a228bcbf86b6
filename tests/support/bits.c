/* All bits of a filter. See bits.h. */
#include "bits.h"

#include "spec/spec.h"
#include "pieces.h"

#include <stdlib.h>

size_t all_bits_len(const hibloom *filter)
{
    return (size_t)(spec_keys(&filter->spec) * spec_bitmap_bytes(&filter->spec));
}

unsigned char *all_bits_read(hibloom *filter)
{
    const uint64_t len = spec_bitmap_bytes(&filter->spec);
    unsigned char *bits = malloc(all_bits_len(filter)), *at = bits;

    assert_non_null(bits);
    for (uint32_t key = 0; key < spec_keys(&filter->spec); key++, at += len)
        for (struct piece piece = {.key = key}; piece.from < len; piece.from += piece.len) {
            piece.len = len - piece.from < STORE_PIECE ? len - piece.from : STORE_PIECE;
            piece_read(filter, &piece, at + piece.from);
        }
    return bits;
}

void or_into(unsigned char *bits, const unsigned char *more, size_t len)
{
    for (size_t i = 0; i < len; i++)
        bits[i] |= more[i];
}
