/* xxh3.h: XXH3-128, the default: the fastest here that spreads evenly.
 *
 * Compiled in from the xxHash package's header. So the library needs no xxHash at run time, and
 * short items cost no call. The seed keeps two filters from sharing their false positives. It
 * does not make this a cryptographic hash: where an adversary chooses the items, take siphash. */
#ifndef HIBLOOM_XXH3_H
#define HIBLOOM_XXH3_H

#define XXH_INLINE_ALL
#include <xxhash.h>

static inline void xxh3(const void *item, size_t len, const uint64_t *seeds, uint64_t *values)
{
    const XXH128_hash_t h = XXH3_128bits_withSeed(item, len, seeds[0]);

    values[0] = h.low64;
    values[1] = h.high64;
}

#endif
