/* positions.h: from an item to the bits that stand for it.
 *
 * Inside the library an item's positions are bit offsets, hash by hash, and one segment. The key
 * of position i follows from the segment and the layout. */
#ifndef HIBLOOM_POSITIONS_H
#define HIBLOOM_POSITIONS_H

#include "hash/hash.h"
#include "spec/spec.h"

/* The positions of an item, spec->hashes of them. EINVAL: the spec is not valid, excludes the item or has no size. */
hibloom_status positions_of(const struct spec *spec, const void *item, size_t len, hibloom_position *out);

/* The number of positions of an item of this length: 0 if it is excluded. */
static inline uint32_t positions_count(const struct spec *spec, size_t len)
{
    return len == 0 && spec->empty_excluded ? 0 : spec->hashes;
}

/* Why no item can be like this, in words; NULL: it is one. Below the functions of the headers each is one. */
const char *positions_refuse_slowly(const void *item, size_t len);

static inline const char *positions_refuse(const struct spec *spec, const void *item, size_t len)
{
    return spec->codec == CODEC_BYTES && (item != NULL || len == 0) ? NULL : positions_refuse_slowly(item, len);
}

/* Where position i lies, of an item of this segment whose hash gave this offset. */
static inline hibloom_position positions_at(const struct spec *spec, uint32_t segment, uint32_t i, uint64_t offset)
{
    if (spec_is_spanning(spec))
        return (hibloom_position){offset / SPEC_SPAN_BITS, offset % SPEC_SPAN_BITS};
    return (hibloom_position){spec->layout == LAYOUT_PARTITIONED ? i : segment, offset};
}

/* The hash of a valid spec, which must outlive it: for any items that are not excluded. */
struct hasher positions_hasher(const struct spec *spec);

#endif
