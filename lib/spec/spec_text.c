/* spec_text.c: a spec from its text.
 *
 * Reading is more lenient than the written form (spec_format.c): any order, presets, sizes left
 * to be computed. But it never guesses: an unknown word is an error, and so is one that comes
 * twice. Texts come from Redis too, so lengths are checked throughout.
 *
 * An error in words says why a text is refused. A seed may be secret. The words never repeat its
 * value, nor that of an unknown word, and its copies are overwritten. */
#include "spec/spec_text.h"
#include "base/number.h"
#include "hash/hash.h"
#include "spec/spec.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *const layouts[] = {"classic", "partitioned", "blocked"};
static const char *const codecs[] = {"bytes", "string", "kryo5"};
static const char *const keys[] = {"own", "pyrebloom", "rueidis", "redisson", "orestes"};

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

/* The start of an unknown word that may be a name, up to the second digit. It may also be a seed
 * in the wrong place. */
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

size_t find_name(struct settings *s, const char *kind, struct word name, const char *(*name_of)(size_t i))
{
    char names[256] = "";
    size_t used = 0;

    for (size_t i = 0; name_of(i) != NULL; i++)
        if (word_is(name, name_of(i)))
            return i;
    for (size_t i = 0; name_of(i) != NULL && used < sizeof names; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i > 0 ? ", " : "", name_of(i));
    s->status = error_set(s->error, HIBLOOM_EINVAL, "no such %s as '%s'; there are %s", kind, show_name(name).text,
                          names);
    return 0;
}

static const char *hash_name(size_t i)
{
    const struct hash *hash = hash_by_id((hibloom_hash)i);

    return hash != NULL ? hash->name : NULL;
}

const char *layout_name(size_t i)
{
    return i < sizeof layouts / sizeof *layouts ? layouts[i] : NULL;
}

const char *codec_name(size_t i)
{
    return i < sizeof codecs / sizeof *codecs ? codecs[i] : NULL;
}

const char *key_form_name(size_t i)
{
    return i < sizeof keys / sizeof *keys ? keys[i] : NULL;
}

static const char *chars_name(size_t i)
{
    return i == 0 ? "codepoints" : i == 1 ? "latin1" : NULL;
}

static const char *index_name(size_t i)
{
    return i == 0 ? "kirsch-mitzenmacher" : i == 1 ? "murmur3" : NULL;
}

/* ---- text -> settings ---- */

/* Refuses the setting that is being read. */
static void refuse(struct settings *s, hibloom_status status, const char *why)
{
    s->status = error_set(s->error, status, "%s: %s", show(s->word, SHOWN).text, why);
}

static void set_hash(struct settings *s)
{
    s->spec.hash = (hibloom_hash)find_name(s, "hash", s->value, hash_name);
}

static void set_layout(struct settings *s)
{
    s->spec.layout = (hibloom_layout)find_name(s, "layout", s->value, layout_name);
}

static void set_codec(struct settings *s)
{
    s->spec.codec = (hibloom_codec)find_name(s, "codec", s->value, codec_name);
}

static void set_keys(struct settings *s)
{
    s->spec.keys = (hibloom_keys)find_name(s, "keys", s->value, key_form_name);
}

static void set_chars(struct settings *s)
{
    s->spec.codec = find_name(s, "chars", s->value, chars_name) == 0 ? HIBLOOM_CODEC_STRING : HIBLOOM_CODEC_BYTES;
}

static void set_index(struct settings *s)
{
    s->index = find_name(s, "index", s->value, index_name);
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

static void set_bits(struct settings *s)
{
    s->spec.bits = read_count(s, SPEC_BITS_MAX);
}

static void set_capacity(struct settings *s)
{
    s->spec.capacity = read_count(s, UINT64_MAX);
}

static void set_hashes(struct settings *s)
{
    s->spec.hashes = (uint32_t)read_count(s, HIBLOOM_HASHES_MAX);
}

static void set_segments(struct settings *s)
{
    s->spec.segments = (uint32_t)read_count(s, HIBLOOM_SEGMENTS_MAX);
}

/* spec_check knows the valid numbers. */
static void set_counters(struct settings *s)
{
    s->spec.counters = (uint32_t)read_count(s, 8);
}

/* The same. */
static void set_growth(struct settings *s)
{
    s->spec.growth = (uint32_t)read_count(s, UINT32_MAX);
}

static void set_window(struct settings *s)
{
    s->spec.window = (uint32_t)read_count(s, HIBLOOM_WINDOW_MAX);
}

static void set_slices(struct settings *s)
{
    s->spec.slices = (uint32_t)read_count(s, HIBLOOM_SLICES_MAX);
}

static void set_link(struct settings *s)
{
    s->spec.link = (uint32_t)read_count(s, HIBLOOM_LINKS_MAX - 1);
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

static const struct setting {
    const char *name;
    unsigned bit;
    void (*set)(struct settings *);
} setting_table[] = {
    {"capacity", GIVEN_CAPACITY, set_capacity},
    {"error", GIVEN_ERROR, set_error},
    {"bits", GIVEN_BITS, set_bits},
    {"hashes", GIVEN_HASHES, set_hashes},
    {"hash", GIVEN_HASH, set_hash},
    {"seed", GIVEN_SEED, set_seed},
    {"seeds", GIVEN_SEEDS, set_seeds},
    {"layout", GIVEN_LAYOUT, set_layout},
    {"segments", GIVEN_SEGMENTS, set_segments},
    {"counters", GIVEN_COUNTERS, set_counters},
    {"empty", GIVEN_EMPTY, set_empty},
    {"codec", GIVEN_CODEC, set_codec},
    {"keys", GIVEN_KEYS, set_keys},
    {"chars", GIVEN_CHARS, set_chars},
    {"index", GIVEN_INDEX, set_index},
    {"growth", GIVEN_GROWTH, set_growth},
    {"window", GIVEN_WINDOW, set_window},
    {"slices", GIVEN_SLICES, set_slices},
    {"link", GIVEN_LINK, set_link},
    {"chain", GIVEN_CHAIN, set_chain},
};

static const char *name_of_setting(size_t i)
{
    return i < sizeof setting_table / sizeof *setting_table ? setting_table[i].name : NULL;
}

const char *setting_name(unsigned given)
{
    size_t i = 0;

    while ((given & setting_table[i].bit) == 0)
        i++;
    return setting_table[i].name;
}

static void apply(struct settings *s, struct word name)
{
    const struct setting *setting = &setting_table[find_name(s, "setting", name, name_of_setting)];

    if (s->status != HIBLOOM_OK)
        return;
    if (s->given & setting->bit)
        s->status = error_set(s->error, HIBLOOM_EINVAL, "%s=: given twice", setting->name);
    else
        setting->set(s);
    s->given |= setting->bit;
}

/* Reads all words; the first one is a preset if it has no '='. */
static hibloom_status read_settings(struct settings *s, const char *text)
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
        } else if (s->preset.len == 0 && s->given == 0) {
            s->preset = s->word;
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
    hibloom_status status = read_settings(&settings, text);

    if ((settings.given & GIVEN_SLICES) == 0)
        settings.spec.slices = spec_default_slices(settings.spec.window);
    if (status == HIBLOOM_OK)
        status = settings.preset.len != 0 ? preset_spec(&spec, &settings) : plain_spec(&spec, &settings);
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
