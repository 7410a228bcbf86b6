/* counters.c: counters in this process. See bits.h. */
#include "bits/bits.h"

#define NOWHERE UINT64_MAX /* a position that an earlier one of the item repeats */

/* ---- One counter ---------------------------------------------------------------- */

/* The lowest of its bits in its byte. The first counter lies in the highest bits, as BITFIELD has it. */
static inline unsigned shift_of(uint64_t at, uint32_t width)
{
    return 8 - width - (unsigned)(at * width % 8);
}

static inline unsigned full(uint32_t width)
{
    return (1u << width) - 1;
}

static inline unsigned get(const struct bits *bits, uint64_t at)
{
    const uint32_t width = bits->spec.counters;

    return bits->start[at * width / 8] >> shift_of(at, width) & full(width);
}

/* Where it is full, it stays so. */
static inline void count(struct bits *bits, uint64_t at, int by)
{
    const uint32_t width = bits->spec.counters;
    unsigned char *byte = &bits->start[at * width / 8];

    if (get(bits, at) != full(width))
        *byte = (unsigned char)(*byte + by * (1 << shift_of(at, width)));
}

/* ---- Items ------------------------------------------------------------------------ */

void counters_drop_repeated(uint64_t *positions, uint32_t k, uint64_t none)
{
    for (uint32_t i = 1; i < k; i++)
        for (uint32_t before = 0; before < i && positions[i] != none; before++)
            if (positions[before] == positions[i])
                positions[i] = none;
}

/* Its different counters. False: it is excluded, or in a key that is not here. */
static bool locate(const struct bits *bits, const hibloom_item *item, uint64_t *at)
{
    bits_locate(bits, item, at);
    counters_drop_repeated(at, bits->spec.hashes, NOWHERE);
    return at[0] < bits->positions;
}

/* Are all of an item's counters above 0? */
static bool has_all(const struct bits *bits, const uint64_t *at)
{
    for (uint32_t i = 0; i < bits->spec.hashes; i++)
        if (at[i] != NOWHERE && get(bits, at[i]) == 0)
            return false;
    return true;
}

static void count_all(struct bits *bits, const uint64_t *at, int by)
{
    for (uint32_t i = 0; i < bits->spec.hashes; i++)
        if (at[i] != NOWHERE)
            count(bits, at[i], by);
}

void counters_add(struct bits *bits, const hibloom_item *items, size_t n, bool *is_new)
{
    uint64_t at[HIBLOOM_HASHES_MAX];

    for (size_t i = 0; i < n; i++) {
        const bool counts = locate(bits, &items[i], at);
        if (is_new != NULL)
            is_new[i] = counts && !has_all(bits, at);
        if (counts)
            count_all(bits, at, 1);
    }
}

void counters_contains(const struct bits *bits, const hibloom_item *items, size_t n, bool *found)
{
    uint64_t at[HIBLOOM_HASHES_MAX];

    for (size_t i = 0; i < n; i++)
        found[i] = locate(bits, &items[i], at) && has_all(bits, at);
}

void counters_remove(struct bits *bits, const hibloom_item *items, size_t n, bool *was_in)
{
    uint64_t at[HIBLOOM_HASHES_MAX];

    for (size_t i = 0; i < n; i++) {
        const bool in = locate(bits, &items[i], at) && has_all(bits, at);
        if (in)
            count_all(bits, at, -1);
        if (was_in != NULL)
            was_in[i] = in;
    }
}

/* ---- Bytes -------------------------------------------------------------------------- */

/* Two bytes of counters, each pair added. */
static unsigned char add_bytes(unsigned a, unsigned b, uint32_t width)
{
    unsigned sums = 0;

    for (unsigned shift = 0; shift < 8; shift += width) {
        const unsigned sum = (a >> shift & full(width)) + (b >> shift & full(width));
        sums |= (sum < full(width) ? sum : full(width)) << shift;
    }
    return (unsigned char)sums;
}

void counters_merge(unsigned char *to, const unsigned char *more, size_t len, uint32_t width)
{
    for (size_t i = 0; i < len; i++)
        if (more[i] != 0)
            to[i] = add_bytes(to[i], more[i], width);
}
