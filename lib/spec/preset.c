/* preset.c: the filters of other programs, as specs.
 *
 * Each preset is what one published program computes, with its arithmetic:
 * where the program rounds a double, so do we, in its order of operations, for
 * one bit more or less would be another filter. */
#include "spec/spec.h"
#include "spec/spec_text.h"

#include <math.h>
#include <string.h>

/* Takes a double count over; false if it is no number in 1 .. max. */
static bool take_count(double value, uint64_t max, uint64_t *out)
{
    if (!(value >= 1.0 && value <= (double)max))
        return false;
    *out = (uint64_t)value;
    return true;
}

/* The functions that complete a spec return NULL, or in words what is out of range. */

static const char *take_hashes(double value, hibloom_spec *spec)
{
    uint64_t hashes;

    if (!take_count(value, HIBLOOM_HASHES_MAX, &hashes))
        return "these numbers give less than 1 or more than 128 hashes";
    spec->hashes = (uint32_t)hashes;
    return NULL;
}

static void set_seeds(hibloom_spec *spec, const uint64_t *seeds, uint32_t count)
{
    memcpy(spec->seeds, seeds, count * sizeof *seeds);
    spec->hashes = count;
}

/* $k = ceil(($m / $n) * log(2)); positions mt_rand(0, $m - 1). */
static const char *php_mt(hibloom_spec *spec)
{
    return take_hashes(ceil((double)spec->bits / (double)spec->capacity * log(2.0)), spec);
}

/* Its size is 256 << 22; add() and has() do nothing with "", which == null. */
static const char *php_poly8(hibloom_spec *spec)
{
    static const uint64_t seeds[] = {3, 5, 7, 11, 13, 31, 37, 61};

    spec->layout = HIBLOOM_LAYOUT_PARTITIONED;
    spec->empty_excluded = true;
    if (spec->bits == 0)
        spec->bits = UINT64_C(256) << 22;
    if (spec->hashes == 0)
        set_seeds(spec, seeds, sizeof seeds / sizeof *seeds);
    return NULL;
}

/* hash_count = ceil(-1.43 * log(p)); bit_count = ceil(1.43 * hash_count * n). */
static const char *py_mmh3_size(hibloom_spec *spec)
{
    const char *wrong = take_hashes(ceil(-1.43 * log(spec->error_rate)), spec);

    if (wrong == NULL &&
        !take_count(ceil(1.43 * (double)spec->hashes * (double)spec->capacity), SPEC_BITS_MAX, &spec->bits))
        wrong = "these numbers give more than 2^62 bits";
    return wrong;
}

static const char *py_mmh3(hibloom_spec *spec)
{
    const char *wrong = py_mmh3_size(spec);

    for (uint32_t i = 0; wrong == NULL && i < spec->hashes; i++)
        spec->seeds[i] = 17 + i;
    return wrong;
}

static const char *py_mmh3_redis(hibloom_spec *spec)
{
    static const uint64_t seeds[] = {101, 103, 107, 109, 113, 127, 131, 137, 139, 149};
    const char *wrong = py_mmh3_size(spec);

    set_seeds(spec, seeds, sizeof seeds / sizeof *seeds);
    return wrong;
}

/* & 0x3FFFFFF: 26 bits, whatever its comment says. */
static const char *php_uids(hibloom_spec *spec)
{
    static const uint64_t seeds[] = {7, 11, 13, 17, 19, 23, 29};

    spec->bits = UINT64_C(0x3FFFFFF) + 1;
    set_seeds(spec, seeds, sizeof seeds / sizeof *seeds);
    return NULL;
}

static const struct preset {
    const char *name;
    unsigned needs, takes; /* GIVEN_ bits */
    hibloom_hash hash;
    const char *(*complete)(hibloom_spec *);
} presets[] = {
    {"php-mt", GIVEN_BITS | GIVEN_CAPACITY, 0, HIBLOOM_HASH_PHP_MT, php_mt},
    {"php-mt-legacy", GIVEN_BITS | GIVEN_CAPACITY, 0, HIBLOOM_HASH_PHP_MT_LEGACY, php_mt},
    {"php-poly8", 0, GIVEN_BITS | GIVEN_SEEDS, HIBLOOM_HASH_POLY, php_poly8},
    {"py-mmh3", GIVEN_CAPACITY | GIVEN_ERROR, 0, HIBLOOM_HASH_MURMUR3, py_mmh3},
    {"py-mmh3-redis", GIVEN_CAPACITY | GIVEN_ERROR, 0, HIBLOOM_HASH_MURMUR3, py_mmh3_redis},
    {"php-uids", 0, 0, HIBLOOM_HASH_POLY, php_uids},
};

static const char *preset_name(size_t i)
{
    return i < sizeof presets / sizeof *presets ? presets[i].name : NULL;
}

hibloom_status preset_spec(hibloom_spec *out, struct settings *settings)
{
    const struct preset *preset = &presets[find_name(settings, "preset", settings->preset, preset_name)];

    if (settings->status != HIBLOOM_OK)
        return settings->status;
    const unsigned lacks = preset->needs & ~settings->given;
    const unsigned excess = settings->given & ~(preset->needs | preset->takes);
    if (lacks != 0)
        return error_set(settings->error, HIBLOOM_EINVAL, "%s= is missing: %s needs it", setting_name(lacks),
                         preset->name);
    if (excess != 0)
        return error_set(settings->error, HIBLOOM_EINVAL, "%s=: %s does not take it", setting_name(excess),
                         preset->name);
    *out = settings->spec;
    out->hash = preset->hash;
    out->hashes = settings->seeds; /* 0 where the preset brings its own */
    const char *wrong = preset->complete(out);
    return wrong == NULL ? HIBLOOM_OK : error_set(settings->error, HIBLOOM_ERANGE, "%s: %s", preset->name, wrong);
}
