/* spec.h: what the rest of the library asks of a spec, beyond hibloom.h.
 *
 *   sizing.c     n and p -> bits and hashes, and the error rate back
 *   spec_text.c  text -> spec -> text
 *   preset.c     the specs of other programs
 *   spec.c       is this one valid, are these two the same filter */
#ifndef HIBLOOM_SPEC_H
#define HIBLOOM_SPEC_H

#include "base/error.h"

#define SPEC_BITS_MAX (UINT64_C(1) << 62) /* of all keys together; sums and doubles of them stay far from overflow */

static inline uint64_t spec_bits_max(const hibloom_spec *spec) /* of spec->bits */
{
    return spec->layout == HIBLOOM_LAYOUT_PARTITIONED ? SPEC_BITS_MAX / spec->hashes : SPEC_BITS_MAX;
}

/* OK if hibloom_spec_for or hibloom_spec_parse could have made it; else EINVAL
 * or ERANGE, and words that name the field. */
hibloom_status spec_check_words(const hibloom_spec *spec, struct error *error);
hibloom_status spec_check(const hibloom_spec *spec);

static inline uint32_t spec_segments(const hibloom_spec *spec)
{
    return spec->segments != 0 ? spec->segments : 1;
}

/* Redis keys that hold its bits, and bits and bytes of the bitmap in each. */
static inline uint32_t spec_keys(const hibloom_spec *spec)
{
    return spec->layout == HIBLOOM_LAYOUT_PARTITIONED ? spec->hashes : spec_segments(spec);
}

/* The fewest of its keys that have all bits of an item. */
static inline uint32_t spec_item_keys(const hibloom_spec *spec)
{
    return spec->layout == HIBLOOM_LAYOUT_PARTITIONED ? spec->hashes : 1;
}

static inline uint64_t spec_bitmap_bits(const hibloom_spec *spec)
{
    const uint64_t unit = spec->layout == HIBLOOM_LAYOUT_BLOCKED ? HIBLOOM_BLOCK_BITS : 1;

    if (spec_segments(spec) == 1)
        return spec->bits;
    return ((spec->bits - 1) / spec->segments / unit + 1) * unit;
}

static inline uint64_t spec_bitmap_bytes(const hibloom_spec *spec)
{
    return (spec_bitmap_bits(spec) + 7) / 8;
}

static inline uint64_t spec_all_bits(const hibloom_spec *spec)
{
    return spec_bitmap_bits(spec) * spec_keys(spec);
}

/* Sizes `spec`, whose hash and layout are set; hashes 0 = the best number, and
 * segments 0 = as many as spec_default_segments. */
hibloom_status spec_size(hibloom_spec *spec, uint64_t capacity, double error_rate, uint32_t hashes);

/* The segments of a spec that names none: 1 up to HIBLOOM_SEGMENT_BITS; beyond
 * that the fewest, but not below spec->segments, with no more bits each that the
 * server's allocator rounds up by 3 % at most. */
uint32_t spec_default_segments(const hibloom_spec *spec);

bool spec_may_be_segmented(const hibloom_spec *spec); /* its layout and its hash allow it */

/* Gives it so many segments, if it has fewer and may have them, and the bits that these take. */
hibloom_status spec_spread(hibloom_spec *spec, uint32_t segments);

/* The different items that leave such a share of all its bits set: the estimate
 * of hibloom_info. */
double spec_items_at(const hibloom_spec *spec, double fill);

/* Draws the seed of a spec that wants one and has none. */
hibloom_status spec_draw_seed(hibloom_spec *spec);

/* The spec of a stored filter, from its text: `wanted`, with the stored seed if
 * it has none; or all of it, if wanted is NULL. ECORRUPT: the text is
 * unreadable. EMISMATCH: wanted is another. */
hibloom_status spec_adopt(hibloom_spec *out, const hibloom_spec *wanted, const char *stored);

#endif
