/* spec_text.c: a spec as one line of text, and back.
 *
 * The text is what processes compare, so there is one canonical form of it,
 * made by one function. Reading is more lenient (any order, presets, sizes left
 * to be computed) but never guesses: a word it does not know is an error, and
 * so is one that comes twice. Texts come from Redis too, so lengths are
 * checked throughout.
 *
 * Who reads also says in words why he refuses. A seed may be secret: the words
 * never repeat its value, nor that of a word they do not know. */
#include "spec/spec_text.h"
#include "base/number.h"
#include "hash/hash.h"
#include "spec/spec.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const layouts[] = {"classic", "partitioned", "blocked"};

enum { LAYOUTS = sizeof layouts / sizeof *layouts };

/* ---- Words that refuse ---- */

/* A piece of the text that can be printed: the text may hold anything. */
struct shown {
    char text[36];
};

static struct shown show(struct word word)
{
    struct shown shown = {""};
    size_t i = 0;

    for (; i < word.len && i < 32; i++)
        shown.text[i] = word.text[i] > ' ' && word.text[i] <= '~' ? word.text[i] : '?';
    if (i < word.len)
        strcpy(shown.text + i, "...");
    return shown;
}

/* Of a word that is not known what may be a name, up to the second digit: it
 * may also be a seed in the wrong place. */
static struct shown show_name(struct word word)
{
    struct word name = {word.text, 0};
    struct shown shown;

    for (unsigned digits = 0; name.len < word.len && name.len < 15; name.len++) {
        digits += word.text[name.len] >= '0' && word.text[name.len] <= '9';
        if (digits == 2)
            break;
    }
    shown = show(name);
    if (name.len < word.len)
        strcat(shown.text, "...");
    return shown;
}

static hibloom_status refuse(const struct settings *s, hibloom_status status, struct word word, const char *why)
{
    return error_set(s->error, status, "%s: %s", show(word).text, why);
}

hibloom_status refuse_name(const struct settings *s, const char *kind, struct word name,
                           const char *(*name_of)(size_t i))
{
    char names[256] = "";
    size_t used = 0;

    for (size_t i = 0; name_of(i) != NULL && used < sizeof names; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i > 0 ? ", " : "", name_of(i));
    return error_set(s->error, HIBLOOM_EINVAL, "no such %s as '%s'; there are %s", kind, show_name(name).text,
                     names);
}

static const char *hash_name(size_t i)
{
    const struct hash *hash = hash_by_id((hibloom_hash)i);

    return hash != NULL ? hash->name : NULL;
}

static const char *layout_name(size_t i)
{
    return i < LAYOUTS ? layouts[i] : NULL;
}

/* ---- text -> settings ---- */

static hibloom_status set_hash(struct settings *s, struct word word, struct word value)
{
    (void)word;
    return hash_by_name(value.text, value.len, &s->spec.hash) != NULL ? HIBLOOM_OK
                                                                      : refuse_name(s, "hash", value, hash_name);
}

static hibloom_status set_layout(struct settings *s, struct word word, struct word value)
{
    size_t i = 0;

    (void)word;
    while (i < LAYOUTS && !word_is(value, layouts[i]))
        i++;
    s->spec.layout = (hibloom_layout)i;
    return i < LAYOUTS ? HIBLOOM_OK : refuse_name(s, "layout", value, layout_name);
}

/* A number that is given is not 0: that stands for "not given" in a spec. */
static hibloom_status read_count(struct settings *s, struct word word, struct word value, uint64_t max, uint64_t *out)
{
    const hibloom_status status = number_parse(value.text, value.len, max, out);

    if (status == HIBLOOM_EINVAL)
        return refuse(s, status, word, "not a whole number");
    if (status == HIBLOOM_OK && *out != 0)
        return HIBLOOM_OK;
    return error_set(s->error, HIBLOOM_ERANGE, "%s: must be 1 to %" PRIu64, show(word).text, max);
}

static hibloom_status set_bits(struct settings *s, struct word word, struct word value)
{
    return read_count(s, word, value, SPEC_BITS_MAX, &s->spec.bits);
}

static hibloom_status set_capacity(struct settings *s, struct word word, struct word value)
{
    return read_count(s, word, value, UINT64_MAX, &s->spec.capacity);
}

static hibloom_status set_hashes(struct settings *s, struct word word, struct word value)
{
    uint64_t hashes = 0;
    hibloom_status status = read_count(s, word, value, HIBLOOM_HASHES_MAX, &hashes);

    s->spec.hashes = (uint32_t)hashes;
    return status;
}

static hibloom_status set_segments(struct settings *s, struct word word, struct word value)
{
    uint64_t segments = 0;
    hibloom_status status = read_count(s, word, value, HIBLOOM_SEGMENTS_MAX, &segments);

    s->spec.segments = (uint32_t)segments;
    return status;
}

static hibloom_status set_error(struct settings *s, struct word word, struct word value)
{
    if (number_parse_double(value.text, value.len, &s->spec.error_rate) != HIBLOOM_OK)
        return refuse(s, HIBLOOM_EINVAL, word, "not a decimal number, such as 0.01 or 1e-2");
    if (!(s->spec.error_rate > 0.0 && s->spec.error_rate < 1.0))
        return refuse(s, HIBLOOM_ERANGE, word, "must be above 0 and below 1");
    return HIBLOOM_OK;
}

/* What its digits mean depends on the hash, which may follow. */
static hibloom_status set_seed(struct settings *s, struct word word, struct word value)
{
    (void)word;
    s->seed = value;
    return HIBLOOM_OK;
}

static hibloom_status set_seeds(struct settings *s, struct word word, struct word value)
{
    const char *at = value.text, *end = value.text + value.len;

    (void)word;
    for (;;) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        const char *stop = comma != NULL ? comma : end;
        if (s->seeds == HIBLOOM_HASHES_MAX)
            return error_set(s->error, HIBLOOM_ERANGE, "seeds=: more than %u", HIBLOOM_HASHES_MAX);
        hibloom_status status = number_parse(at, (size_t)(stop - at), UINT32_MAX, &s->spec.seeds[s->seeds]);
        s->seeds++;
        if (status != HIBLOOM_OK)
            return error_set(s->error, status, "seeds=: number %" PRIu32 " is not a whole number below 2^32", s->seeds);
        if (comma == NULL)
            return HIBLOOM_OK;
        at = comma + 1;
    }
}

static hibloom_status set_empty(struct settings *s, struct word word, struct word value)
{
    s->spec.empty_excluded = true;
    return word_is(value, "excluded") ? HIBLOOM_OK : refuse(s, HIBLOOM_EINVAL, word, "only empty=excluded is known");
}

static const struct setting {
    const char *name;
    unsigned bit;
    hibloom_status (*set)(struct settings *, struct word, struct word value);
} setting_table[] = {
    {"capacity", GIVEN_CAPACITY, set_capacity}, {"error", GIVEN_ERROR, set_error},
    {"bits", GIVEN_BITS, set_bits},             {"hashes", GIVEN_HASHES, set_hashes},
    {"hash", GIVEN_HASH, set_hash},             {"seed", GIVEN_SEED, set_seed},
    {"seeds", GIVEN_SEEDS, set_seeds},          {"layout", GIVEN_LAYOUT, set_layout},
    {"segments", GIVEN_SEGMENTS, set_segments}, {"empty", GIVEN_EMPTY, set_empty},
};

enum { SETTINGS = sizeof setting_table / sizeof *setting_table };

static const char *name_of_setting(size_t i)
{
    return i < SETTINGS ? setting_table[i].name : NULL;
}

const char *setting_name(unsigned given)
{
    size_t i = 0;

    while ((given & setting_table[i].bit) == 0)
        i++;
    return setting_table[i].name;
}

static hibloom_status apply(struct settings *s, struct word word, struct word name, struct word value)
{
    for (size_t i = 0; i < SETTINGS; i++) {
        const struct setting *setting = &setting_table[i];
        if (!word_is(name, setting->name))
            continue;
        if (s->given & setting->bit)
            return error_set(s->error, HIBLOOM_EINVAL, "%s=: given twice", setting->name);
        s->given |= setting->bit;
        return setting->set(s, word, value);
    }
    return refuse_name(s, "setting", name, name_of_setting);
}

/* Reads all words; the first one is a preset if it has no '='. */
static hibloom_status read_settings(struct settings *s, const char *text)
{
    static const char blanks[] = " \t\r\n";
    hibloom_status status = HIBLOOM_OK;

    if (strnlen(text, HIBLOOM_SPEC_TEXT_SIZE) == HIBLOOM_SPEC_TEXT_SIZE)
        return error_set(s->error, HIBLOOM_EINVAL, "longer than %u bytes", HIBLOOM_SPEC_TEXT_SIZE - 1);
    for (const char *at = text + strspn(text, blanks); *at != '\0' && status == HIBLOOM_OK;) {
        const struct word word = {at, strcspn(at, blanks)};
        const char *equals = memchr(at, '=', word.len);
        if (equals != NULL)
            status = apply(s, word, (struct word){at, (size_t)(equals - at)},
                           (struct word){equals + 1, word.len - (size_t)(equals - at) - 1});
        else if (s->preset.len == 0 && s->given == 0)
            s->preset = word;
        else
            status = error_set(s->error, HIBLOOM_EINVAL, "'%s': is no NAME=VALUE, and a preset is the first word",
                               show_name(word).text);
        at += word.len;
        at += strspn(at, blanks);
    }
    return status;
}

/* ---- settings -> spec ---- */

/* xxh3: one number, up to 16 digits. siphash: the 16 bytes of its key in
 * order, of which the two seeds are the little-endian words. */
static bool read_seed(hibloom_spec *spec, struct word hex, unsigned key_bytes)
{
    unsigned char digits[32];

    if (hex.len < (key_bytes > 8 ? 32 : 1) || hex.len > 2 * (size_t)key_bytes)
        return false;
    for (size_t i = 0; i < hex.len; i++) {
        const int digit = number_hex_digit(hex.text[i]);
        if (digit < 0)
            return false;
        digits[i] = (unsigned char)digit;
    }
    for (size_t i = 0; key_bytes == 8 && i < hex.len; i++)
        spec->seeds[0] = spec->seeds[0] << 4 | digits[i];
    for (size_t i = 0; key_bytes > 8 && i < key_bytes; i++)
        spec->seeds[i / 8] |= (uint64_t)(digits[2 * i] << 4 | digits[2 * i + 1]) << (8 * (i % 8));
    spec->seeded = true;
    return true;
}

/* What each kind of seeding takes, at most one of the two settings. */
static hibloom_status take_seeds(hibloom_spec *spec, const struct settings *s)
{
    static const unsigned takes[] = {
        [SEEDING_NONE] = 0, [SEEDING_KEY] = GIVEN_SEED, [SEEDING_PER_HASH] = GIVEN_SEEDS};
    static const char *const words[] = {[SEEDING_NONE] = "no seed", [SEEDING_KEY] = "seed=HEX",
                                        [SEEDING_PER_HASH] = "seeds=A,B,.., a number for each hash"};
    const struct hash *hash = hash_by_id(spec->hash);
    const unsigned given = s->given & (GIVEN_SEED | GIVEN_SEEDS), wrong = given & ~takes[hash->seeding];

    if (wrong != 0)
        return error_set(s->error, HIBLOOM_EINVAL, "%s=: hash=%s takes %s", setting_name(wrong), hash->name,
                         words[hash->seeding]);
    if (hash->seeding == SEEDING_KEY && given != 0 && !read_seed(spec, s->seed, hash->key_bytes))
        return error_set(s->error, HIBLOOM_EINVAL, "seed=: hash=%s takes %s hexadecimal digits", hash->name,
                         hash->key_bytes > 8 ? "32" : "1 to 16");
    if (hash->seeding != SEEDING_PER_HASH)
        return HIBLOOM_OK;
    if (given == 0)
        return error_set(s->error, HIBLOOM_EINVAL, "seeds= is missing: hash=%s takes %s", hash->name,
                         words[hash->seeding]);
    if (spec->hashes != 0 && spec->hashes != s->seeds)
        return error_set(s->error, HIBLOOM_EINVAL, "hashes=%" PRIu32 ": but there are %" PRIu32 " seeds",
                         spec->hashes, s->seeds);
    spec->hashes = s->seeds;
    return HIBLOOM_OK;
}

static hibloom_status plain_spec(hibloom_spec *out, const struct settings *s)
{
    const unsigned sized = s->given & (GIVEN_CAPACITY | GIVEN_ERROR);
    hibloom_status status;

    *out = s->spec;
    status = take_seeds(out, s);
    if (status != HIBLOOM_OK || (out->bits != 0 && out->hashes != 0))
        return status;
    if (out->bits != 0)
        return error_set(s->error, HIBLOOM_EINVAL, "hashes= is missing: bits= needs it");
    if (sized == 0)
        return error_set(s->error, HIBLOOM_EINVAL, "missing: capacity= and error=, or bits= and hashes=, or a preset");
    if (sized != (GIVEN_CAPACITY | GIVEN_ERROR))
        return error_set(s->error, HIBLOOM_EINVAL, sized == GIVEN_ERROR ? "capacity= is missing: error= needs it"
                                                                        : "error= is missing: capacity= needs it");
    status = spec_size(out, out->capacity, out->error_rate, out->hashes);
    return status == HIBLOOM_OK ? status
                                : error_set(s->error, status, "capacity= and error=: would take more than 2^62 bits, "
                                            "or more than %u hashes", HIBLOOM_HASHES_MAX);
}

static hibloom_status read_spec(hibloom_spec *out, const char *text, struct error *error)
{
    struct settings settings = {.error = error};
    hibloom_spec spec;
    hibloom_status status = read_settings(&settings, text);

    if (status == HIBLOOM_OK)
        status = settings.preset.len != 0 ? preset_spec(&spec, &settings) : plain_spec(&spec, &settings);
    if (status == HIBLOOM_OK && spec.segments == 0)
        spec.segments = spec_default_segments(&spec);
    if (status == HIBLOOM_OK)
        status = spec_check_words(&spec, error);
    if (status == HIBLOOM_OK)
        *out = spec;
    return status;
}

hibloom_status hibloom_spec_parse(hibloom_spec *out, const char *text)
{
    struct error error;

    return read_spec(out, text, &error);
}

const char *hibloom_spec_error(const char *text, char *buf, size_t size)
{
    hibloom_spec spec;
    struct error error;

    snprintf(buf, size, "%s", read_spec(&spec, text, &error) == HIBLOOM_OK ? "" : error.words);
    return buf;
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
