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
static bool whole(double value, uint64_t max, uint64_t *out)
{
    if (!(value >= 1.0 && value <= (double)max))
        return false;
    *out = (uint64_t)value;
    return true;
}

static void set_seeds(hibloom_spec *spec, const uint64_t *seeds, uint32_t count)
{
    memcpy(spec->seeds, seeds, count * sizeof *seeds);
    spec->hashes = count;
}

/* $k = ceil(($m / $n) * log(2)); positions mt_rand(0, $m - 1). */
static hibloom_status php_mt(hibloom_spec *spec)
{
    uint64_t hashes;

    if (spec->capacity < 1)
        return HIBLOOM_ERANGE;
    if (!whole(ceil((double)spec->bits / (double)spec->capacity * log(2.0)), HIBLOOM_HASHES_MAX, &hashes))
        return HIBLOOM_ERANGE;
    spec->hashes = (uint32_t)hashes;
    return HIBLOOM_OK;
}

/* Its size is 256 << 22; add() and has() do nothing with "", which == null. */
static hibloom_status php_poly8(hibloom_spec *spec)
{
    static const uint64_t seeds[] = {3, 5, 7, 11, 13, 31, 37, 61};

    spec->layout = HIBLOOM_LAYOUT_PARTITIONED;
    spec->empty_excluded = true;
    if (spec->bits == 0)
        spec->bits = UINT64_C(256) << 22;
    if (spec->hashes == 0)
        set_seeds(spec, seeds, sizeof seeds / sizeof *seeds);
    return HIBLOOM_OK;
}

/* hash_count = ceil(-1.43 * log(p)); bit_count = ceil(1.43 * hash_count * n). */
static hibloom_status py_mmh3_size(hibloom_spec *spec)
{
    uint64_t hashes;

    if (!(spec->error_rate > 0.0 && spec->error_rate < 1.0))
        return HIBLOOM_EINVAL;
    if (!whole(ceil(-1.43 * log(spec->error_rate)), HIBLOOM_HASHES_MAX, &hashes))
        return HIBLOOM_ERANGE;
    spec->hashes = (uint32_t)hashes;
    if (!whole(ceil(1.43 * (double)hashes * (double)spec->capacity), SPEC_BITS_MAX, &spec->bits))
        return HIBLOOM_ERANGE;
    return HIBLOOM_OK;
}

static hibloom_status py_mmh3(hibloom_spec *spec)
{
    hibloom_status status = py_mmh3_size(spec);

    for (uint32_t i = 0; status == HIBLOOM_OK && i < spec->hashes; i++)
        spec->seeds[i] = 17 + i;
    return status;
}

static hibloom_status py_mmh3_redis(hibloom_spec *spec)
{
    static const uint64_t seeds[] = {101, 103, 107, 109, 113, 127, 131, 137, 139, 149};
    hibloom_status status = py_mmh3_size(spec);

    set_seeds(spec, seeds, sizeof seeds / sizeof *seeds);
    return status;
}

/* & 0x3FFFFFF: 26 bits, whatever its comment says. */
static hibloom_status php_uids(hibloom_spec *spec)
{
    static const uint64_t seeds[] = {7, 11, 13, 17, 19, 23, 29};

    spec->bits = UINT64_C(0x3FFFFFF) + 1;
    set_seeds(spec, seeds, sizeof seeds / sizeof *seeds);
    return HIBLOOM_OK;
}

static const struct preset {
    const char *name;
    unsigned needs, takes; /* GIVEN_ bits */
    hibloom_hash hash;
    hibloom_status (*complete)(hibloom_spec *);
} presets[] = {
    {"php-mt", GIVEN_BITS | GIVEN_CAPACITY, 0, HIBLOOM_HASH_PHP_MT, php_mt},
    {"php-mt-legacy", GIVEN_BITS | GIVEN_CAPACITY, 0, HIBLOOM_HASH_PHP_MT_LEGACY, php_mt},
    {"php-poly8", 0, GIVEN_BITS | GIVEN_SEEDS, HIBLOOM_HASH_POLY, php_poly8},
    {"py-mmh3", GIVEN_CAPACITY | GIVEN_ERROR, 0, HIBLOOM_HASH_MURMUR3, py_mmh3},
    {"py-mmh3-redis", GIVEN_CAPACITY | GIVEN_ERROR, 0, HIBLOOM_HASH_MURMUR3, py_mmh3_redis},
    {"php-uids", 0, 0, HIBLOOM_HASH_POLY, php_uids},
};

hibloom_status preset_spec(hibloom_spec *out, const char *name, size_t len, const struct settings *settings)
{
    for (size_t i = 0; i < sizeof presets / sizeof *presets; i++) {
        const struct preset *preset = &presets[i];
        if (strlen(preset->name) != len || memcmp(preset->name, name, len) != 0)
            continue;
        if ((settings->given & preset->needs) != preset->needs ||
            (settings->given & ~(preset->needs | preset->takes)) != 0)
            return HIBLOOM_EINVAL;
        *out = settings->spec;
        out->hash = preset->hash;
        out->hashes = settings->seeds; /* 0 where the preset brings its own */
        return preset->complete(out);
    }
    return HIBLOOM_EINVAL;
}
