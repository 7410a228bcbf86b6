/* spec.h: the functions on specs for the rest of the library, beyond hibloom.h.
 *
 *   sizing.c     n and p -> bits and hashes, and the error rate back
 *   spec_text.c  text -> spec, spec -> text
 *   preset.c     the specs of other programs
 *   spec.c       is this one valid, are these two the same filter */
#ifndef HIBLOOM_SPEC_H
#define HIBLOOM_SPEC_H

#include "base/error.h"

#include <float.h>

/* The sizes and positions of a filter come from doubles, and have to be the same on every machine. So intermediate
 * results must not be wider (1: only those of floats are, and a cast makes them narrow). */
_Static_assert(FLT_EVAL_METHOD == 0 || FLT_EVAL_METHOD == 1, "on a 32-bit x86 compile with -msse2 -mfpmath=sse");

#define SPEC_BITS_MAX (UINT64_C(1) << 62)    /* of all keys together; sums and doubles of them stay far from overflow */
#define SPEC_STRING_BITS (UINT64_C(1) << 32) /* that a Redis string can hold: 512 MiB */
#define SPEC_SPAN_BITS UINT64_C(0xffffffff)  /* in a key of pyreBloom, where it has several */

/* The bits that one position takes: more than one where it is a counter. */
static inline uint32_t spec_width(const hibloom_spec *spec)
{
    return spec->counters != 0 ? spec->counters : 1;
}

static inline uint64_t spec_bits_max(const hibloom_spec *spec) /* of spec->bits */
{
    if (spec->keys == HIBLOOM_KEYS_PYREBLOOM)
        return SPEC_SPAN_BITS * HIBLOOM_SEGMENTS_MAX;
    return SPEC_BITS_MAX / (spec->layout == HIBLOOM_LAYOUT_PARTITIONED ? spec->hashes : spec_width(spec));
}

/* OK if hibloom_spec_for or hibloom_spec_parse could have made it; else EINVAL
 * or ERANGE, and words that name the field. The second: and it has a size. */
hibloom_status spec_check_words(const hibloom_spec *spec, struct error *error);
hibloom_status spec_check(const hibloom_spec *spec);

static inline uint32_t spec_segments(const hibloom_spec *spec)
{
    return spec->segments != 0 ? spec->segments : 1;
}

/* Are bits and hashes still to be read from what lies beside the filter? */
static inline bool spec_is_unsized(const hibloom_spec *spec)
{
    return spec->bits == 0 && spec->hashes == 0;
}

/* Does one bitmap go on from key to key, so that an item's bits may lie in any of them? */
static inline bool spec_is_spanning(const hibloom_spec *spec)
{
    return spec->keys == HIBLOOM_KEYS_PYREBLOOM && spec->bits > SPEC_SPAN_BITS;
}

/* Redis keys that hold its bits. */
static inline uint32_t spec_keys(const hibloom_spec *spec)
{
    if (spec_is_spanning(spec))
        return (uint32_t)((spec->bits - 1) / SPEC_SPAN_BITS + 1);
    return spec->layout == HIBLOOM_LAYOUT_PARTITIONED ? spec->hashes : spec_segments(spec);
}

/* The fewest of its keys that have all bits of an item. */
static inline uint32_t spec_item_keys(const hibloom_spec *spec)
{
    return spec->layout == HIBLOOM_LAYOUT_PARTITIONED || spec_is_spanning(spec) ? spec_keys(spec) : 1;
}

/* Is its size, and that of its links, RedisBloom's (redisbloom.h)? */
static inline bool spec_is_of_module(const hibloom_spec *spec)
{
    return spec->hash == HIBLOOM_HASH_REDISBLOOM && spec->layout == HIBLOOM_LAYOUT_CLASSIC;
}

/* In each of its keys: positions, which are bits or counters; and the bytes of these. */
static inline uint64_t spec_bitmap_bits(const hibloom_spec *spec)
{
    const uint64_t unit = spec->layout == HIBLOOM_LAYOUT_BLOCKED ? HIBLOOM_BLOCK_BITS : 1;

    if (spec_is_spanning(spec))
        return SPEC_SPAN_BITS;
    if (spec_segments(spec) == 1)
        return spec->bits;
    return ((spec->bits - 1) / spec->segments / unit + 1) * unit;
}

static inline uint64_t spec_bitmap_bytes(const hibloom_spec *spec)
{
    return (spec_bitmap_bits(spec) * spec_width(spec) + 7) / 8;
}

/* Positions in all of its keys. */
static inline uint64_t spec_all_bits(const hibloom_spec *spec)
{
    return spec_is_spanning(spec) ? spec->bits : spec_bitmap_bits(spec) * spec_keys(spec);
}

/* Sizes `spec`, whose hash and layout are set. hashes 0: the best number; segments 0: spec_default_segments.
 * EINVAL: RedisBloom has another number of hashes there. */
hibloom_status spec_size(hibloom_spec *spec, uint64_t capacity, double error_rate, uint32_t hashes);

/* The segments of a spec that names none: 1 up to HIBLOOM_SEGMENT_BITS. Beyond that the fewest of at most that size
 * that the server's allocator rounds up by 3 % at most. Never below spec->segments. */
uint32_t spec_default_segments(const hibloom_spec *spec);

bool spec_may_be_segmented(const hibloom_spec *spec); /* its layout and its hash allow it */

/* Gives it that number of segments, if it has fewer and may have them, and the bits that these take. */
hibloom_status spec_spread(hibloom_spec *spec, uint32_t segments);

/* The different items that leave the share `fill` of all its bits set: the estimate of hibloom_info. */
double spec_items_at(const hibloom_spec *spec, double fill);

/* The spec of link number `link` of a growing filter, made from an earlier link's. ERANGE: it would be too large. */
hibloom_status spec_link(hibloom_spec *out, const hibloom_spec *of, uint32_t link, uint64_t chain);

/* The same without seed and chain: how large that link is; 0: the first one, or the filter itself. */
hibloom_status spec_link_size(hibloom_spec *out, const hibloom_spec *of, uint32_t link);

static inline bool spec_has_links(const hibloom_spec *spec) /* further filters, under names of their own */
{
    return spec->growth != 0 || spec->window != 0;
}

/* Four: the look-up asks five filters, and what was added is found for a quarter longer at most. */
static inline uint32_t spec_default_slices(uint32_t window)
{
    return window < 4 ? window : 4;
}

/* Adds what was counted in one link, or all there is, and what that says. */
struct store_count;
void spec_note_count(struct store_count *all, const hibloom_spec *spec, const struct store_count *one);

/* Draws the seed of a spec that wants one and has none. */
hibloom_status spec_draw_seed(hibloom_spec *spec);

/* Is that its text? */
bool spec_says(const hibloom_spec *, const char *text);

/* The spec of a stored filter, from its text. It is `wanted`, with the stored seed if that has none. If wanted is NULL,
 * all comes from the text. ECORRUPT: the text is unreadable. EMISMATCH: wanted is another. */
hibloom_status spec_adopt(hibloom_spec *out, const hibloom_spec *wanted, const char *stored);

#endif
