/* positions.c: from an item to the bits that stand for it; pure. See positions.h. */
#include "spec/positions.h"
#include "hash/text.h"
#include "spec/spec.h"

struct hasher positions_hasher(const hibloom_spec *spec)
{
    struct hasher hasher = {
        .seeds = spec->seeds,
        .bits = spec_bitmap_bits(spec),
        .hashes = spec->hashes,
        .segments = spec_segments(spec),
    };

    if (spec_is_spanning(spec))
        hasher.bits = spec->bits;
    hasher_set(&hasher, hash_by_id(spec->hash), spec->codec, spec->layout == HIBLOOM_LAYOUT_BLOCKED);
    return hasher;
}

const char *positions_refuse_slowly(const void *item, size_t len)
{
    if (item == NULL && len != 0)
        return "it has no data";
    return text_is_utf8(item, len)
               ? NULL
               : "it is no valid UTF-8, and the program that fills this filter has texts only (codec=, chars=)";
}

hibloom_status hibloom_positions(const hibloom_spec *spec, const void *item, size_t len, hibloom_position *out)
{
    uint64_t bits[HIBLOOM_HASHES_MAX];
    hibloom_status status = spec_check(spec);

    if (status != HIBLOOM_OK)
        return status;
    if (positions_refuse(spec, item, len) != NULL || positions_count(spec, len) == 0)
        return HIBLOOM_EINVAL;
    const struct hasher hasher = positions_hasher(spec);
    const uint32_t segment = hasher.indexes(&hasher, item, len, bits);
    for (uint32_t i = 0; i < spec->hashes; i++)
        out[i] = positions_at(spec, segment, i, bits[i]);
    return HIBLOOM_OK;
}
