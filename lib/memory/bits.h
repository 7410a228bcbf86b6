/* bits.h: the bits of a filter in this process, and what is done with them.
 *
 * Here is what has to be fast, and nothing else: memory.c has names, handles,
 * time to live and errors. */
#ifndef HIBLOOM_MEMORY_BITS_H
#define HIBLOOM_MEMORY_BITS_H

#include "base/store.h"
#include "spec/positions.h"

struct memory_bits {
    hibloom_spec spec;
    struct hasher hasher; /* of it */
    size_t key_bytes;     /* of each key's bitmap */
    size_t bytes;         /* of all of them */
    unsigned char *start; /* key after key, in SETBIT's order: bit 0 is the highest of byte 0 */
    void *allocated;      /* start lies in it */
};

/* Makes the bits of a valid spec, all clear, or returns false if there is no
 * memory for them. */
bool memory_bits_make(struct memory_bits *out, const hibloom_spec *spec);
void memory_bits_free(struct memory_bits *bits);

/* Items are as in struct store_class; what is excluded is neither added nor
 * found. memory_bits_contains writes nothing but `found`, so that any number of
 * threads may be in it. is_new may be NULL. */
void memory_bits_add(struct memory_bits *bits, const hibloom_item *items, size_t n, bool *is_new);
void memory_bits_contains(const struct memory_bits *bits, const hibloom_item *items, size_t n, bool *found);

/* How many are set. */
uint64_t memory_bits_count(const struct memory_bits *bits);
void memory_bits_clear(struct memory_bits *bits);

/* See struct store_class. */
void memory_bits_read(const struct memory_bits *bits, const struct piece *piece, unsigned char *out);
void memory_bits_merge(struct memory_bits *bits, const struct piece *piece, const unsigned char *more);

#endif
