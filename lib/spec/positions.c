/* positions.c: from an item to the bits that stand for it; pure. See positions.h. */
#include "spec/positions.h"
#include "spec/spec.h"

struct hasher positions_hasher(const hibloom_spec *spec)
{
    struct hasher hasher = {
        .seeds = spec->seeds,
        .bits = spec_bitmap_bits(spec),
        .hashes = spec->hashes,
        .segments = spec_segments(spec),
    };

    hasher_set(&hasher, hash_by_id(spec->hash), spec->layout == HIBLOOM_LAYOUT_BLOCKED);
    return hasher;
}

hibloom_status hibloom_positions(const hibloom_spec *spec, const void *item, size_t len, hibloom_position *out)
{
    uint64_t bits[HIBLOOM_HASHES_MAX];
    hibloom_status status = spec_check(spec);

    if (status != HIBLOOM_OK)
        return status;
    if ((item == NULL && len != 0) || positions_count(spec, len) == 0)
        return HIBLOOM_EINVAL;
    const struct hasher hasher = positions_hasher(spec);
    const uint32_t segment = hasher.indexes(&hasher, item, len, bits);
    for (uint32_t i = 0; i < spec->hashes; i++)
        out[i] = (hibloom_position){positions_key(spec, segment, i), bits[i]};
    return HIBLOOM_OK;
}
