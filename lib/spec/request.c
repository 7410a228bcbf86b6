/* request.c: the text of a caller against the text that is stored. See request.h. */
#include "spec/request.h"
#include "hash/hash.h"

#include <stdio.h>
#include <string.h>

/* ---- What is said ---- */

#define SIZES ((unsigned)(GIVEN_CAPACITY | GIVEN_BITS))
#define KINDS ((unsigned)(GIVEN_GROWTH | GIVEN_WINDOW | GIVEN_COUNTERS))
#define ALL ((unsigned)(GIVEN_CHAIN << 1) - 1) /* of the spec */

/* The words of the spec that the text fixes. */
static unsigned said_by(const struct words *s, const struct spec *spec)
{
    unsigned said = s->given & ALL;

    if (s->preset != NULL) {
        said = ALL & ~(unsigned)(GIVEN_SEGMENTS | GIVEN_SLICES);
        if (spec_is_unsized(spec))
            said &= ~(unsigned)(GIVEN_BITS | GIVEN_HASHES);
        if (spec->capacity == 0)
            said &= ~(unsigned)(GIVEN_CAPACITY | GIVEN_ERROR);
    }
    if ((said & GIVEN_SEEDS) != 0)
        said |= GIVEN_HASHES;
    if ((said & SIZES) != 0 && (said & KINDS) == 0)
        said |= KINDS; /* a plain one */
    return said;
}

static bool is_seed(struct word seed)
{
    return seed.len > 0 && seed.len < REQUEST_SEED && strspn(seed.text, "0123456789abcdefABCDEF") >= seed.len;
}

static hibloom_status check(const struct words *s)
{
    static const unsigned pairs[][2] = {{GIVEN_HASH, GIVEN_NEW_HASH},
                                        {GIVEN_LAYOUT, GIVEN_NEW_LAYOUT},
                                        {GIVEN_SEGMENTS, GIVEN_NEW_SEGMENTS},
                                        {GIVEN_BITS, GIVEN_NEW_PREFER}};

    if (s->given == 0 && s->preset == NULL)
        return error_set(s->error, HIBLOOM_EINVAL, "the text says nothing; NULL takes any filter");
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if ((s->given & pairs[i][0]) != 0 && (s->given & pairs[i][1]) != 0)
            return error_set(s->error, HIBLOOM_EINVAL, "%s= and %s=: not together", word_name(pairs[i][0]),
                             word_name(pairs[i][1]));
    if ((s->given & GIVEN_SEED) != 0 && !is_seed(s->seed))
        return error_set(s->error, HIBLOOM_EINVAL, "seed=: not 1 to 32 hexadecimal digits");
    return HIBLOOM_OK;
}

static hibloom_status take(struct request *out, struct words *s)
{
    hibloom_status status = words_spec(&out->spec, s);

    if (status != HIBLOOM_OK && s->lacks == NULL)
        return status;
    if (status != HIBLOOM_OK)
        out->spec = s->spec;
    out->lacks = s->lacks;
    out->given = s->given;
    out->said = said_by(s, &out->spec);
    if (s->lacks != NULL && (out->said & GIVEN_SEEDS) != 0)
        out->spec.hashes = s->seeds;
    out->prefer = s->prefer;
    out->create = s->create;
    out->ttl_ms = s->ttl_ms;
    out->makes = s->lacks == NULL && s->create != CREATE_NO;
    if (s->seed.len > 0)
        memcpy(out->seed, s->seed.text, s->seed.len);
    return HIBLOOM_OK;
}

hibloom_status request_read(struct request *out, const char *text, struct error *error)
{
    struct words words = {.error = error};

    memset(out, 0, sizeof *out);
    if (text == NULL)
        return HIBLOOM_OK;
    hibloom_status status = words_read(&words, text);
    if (status == HIBLOOM_OK)
        status = check(&words);
    return status == HIBLOOM_OK ? take(out, &words) : status;
}

void request_say_all(struct request *out)
{
    out->said = ALL;
}

void request_exactly(struct request *out, const struct spec *spec)
{
    memset(out, 0, sizeof *out);
    out->spec = *spec;
    out->said = ALL & ~(unsigned)(GIVEN_SEED | GIVEN_SEEDS); /* it draws its seed */
    out->makes = true;
}

hibloom_status request_check(const struct request *request, struct error *error)
{
    if (request->lacks == NULL && request->said != 0)
        return HIBLOOM_OK;
    return error_set(error, HIBLOOM_EINVAL, "%s", request->lacks != NULL ? request->lacks : "there is no text");
}

hibloom_status request_check_bare(const struct request *r, struct error *error)
{
    const unsigned needs = GIVEN_HASH | (spec_is_unsized(&r->spec) ? 0 : GIVEN_BITS | GIVEN_HASHES);
    const unsigned lacks = needs & ~r->said, wishes = r->given & (GIVEN_NEW | GIVEN_CREATE);

    if (r->said == 0)
        return error_set(error, HIBLOOM_EINVAL, "a bare bitmap has no spec: the text must say all of it");
    if (wishes != 0)
        return error_set(error, HIBLOOM_EINVAL, "%s=: a bare bitmap is not made by this call", word_name(wishes));
    if (lacks != 0)
        return error_set(error, HIBLOOM_EINVAL, "%s= is missing: a bare bitmap has no spec, so the text says all of it",
                         word_name(lacks));
    return request_check(r, error);
}

/* ---- Against what is stored ---- */

/* The stored seed, if the digits say it; else something else. */
static bool is_same_seed(const struct request *said, const struct spec *stored)
{
    struct spec own AT_END(spec_wipe) = {.hash = stored->hash};
    const struct hash *hash = &hash_table[stored->hash];

    return hash->seeding == SEEDING_KEY && stored->seeded &&
           words_read_seed(&own, (struct word){said->seed, strlen(said->seed)}, hash->key_bytes) &&
           memcmp(own.seeds, stored->seeds, sizeof own.seeds) == 0;
}

#define WORD 64u /* of any but seeds */

/* The canonical words are compared; where a number follows from others, as that of segments does, the numbers. */
static bool is_so(const struct request *said, const struct spec *stored, unsigned bit)
{
    char ours[WORD], theirs[WORD];

    if (bit == GIVEN_SEED)
        return said->seed[0] == '\0' || is_same_seed(said, stored);
    if (bit == GIVEN_SEEDS)
        return hash_table[stored->hash].seeding == SEEDING_PER_HASH
                   ? memcmp(said->spec.seeds, stored->seeds, sizeof stored->seeds) == 0
                   : (said->given & GIVEN_SEEDS) == 0;
    if (bit == GIVEN_SEGMENTS)
        return spec_segments(&said->spec) == spec_segments(stored);
    spec_word(&said->spec, bit, ours, sizeof ours);
    spec_word(stored, bit, theirs, sizeof theirs);
    return strcmp(ours, theirs) == 0;
}

/* "growth=2", "no growth=". */
static void describe(const struct spec *spec, unsigned bit, char out[WORD])
{
    spec_word(spec, bit, out, WORD);
    if (bit == GIVEN_SEGMENTS)
        snprintf(out, WORD, "segments=%u", (unsigned)spec_segments(spec));
    else if (out[0] == '\0')
        snprintf(out, WORD, "no %s=", word_name(bit));
}

const char *request_tell_apart(char out[REQUEST_APART], const struct spec *a, const struct spec *b)
{
    const unsigned sizes = GIVEN_BITS | GIVEN_HASHES, seeds = GIVEN_SEED | GIVEN_SEEDS;
    const unsigned order[] = {ALL & ~(sizes | seeds), GIVEN_HASHES, GIVEN_BITS}; /* these two follow from others */
    char ours[WORD], theirs[WORD];

    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        for (unsigned bit = 1; bit <= GIVEN_CHAIN; bit <<= 1) {
            if ((bit & order[i]) == 0)
                continue;
            describe(a, bit, ours);
            describe(b, bit, theirs);
            if (strcmp(ours, theirs) != 0) {
                snprintf(out, REQUEST_APART, "%s and %s", ours, theirs);
                return out;
            }
        }
    return "another seed";
}

static hibloom_status refuse(const struct request *said, const struct spec *stored, unsigned bit, struct error *error)
{
    char ours[WORD], theirs[WORD];

    if ((bit & (GIVEN_SEED | GIVEN_SEEDS)) != 0)
        return error_set(error, HIBLOOM_EMISMATCH, "has another %s=", word_name(bit));
    describe(&said->spec, bit, ours);
    describe(stored, bit, theirs);
    return error_set(error, HIBLOOM_EMISMATCH, "has %s, and the text says %s%s", theirs, ours,
                     (bit & KINDS & ~said->given) != 0 ? " (a size without growth=, window= or counters= says plain)"
                                                       : "");
}

hibloom_status request_adopt(struct spec *out, const struct request *said, const char *stored, struct error *error)
{
    struct spec spec AT_END(spec_wipe);
    const hibloom_status status = spec_adopt(&spec, stored);

    if (status == HIBLOOM_ENOTSUP)
        return request_say_newer(stored, error);
    if (status != HIBLOOM_OK)
        return error_set(error, status, "has a spec that cannot be read");
    for (unsigned bit = 1; said != NULL && bit <= GIVEN_CHAIN; bit <<= 1)
        if ((said->said & bit) != 0 && !is_so(said, &spec, bit))
            return refuse(said, &spec, bit, error);
    *out = spec;
    return HIBLOOM_OK;
}

hibloom_status request_say_newer(const char *stored, struct error *error)
{
    char words[sizeof error->words];

    return error_set(error, HIBLOOM_ENOTSUP, "was %s", spec_error(stored, words, sizeof words));
}
