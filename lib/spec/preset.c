/* preset.c: the filters of other programs, as specs.
 *
 * Each preset computes the same as one published program, with its arithmetic. Where the program rounds a double, so do
 * we, in its order of operations. One bit more or less would be another filter. */
#include "spec/spec.h"
#include "spec/words.h"

#include <inttypes.h>
#include <math.h>

/* The functions that complete a spec return NULL, or in words what is out of range. */

/* Both are whole numbers, or what is behind the point does not count. */
static const char *take(struct spec *spec, double bits, double hashes)
{
    if (!(bits >= 1.0 && bits <= (double)SPEC_BITS_MAX))
        return "these numbers give less than 1 or more than 2^62 bits";
    if (!(hashes >= 1.0 && hashes <= HIBLOOM_HASHES_MAX))
        return "these numbers give less than 1 or more than 128 hashes";
    spec->bits = (uint64_t)bits;
    spec->hashes = (uint32_t)hashes;
    return NULL;
}

/* $k = ceil(($m / $n) * log(2)); positions mt_rand(0, $m - 1). */
static const char *php_mt(struct spec *spec, const struct words *words)
{
    const uint64_t bits = spec->bits; /* a double has not all of its digits */
    const char *wrong = take(spec, 1.0, ceil((double)bits / (double)spec->capacity * log(2.0)));

    spec->bits = bits;
    return wrong;
}

/* hash_count = ceil(-1.43 * log(p)); bit_count = ceil(1.43 * hash_count * n). The program
 * that has ten seeds then has ten hashes all the same. */
static const char *py_mmh3(struct spec *spec, const struct words *words)
{
    const double hashes = ceil(-1.43 * log(spec->error_rate));
    const char *wrong = take(spec, ceil(1.43 * hashes * (double)spec->capacity), hashes);

    if (words->seeds != 0)
        spec->hashes = words->seeds;
    for (uint32_t i = words->seeds; wrong == NULL && i < spec->hashes; i++)
        spec->seeds[i] = 17 + i;
    return wrong;
}

/* ---- Other libraries ----------------------------------------------------------------
 *
 * docs/presets.md says where each was read. */

/* -n ln p / ln^2 2, in the usual order of operations. */
static double optimal_bits(const struct spec *spec)
{
    return -((double)spec->capacity * log(spec->error_rate)) / (log(2.0) * log(2.0));
}

/* It allocates keys for ceil((float)m / 2^32), and reads beyond them where a position lies in one more. */
static bool has_key_too_few(uint64_t bits)
{
    return (double)ceilf((float)bits / 4294967296.0f) < ceil((double)bits / (double)SPEC_SPAN_BITS);
}

static const char *pyrebloom(struct spec *spec, const struct words *words)
{
    const double bits = floor(optimal_bits(spec));
    uint32_t seed = 314159265;

    if (spec->capacity > UINT32_MAX)
        return "its capacity is below 2^32";
    const char *wrong = take(spec, bits, ceil(log(2.0) * bits / (double)spec->capacity));
    if (wrong == NULL && has_key_too_few(spec->bits))
        wrong = "for so many bits it makes a key too few, and fails itself; choose another capacity";
    for (uint32_t i = 0; wrong == NULL && i < spec->hashes; i++, seed = 1664525u * seed + 1013904223u)
        spec->seeds[i] = seed;
    return wrong;
}

/* Its m is 1 << BLOOMFILTER_BIT, and hash i has i + 1 for its factor. */
static const char *scrapy_redis(struct spec *spec, const struct words *words)
{
    if ((spec->bits & (spec->bits - 1)) != 0)
        return "bits= is a power of two, 1 << BLOOMFILTER_BIT";
    for (uint32_t i = 0; i < spec->hashes; i++)
        spec->seeds[i] = i + 1;
    return NULL;
}

static const char *rueidis(struct spec *spec, const struct words *words)
{
    const double bits = ceil(optimal_bits(spec));

    return take(spec, bits, round(bits / (double)spec->capacity * log(2.0)));
}

/* Without capacity and error, both are read where it is attached. */
static const char *redisson(struct spec *spec, const struct words *words)
{
    if (spec->capacity == 0)
        return NULL;
    const double bits = floor(optimal_bits(spec));
    return take(spec, bits, fmax(1.0, floor(bits / (double)spec->capacity * log(2.0) + 0.5)));
}

static const char *bloomfilter_rb(struct spec *spec, const struct words *words)
{
    if (words->seeds != 1 || spec->seeds[0] + spec->hashes - 1 > UINT32_MAX)
        return "seeds= is one number, its option seed, and the last of so many after it is below 2^32";
    for (uint32_t i = 1; i < spec->hashes; i++)
        spec->seeds[i] = spec->seeds[0] + i;
    return NULL;
}

/* k from the quotient of whole numbers. */
static const char *taganaka(struct spec *spec, const struct words *words)
{
    const double bits = round(optimal_bits(spec));
    const uint64_t bits_an_item = bits <= (double)SPEC_BITS_MAX ? (uint64_t)bits / spec->capacity : 0;

    return take(spec, bits, fmax(1.0, round(log(2.0) * (double)bits_an_item)));
}

static const char *orestes(struct spec *spec, const struct words *words)
{
    const double bits = ceil(optimal_bits(spec));

    return take(spec, bits, ceil(log(2.0) * bits / (double)spec->capacity));
}

/* With growth= it is a filter of ours that grows as the module's. */
static const char *redisbloom(struct spec *spec, const struct words *words)
{
    return spec_size(spec, spec->capacity, spec->error_rate, 0) == HIBLOOM_OK
               ? NULL
               : "these numbers give more than 2^62 bits, or less than 1 or more than 128 hashes";
}

#define SIZE (GIVEN_CAPACITY | GIVEN_ERROR)

static const struct preset {
    const char *name;
    unsigned needs, takes;                                        /* GIVEN_ bits */
    const char *text;                                             /* words that it has unless others are given */
    const char *(*complete)(struct spec *, const struct words *); /* computes what lacks; NULL: nothing does */
    uint64_t bits_most;                                           /* the program's most; 0: see spec_bits_max */
} presets[] = {
    {"php-mt", GIVEN_BITS | GIVEN_CAPACITY, 0, "hash=php-mt", php_mt, 0},
    {"php-mt-legacy", GIVEN_BITS | GIVEN_CAPACITY, 0, "hash=php-mt-legacy", php_mt, 0},
    /* 256 << 22; add() and has() do nothing with "", which == null */
    {"php-poly8", 0, GIVEN_BITS | GIVEN_SEEDS,
     "hash=poly layout=partitioned bits=1073741824 seeds=3,5,7,11,13,31,37,61 empty=excluded", NULL, 0},
    {"py-mmh3", SIZE, 0, "hash=murmur3", py_mmh3, 0},
    {"py-mmh3-redis", SIZE, 0, "hash=murmur3 seeds=101,103,107,109,113,127,131,137,139,149", py_mmh3, 0},
    /* & 0x3FFFFFF: 26 bits, whatever its comment says */
    {"php-uids", 0, 0, "hash=poly bits=67108864 seeds=7,11,13,17,19,23,29", NULL, 0},
    {"pyrebloom", SIZE, 0, "hash=pyrebloom keys=pyrebloom", pyrebloom, 0},
    {"scrapy-redis", GIVEN_BITS | GIVEN_HASHES, GIVEN_CHARS, "hash=scrapy-redis codec=string", scrapy_redis,
     SPEC_STRING_BITS},
    {"go-zero", GIVEN_BITS, 0, "hash=go-zero hashes=14", NULL, SPEC_STRING_BITS},
    {"rueidis", SIZE, 0, "hash=rueidis keys=rueidis", rueidis, SPEC_STRING_BITS},
    {"redisson", 0, SIZE | GIVEN_CODEC, "hash=redisson keys=redisson codec=kryo5", redisson, SPEC_STRING_BITS - 2},
    {"bloomfilter-rb", GIVEN_BITS | GIVEN_HASHES | GIVEN_SEEDS, 0, "hash=bloomfilter-rb", bloomfilter_rb,
     SPEC_STRING_BITS},
    {"taganaka", SIZE, 0, "hash=taganaka", taganaka, SPEC_STRING_BITS},
    {"orestes", SIZE, GIVEN_INDEX, "hash=orestes keys=orestes", orestes, INT32_MAX},
    {"redisbloom", SIZE, GIVEN_GROWTH, "hash=redisbloom", redisbloom, SPEC_STRING_BITS},
};
static const struct names preset_names = NAMES(presets, &presets->name);

void preset_begin(struct words *words)
{
    words->preset = &presets[find_name(words, "preset", words->word, &preset_names)];
    if (words->status != HIBLOOM_OK)
        return;
    words->status = words_read(words, words->preset->text);
    words->given = 0;
}

hibloom_status preset_spec(struct spec *out, const struct words *words)
{
    const struct preset *preset = words->preset;
    const unsigned lacks = preset->needs & ~words->given;
    const unsigned excess = words->given & ~(preset->needs | preset->takes | GIVEN_CREATE | GIVEN_NEW_TTL);

    if (lacks != 0)
        return error_set(words->error, HIBLOOM_EINVAL, "%s= is missing: %s needs it", word_name(lacks), preset->name);
    if (excess != 0)
        return error_set(words->error, HIBLOOM_EINVAL, "%s=: %s does not take it", word_name(excess), preset->name);
    if ((words->given & SIZE) != 0 && (words->given & SIZE) != SIZE && (preset->takes & SIZE) != 0)
        return error_set(words->error, HIBLOOM_EINVAL, "%s=: %s takes capacity= and error=, or none of both",
                         word_name(words->given & SIZE), preset->name);
    *out = words->spec;
    if (out->hashes == 0)
        out->hashes = words->seeds;
    const char *wrong = preset->complete != NULL ? preset->complete(out, words) : NULL;
    if (wrong == NULL && preset->bits_most != 0 && out->bits > preset->bits_most)
        return error_set(words->error, HIBLOOM_ERANGE, "%s: %" PRIu64 " bits are more than the %" PRIu64 " it can have",
                         preset->name, out->bits, preset->bits_most);
    return wrong == NULL ? HIBLOOM_OK : error_set(words->error, HIBLOOM_ERANGE, "%s: %s", preset->name, wrong);
}
