/* spec.c: is a spec valid, and do two of them mean the same filter?
 *
 * Specs come from callers and from Redis; both are checked here, once, so that
 * everything below may count on one that is sound. */
#include "spec/spec.h"
#include "hash/hash.h"

#include <string.h>
#include <sys/random.h>

/* What the text does not show must be nothing, or two filters could have one. */
static hibloom_status check_seeds(const hibloom_spec *spec, const struct hash *hash)
{
    uint32_t shown = 0;

    if (hash->seeding == SEEDING_PER_HASH)
        shown = spec->hashes;
    else if (hash->seeding == SEEDING_KEY && spec->seeded)
        shown = hash->key_bytes / 8;
    else if (spec->seeded)
        return HIBLOOM_EINVAL;
    for (uint32_t i = 0; i < shown; i++)
        if (hash->seeding == SEEDING_PER_HASH && spec->seeds[i] > UINT32_MAX)
            return HIBLOOM_ERANGE;
    for (uint32_t i = shown; i < HIBLOOM_HASHES_MAX; i++)
        if (spec->seeds[i] != 0)
            return HIBLOOM_EINVAL;
    return HIBLOOM_OK;
}

/* It takes a hash with bits to spare, and a layout that keeps an item together. */
static bool may_be_segmented(const hibloom_spec *spec)
{
    return hash_by_id(spec->hash)->rule->segments && spec->layout != HIBLOOM_LAYOUT_PARTITIONED;
}

/* So much less, and with its seal and what Redis puts before a string a segment
 * fits into 16 MB: the next size that its allocator has is 20 MB. */
#define SEGMENT_SLACK_BITS 4096u

uint32_t spec_default_segments(const hibloom_spec *spec)
{
    if (spec->bits <= HIBLOOM_SEGMENT_BITS || !may_be_segmented(spec))
        return 1;
    const uint64_t least = (spec->bits - 1) / (HIBLOOM_SEGMENT_BITS - SEGMENT_SLACK_BITS) + 1;
    return least < HIBLOOM_SEGMENTS_MAX ? (uint32_t)least : HIBLOOM_SEGMENTS_MAX;
}

hibloom_status spec_check(const hibloom_spec *spec)
{
    const struct hash *hash = hash_by_id(spec->hash);

    if (hash == NULL)
        return HIBLOOM_EINVAL;
    if (spec->layout != HIBLOOM_LAYOUT_CLASSIC && spec->layout != HIBLOOM_LAYOUT_PARTITIONED &&
        spec->layout != HIBLOOM_LAYOUT_BLOCKED)
        return HIBLOOM_EINVAL;
    if (spec->layout == HIBLOOM_LAYOUT_BLOCKED &&
        (hash->blocked == NULL || spec->bits % HIBLOOM_BLOCK_BITS != 0))
        return HIBLOOM_EINVAL;
    if (!(spec->error_rate >= 0.0 && spec->error_rate < 1.0)) /* not NaN either */
        return HIBLOOM_EINVAL;
    if (spec->hashes < 1 || spec->hashes > HIBLOOM_HASHES_MAX)
        return HIBLOOM_ERANGE;
    if (spec->segments > HIBLOOM_SEGMENTS_MAX || spec->bits < 1 || spec->bits > spec_bits_max(spec))
        return HIBLOOM_ERANGE;
    if (spec->segments > 1 && !may_be_segmented(spec))
        return HIBLOOM_EINVAL;
    return check_seeds(spec, hash);
}

hibloom_status spec_draw_seed(hibloom_spec *spec)
{
    const struct hash *hash = hash_by_id(spec->hash);

    if (hash->seeding != SEEDING_KEY || spec->seeded)
        return HIBLOOM_OK;
    if (getentropy(spec->seeds, hash->key_bytes) != 0)
        return HIBLOOM_EIO;
    spec->seeded = true;
    return HIBLOOM_OK;
}

hibloom_status spec_adopt(hibloom_spec *out, const hibloom_spec *wanted, const char *stored)
{
    char text[HIBLOOM_SPEC_TEXT_SIZE];
    hibloom_spec spec, ours;
    hibloom_status status = hibloom_spec_parse(&spec, stored);

    if (status != HIBLOOM_OK)
        return status == HIBLOOM_ENOMEM ? status : HIBLOOM_ECORRUPT;
    ours = wanted != NULL ? *wanted : spec;
    if (ours.hash == spec.hash && hash_by_id(spec.hash)->seeding == SEEDING_KEY && !ours.seeded) {
        memcpy(ours.seeds, spec.seeds, sizeof ours.seeds);
        ours.seeded = spec.seeded;
    }
    status = hibloom_spec_format(&ours, text, sizeof text);
    if (status != HIBLOOM_OK)
        return status;
    if (strcmp(text, stored) != 0)
        return wanted != NULL ? HIBLOOM_EMISMATCH : HIBLOOM_ECORRUPT;
    *out = ours;
    return HIBLOOM_OK;
}
