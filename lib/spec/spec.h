/* spec.h: the functions on specs (base/spec.h). Outside the library a spec is a text (request.h).
 *
 *   sizing.c     n and p -> bits and hashes, and the error rate back
 *   words.c      text -> words
 *   spec_text.c  words -> spec, spec -> text
 *   request.c    the text of a caller: what must be so, and what would be made
 *   preset.c     the specs of other programs
 *   spec.c       is this one valid, are these two the same filter */
#ifndef HIBLOOM_SPEC_H
#define HIBLOOM_SPEC_H

#include "base/spec.h"

#include <float.h>

/* The sizes and positions of a filter come from doubles, and have to be the same on every machine. So intermediate
 * results must not be wider (1: only those of floats are, and a cast makes them narrow). */
_Static_assert(FLT_EVAL_METHOD == 0 || FLT_EVAL_METHOD == 1, "on a 32-bit x86 compile with -msse2 -mfpmath=sse");

/* ---- Specs are made, read and written ------------------------------------------ */

/* A spec from a text that fixes all of it, in its stored form: window= is in seconds. docs/format.md and spec_text.c
 * have the words. EINVAL: it is not such a text. ERANGE: a number in it is out of range. */
hibloom_status spec_parse(struct spec *out, const char *text);

/* Why spec_parse refuses it; "" if it does not. Returns buf. */
const char *spec_error(const char *text, char *buf, size_t size);

/* The canonical text, as it is stored: two processes agree on a filter if and only if these are equal. */
hibloom_status spec_format(const struct spec *spec, char *buf, size_t size);

/* The same for callers: window= has its unit. HIBLOOM_TEXT_SIZE holds it. */
hibloom_status spec_format_said(const struct spec *spec, char *buf, size_t size);

/* The predicted false-positive rate once `items` different items are in: (1 - e^(-kn/m))^k, in the partitioned layout
 * (1 - e^(-n/m))^k (Bloom 1970; in this form in Broder and Mitzenmacher 2004). Blocks and segments do not all have the
 * same number of items: there it is the mean over them, with a Poisson distribution (Putze, Sanders and Singler
 * 2007). NaN if bits or hashes is 0. It is right for a hash that spreads evenly; poly does not. */
double spec_error_at(const struct spec *spec, uint64_t items);

/* ---- Its numbers ----------------------------------------------------------------- */

#define SPEC_BITS_MAX (UINT64_C(1) << 62)    /* of all keys together; sums and doubles of them stay far from overflow */
#define SPEC_STRING_BITS (UINT64_C(1) << 32) /* that a Redis string can hold: 512 MiB */
#define SPEC_SPAN_BITS UINT64_C(0xffffffff)  /* in a key of pyreBloom, where it has several */

/* The bits that one position takes: more than one where it is a counter. */
static inline uint32_t spec_width(const struct spec *spec)
{
    return spec->counters != 0 ? spec->counters : 1;
}

static inline uint64_t spec_bits_max(const struct spec *spec) /* of spec->bits */
{
    if (spec->keys == KEYS_PYREBLOOM)
        return SPEC_SPAN_BITS * SPEC_SEGMENTS_MAX;
    return SPEC_BITS_MAX / (spec->layout == LAYOUT_PARTITIONED ? spec->hashes : spec_width(spec));
}

/* OK if spec_parse could have made it; else EINVAL or ERANGE, and words that name the field. */
hibloom_status spec_check_words(const struct spec *spec, struct error *error);

/* The same without words. EINVAL, too, if it has no size. */
hibloom_status spec_check(const struct spec *spec);

static inline uint32_t spec_segments(const struct spec *spec)
{
    return spec->segments != 0 ? spec->segments : 1;
}

/* Are bits and hashes still to be read from what lies beside the filter? */
static inline bool spec_is_unsized(const struct spec *spec)
{
    return spec->bits == 0 && spec->hashes == 0;
}

/* Does one bitmap go on from key to key, so that an item's bits may lie in any of them? */
static inline bool spec_is_spanning(const struct spec *spec)
{
    return spec->keys == KEYS_PYREBLOOM && spec->bits > SPEC_SPAN_BITS;
}

/* Redis keys that hold its bits. */
static inline uint32_t spec_keys(const struct spec *spec)
{
    if (spec_is_spanning(spec))
        return (uint32_t)((spec->bits - 1) / SPEC_SPAN_BITS + 1);
    return spec->layout == LAYOUT_PARTITIONED ? spec->hashes : spec_segments(spec);
}

/* The fewest of its keys that have all bits of an item. */
static inline uint32_t spec_item_keys(const struct spec *spec)
{
    return spec->layout == LAYOUT_PARTITIONED || spec_is_spanning(spec) ? spec_keys(spec) : 1;
}

/* Is its size, and that of its links, RedisBloom's (redisbloom.h)? */
static inline bool spec_is_of_module(const struct spec *spec)
{
    return spec->hash == HASH_REDISBLOOM && spec->layout == LAYOUT_CLASSIC;
}

/* Positions in each of its keys: bits or counters. */
static inline uint64_t spec_bitmap_bits(const struct spec *spec)
{
    const uint64_t unit = spec->layout == LAYOUT_BLOCKED ? SPEC_BLOCK_BITS : 1;

    if (spec_is_spanning(spec))
        return SPEC_SPAN_BITS;
    if (spec_segments(spec) == 1)
        return spec->bits;
    return ((spec->bits - 1) / spec->segments / unit + 1) * unit;
}

/* The bytes of these. */
static inline uint64_t spec_bitmap_bytes(const struct spec *spec)
{
    return (spec_bitmap_bits(spec) * spec_width(spec) + 7) / 8;
}

/* Positions in all of its keys. */
static inline uint64_t spec_all_bits(const struct spec *spec)
{
    return spec_is_spanning(spec) ? spec->bits : spec_bitmap_bits(spec) * spec_keys(spec);
}

/* Sizes `spec`, whose hash and layout are set. hashes 0: the best number; segments 0: spec_default_segments.
 * EINVAL: RedisBloom has another number of hashes there. */
hibloom_status spec_size(struct spec *spec, uint64_t capacity, double error_rate, uint32_t hashes);

/* The segments of a spec that names none: 1 up to SPEC_SEGMENT_BITS. Beyond that the fewest of at most that size
 * that the server's allocator rounds up by 3 % at most. Never below spec->segments. */
uint32_t spec_default_segments(const struct spec *spec);

/* The bytes of bits that a key may have in the memory that the server's allocator takes for so many, 1 or more. */
uint64_t spec_key_room(uint64_t bitmap_bytes);

bool spec_may_be_segmented(const struct spec *spec); /* its layout and its hash allow it */

/* Gives it that number of segments, if it has fewer and may have them, and the bits that these take. */
hibloom_status spec_spread(struct spec *spec, uint32_t segments);

/* The different items that leave the share `fill` of all its bits set: the estimate of hibloom_info. */
double spec_items_at(const struct spec *spec, double fill);

/* The spec of link number `link` of a growing filter, made from an earlier link's. ERANGE: it would be too large. */
hibloom_status spec_link(struct spec *out, const struct spec *of, uint32_t link, uint64_t chain);

/* How large that link is; 0: the first one, or the filter itself. Seed and chain of `out` are not the link's. */
hibloom_status spec_link_size(struct spec *out, const struct spec *of, uint32_t link);

static inline bool spec_has_links(const struct spec *spec) /* further filters, under names of their own */
{
    return spec->growth != 0 || spec->window != 0;
}

/* Four: the look-up asks five filters, and what was added is found for a quarter longer at most. */
static inline uint32_t spec_default_slices(uint32_t window)
{
    return window < 4 ? window : 4;
}

/* Adds the bits_set and bytes of one link, or all there is, and what these say. */
struct store_count;
void spec_note_count(struct store_count *all, const struct spec *spec, const hibloom_info *one);

/* Bytes of a spec with its seeds. An open handle has no more. */
size_t spec_bytes(const struct spec *spec);

/* Reads these bytes alone, and fills the rest with zeros. They may overlap. */
void spec_copy(struct spec *out, const struct spec *in);

/* Does its hash want a seed, and it has none? */
bool spec_lacks_seed(const struct spec *);

/* Draws the seed of a spec that lacks one. */
hibloom_status spec_draw_seed(struct spec *spec);

/* Its text may be shown then. Per-hash seeds stay: they are no secret. */
void spec_forget_seed(struct spec *spec);

/* Is that its text? */
bool spec_says(const struct spec *, const char *text);

/* The spec of a stored filter, from its text. ECORRUPT: the text is unreadable. ENOTSUP: it has a word that is unknown
 * here, so a newer version has written it. */
hibloom_status spec_adopt(struct spec *out, const char *stored);

#endif
