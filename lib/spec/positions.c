/* positions.c: from an item to the bits that stand for it; pure. See positions.h. */
#include "spec/positions.h"
#include "hash/load.h"

struct hasher positions_hasher(const struct spec *spec)
{
    struct hasher hasher = {
        .seeds = spec->seeds,
        .bits = spec_bitmap_bits(spec),
        .hashes = spec->hashes,
        .segments = spec_segments(spec),
    };

    if (spec_is_spanning(spec))
        hasher.bits = spec->bits;
    hasher_set(&hasher, &hash_table[spec->hash], spec->codec, spec->layout == LAYOUT_BLOCKED);
    return hasher;
}

/* Is it UTF-8 (RFC 3629): no surrogates, nothing above U+10FFFF, each character in its shortest form? */
static bool is_utf8(const unsigned char *at, size_t len)
{
    static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};
    const unsigned char *const end = len > 0 ? at + len : at; /* it may be NULL */

    while (at < end) {
        const size_t more = *at < 0x80 ? 0 : *at < 0xe0 ? 1 : *at < 0xf0 ? 2 : 3;
        if (*at >= 0xf8 || (size_t)(end - at) <= more)
            return false;
        for (size_t i = 1; i <= more; i++)
            if ((at[i] & 0xc0) != 0x80)
                return false;
        const uint32_t code = hash_load_character(&at);
        if (code < least[more] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
            return false;
    }
    return true;
}

const char *positions_refuse_slowly(const void *item, size_t len)
{
    if (item == NULL && len != 0)
        return "it has no data";
    return is_utf8(item, len)
               ? NULL
               : "it is no valid UTF-8, and the program that fills this filter has texts only (codec=, chars=)";
}

hibloom_status positions_of(const struct spec *spec, const void *item, size_t len, hibloom_position *out)
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
