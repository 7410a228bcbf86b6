/* sizing.c: how many bits and hashes n items at error rate p take.
 *
 * There is one formula, the predicted error rate; sizing only searches it, so
 * that what is promised at capacity and what hibloom_spec_error_at says of it
 * can never differ. */
#include "spec.h"

#include <math.h>

/* Bits that one item sets in one bitmap. */
static double bits_per_item(const hibloom_spec *spec)
{
    return spec->layout == HIBLOOM_LAYOUT_PARTITIONED ? 1.0 : (double)spec->hashes;
}

double hibloom_spec_error_at(const hibloom_spec *spec, uint64_t items)
{
    if (spec->bits == 0 || spec->hashes == 0)
        return (double)NAN;
    /* expm1: 1 - e^-x loses all its digits where x is small */
    double load = bits_per_item(spec) * (double)items / (double)spec->bits;
    return pow(-expm1(-load), (double)spec->hashes);
}

/* The fewest bits for n and p at this layout and k; 0 if beyond SPEC_BITS_MAX.
 * Bisected rather than solved for m: the closed form is off by a few bits
 * either way, and near p = 1 rounding makes the error rate a staircase. */
static uint64_t fewest_bits(hibloom_spec spec, uint64_t capacity, double error_rate)
{
    uint64_t too_few = 0, enough = SPEC_BITS_MAX / spec_keys(&spec);

    spec.bits = enough;
    if (hibloom_spec_error_at(&spec, capacity) > error_rate)
        return 0;
    while (enough - too_few > 1) {
        spec.bits = too_few + (enough - too_few) / 2;
        if (hibloom_spec_error_at(&spec, capacity) > error_rate)
            too_few = spec.bits;
        else
            enough = spec.bits;
    }
    return enough;
}

static hibloom_status best_hashes(hibloom_spec *spec, uint64_t capacity, double error_rate)
{
    hibloom_spec trial = *spec;
    uint32_t best = 0;
    uint64_t best_total = 0;

    /* One more than allowed: if even that saves bits, p is out of our range. */
    for (uint32_t k = 1; k <= HIBLOOM_HASHES_MAX + 1; k++) {
        trial.hashes = k;
        uint64_t total = fewest_bits(trial, capacity, error_rate) * spec_keys(&trial);
        if (total != 0 && (best == 0 || total < best_total)) {
            best = k;
            best_total = total;
        }
    }
    if (best == 0 || best > HIBLOOM_HASHES_MAX)
        return HIBLOOM_ERANGE;
    spec->hashes = best;
    return HIBLOOM_OK;
}

hibloom_status spec_size(hibloom_spec *spec, uint64_t capacity, double error_rate, uint32_t hashes)
{
    if (!(error_rate > 0.0 && error_rate < 1.0))
        return HIBLOOM_EINVAL;
    if (capacity < 1 || hashes > HIBLOOM_HASHES_MAX)
        return HIBLOOM_ERANGE;
    spec->hashes = hashes;
    if (hashes == 0) {
        hibloom_status status = best_hashes(spec, capacity, error_rate);
        if (status != HIBLOOM_OK)
            return status;
    }
    spec->bits = fewest_bits(*spec, capacity, error_rate);
    spec->capacity = capacity;
    spec->error_rate = error_rate;
    return spec->bits != 0 ? HIBLOOM_OK : HIBLOOM_ERANGE;
}

hibloom_status hibloom_spec_for(hibloom_spec *out, uint64_t capacity, double error_rate)
{
    hibloom_spec spec = {.hash = HIBLOOM_HASH_XXH3};
    hibloom_status status = spec_size(&spec, capacity, error_rate, 0);

    if (status == HIBLOOM_OK)
        *out = spec;
    return status;
}

hibloom_status hibloom_spec_for_hashes(hibloom_spec *out, uint64_t capacity, double error_rate, uint32_t hashes)
{
    hibloom_spec spec = {.hash = HIBLOOM_HASH_XXH3};
    hibloom_status status = hashes == 0 ? HIBLOOM_ERANGE : spec_size(&spec, capacity, error_rate, hashes);

    if (status == HIBLOOM_OK)
        *out = spec;
    return status;
}
