/* bits.h: the bits of a filter in this process, and what is done with them.
 *
 * They are a filter of the memory store, or what a handle knows of one in Redis
 * (redis/near.h). Here is what has to be fast, and nothing else. */
#ifndef HIBLOOM_BITS_H
#define HIBLOOM_BITS_H

#include "base/store.h"
#include "spec/positions.h"

struct bits {
    hibloom_spec spec;
    struct hasher hasher; /* of it */
    bool several;         /* its filter has more than one key */
    size_t key_bytes;     /* of each key's bitmap */
    size_t bytes;         /* of all that are here; behind them is one of zeros */
    uint64_t base;        /* bits of the filter before them */
    unsigned char *start; /* key after key, in SETBIT's order: bit 0 is the highest of byte 0 */
    void *allocated;      /* start lies in it */
};

/* Makes the bits of a valid spec, all clear, or those of its first keys only, spec_item_keys at least: then
 * an item in another key is neither added nor found. False: there is no memory for them. */
bool bits_make(struct bits *out, const hibloom_spec *spec, uint32_t keys);
void bits_free(struct bits *bits);

/* Lets them stand for as many keys from this one on. */
void bits_begin_at(struct bits *bits, uint32_t key);

/* Items are as in struct store_class; what is excluded is neither added nor
 * found. bits_contains writes nothing but `found`, so that any number of
 * threads may be in it. is_new may be NULL. */
void bits_add(struct bits *bits, const hibloom_item *items, size_t n, bool *is_new);
void bits_contains(const struct bits *bits, const hibloom_item *items, size_t n, bool *found);

/* How many are set. */
uint64_t bits_count(const struct bits *bits);
void bits_clear(struct bits *bits);

/* See struct store_class. */
void bits_read(const struct bits *bits, const struct piece *piece, unsigned char *out);
void bits_merge(struct bits *bits, const struct piece *piece, const unsigned char *more);

#endif
