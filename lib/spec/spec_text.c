/* spec_text.c: a spec as one line of text, and a spec from its text.
 *
 * Processes compare the text, so it has one canonical form, made by one function. Reading is more lenient: any order,
 * presets, sizes left to be computed. But it never guesses: an unknown word is an error, and so is one that comes
 * twice. Texts come from Redis too, so lengths are checked throughout.
 *
 * An error in words says why a text is refused. A seed may be secret. The words never repeat its value, nor that of an
 * unknown word, and its copies are overwritten. */
#include "spec/spec_text.h"
#include "base/number.h"
#include "hash/hash.h"
#include "spec/spec.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static const char *const layout_names[] = {"classic", "partitioned", "blocked"};
static const char *const codec_names[] = {"bytes", "string", "kryo5"};
static const char *const key_names[] = {"own", "pyrebloom", "rueidis", "redisson", "orestes"};
static const char *const chars_names[] = {"codepoints", "latin1"};
static const char *const index_names[] = {"kirsch-mitzenmacher", "murmur3"};
static const struct names hashes = NAMES(hash_table), layouts = NAMES(layout_names), codecs = NAMES(codec_names),
                          keys = NAMES(key_names), chars = NAMES(chars_names), indexes = NAMES(index_names);

/* ---- Words that refuse ---- */

#define CHAIN_DIGITS 16u

#define SHOWN 32 /* bytes of a word, at most */

/* The beginning of a word as it can be printed: the text may hold anything. */
struct shown {
    char text[SHOWN + sizeof "..."];
};

static struct shown show(struct word word, size_t most)
{
    struct shown shown = {""};
    size_t i = 0;

    for (; i < word.len && i < most; i++)
        shown.text[i] = word.text[i] > ' ' && word.text[i] <= '~' ? word.text[i] : '?';
    if (i < word.len)
        strcpy(shown.text + i, "...");
    return shown;
}

/* The start of an unknown word that may be a name, up to the second digit. It may also be a seed in the wrong place. */
static struct shown show_name(struct word word)
{
    size_t len = 0;

    for (unsigned digits = 0; len < word.len && len < 15; len++) {
        digits += word.text[len] >= '0' && word.text[len] <= '9';
        if (digits == 2)
            break;
    }
    return show(word, len);
}

static const char *name_at(const struct names *names, size_t i)
{
    return *(const char *const *)((const char *)names->rows + i * names->row_size);
}

size_t find_name(struct settings *s, const char *kind, struct word name, const struct names *names)
{
    char list[256] = "";
    size_t used = 0;

    for (size_t i = 0; i < names->count; i++)
        if (word_is(name, name_at(names, i)))
            return i;
    for (size_t i = 0; i < names->count && used < sizeof list; i++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i > 0 ? ", " : "", name_at(names, i));
    s->status = error_set(s->error, HIBLOOM_EINVAL, "no such %s as '%s'; there are %s", kind, show_name(name).text,
                          list);
    return 0;
}

/* ---- text -> settings ---- */

/* Refuses the setting that is being read. */
static void refuse(struct settings *s, hibloom_status status, const char *why)
{
    s->status = error_set(s->error, status, "%s: %s", show(s->word, SHOWN).text, why);
}

/* A number that is given is not 0: that stands for "not given" in a spec. */
static uint64_t read_count(struct settings *s, uint64_t max)
{
    uint64_t count = 0;
    const hibloom_status status = number_parse(s->value.text, s->value.len, max, &count);

    if (status == HIBLOOM_EINVAL)
        refuse(s, status, "not a whole number");
    else if (count == 0)
        s->status = error_set(s->error, HIBLOOM_ERANGE, "%s: must be 1 to %" PRIu64, show(s->word, SHOWN).text, max);
    return count;
}

static void set_chars(struct settings *s)
{
    s->spec.codec = find_name(s, "chars", s->value, &chars) == 0 ? HIBLOOM_CODEC_STRING : HIBLOOM_CODEC_BYTES;
}

static void set_index(struct settings *s)
{
    s->spec.hash = find_name(s, "index", s->value, &indexes) == 0 ? HIBLOOM_HASH_ORESTES : HIBLOOM_HASH_ORESTES_MURMUR3;
}

static void set_chain(struct settings *s)
{
    if (s->value.len != CHAIN_DIGITS || !number_parse_hex(s->value.text, s->value.len, &s->spec.chain))
        refuse(s, HIBLOOM_EINVAL, "not 16 hexadecimal digits");
}

static void set_error(struct settings *s)
{
    if (number_parse_double(s->value.text, s->value.len, &s->spec.error_rate) != HIBLOOM_OK)
        refuse(s, HIBLOOM_EINVAL, "not a decimal number, such as 0.01 or 1e-2");
    else if (!(s->spec.error_rate > 0.0 && s->spec.error_rate < 1.0))
        refuse(s, HIBLOOM_ERANGE, "must be above 0 and below 1");
}

/* The meaning of its digits depends on the hash, which may follow. */
static void set_seed(struct settings *s)
{
    s->seed = s->value;
}

static void set_seeds(struct settings *s)
{
    const char *const end = s->value.text + s->value.len;

    s->seeds = 0; /* without a preset's */
    memset(s->spec.seeds, 0, sizeof s->spec.seeds);
    for (const char *at = s->value.text, *stop; at <= end && s->status == HIBLOOM_OK; at = stop + 1) {
        stop = memchr(at, ',', (size_t)(end - at));
        if (stop == NULL)
            stop = end;
        if (s->seeds == HIBLOOM_HASHES_MAX) {
            s->status = error_set(s->error, HIBLOOM_ERANGE, "seeds=: more than %u", HIBLOOM_HASHES_MAX);
            return;
        }
        s->status = number_parse(at, (size_t)(stop - at), UINT32_MAX, &s->spec.seeds[s->seeds++]);
        if (s->status != HIBLOOM_OK)
            (void)error_set(s->error, s->status, "seeds=: number %" PRIu32 " is not a whole number below 2^32",
                            s->seeds);
    }
}

static void set_empty(struct settings *s)
{
    s->spec.empty_excluded = true;
    if (!word_is(s->value, "excluded"))
        refuse(s, HIBLOOM_EINVAL, "only empty=excluded is known");
}

#define FIELD(name) offsetof(hibloom_spec, name), sizeof((hibloom_spec *)0)->name

static const struct setting {
    const char *name;
    unsigned bit;
    size_t at, size;                /* it is a field of the spec: */
    uint64_t most;                  /* a count from 1 to this, of which spec_check knows the valid ones, */
    const struct names *names;      /* or one of these, by its number; */
    void (*set)(struct settings *); /* or something else */
} setting_table[] = {
    {"capacity", GIVEN_CAPACITY, FIELD(capacity), .most = UINT64_MAX},
    {"error", GIVEN_ERROR, .set = set_error},
    {"bits", GIVEN_BITS, FIELD(bits), .most = SPEC_BITS_MAX},
    {"hashes", GIVEN_HASHES, FIELD(hashes), .most = HIBLOOM_HASHES_MAX},
    {"hash", GIVEN_HASH, FIELD(hash), .names = &hashes},
    {"seed", GIVEN_SEED, .set = set_seed},
    {"seeds", GIVEN_SEEDS, .set = set_seeds},
    {"layout", GIVEN_LAYOUT, FIELD(layout), .names = &layouts},
    {"segments", GIVEN_SEGMENTS, FIELD(segments), .most = HIBLOOM_SEGMENTS_MAX},
    {"counters", GIVEN_COUNTERS, FIELD(counters), .most = 8},
    {"empty", GIVEN_EMPTY, .set = set_empty},
    {"codec", GIVEN_CODEC, FIELD(codec), .names = &codecs},
    {"keys", GIVEN_KEYS, FIELD(keys), .names = &keys},
    {"chars", GIVEN_CHARS, .set = set_chars},
    {"index", GIVEN_INDEX, .set = set_index},
    {"growth", GIVEN_GROWTH, FIELD(growth), .most = UINT32_MAX},
    {"window", GIVEN_WINDOW, FIELD(window), .most = HIBLOOM_WINDOW_MAX},
    {"slices", GIVEN_SLICES, FIELD(slices), .most = HIBLOOM_SLICES_MAX},
    {"link", GIVEN_LINK, FIELD(link), .most = HIBLOOM_LINKS_MAX - 1},
    {"chain", GIVEN_CHAIN, .set = set_chain},
};
static const struct names setting_names = NAMES(setting_table);

const char *setting_name(unsigned given)
{
    size_t i = 0;

    while ((given & setting_table[i].bit) == 0)
        i++;
    return setting_table[i].name;
}

static void set_field(struct settings *s, const struct setting *setting)
{
    const uint64_t value = setting->names != NULL ? find_name(s, setting->name, s->value, setting->names)
                                                  : read_count(s, setting->most);
    const uint32_t narrow = (uint32_t)value;

    memcpy((char *)&s->spec + setting->at, setting->size == sizeof value ? (const void *)&value : &narrow,
           setting->size);
}

static void apply(struct settings *s, struct word name)
{
    const struct setting *setting = &setting_table[find_name(s, "setting", name, &setting_names)];

    if (s->status != HIBLOOM_OK)
        return;
    if (s->given & setting->bit)
        s->status = error_set(s->error, HIBLOOM_EINVAL, "%s=: given twice", setting->name);
    else if (setting->set != NULL)
        setting->set(s);
    else
        set_field(s, setting);
    s->given |= setting->bit;
}

hibloom_status settings_read(struct settings *s, const char *text)
{
    static const char blanks[] = " \t\r\n";

    if (strnlen(text, HIBLOOM_SPEC_TEXT_SIZE) == HIBLOOM_SPEC_TEXT_SIZE)
        return error_set(s->error, HIBLOOM_EINVAL, "longer than %u bytes", HIBLOOM_SPEC_TEXT_SIZE - 1);
    for (const char *at = text + strspn(text, blanks); *at != '\0' && s->status == HIBLOOM_OK;) {
        s->word = (struct word){at, strcspn(at, blanks)};
        at += s->word.len;
        const char *equals = memchr(s->word.text, '=', s->word.len);
        if (equals != NULL) {
            s->value = (struct word){equals + 1, (size_t)(at - equals) - 1};
            apply(s, (struct word){s->word.text, (size_t)(equals - s->word.text)});
        } else if (s->preset == NULL && s->given == 0) {
            preset_begin(s);
        } else {
            s->status = error_set(s->error, HIBLOOM_EINVAL, "'%s': is no NAME=VALUE, and a preset is the first word",
                                  show_name(s->word).text);
        }
        at += strspn(at, blanks);
    }
    return s->status;
}

/* ---- settings -> spec ---- */

/* One number, up to 16 digits, for xxh3. The 16 bytes of its key in order for siphash: the two
 * seeds are their little-endian words. */
static bool read_seed(hibloom_spec *spec, struct word hex, unsigned key_bytes)
{
    if (hex.len < (key_bytes > 8 ? 32 : 1) || hex.len > 2 * (size_t)key_bytes)
        return false;
    for (size_t i = 0; i < hex.len; i++) {
        const int digit = number_hex_digit(hex.text[i]);
        if (digit < 0)
            return false;
        if (key_bytes == 8)
            spec->seeds[0] = spec->seeds[0] << 4 | (unsigned)digit;
        else /* the high half of each byte first */
            spec->seeds[i / 16] |= (uint64_t)digit << 4 * (i % 16 ^ 1);
    }
    spec->seeded = true;
    return true;
}

/* Each kind of seeding takes its own setting, seed= or seeds=, or none. */
static hibloom_status take_seeds(hibloom_spec *spec, const struct settings *s)
{
    static const unsigned takes[] = {[SEEDING_NONE] = 0, [SEEDING_KEY] = GIVEN_SEED, [SEEDING_PER_HASH] = GIVEN_SEEDS};
    static const char *const words[] = {[SEEDING_NONE] = "no seed",
                                        [SEEDING_KEY] = "seed=HEX",
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
        return error_set(s->error, HIBLOOM_EINVAL, "hashes=%" PRIu32 ": but there are %" PRIu32 " seeds", spec->hashes,
                         s->seeds);
    spec->hashes = s->seeds;
    return HIBLOOM_OK;
}

static hibloom_status plain_spec(hibloom_spec *out, const struct settings *s)
{
    const unsigned sized = s->given & (GIVEN_CAPACITY | GIVEN_ERROR);
    const unsigned of_presets = s->given & (GIVEN_CHARS | GIVEN_INDEX);
    hibloom_status status;

    *out = s->spec;
    if (of_presets != 0)
        return error_set(s->error, HIBLOOM_EINVAL, "%s=: only a preset takes it", setting_name(of_presets));
    status = take_seeds(out, s);
    if (status != HIBLOOM_OK || (out->bits != 0 && out->hashes != 0))
        return status;
    if (spec_is_unsized(out) && sized == 0 && out->keys == HIBLOOM_KEYS_REDISSON)
        return HIBLOOM_OK;
    if (out->bits != 0)
        return error_set(s->error, HIBLOOM_EINVAL, "hashes= is missing: bits= needs it");
    if (sized == 0)
        return error_set(s->error, HIBLOOM_EINVAL, "missing: capacity= and error=, or bits= and hashes=, or a preset");
    if (sized != (GIVEN_CAPACITY | GIVEN_ERROR))
        return error_set(s->error, HIBLOOM_EINVAL,
                         sized == GIVEN_ERROR ? "capacity= is missing: error= needs it"
                                              : "error= is missing: capacity= needs it");
    status = spec_size(out, out->capacity, out->error_rate, out->hashes);
    if (status == HIBLOOM_EINVAL)
        return error_set(s->error, status, "hashes=%" PRIu32 ": hash=%s has another number for this error rate",
                         s->spec.hashes, hash_by_id(s->spec.hash)->name);
    return status == HIBLOOM_OK ? status
                                : error_set(s->error, status,
                                            "capacity= and error=: would take more than 2^62 bits, "
                                            "or more than %u hashes",
                                            HIBLOOM_HASHES_MAX);
}

static hibloom_status read_spec(hibloom_spec *out, const char *text, struct error *error)
{
    struct settings settings = {.error = error};
    hibloom_spec spec;
    hibloom_status status = settings_read(&settings, text);

    if ((settings.given & GIVEN_SLICES) == 0)
        settings.spec.slices = spec_default_slices(settings.spec.window);
    if (status == HIBLOOM_OK)
        status = settings.preset != NULL ? preset_spec(&spec, &settings) : plain_spec(&spec, &settings);
    if (status == HIBLOOM_OK && spec.segments == 0)
        spec.segments = spec_default_segments(&spec);
    if (status == HIBLOOM_OK)
        status = spec_check_words(&spec, error);
    if (status == HIBLOOM_OK)
        *out = spec;
    explicit_bzero(&spec, sizeof spec); /* settings have no secret: that lies in the text alone */
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
    explicit_bzero(&spec, sizeof spec);
    return buf;
}

/* ---- spec -> text ---- */

/* HIBLOOM_SPEC_TEXT_SIZE holds every spec text. */
struct line {
    char text[HIBLOOM_SPEC_TEXT_SIZE];
    size_t len;
};

__attribute__((format(printf, 2, 3))) static void append(struct line *line, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    line->len += (size_t)vsnprintf(line->text + line->len, sizeof line->text - line->len, format, arguments);
    va_end(arguments);
}

static void append_seeds(struct line *line, const hibloom_spec *spec, const struct hash *hash)
{
    if (hash->seeding == SEEDING_PER_HASH) {
        for (uint32_t i = 0; i < spec->hashes; i++)
            append(line, "%s%" PRIu64, i == 0 ? " seeds=" : ",", spec->seeds[i]);
    } else if (hash->seeding == SEEDING_KEY && spec->seeded) {
        append(line, " seed=");
        /* xxh3: a number; siphash: bytes in order. Without printf, which leaves on the stack what it is given. */
        for (unsigned i = 0; i < 2 * hash->key_bytes; i++) {
            const unsigned byte = hash->key_bytes == 8 ? 7 - i / 2 : i / 2 % 8;
            const uint64_t half = spec->seeds[i / 16] >> (8 * byte + (i % 2 == 0 ? 4 : 0));
            line->text[line->len++] = "0123456789abcdef"[half & 0xf];
        }
    }
}

hibloom_status hibloom_spec_format(const hibloom_spec *spec, char *buf, size_t size)
{
    struct line line = {.len = 0};
    char rate[NUMBER_DOUBLE_SIZE];
    struct error error;
    hibloom_status status = spec_check_words(spec, &error);

    if (status != HIBLOOM_OK)
        return HIBLOOM_EINVAL;
    const struct hash *hash = hash_by_id(spec->hash);
    append(&line, "hash=%s layout=%s", hash->name, layout_names[spec->layout]);
    if (!spec_is_unsized(spec))
        append(&line, " bits=%" PRIu64 " hashes=%" PRIu32, spec->bits, spec->hashes);
    if (spec_segments(spec) > 1 || spec_default_segments(spec) > 1)
        append(&line, " segments=%" PRIu32, spec_segments(spec));
    if (spec->counters != 0)
        append(&line, " counters=%" PRIu32, spec->counters);
    append_seeds(&line, spec, hash);
    if (spec->empty_excluded)
        append(&line, " empty=excluded");
    if (spec->codec != HIBLOOM_CODEC_BYTES)
        append(&line, " codec=%s", codec_names[spec->codec]);
    if (spec->keys != HIBLOOM_KEYS_OWN)
        append(&line, " keys=%s", key_names[spec->keys]);
    if (spec->capacity != 0)
        append(&line, " capacity=%" PRIu64, spec->capacity);
    if (spec->error_rate > 0.0) {
        status = number_format_double(rate, spec->error_rate);
        append(&line, " error=%s", status == HIBLOOM_OK ? rate : "");
    }
    if (spec->growth != 0)
        append(&line, " growth=%" PRIu32, spec->growth);
    if (spec->window != 0)
        append(&line, " window=%" PRIu32 " slices=%" PRIu32, spec->window, spec->slices);
    if (spec->link != 0)
        append(&line, " link=%" PRIu32 " chain=%016" PRIx64, spec->link, spec->chain);
    snprintf(buf, size, "%s", line.text);
    explicit_bzero(line.text, sizeof line.text);
    return status != HIBLOOM_OK ? status : line.len < size ? HIBLOOM_OK : HIBLOOM_ERANGE;
}
