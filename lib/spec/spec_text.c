/* spec_text.c: a spec from the words of its text, and its one canonical text.
 *
 * Processes compare the text, so it has one form, made by one function. Reading is more lenient: any order, presets,
 * sizes left to be computed. A seed may be secret: its copies are overwritten. */
#include "spec/words.h"
#include "base/number.h"
#include "hash/hash.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* ---- words -> spec ---- */

/* One number, up to 16 digits, for xxh3. The 16 bytes of its key in order for siphash: the two
 * seeds are their little-endian words. */
bool words_read_seed(struct spec *spec, struct word hex, unsigned key_bytes)
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

/* The text asserts something, and does not fix a whole filter. */
static hibloom_status lack(struct words *s, const char *what)
{
    s->lacks = what;
    return error_set(s->error, HIBLOOM_EINVAL, "%s", what);
}

/* Each kind of seeding takes its own word, seed= or seeds=, or none. */
static hibloom_status take_seeds(struct spec *spec, struct words *s)
{
    static const unsigned takes[] = {[SEEDING_NONE] = 0, [SEEDING_KEY] = GIVEN_SEED, [SEEDING_PER_HASH] = GIVEN_SEEDS};
    static const char *const kinds[] = {[SEEDING_NONE] = "no seed",
                                        [SEEDING_KEY] = "seed=HEX",
                                        [SEEDING_PER_HASH] = "seeds=A,B,.., a number for each hash"};
    const struct hash *hash = &hash_table[spec->hash];
    const unsigned given = s->given & (GIVEN_SEED | GIVEN_SEEDS), wrong = given & ~takes[hash->seeding];
    const bool open = (s->given & (GIVEN_HASH | GIVEN_NEW_HASH)) == 0; /* the stored hash may be one that takes it */

    if (wrong != 0 && open)
        return lack(s, "hash= is missing: seeds= needs one that takes so many");
    if (wrong != 0)
        return error_set(s->error, HIBLOOM_EINVAL, "%s=: hash=%s takes %s", word_name(wrong), hash->name,
                         kinds[hash->seeding]);
    if (hash->seeding == SEEDING_KEY && given != 0 && !words_read_seed(spec, s->seed, hash->key_bytes))
        return open ? lack(s, "hash= is missing: this seed= is for another one than xxh3")
                    : error_set(s->error, HIBLOOM_EINVAL, "seed=: hash=%s takes %s hexadecimal digits", hash->name,
                                hash->key_bytes > 8 ? "32" : "1 to 16");
    if (hash->seeding != SEEDING_PER_HASH)
        return HIBLOOM_OK;
    if (given == 0)
        return lack(s, "seeds= is missing: this hash takes a number for each of its hashes, seeds=A,B,..");
    if (spec->hashes != 0 && spec->hashes != s->seeds)
        return error_set(s->error, HIBLOOM_EINVAL, "hashes=%" PRIu32 ": but there are %" PRIu32 " seeds", spec->hashes,
                         s->seeds);
    spec->hashes = s->seeds;
    return HIBLOOM_OK;
}

static hibloom_status plain_spec(struct spec *out, struct words *s)
{
    const unsigned sized = s->given & (GIVEN_CAPACITY | GIVEN_ERROR);
    const unsigned of_presets = s->given & (GIVEN_CHARS | GIVEN_INDEX);
    hibloom_status status;

    *out = s->spec;
    if (of_presets != 0)
        return error_set(s->error, HIBLOOM_EINVAL, "%s=: only a preset takes it", word_name(of_presets));
    status = take_seeds(out, s);
    if (status != HIBLOOM_OK || (out->bits != 0 && out->hashes != 0))
        return status;
    if (spec_is_unsized(out) && sized == 0 && out->keys == KEYS_REDISSON)
        return HIBLOOM_OK;
    if (out->bits != 0)
        return lack(s, "hashes= is missing: bits= needs it");
    if (sized == 0)
        return lack(s, "a size is missing: capacity= and error=, or bits= and hashes=, or a preset");
    if (sized != (GIVEN_CAPACITY | GIVEN_ERROR))
        return lack(s, sized == GIVEN_ERROR ? "capacity= is missing: error= needs it"
                                            : "error= is missing: capacity= needs it");
    status = spec_size(out, out->capacity, out->error_rate, out->hashes);
    if (status == HIBLOOM_EINVAL)
        return error_set(s->error, status, "hashes=%" PRIu32 ": hash=%s has another number for this error rate",
                         s->spec.hashes, hash_table[s->spec.hash].name);
    return status == HIBLOOM_OK ? status
                                : error_set(s->error, status,
                                            "capacity= and error=: would take more than 2^62 bits, "
                                            "or more than %u hashes",
                                            HIBLOOM_HASHES_MAX);
}

hibloom_status words_spec(struct spec *out, struct words *s)
{
    struct spec spec AT_END(spec_wipe); /* words have no secret: that lies in the text alone */

    if ((s->given & GIVEN_SLICES) == 0)
        s->spec.slices = spec_default_slices(s->spec.window);
    hibloom_status status = s->preset != NULL ? preset_spec(&spec, s) : plain_spec(&spec, s);
    if (status != HIBLOOM_OK)
        return status;
    if (spec.segments == 0)
        spec.segments = spec_default_segments(&spec);
    status = spec_check_words(&spec, s->error);
    if (status == HIBLOOM_OK)
        *out = spec;
    return status;
}

static hibloom_status read_stored(struct spec *out, const char *text, struct error *error)
{
    struct words words = {.stored = true, .error = error};
    const hibloom_status status = words_read(&words, text);

    return status == HIBLOOM_OK ? words_spec(out, &words) : status;
}

hibloom_status spec_parse(struct spec *out, const char *text)
{
    struct error error;

    return read_stored(out, text, &error);
}

const char *spec_error(const char *text, char *buf, size_t size)
{
    struct spec spec AT_END(spec_wipe);
    struct error error;

    snprintf(buf, size, "%s", read_stored(&spec, text, &error) == HIBLOOM_OK ? "" : error.words);
    return buf;
}

/* ---- spec -> text ---- */

/* HIBLOOM_TEXT_SIZE holds every spec text, and a blank in front. */
struct line {
    char text[HIBLOOM_TEXT_SIZE];
    size_t len;
    bool failed; /* out of memory, or of room */
};

/* printf takes longer, and a filter's text is written at each of its keys that is read. */
static void append(struct line *line, const char *text)
{
    const size_t len = strlen(text);

    line->failed = line->failed || len >= sizeof line->text - line->len;
    if (line->failed)
        return;
    memcpy(line->text + line->len, text, len);
    line->len += len;
}

static void append_seeds(struct line *line, const struct spec *spec, const struct hash *hash)
{
    if (hash->seeding == SEEDING_PER_HASH) {
        for (uint32_t i = 0; i < spec->hashes; i++) {
            char number[NUMBER_DIGITS + 1] = "";
            number_format(number, spec->seeds[i], number_digits(spec->seeds[i]));
            append(line, i == 0 ? " seeds=" : ",");
            append(line, number);
        }
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

/* The value of a word that is a field of the spec; of any other 0. */
static uint64_t field_of(const struct spec *spec, const struct known_word *word)
{
    const void *field;

    if (word->size == 0)
        return 0;
    field = (const char *)spec + word->at - offsetof(struct words, spec);
    return word->size == sizeof(uint64_t) ? *(const uint64_t *)field : *(const uint32_t *)field;
}

/* 0: the text leaves it out. */
static uint64_t value_of(const struct spec *spec, const struct known_word *word, unsigned bit)
{
    if (bit == GIVEN_SEGMENTS && spec_segments(spec) <= 1 && spec_default_segments(spec) <= 1)
        return 0;
    return bit == GIVEN_SEGMENTS ? spec_segments(spec) : field_of(spec, word);
}

/* A word, if the text has it; `unit` stands behind a time. */
static void append_word(struct line *line, const struct spec *spec, unsigned bit, const char *unit)
{
    const struct known_word *word = word_of(bit);
    const struct hash *hash = &hash_table[spec->hash];
    const uint64_t value = value_of(spec, word, bit);
    char number[NUMBER_DOUBLE_SIZE] = "";
    const char *text = "";

    if (bit == GIVEN_SEED || bit == GIVEN_SEEDS) {
        if ((bit == GIVEN_SEEDS) == (hash->seeding == SEEDING_PER_HASH))
            append_seeds(line, spec, hash);
    } else if (bit == GIVEN_EMPTY && spec->empty_excluded) {
        text = "excluded";
    } else if (bit == GIVEN_ERROR && spec->error_rate > 0.0) {
        line->failed = line->failed || number_format_double(number, spec->error_rate) != HIBLOOM_OK;
        text = number;
    } else if (bit == GIVEN_CHAIN && spec->link != 0) {
        snprintf(number, sizeof number, "%016" PRIx64, spec->chain);
        text = number;
    } else if (word->names != NULL && (value != 0 || bit == GIVEN_HASH || bit == GIVEN_LAYOUT)) {
        text = name_at(word->names, (size_t)value);
    } else if (word->names == NULL && value != 0) {
        number_format(number, value, number_digits(value));
        text = number;
    }
    if (*text == '\0')
        return;
    append(line, " ");
    append(line, word->name);
    append(line, "=");
    append(line, text);
    append(line, bit == GIVEN_WINDOW ? unit : "");
}

static hibloom_status write_text(const struct spec *spec, const char *unit, char *buf, size_t size)
{
    struct line line = {.len = 0};
    struct error error;

    if (spec_check_words(spec, &error) != HIBLOOM_OK)
        return HIBLOOM_EINVAL;
    for (unsigned bit = 1; bit <= GIVEN_CHAIN; bit <<= 1)
        append_word(&line, spec, bit, unit);
    snprintf(buf, size, "%s", line.text + 1);
    explicit_bzero(line.text, line.len);
    return line.failed ? HIBLOOM_ENOMEM : line.len <= size ? HIBLOOM_OK : HIBLOOM_ERANGE;
}

hibloom_status spec_format(const struct spec *spec, char *buf, size_t size)
{
    return write_text(spec, "", buf, size);
}

hibloom_status spec_format_said(const struct spec *spec, char *buf, size_t size)
{
    return write_text(spec, "s", buf, size);
}

void spec_word(const struct spec *spec, unsigned bit, char *buf, size_t size)
{
    struct line line = {.len = 0};

    append_word(&line, spec, bit, "s");
    snprintf(buf, size, "%s", line.len > 0 ? line.text + 1 : "");
    explicit_bzero(line.text, line.len);
}
