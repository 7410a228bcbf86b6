/* hash_xxh3.c: XXH3-128, the default: the fastest here that spreads evenly.
 *
 * Compiled in from the xxHash package's header, so that the library needs none
 * at run time and short items cost no call. The seed keeps two filters from
 * sharing their false positives; it does not make this a cryptographic hash,
 * so where an adversary chooses the items, siphash is the one to take. */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "hash/hash_spread.h"

static uint32_t numbers(const hibloom_spec *spec, const void *item, size_t len, uint64_t *out)
{
    const XXH128_hash_t h = XXH3_128bits_withSeed(item, len, spec->seeds[0]);

    return hash_spread(spec, h.low64, h.high64, out);
}

const struct hash hash_xxh3 = {"xxh3", SEEDING_KEY, 8, numbers};
