/* counters.h: the counters of a counting filter in this process.
 *
 * They lie where bits.h has the bits. The spec gives their width, and none lies in two bytes. An
 * item counts once at each of its different positions. A full counter stays full: its true count
 * is no longer known. */
#ifndef HIBLOOM_COUNTERS_H
#define HIBLOOM_COUNTERS_H

#include "bits/bits.h"

/* As those of bits.h, which call them. */
void counters_add(struct bits *bits, const hibloom_item *items, size_t n, bool *is_new);
void counters_contains(const struct bits *bits, const hibloom_item *items, size_t n, bool *found);
void counters_merge(struct bits *bits, const struct piece *piece, const unsigned char *more);

/* Takes away each item that is in, and changes nothing for one that is not. was_in may be NULL. */
void counters_remove(struct bits *bits, const hibloom_item *items, size_t n, bool *was_in);

/* Sets each of the k positions that repeats an earlier one to `none`. */
void counters_drop_repeated(uint64_t *positions, uint32_t k, uint64_t none);

#endif
