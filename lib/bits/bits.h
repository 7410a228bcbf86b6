/* bits.h: the bits of a filter in this process, and what is done with them.
 *
 * They are a filter of the memory store, or what a handle knows of one in Redis (redis/near.h).
 * Here is what has to be fast, and nothing else. */
#ifndef HIBLOOM_BITS_H
#define HIBLOOM_BITS_H

#include "base/store.h"
#include "spec/positions.h"

struct bits {
    struct spec spec;
    struct hasher hasher;              /* of it */
    bool several;                      /* its filter has more than one key */
    size_t key_bytes;                  /* of each key's bitmap */
    size_t bytes;                      /* of all that are here; behind them is one of zeros */
    uint64_t key_positions, positions; /* the same in bits, or counters: there an item is that is not here */
    uint64_t base;                     /* those of the filter before them */
    unsigned char *start;              /* key after key, in SETBIT's order: bit 0 is the highest of byte 0 */
    void *allocated;                   /* start lies in it */
};

/* Makes the bits of a valid spec. They may be those of its first keys only, spec_item_keys at least. Then an item in
 * another key is neither added nor found. Not zeroed: they are anything until they are cleared, or read from a server.
 * False: out of memory. */
bool bits_make(struct bits *out, const struct spec *spec, uint32_t keys, bool zeroed);
void bits_free(struct bits *bits); /* overwrites the seed; start is NULL then */

/* Lets them stand for the same number of keys from this one on. */
void bits_begin_at(struct bits *bits, uint32_t key);

/* Items are as in struct store_class; is_new may be NULL. An excluded item is neither added nor
 * found. Any number of threads may call bits_contains at once: it writes only to `found`. */
void bits_add(struct bits *bits, const hibloom_item *items, size_t n, bool *is_new);
void bits_contains(const struct bits *bits, const hibloom_item *items, size_t n, bool *found);

/* Adds n items of one segment whose offsets are known, as a hasher gives them. */
void bits_put(struct bits *bits, uint32_t segment, const uint64_t *offsets, size_t n);

/* The number of set bits, or of counters that are not 0. */
uint64_t bits_count(const struct bits *bits);

/* The same for `len` bytes of a bitmap whose positions take `width` bits. */
uint64_t bits_in_use(const unsigned char *bytes, size_t len, uint32_t width);
void bits_clear(struct bits *bits);

/* Is none set in these bytes? There is one at least. */
bool bits_are_zero(const unsigned char *bytes, size_t len);

/* See struct store_class. */
void bits_read(const struct bits *bits, const struct piece *piece, unsigned char *out);
void bits_merge(struct bits *bits, const struct piece *piece, const unsigned char *more);

/* ---- Of a counting filter (counters.c) -----------------------------------------
 *
 * Counters lie where others have bits. The spec gives their width, and none lies in two bytes. An item counts once at
 * each of its different positions. A full counter stays full: its true count is no longer known. */

/* As those above, which call them. */
void counters_add(struct bits *bits, const hibloom_item *items, size_t n, bool *is_new);
void counters_contains(const struct bits *bits, const hibloom_item *items, size_t n, bool *found);
void counters_merge(unsigned char *to, const unsigned char *more, size_t len, uint32_t width);

/* Takes away each item that is in, and changes nothing for one that is not. was_in may be NULL. */
void counters_remove(struct bits *bits, const hibloom_item *items, size_t n, bool *was_in);

/* Writes the k positions of an item, counted through all keys: all of them are here, or all bits->positions. */
void bits_locate(const struct bits *bits, const hibloom_item *item, uint64_t *at);

/* Sets each of the k positions that repeats an earlier one to `none`. */
void counters_drop_repeated(uint64_t *positions, uint32_t k, uint64_t none);

#endif
