/* positions.h: from an item to the bits that stand for it.
 *
 * Inside the library an item's positions are bit offsets, hash by hash, and
 * one segment; the key of position i follows from the segment and the layout. */
#ifndef HIBLOOM_POSITIONS_H
#define HIBLOOM_POSITIONS_H

#include "hash/hash.h"

/* How many positions an item of this length has: 0 if it is excluded. */
static inline uint32_t positions_count(const hibloom_spec *spec, size_t len)
{
    return len == 0 && spec->empty_excluded ? 0 : spec->hashes;
}

/* The key that position i lies in. */
static inline uint32_t positions_key(const hibloom_spec *spec, uint32_t segment, uint32_t i)
{
    return spec->layout == HIBLOOM_LAYOUT_PARTITIONED ? i : segment;
}

/* The hash of a valid spec, which must outlive it: for any items that are not excluded. */
struct hasher positions_hasher(const hibloom_spec *spec);

#endif
