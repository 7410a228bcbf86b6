/* words.c: the words of a spec text, one by one: what is said, before anybody asks what it means.
 *
 * Reading never guesses: an unknown word is an error, and so is one that comes twice. Texts come from Redis too, so
 * lengths are checked throughout. A text that a caller says has units, and wishes for a new filter. A stored one has
 * neither, and a word in it that is unknown here was written by a newer version.
 *
 * An error in words says why a text is refused. A seed may be secret. The words never repeat its value, nor that of an
 * unknown word. */
#include "base/number.h"
#include "hash/hash.h"
#include "spec/words.h"

#include <ctype.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

static const char *const layout_names[] = {"classic", "partitioned", "blocked"};
static const char *const codec_names[] = {"bytes", "string", "kryo5"};
static const char *const key_names[] = {"own", "pyrebloom", "rueidis", "redisson", "orestes"};
static const char *const prefer_names[] = {"memory", "add", "lookup"};
static const char *const create_names[] = {"yes", "no", "only"};
static const char *const chars_names[] = {[CODEC_BYTES] = "latin1", [CODEC_STRING] = "codepoints"};
static const char *const index_names[] = {"kirsch-mitzenmacher", "murmur3"};
static const struct names hashes = NAMES(hash_table, &hash_table->name), layouts = NAMES(layout_names, layout_names),
                          codecs = NAMES(codec_names, codec_names), keys = NAMES(key_names, key_names),
                          chars = NAMES(chars_names, chars_names), indexes = NAMES(index_names, index_names),
                          prefers = NAMES(prefer_names, prefer_names), creates = NAMES(create_names, create_names);

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

/* How much of it may be a name, or a number. A comma may join it to a seed. */
static size_t plain_part(struct word word)
{
    size_t len = 0;

    while (len < word.len && (isalnum((unsigned char)word.text[len]) || memchr("._+-", word.text[len], 4) != NULL))
        len++;
    return len;
}

/* May it hold a seed in the wrong place, or a piece of one? There four hexadecimal digits in a row have a letter among
 * them, or there are many. */
static bool may_hold_seed(struct word word, size_t len)
{
    size_t hex = 0;
    bool letter = false;

    for (size_t i = 0; i < len; i++) {
        const bool digit = number_hex_digit(word.text[i]) >= 0;
        hex = digit ? hex + 1 : 0;
        letter = digit && (letter || isalpha((unsigned char)word.text[i]));
        if (hex > 3 && (letter || hex > 10))
            return true;
    }
    return false;
}

/* The start of an unknown word that may be a name, up to the second digit. */
static struct shown show_name(struct word word)
{
    const size_t part = plain_part(word);
    size_t len = 0;

    for (unsigned digits = 0; len < part && len < 15; len++) {
        digits += word.text[len] >= '0' && word.text[len] <= '9';
        if (digits == 2)
            break;
    }
    return show(word, may_hold_seed(word, len) ? 0 : len);
}

/* Behind the comma of "0,01": too few for a seed. */
static bool are_few_digits(const char *text, size_t len)
{
    size_t digits = 0;

    while (digits < len && isdigit((unsigned char)text[digits]))
        digits++;
    return digits == len && len > 0 && len <= 4;
}

static struct shown show_value(struct word value)
{
    size_t part = plain_part(value);

    if (part < value.len && value.text[part] == ',' && are_few_digits(value.text + part + 1, value.len - part - 1))
        part = value.len;
    else if (part < value.len && ispunct((unsigned char)value.text[part]))
        part++; /* what does not belong there */
    return show(value, part > 12 || may_hold_seed(value, part) ? 0 : part);
}

/* "no such value; did you mean siphash?", or what there is. */
static void refuse_name(struct words *s, const char *shown, const char *kind, const char *nearest,
                        const struct names *names)
{
    char list[384];

    list_names(list, sizeof list, names);
    if (s->stored) /* a known crc says that it is what a client wrote */
        s->status = error_set(s->error, HIBLOOM_ENOTSUP, "made by a newer hibloom: %s", shown);
    else if (nearest != NULL)
        s->status = error_set(s->error, HIBLOOM_EINVAL, "%s: no such %s; did you mean %s?", shown, kind, nearest);
    else
        s->status = error_set(s->error, HIBLOOM_EINVAL, "%s: no such %s; there are %s", shown, kind, list);
}

size_t find_name(struct words *s, const char *kind, struct word name, const struct names *names)
{
    for (size_t i = 0; i < names->count; i++)
        if (word_is(name, name_at(names, i)))
            return i;
    char shown[64];
    const bool value = name.text == s->value.text;
    const char *nearest = nearest_name(name.text, name.len, names);
    /* A typo of a name is no seed. */
    const struct shown part = nearest != NULL ? show(name, SHOWN) : show_name(name);
    snprintf(shown, sizeof shown, "%s%s%s", value ? kind : "", value ? "=" : "", part.text);
    refuse_name(s, shown, value ? "value" : kind, nearest, names);
    return 0;
}

/* ---- text -> words ---- */

/* Refuses the word that is being read. */
static void refuse(struct words *s, hibloom_status status, const char *why)
{
    s->status = error_set(s->error, status, "%.*s%s: %s", (int)(s->value.text - s->word.text), s->word.text,
                          show_value(s->value).text, why);
}

/* A number that is given is not 0: that stands for "not given" in a spec. */
static uint64_t read_count(struct words *s, uint64_t least, uint64_t most)
{
    uint64_t count = 0;
    const hibloom_status status = s->stored ? number_parse(s->value.text, s->value.len, most, &count)
                                            : number_parse_size(s->value.text, s->value.len, most, &count);

    if (status == HIBLOOM_EINVAL) {
        refuse(s, status, "not a whole number, such as 1000000 or 1m, with k, m, g, kb, mb or gb behind it or not");
    } else if (count < least) { /* too large a one is 0 */
        char why[64];
        snprintf(why, sizeof why, "must be %" PRIu64 " to %" PRIu64, least, most);
        refuse(s, HIBLOOM_ERANGE, why);
    }
    return count;
}

static void set_index(struct words *s)
{
    s->spec.hash = find_name(s, "index", s->value, &indexes) == 0 ? HASH_ORESTES : HASH_ORESTES_MURMUR3;
}

static void set_chain(struct words *s)
{
    if (s->value.len != CHAIN_DIGITS || !number_parse_hex(s->value.text, s->value.len, &s->spec.chain))
        refuse(s, HIBLOOM_EINVAL, "not 16 hexadecimal digits");
}

static void set_error(struct words *s)
{
    if (number_parse_double(s->value.text, s->value.len, &s->spec.error_rate) != HIBLOOM_OK)
        refuse(s, HIBLOOM_EINVAL,
               memchr(s->value.text, ',', s->value.len) != NULL ? "write a point, not a comma, as in 0.01"
                                                                : "not a decimal number, such as 0.01 or 1e-2");
    else if (!(s->spec.error_rate > 0.0 && s->spec.error_rate < 1.0))
        refuse(s, HIBLOOM_ERANGE, "must be above 0 and below 1");
}

/* The meaning of its digits depends on the hash, which may follow. */
static void set_seed(struct words *s)
{
    s->seed = s->value;
}

static void set_seeds(struct words *s)
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

static void set_empty(struct words *s)
{
    s->spec.empty_excluded = true;
    if (!word_is(s->value, "excluded"))
        refuse(s, HIBLOOM_EINVAL, "only empty=excluded is known");
}

/* Milliseconds, at least 1. */
static uint64_t read_time(struct words *s, uint64_t most)
{
    uint64_t ms = 0;
    const hibloom_status status = number_parse_time_ms(s->value.text, s->value.len, most, &ms);

    if (status == HIBLOOM_EINVAL)
        refuse(s, status, "not a time: a whole number with its unit, ms, s, min, h or d");
    else if (ms == 0)
        refuse(s, HIBLOOM_ERANGE, "is too short, or too long");
    return ms;
}

static void set_window(struct words *s)
{
    const uint64_t ms = s->stored ? read_count(s, 1, SPEC_WINDOW_MAX) * 1000
                                  : read_time(s, SPEC_WINDOW_MAX * UINT64_C(1000));

    s->spec.window = (uint32_t)(ms / 1000);
    if (s->status == HIBLOOM_OK && ms % 1000 != 0)
        refuse(s, HIBLOOM_ERANGE, "must be whole seconds");
}

static void set_ttl(struct words *s)
{
    s->ttl_ms = read_time(s, WORDS_TTL_MAX);
}

#define FIELD(name) offsetof(struct words, name), sizeof((struct words *)0)->name
#define SPEC(name) FIELD(spec.name)

static const struct known_word known_words[] = {
    {"capacity", GIVEN_CAPACITY, SPEC(capacity), .most = UINT64_MAX},
    {"error", GIVEN_ERROR, .set = set_error},
    {"bits", GIVEN_BITS, SPEC(bits), .most = SPEC_BITS_MAX},
    {"hashes", GIVEN_HASHES, SPEC(hashes), .most = HIBLOOM_HASHES_MAX},
    {"hash", GIVEN_HASH, SPEC(hash), .names = &hashes},
    {"seed", GIVEN_SEED, .set = set_seed},
    {"seeds", GIVEN_SEEDS, .set = set_seeds},
    {"layout", GIVEN_LAYOUT, SPEC(layout), .names = &layouts},
    {"segments", GIVEN_SEGMENTS, SPEC(segments), .most = SPEC_SEGMENTS_MAX},
    {"counters", GIVEN_COUNTERS, SPEC(counters), .least = 2, .most = 8},
    {"empty", GIVEN_EMPTY, .set = set_empty},
    {"codec", GIVEN_CODEC, SPEC(codec), .names = &codecs},
    {"keys", GIVEN_KEYS, SPEC(keys), .names = &keys},
    {"chars", GIVEN_CHARS, SPEC(codec), .names = &chars},
    {"index", GIVEN_INDEX, .set = set_index},
    {"growth", GIVEN_GROWTH, SPEC(growth), .least = 2, .most = SPEC_GROWTH_MAX},
    {"window", GIVEN_WINDOW, SPEC(window), .set = set_window},
    {"slices", GIVEN_SLICES, SPEC(slices), .most = SPEC_SLICES_MAX},
    {"create", GIVEN_CREATE, FIELD(create), .names = &creates},
    {"new.ttl", GIVEN_NEW_TTL, .set = set_ttl},
    {"new.prefer", GIVEN_NEW_PREFER, FIELD(prefer), .names = &prefers},
    {"new.hash", GIVEN_NEW_HASH, SPEC(hash), .names = &hashes},
    {"new.layout", GIVEN_NEW_LAYOUT, SPEC(layout), .names = &layouts},
    {"new.segments", GIVEN_NEW_SEGMENTS, SPEC(segments), .most = SPEC_SEGMENTS_MAX},
    /* Only stored texts have these: */
    {"link", GIVEN_LINK, SPEC(link), .most = SPEC_LINKS_MAX - 1},
    {"chain", GIVEN_CHAIN, .set = set_chain},
};
#define STORED_ONLY 2u
static const struct names said_names = {&known_words->name, sizeof *known_words,
                                        sizeof known_words / sizeof *known_words - STORED_ONLY},
                          stored_names = NAMES(known_words, &known_words->name);

const struct known_word *word_of(unsigned given)
{
    const struct known_word *word = known_words;

    while ((given & word->bit) == 0)
        word++;
    return word;
}

static void set_field(struct words *s, const struct known_word *known)
{
    const uint64_t value = known->names != NULL ? find_name(s, known->name, s->value, known->names)
                                                : read_count(s, known->least > 0 ? known->least : 1, known->most);
    const uint32_t narrow = (uint32_t)value;

    memcpy((char *)s + known->at, known->size == sizeof value ? (const void *)&value : &narrow, known->size);
}

static void apply(struct words *s, struct word name)
{
    const struct names *names = s->stored ? &stored_names : &said_names;
    const struct known_word *known = &known_words[find_name(s, "word", name, names)];

    if (s->status != HIBLOOM_OK)
        return;
    if (s->given & known->bit)
        s->status = error_set(s->error, HIBLOOM_EINVAL, "%s=: given twice", known->name);
    else if (known->set != NULL)
        known->set(s);
    else
        set_field(s, known);
    s->given |= known->bit;
}

hibloom_status words_read(struct words *s, const char *text)
{
    static const char blanks[] = " \t\r\n";

    if (strnlen(text, HIBLOOM_TEXT_SIZE) == HIBLOOM_TEXT_SIZE)
        return error_set(s->error, HIBLOOM_EINVAL, "longer than %u bytes", HIBLOOM_TEXT_SIZE - 1);
    for (const char *at = text + strspn(text, blanks); *at != '\0' && s->status == HIBLOOM_OK;) {
        s->word = (struct word){at, strcspn(at, blanks)};
        at += s->word.len;
        const char *equals = memchr(s->word.text, '=', s->word.len);
        if (equals != NULL) {
            s->value = (struct word){equals + 1, (size_t)(at - equals) - 1};
            apply(s, (struct word){s->word.text, (size_t)(equals - s->word.text)});
        } else if (at[strspn(at, blanks)] == '=' && !s->stored) {
            s->status = error_set(s->error, HIBLOOM_EINVAL, "'%s': no blanks may stand around its '='",
                                  show_name(s->word).text);
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
