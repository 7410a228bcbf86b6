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

    if (spec_is_spanning(spec))
        hasher.bits = spec->bits;
    hasher_set(&hasher, hash_by_id(spec->hash), spec->codec, spec->layout == HIBLOOM_LAYOUT_BLOCKED);
    return hasher;
}

/* The length of the character at p, with `left` bytes there; 0: it is none. */
static size_t character_length(const unsigned char *p, size_t left)
{
    /* The second byte's range is narrower where a form would be too long, a surrogate or too large. */
    const unsigned from = p[0] == 0xe0 ? 0xa0 : p[0] == 0xf0 ? 0x90 : 0x80;
    const unsigned to = p[0] == 0xed ? 0x9f : p[0] == 0xf4 ? 0x8f : 0xbf;
    const size_t len = p[0] < 0x80 ? 1 : p[0] < 0xc2 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : p[0] < 0xf5 ? 4 : 0;

    if (len > left || (len > 1 && (p[1] < from || p[1] > to)))
        return 0;
    for (size_t i = 2; i < len; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    return len;
}

/* Is it UTF-8 (RFC 3629): no surrogates, nothing above U+10FFFF, each character in its shortest form? */
static bool is_utf8(const void *bytes, size_t len)
{
    const unsigned char *p = bytes;
    size_t step;

    for (size_t at = 0; at < len; at += step) {
        step = character_length(p + at, len - at);
        if (step == 0)
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
