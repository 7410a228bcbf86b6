/* All bits of a filter, key after key, and what sets of bits are to each other. */
#ifndef HIBLOOM_TEST_BITS_H
#define HIBLOOM_TEST_BITS_H

#include "test.h"

/* How many bytes they take. */
size_t all_bits_len(const hibloom *filter);

/* As the library reads them; to be freed. */
unsigned char *all_bits_read(hibloom *filter);

void or_into(unsigned char *bits, const unsigned char *more, size_t len);

#endif
