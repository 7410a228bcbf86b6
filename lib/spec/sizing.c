/* sizing.c: how many bits and hashes n items at error rate p take; and what a count of bits says of both.
 *
 * There is one formula, the predicted error rate; sizing only searches it. So the promise at
 * capacity and the result of spec_error_at can never differ. */
#include "base/store.h"
#include "spec/redisbloom.h"
#include "spec/spec.h"

#include <math.h>
#include <string.h>

/* ---- The formula --------------------------------------------------------------------- */

/* The chance that k bits are all set in a bitmap of m bits after `load` times m were thrown into it. It is the limit
 * for a large one. Uses expm1, since 1 - e^-x loses all its digits where x is small. */
static double all_set(double load, double k)
{
    return pow(-expm1(-load), k);
}

/* The same in a block that n items fell into. It is not large, so the number of its B bits that
 * are set varies. The mean of fill^k follows from mean and variance of the fill, as if this were
 * normally distributed. Occupancy of B cells by t balls: Johnson and Kotz 1977. */
static double all_set_in_block(double n, double k, double cells)
{
    const double t = k * n, one = t * log1p(-1.0 / cells);
    const double empty = exp(one), both_empty = exp(t * log1p(-2.0 / cells)), fill = -expm1(one);
    const double variance = empty / cells + (1.0 - 1.0 / cells) * both_empty - empty * empty;

    return fill > 0.0 ? fmin(pow(fill, k) * exp(k * (k - 1.0) / 2.0 * fmax(variance, 0.0) / (fill * fill)), 1.0) : 0.0;
}

static double all_set_in_segment(double n, double k, double bits)
{
    return all_set(k * n / bits, k);
}

/* The number of items in a block or segment is Poisson distributed. With a few segments it varies less, which errs on
 * the safe side. This is the mean over it, up to nine standard deviations. Where those are large, it goes in steps of
 * half a standard deviation. Such a sum over a bell curve is its integral but for e^-79 (Poisson summation). */
static double mean_over(double mean, double k, double bits, double (*all_set_in)(double n, double k, double bits))
{
    const double reach = 9.0 * sqrt(mean) + 20.0, from = fmax(0.0, floor(mean - reach)), to = ceil(mean + reach);
    const double step = fmax(1.0, floor(sqrt(mean) / 2.0));
    const double log_mean = log(mean);
    double sum = 0.0, weights = 0.0;

    if (mean * k > 40.0 * bits)
        return 1.0; /* all are set but for e^-40 of them */
    /* NOLINTNEXTLINE(*FloatLoopCounter,cert-flp30-c): whole numbers, and a double holds all that matter */
    for (double n = from; n <= to; n += step) {
        const double weight = exp(n * log_mean - mean - lgamma(n + 1.0));
        weights += weight;
        sum += weight * all_set_in(n, k, bits);
    }
    return fmin(sum / weights, 1.0);
}

/* The error rate of one filter, or one link. */
static double error_of_one(const struct spec *spec, uint64_t items)
{
    const double n = (double)items, k = (double)spec->hashes, block = SPEC_BLOCK_BITS;

    if (items == 0)
        return 0.0;
    const double m = (double)(spec_is_spanning(spec) ? spec->bits : spec_bitmap_bits(spec));
    const double segments = spec_segments(spec);
    if (spec->layout == LAYOUT_BLOCKED)
        return mean_over(n / segments * block / m, k, block, all_set_in_block);
    if (spec->layout == LAYOUT_CLASSIC && segments > 1)
        return mean_over(n / segments, k, m, all_set_in_segment);
    return all_set((spec->layout == LAYOUT_PARTITIONED ? 1.0 : k) * n / m, k);
}

/* The error rate of all links of a growing filter, each but the last at its capacity. */
static double error_of_chain(const struct spec *spec, uint64_t items)
{
    double right = 0.0; /* the logarithm of it: small rates stay exact */
    struct spec link;

    (void)spec_link_size(&link, spec, 0);
    for (uint64_t in; items > 0; items -= in) {
        struct spec next;
        const bool ends = items <= link.capacity || spec_link(&next, &link, link.link + 1, 1) != HIBLOOM_OK;
        in = ends ? items : link.capacity;
        right += log1p(-error_of_one(&link, in));
        if (!ends)
            link = next;
    }
    return -expm1(right);
}

double spec_error_at(const struct spec *spec, uint64_t items)
{
    if (spec->bits == 0 || spec->hashes == 0)
        return (double)NAN;
    if (spec->window != 0 && spec->link == 0) /* each slice has these items: see own_error */
        return -expm1((spec->slices + 1) * log1p(-error_of_one(spec, items)));
    return spec->growth == 0 || spec->link != 0 ? error_of_one(spec, items) : error_of_chain(spec, items);
}

/* ---- A count of bits ----------------------------------------------------------------- */

double spec_items_at(const struct spec *spec, double fill)
{
    return -(double)spec_all_bits(spec) / spec->hashes * log1p(-fill);
}

/* The chance that all bits of another item are set. Blocks are not equally full: there it is the mean over them, of the
 * items that leave so much of all bits set. */
static double error_at_fill(const struct spec *spec, double fill)
{
    return spec->layout == LAYOUT_BLOCKED && fill < 1.0
               ? error_of_one(spec, (uint64_t)llround(spec_items_at(spec, fill)))
               : pow(fill, spec->hashes);
}

void spec_note_count(struct store_count *all, const struct spec *spec, const hibloom_info *one)
{
    /* a bare bitmap may go on behind our last bit */
    const double fill = fmin((double)one->bits_set / (double)spec_all_bits(spec), 1.0);
    const double items = spec_items_at(spec, fill);
    hibloom_info *info = &all->info;

    all->bits += spec_all_bits(spec);
    info->bits_set += one->bits_set;
    info->bytes += one->bytes;
    info->keys += spec_keys(spec);
    info->links++;
    info->fill = fmin((double)info->bits_set / (double)all->bits, 1.0);
    info->estimated_items += items;
    info->estimated_error_rate += (1.0 - info->estimated_error_rate) * error_at_fill(spec, fill);
    info->capacity = spec->capacity + (spec->window == 0 ? info->capacity : 0); /* each slice has all of a window's */
    info->used = spec->capacity != 0 ? fmax(info->used, items / (double)spec->capacity) : (double)NAN;
}

/* ---- The search ---------------------------------------------------------------------- */

/* The load that all_set gives this error rate. It is about proportional to 1 / bits, whatever the layout is. */
static double load_of(double error_rate, double k)
{
    return -log1p(-pow(error_rate, 1.0 / k));
}

static uint64_t unit_of(const struct spec *spec)
{
    return spec_segments(spec) * (spec->layout == LAYOUT_BLOCKED ? SPEC_BLOCK_BITS : 1u);
}

/* The fewest bits for n and p at this layout and k; 0 if beyond SPEC_BITS_MAX. The formula decides on both sides
 * of the boundary: the closed form is off by a few bits either way. It takes long, so the secant method chooses
 * its arguments: the logarithms of load and bits are nearly on a line. It begins with spec.bits, if these are not
 * 0. Near p = 1, and beyond the sizes that Redis holds, rounding makes the error rate a staircase. Every client
 * has to come to the same step of it: there it is bisected. */
#define STAIRCASE 0.999
#define STAIRCASE_ITEMS (UINT64_C(1) << 48)
#define SECANTS 20u

static uint64_t fewest_bits(struct spec spec, uint64_t capacity, double error_rate)
{
    const uint64_t unit = unit_of(&spec), most = spec_bits_max(&spec) / unit;
    const double k = spec.hashes, parts = spec.layout == LAYOUT_PARTITIONED ? 1.0 : k;
    const double load = load_of(error_rate, k);
    double next = (spec.bits != 0 ? (double)spec.bits : parts * (double)capacity / load) / (double)unit;
    double slope = -1.0, last = 0.0, last_load = 0.0;
    const bool smooth = error_rate < STAIRCASE && capacity < STAIRCASE_ITEMS;
    uint64_t too_few = 0, enough = most + 1, units = most;

    for (unsigned asked = 0; enough - too_few > 1; asked++) {
        if (smooth && asked < SECANTS && next < (double)enough)
            units = next > (double)too_few ? (uint64_t)ceil(next) : too_few + 1;
        else if (asked != 0)
            units = too_few + (enough - too_few) / 2;
        if (units >= enough)
            units = enough - 1;
        spec.bits = units * unit;
        const double error = error_of_one(&spec, capacity), here = load_of(error, k);
        if (error > error_rate)
            too_few = units;
        else
            enough = units;
        if (last > 0.0)
            slope = log(here / last_load) / log((double)units / last);
        if (!(slope > -4.0 && slope < -0.1))
            slope = -1.0;
        last = (double)units;
        last_load = here;
        next = last * pow(load / here, 1.0 / slope);
    }
    return enough <= most ? enough * unit : 0;
}

#define PAST_BEST 16u /* few items have several equally good k */

/* Are `total` bits enough for it? Then the trial has these. */
static bool does_with(struct spec *trial, uint32_t hashes, uint64_t total, uint64_t capacity, double error_rate)
{
    trial->hashes = hashes;
    trial->bits = trial->layout == LAYOUT_PARTITIONED ? total / hashes : total;
    return trial->bits != 0 && error_of_one(trial, capacity) <= error_rate;
}

/* About the best number. Partitions are whole bits each, so more may take more bits and then fewer: from 1 on. */
static uint32_t likely_hashes(const struct spec *spec, double error_rate)
{
    const double halvings = -log2(error_rate);
    const double likely = spec->layout == LAYOUT_BLOCKED ? fmin(halvings, 4.0 + 0.6 * halvings) : halvings;

    return spec->layout == LAYOUT_PARTITIONED ? 1 : (uint32_t)fmin(fmax(round(likely), 1.0), HIBLOOM_HASHES_MAX);
}

/* Hashes, and the fewest bits; from those that spec has, if any, on. False if it is none that is allowed. */
static bool best_hashes(struct spec *spec, uint64_t capacity, double error_rate)
{
    struct spec best = *spec;

    if (best.hashes == 0)
        best.hashes = likely_hashes(spec, error_rate);
    best.bits = fewest_bits(best, capacity, error_rate);
    for (uint32_t k = 1; best.bits == 0 && k <= HIBLOOM_HASHES_MAX + 1; k++) {
        best.hashes = k;
        best.bits = fewest_bits(best, capacity, error_rate);
    }
    struct spec trial = best;
    const uint32_t from = best.hashes;
    /* One more than allowed: if even that saves bits, p is out of our range.
     * Beyond the best k ever more bits are needed, so the search ends early. */
    for (uint32_t k = from + 1; best.bits != 0 && k <= HIBLOOM_HASHES_MAX + 1 && k < best.hashes + PAST_BEST; k++) {
        if (does_with(&trial, k, spec_all_bits(&best), capacity, error_rate)) {
            trial.bits = fewest_bits(trial, capacity, error_rate);
            if (spec_all_bits(&trial) < spec_all_bits(&best))
                best = trial;
        } else if (trial.layout != LAYOUT_PARTITIONED) {
            break;
        }
    }
    for (uint32_t k = from - 1; k > 0 && does_with(&trial, k, spec_all_bits(&best), capacity, error_rate); k--) {
        trial.bits = fewest_bits(trial, capacity, error_rate);
        best = trial;
    }
    *spec = best;
    return best.bits != 0 && best.hashes <= HIBLOOM_HASHES_MAX;
}

static hibloom_status size_segmented(struct spec *spec, uint64_t capacity, double error_rate, uint32_t hashes)
{
    if (spec_is_of_module(spec)) { /* as the module does it, whatever formula is better */
        if (!redisbloom_size(spec, capacity, error_rate))
            return HIBLOOM_ERANGE;
        return hashes == 0 || hashes == spec->hashes ? HIBLOOM_OK : HIBLOOM_EINVAL;
    }
    if (hashes == 0)
        return best_hashes(spec, capacity, error_rate) ? HIBLOOM_OK : HIBLOOM_ERANGE;
    spec->hashes = hashes;
    spec->bits = fewest_bits(*spec, capacity, error_rate);
    return spec->bits != 0 ? HIBLOOM_OK : HIBLOOM_ERANGE;
}

/* ---- The size of a spec -------------------------------------------------------------- */

/* The error rate that a spec's bits are for. The links of a growing filter share its error rate: they have 1/2,
 * 1/4, ... of it (Almeida, Baquero, Preguica and Hutchison 2007).
 *
 * The slices of a window share it evenly. Each may hold all that is added within `window` seconds. All may come at
 * once. An item that is added again and again is in the slice of each period. */
static double own_error(const struct spec *spec, double error_rate)
{
    if (spec_is_of_module(spec))
        error_rate = fmin(error_rate, REDISBLOOM_ERROR_MOST);
    if (spec->window != 0)
        return error_rate / (spec->slices + 1);
    return spec->growth != 0 ? ldexp(error_rate, -(int)spec->link - 1) : error_rate;
}

/* The fields that sizing reads. The seeds are left out, since copies are made of it. */
static struct spec without_seeds(const struct spec *spec)
{
    return (struct spec){
        .hash = spec->hash, .layout = spec->layout, .segments = spec_segments(spec), .counters = spec->counters};
}

static void take_size(struct spec *spec, const struct spec *sized)
{
    spec->bits = sized->bits;
    spec->hashes = sized->hashes;
    spec->segments = sized->segments;
}

hibloom_status spec_size(struct spec *spec, uint64_t capacity, double error_rate, uint32_t hashes)
{
    const bool segments_given = spec->segments != 0;
    const double own = own_error(spec, error_rate);
    struct spec sized = without_seeds(spec);
    uint32_t segments;

    if (!(error_rate > 0.0 && error_rate < 1.0))
        return HIBLOOM_EINVAL;
    if (capacity < 1 || hashes > HIBLOOM_HASHES_MAX)
        return HIBLOOM_ERANGE;
    hibloom_status status = size_segmented(&sized, capacity, own, hashes);
    /* Segments take some bits more, and these may take other segments. It ends: their number only grows. */
    while (status == HIBLOOM_OK && !segments_given && (segments = spec_default_segments(&sized)) > sized.segments) {
        sized.segments = segments;
        status = size_segmented(&sized, capacity, own, hashes);
    }
    take_size(spec, &sized);
    spec->capacity = capacity;
    spec->error_rate = error_rate;
    return status;
}

hibloom_status spec_spread(struct spec *spec, uint32_t segments)
{
    const double own = own_error(spec, spec->error_rate);
    struct spec sized = without_seeds(spec);

    if (spec_segments(spec) >= segments || !spec_may_be_segmented(spec))
        return HIBLOOM_OK;
    /* Bits that were computed are computed again, those that were given stay. */
    const bool computed = spec->capacity != 0 && spec->error_rate > 0 &&
                          size_segmented(&sized, spec->capacity, own, spec->hashes) == HIBLOOM_OK &&
                          sized.bits == spec->bits;
    spec->segments = sized.segments = segments;
    if (!computed)
        return HIBLOOM_OK;
    const hibloom_status status = size_segmented(&sized, spec->capacity, own, spec->hashes);
    take_size(spec, &sized);
    return status;
}

hibloom_status spec_link(struct spec *out, const struct spec *of, uint32_t link, uint64_t chain)
{
    uint64_t capacity = of->capacity;

    if (of->window != 0) {
        spec_copy(out, of);
        out->link = link;
        out->chain = chain;
        return HIBLOOM_OK;
    }
    for (uint32_t i = of->link; i < link; i++)
        if (__builtin_mul_overflow(capacity, of->growth, &capacity))
            return HIBLOOM_ERANGE;
    if (link >= SPEC_LINKS_MAX)
        return HIBLOOM_ERANGE;
    struct spec spec AT_END(spec_wipe);
    spec_copy(&spec, of);
    spec.capacity = capacity;
    spec.link = link;
    spec.chain = chain;
    spec.segments = 0;
    hibloom_status status = spec_size(&spec, spec.capacity, spec.error_rate, 0);
    if (status != HIBLOOM_OK)
        return status;
    if (spec_is_of_module(&spec) && spec.bits > SPEC_STRING_BITS)
        return HIBLOOM_ERANGE; /* it has one key */
    status = spec_spread(&spec, spec_segments(of));
    if (status == HIBLOOM_OK)
        *out = spec;
    return status;
}

hibloom_status spec_link_size(struct spec *out, const struct spec *of, uint32_t link)
{
    spec_copy(out, of);
    explicit_bzero(out->seeds, sizeof out->seeds);
    out->seeded = false;
    return link == 0 ? HIBLOOM_OK : spec_link(out, out, link, 1);
}
