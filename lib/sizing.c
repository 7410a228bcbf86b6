/* sizing.c: how many bits and hashes n items at error rate p take.
 *
 * There is one formula, the predicted error rate; sizing only searches it, so
 * that what is promised at capacity and what hibloom_spec_error_at says of it
 * can never differ. */
#include "spec.h"

#include <math.h>

/* The chance that k bits are all set in a bitmap into which `load` times as many
 * bits were thrown as it has, in the limit of a large one. expm1: 1 - e^-x loses
 * all its digits where x is small. */
static double all_set(double load, double k)
{
    return pow(-expm1(-load), k);
}

/* The same in a block that n items fell into, which is not large: how many of
 * its B bits are set varies. The mean of fill^k follows from mean and variance
 * of the fill (occupancy of B cells by t balls; Johnson and Kotz 1977), taking
 * it for normal where k lifts it. */
static double all_set_in_block(double n, double k)
{
    const double cells = HIBLOOM_BLOCK_BITS, t = k * n;
    const double empty = exp(t * log1p(-1.0 / cells)), both_empty = exp(t * log1p(-2.0 / cells));
    const double fill = -expm1(t * log1p(-1.0 / cells));
    const double variance = empty / cells + (1.0 - 1.0 / cells) * both_empty - empty * empty;

    return fill > 0.0 ? fmin(pow(fill, k) * exp(k * (k - 1.0) / 2.0 * fmax(variance, 0.0) / (fill * fill)), 1.0) : 0.0;
}

/* Blocks hold a Poisson distributed number of items. Summed from the mean
 * outwards, as far as it matters: beyond nine standard deviations it does not. */
static double blocked_error(double mean, double k)
{
    const double reach = 9.0 * sqrt(mean) + 20.0, from = fmax(0.0, floor(mean - reach)), to = ceil(mean + reach);
    double sum = 0.0;

    if (mean * k > 40.0 * HIBLOOM_BLOCK_BITS)
        return 1.0; /* all bits are set but for e^-40 of them */
    for (double n = from; n <= to; n++)
        sum += exp(n * log(mean) - mean - lgamma(n + 1.0)) * all_set_in_block(n, k);
    return fmin(sum, 1.0);
}

double hibloom_spec_error_at(const hibloom_spec *spec, uint64_t items)
{
    const double n = (double)items, m = (double)spec->bits, k = (double)spec->hashes;

    if (spec->bits == 0 || spec->hashes == 0)
        return (double)NAN;
    if (spec->layout == HIBLOOM_LAYOUT_BLOCKED)
        return items == 0 ? 0.0 : blocked_error(n * HIBLOOM_BLOCK_BITS / m, k);
    return all_set((spec->layout == HIBLOOM_LAYOUT_PARTITIONED ? 1.0 : k) * n / m, k);
}

/* The fewest bits for n and p at this layout and k; 0 if beyond SPEC_BITS_MAX.
 * Bisected rather than solved for m: the closed form is off by a few bits
 * either way, and near p = 1 rounding makes the error rate a staircase. */
static uint64_t fewest_bits(hibloom_spec spec, uint64_t capacity, double error_rate)
{
    const uint64_t unit = spec.layout == HIBLOOM_LAYOUT_BLOCKED ? HIBLOOM_BLOCK_BITS : 1;
    uint64_t too_few = 0, enough = SPEC_BITS_MAX / spec_keys(&spec) / unit;

    spec.bits = enough * unit;
    if (hibloom_spec_error_at(&spec, capacity) > error_rate)
        return 0;
    while (enough - too_few > 1) {
        const uint64_t middle = too_few + (enough - too_few) / 2;
        spec.bits = middle * unit;
        if (hibloom_spec_error_at(&spec, capacity) > error_rate)
            too_few = middle;
        else
            enough = middle;
    }
    return enough * unit;
}

#define PAST_BEST 16u /* few items have several equally good k */

static hibloom_status best_hashes(hibloom_spec *spec, uint64_t capacity, double error_rate)
{
    hibloom_spec trial = *spec;
    uint32_t best = 0;
    uint64_t best_total = 0;

    /* One more than allowed: if even that saves bits, p is out of our range.
     * Beyond the best k ever more bits are needed, so the search ends early. */
    for (uint32_t k = 1; k <= HIBLOOM_HASHES_MAX + 1 && (best == 0 || k < best + PAST_BEST); k++) {
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
