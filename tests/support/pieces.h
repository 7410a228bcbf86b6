/* Pieces of filters in any store, and their links, as the library's own steps read and merge them. */
#ifndef HIBLOOM_TEST_PIECES_H
#define HIBLOOM_TEST_PIECES_H

#include "test.h"

#include "base/store.h"

void piece_read(hibloom *filter, const struct piece *piece, unsigned char *out);
void piece_merge(hibloom *filter, const struct piece *piece, const unsigned char *bits);

/* All bits, key after key, to be freed; and how many bytes they take. */
unsigned char *all_bits_read(hibloom *filter);
size_t all_bits_len(const hibloom *filter);

/* Lets it grow to so many links at least; how many it has. */
uint32_t links_reach(hibloom *filter, uint32_t links);

#endif
