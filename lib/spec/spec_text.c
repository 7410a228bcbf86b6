/* spec_text.c: a spec as one line of text, and back.
 *
 * The text is what processes compare, so there is one canonical form of it,
 * made by one function. Reading is more lenient (any order, presets, sizes left
 * to be computed) but never guesses: a word it does not know is an error, and
 * so is one that comes twice. Texts come from Redis too, so lengths are
 * checked throughout. */
#include "spec/spec_text.h"
#include "hash/hash.h"
#include "base/number.h"
#include "spec/spec.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const layouts[] = {"classic", "partitioned", "blocked"};

struct word {
    const char *text;
    size_t len;
};

static bool word_is(struct word word, const char *name)
{
    return strlen(name) == word.len && memcmp(name, word.text, word.len) == 0;
}

/* ---- text -> settings ---- */

static hibloom_status set_hash(struct settings *s, struct word value)
{
    return hash_by_name(value.text, value.len, &s->spec.hash) != NULL ? HIBLOOM_OK : HIBLOOM_EINVAL;
}

static hibloom_status set_layout(struct settings *s, struct word value)
{
    for (unsigned i = 0; i < sizeof layouts / sizeof *layouts; i++)
        if (word_is(value, layouts[i])) {
            s->spec.layout = (hibloom_layout)i;
            return HIBLOOM_OK;
        }
    return HIBLOOM_EINVAL;
}

/* A number that is given is not 0: that stands for "not given" in a spec. */
static hibloom_status set_count(struct word value, uint64_t max, uint64_t *out)
{
    hibloom_status status = number_parse(value.text, value.len, max, out);

    return status == HIBLOOM_OK && *out == 0 ? HIBLOOM_ERANGE : status;
}

static hibloom_status set_bits(struct settings *s, struct word value)
{
    return set_count(value, SPEC_BITS_MAX, &s->spec.bits);
}

static hibloom_status set_hashes(struct settings *s, struct word value)
{
    uint64_t hashes = 0;
    hibloom_status status = set_count(value, HIBLOOM_HASHES_MAX, &hashes);

    s->spec.hashes = (uint32_t)hashes;
    return status;
}

static hibloom_status set_segments(struct settings *s, struct word value)
{
    uint64_t segments = 0;
    hibloom_status status = set_count(value, HIBLOOM_SEGMENTS_MAX, &segments);

    s->spec.segments = (uint32_t)segments;
    return status;
}

static hibloom_status set_capacity(struct settings *s, struct word value)
{
    return set_count(value, UINT64_MAX, &s->spec.capacity);
}

static hibloom_status set_error(struct settings *s, struct word value)
{
    hibloom_status status = number_parse_double(value.text, value.len, &s->spec.error_rate);

    if (status == HIBLOOM_OK && !(s->spec.error_rate > 0.0 && s->spec.error_rate < 1.0))
        status = HIBLOOM_ERANGE;
    return status;
}

/* Kept as written: what its digits mean depends on the hash, which may follow. */
static hibloom_status set_seed(struct settings *s, struct word value)
{
    if (value.len == 0 || value.len >= sizeof s->seed)
        return HIBLOOM_EINVAL;
    memcpy(s->seed, value.text, value.len);
    s->seed[value.len] = '\0';
    return HIBLOOM_OK;
}

static hibloom_status set_seeds(struct settings *s, struct word value)
{
    const char *at = value.text, *end = value.text + value.len;

    for (;;) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        const char *stop = comma != NULL ? comma : end;
        if (s->seeds == HIBLOOM_HASHES_MAX)
            return HIBLOOM_ERANGE;
        hibloom_status status = number_parse(at, (size_t)(stop - at), UINT32_MAX, &s->spec.seeds[s->seeds]);
        if (status != HIBLOOM_OK)
            return status;
        s->seeds++;
        if (comma == NULL)
            return HIBLOOM_OK;
        at = comma + 1;
    }
}

static hibloom_status set_empty(struct settings *s, struct word value)
{
    s->spec.empty_excluded = true;
    return word_is(value, "excluded") ? HIBLOOM_OK : HIBLOOM_EINVAL;
}

static const struct setting {
    const char *name;
    unsigned bit;
    hibloom_status (*set)(struct settings *, struct word);
} setting_table[] = {
    {"hash", GIVEN_HASH, set_hash},             {"layout", GIVEN_LAYOUT, set_layout},
    {"bits", GIVEN_BITS, set_bits},             {"hashes", GIVEN_HASHES, set_hashes},
    {"seed", GIVEN_SEED, set_seed},             {"seeds", GIVEN_SEEDS, set_seeds},
    {"empty", GIVEN_EMPTY, set_empty},          {"capacity", GIVEN_CAPACITY, set_capacity},
    {"error", GIVEN_ERROR, set_error},          {"segments", GIVEN_SEGMENTS, set_segments},
};

static hibloom_status apply(struct settings *settings, struct word name, struct word value)
{
    for (size_t i = 0; i < sizeof setting_table / sizeof *setting_table; i++) {
        const struct setting *setting = &setting_table[i];
        if (!word_is(name, setting->name))
            continue;
        if (settings->given & setting->bit)
            return HIBLOOM_EINVAL;
        settings->given |= setting->bit;
        return setting->set(settings, value);
    }
    return HIBLOOM_EINVAL;
}

/* Reads all words; *preset is the first one if it has no '='. */
static hibloom_status read_settings(struct settings *settings, const char *text, struct word *preset)
{
    static const char blanks[] = " \t\r\n";
    hibloom_status status = HIBLOOM_OK;

    for (const char *at = text + strspn(text, blanks); *at != '\0' && status == HIBLOOM_OK;) {
        const struct word word = {at, strcspn(at, blanks)};
        const char *equals = memchr(word.text, '=', word.len);
        if (equals != NULL) {
            const size_t name_len = (size_t)(equals - word.text);
            status = apply(settings, (struct word){word.text, name_len},
                           (struct word){equals + 1, word.len - name_len - 1});
        } else if (preset->len == 0 && settings->given == 0) {
            *preset = word;
        } else {
            status = HIBLOOM_EINVAL;
        }
        at += word.len;
        at += strspn(at, blanks);
    }
    return status;
}

/* ---- settings -> spec ---- */

/* xxh3: one number, up to 16 digits. siphash: the 16 bytes of its key in
 * order, of which the two seeds are the little-endian words. */
static hibloom_status read_seed(hibloom_spec *spec, const char *hex, unsigned key_bytes)
{
    const size_t len = strlen(hex);
    unsigned char digits[32];

    if (len > 2 * (size_t)key_bytes || (key_bytes > 8 && len != 2 * (size_t)key_bytes))
        return HIBLOOM_EINVAL;
    for (size_t i = 0; i < len; i++) {
        const int digit = number_hex_digit(hex[i]);
        if (digit < 0)
            return HIBLOOM_EINVAL;
        digits[i] = (unsigned char)digit;
    }
    for (size_t i = 0; key_bytes == 8 && i < len; i++)
        spec->seeds[0] = spec->seeds[0] << 4 | digits[i];
    for (size_t i = 0; key_bytes > 8 && i < key_bytes; i++)
        spec->seeds[i / 8] |= (uint64_t)(digits[2 * i] << 4 | digits[2 * i + 1]) << (8 * (i % 8));
    spec->seeded = true;
    return HIBLOOM_OK;
}

static hibloom_status take_seeds(hibloom_spec *spec, const struct settings *settings)
{
    const struct hash *hash = hash_by_id(spec->hash);
    const unsigned given = settings->given & (GIVEN_SEED | GIVEN_SEEDS);

    switch (hash->seeding) {
    case SEEDING_KEY:
        if (given & GIVEN_SEEDS)
            return HIBLOOM_EINVAL;
        return given ? read_seed(spec, settings->seed, hash->key_bytes) : HIBLOOM_OK;
    case SEEDING_PER_HASH:
        if (given != GIVEN_SEEDS || (spec->hashes != 0 && spec->hashes != settings->seeds))
            return HIBLOOM_EINVAL;
        spec->hashes = settings->seeds;
        return HIBLOOM_OK;
    case SEEDING_NONE:
        break;
    }
    return given ? HIBLOOM_EINVAL : HIBLOOM_OK;
}

static hibloom_status plain_spec(hibloom_spec *out, const struct settings *settings)
{
    const unsigned sized = settings->given & (GIVEN_CAPACITY | GIVEN_ERROR);
    hibloom_status status;

    *out = settings->spec;
    status = take_seeds(out, settings);
    if (status != HIBLOOM_OK || (out->bits != 0 && out->hashes != 0))
        return status;
    if (out->bits != 0 || sized != (GIVEN_CAPACITY | GIVEN_ERROR))
        return HIBLOOM_EINVAL;
    return spec_size(out, out->capacity, out->error_rate, out->hashes);
}

hibloom_status hibloom_spec_parse(hibloom_spec *out, const char *text)
{
    struct settings settings = {0};
    struct word preset = {NULL, 0};
    hibloom_spec spec;
    hibloom_status status = HIBLOOM_EINVAL;

    if (strnlen(text, HIBLOOM_SPEC_TEXT_SIZE) < HIBLOOM_SPEC_TEXT_SIZE)
        status = read_settings(&settings, text, &preset);
    if (status == HIBLOOM_OK)
        status = preset.len != 0 ? preset_spec(&spec, preset.text, preset.len, &settings)
                                 : plain_spec(&spec, &settings);
    if (status == HIBLOOM_OK && spec.segments == 0)
        spec.segments = spec_default_segments(&spec);
    if (status == HIBLOOM_OK)
        status = spec_check(&spec);
    if (status == HIBLOOM_OK)
        *out = spec;
    return status;
}

/* ---- spec -> text ---- */

/* Appends to a text of `size` bytes; what does not fit is seen at the end. */
struct line {
    char *text;
    size_t size, len;
};

__attribute__((format(printf, 2, 3))) static void append(struct line *line, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    const size_t room = line->len < line->size ? line->size - line->len : 0;
    const int len = vsnprintf(room > 0 ? line->text + line->len : NULL, room, format, arguments);
    va_end(arguments);
    line->len += (size_t)len;
}

static void append_seeds(struct line *line, const hibloom_spec *spec, const struct hash *hash)
{
    if (hash->seeding == SEEDING_PER_HASH) {
        for (uint32_t i = 0; i < spec->hashes; i++)
            append(line, "%s%" PRIu64, i == 0 ? " seeds=" : ",", spec->seeds[i]);
    } else if (hash->seeding == SEEDING_KEY && spec->seeded && hash->key_bytes == 8) {
        append(line, " seed=%016" PRIx64, spec->seeds[0]);
    } else if (hash->seeding == SEEDING_KEY && spec->seeded) {
        append(line, " seed=");
        for (unsigned i = 0; i < hash->key_bytes; i++)
            append(line, "%02x", (unsigned)(spec->seeds[i / 8] >> (8 * (i % 8)) & 0xff));
    }
}

hibloom_status hibloom_spec_format(const hibloom_spec *spec, char *buf, size_t size)
{
    struct line line = {buf, size, 0};
    char rate[NUMBER_DOUBLE_SIZE];
    hibloom_status status = spec_check(spec);

    if (status != HIBLOOM_OK)
        return HIBLOOM_EINVAL;
    const struct hash *hash = hash_by_id(spec->hash);
    append(&line, "hash=%s layout=%s bits=%" PRIu64 " hashes=%" PRIu32, hash->name, layouts[spec->layout],
           spec->bits, spec->hashes);
    if (spec_segments(spec) > 1 || spec_default_segments(spec) > 1)
        append(&line, " segments=%" PRIu32, spec_segments(spec));
    append_seeds(&line, spec, hash);
    if (spec->empty_excluded)
        append(&line, " empty=excluded");
    if (spec->capacity != 0)
        append(&line, " capacity=%" PRIu64, spec->capacity);
    if (spec->error_rate > 0.0) {
        status = number_format_double(rate, spec->error_rate);
        append(&line, " error=%s", status == HIBLOOM_OK ? rate : "");
    }
    if (status != HIBLOOM_OK)
        return status;
    return line.len < size ? HIBLOOM_OK : HIBLOOM_ERANGE;
}

/* Stub until the reading says itself what is wrong. */
const char *hibloom_spec_error(const char *text, char *buf, size_t size)
{
    hibloom_spec spec;

    snprintf(buf, size, "%s", hibloom_spec_parse(&spec, text) == HIBLOOM_OK ? "" : "not a spec");
    return buf;
}
