/* spec.h: what the rest of the library asks of a spec, beyond hibloom.h.
 *
 *   sizing.c     n and p -> bits and hashes, and the error rate back
 *   spec_text.c  text -> spec -> text
 *   preset.c     the specs of other programs
 *   spec.c       is this one valid, are these two the same filter */
#ifndef HIBLOOM_SPEC_H
#define HIBLOOM_SPEC_H

#include "hibloom/hibloom.h"

#define SPEC_BITS_MAX (UINT64_C(1) << 62) /* of all keys together; sums and doubles of them stay far from overflow */

/* OK if hibloom_spec_for or hibloom_spec_parse could have made it. */
hibloom_status spec_check(const hibloom_spec *spec);

/* Redis keys that hold its bits, and bytes of the bitmap in each. */
static inline uint32_t spec_keys(const hibloom_spec *spec)
{
    return spec->layout == HIBLOOM_LAYOUT_PARTITIONED ? spec->hashes : 1;
}

static inline uint64_t spec_bitmap_bytes(const hibloom_spec *spec)
{
    return (spec->bits + 7) / 8;
}

/* Sizes `spec`, whose hash and layout are set; hashes 0 = the best number. */
hibloom_status spec_size(hibloom_spec *spec, uint64_t capacity, double error_rate, uint32_t hashes);

/* Draws the seed of a spec that wants one and has none. */
hibloom_status spec_draw_seed(hibloom_spec *spec);

/* Fits `wanted` to the spec text a filter has stored: takes its seed over if
 * wanted has none, or all of it if wanted is NULL. ECORRUPT: unreadable.
 * EMISMATCH: they differ. */
hibloom_status spec_adopt(hibloom_spec *out, const hibloom_spec *wanted, const char *stored);

#endif
