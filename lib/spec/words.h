/* words.h: the words of a spec text. words.c reads them; spec_text.c or preset.c makes a spec of them. */
#ifndef HIBLOOM_WORDS_H
#define HIBLOOM_WORDS_H

#include "base/nearest.h"
#include "spec/spec.h"

#include <string.h>

/* Those of a canonical text in their order, up to GIVEN_CHAIN. */
enum {
    GIVEN_HASH = 1 << 0,
    GIVEN_LAYOUT = 1 << 1,
    GIVEN_BITS = 1 << 2,
    GIVEN_HASHES = 1 << 3,
    GIVEN_SEGMENTS = 1 << 4,
    GIVEN_COUNTERS = 1 << 5,
    GIVEN_SEED = 1 << 6,  /* seed=HEX, kept as written in `seed` */
    GIVEN_SEEDS = 1 << 7, /* seeds=A,B,..., `seeds` of them in spec.seeds */
    GIVEN_EMPTY = 1 << 8,
    GIVEN_CODEC = 1 << 9,
    GIVEN_KEYS = 1 << 10,
    GIVEN_CAPACITY = 1 << 11,
    GIVEN_ERROR = 1 << 12,
    GIVEN_GROWTH = 1 << 13,
    GIVEN_WINDOW = 1 << 14,
    GIVEN_SLICES = 1 << 15,
    GIVEN_LINK = 1 << 16,
    GIVEN_CHAIN = 1 << 17,
    /* presets only: */
    GIVEN_CHARS = 1 << 18, /* in spec.codec */
    GIVEN_INDEX = 1 << 19, /* in spec.hash */
    /* not of the spec, and never stored: */
    GIVEN_CREATE = 1 << 20,
    GIVEN_NEW_TTL = 1 << 21,
    GIVEN_NEW_PREFER = 1 << 22,
    GIVEN_NEW_HASH = 1 << 23,
    GIVEN_NEW_LAYOUT = 1 << 24,
    GIVEN_NEW_SEGMENTS = 1 << 25
};
#define GIVEN_NEW \
    (GIVEN_NEW_TTL | GIVEN_NEW_PREFER | GIVEN_NEW_HASH | GIVEN_NEW_LAYOUT | GIVEN_NEW_SEGMENTS) /* the wishes */
#define WORDS_TTL_MAX (UINT64_C(1) << 50)                                                       /* ms */

enum preference { PREFER_MEMORY, PREFER_ADD, PREFER_LOOKUP };
enum creation { CREATE_YES, CREATE_NO, CREATE_ONLY };

/* A word of the text, or one side of its '='; not terminated. */
struct word {
    const char *text;
    size_t len;
};

struct words {
    bool stored;    /* the text is in its stored form */
    unsigned given; /* GIVEN_ bits */
    uint32_t seeds;
    struct word seed;            /* len 0: none */
    const struct preset *preset; /* NULL: none */
    struct spec spec;            /* the values, where given or wished, or of the preset */
    uint64_t ttl_ms;             /* of it; 0: for ever */
    enum preference prefer;
    enum creation create;
    const char *lacks;       /* what keeps the text from fixing a whole filter; NULL: nothing does */
    struct error *error;     /* why the text is refused, in words */
    hibloom_status status;   /* status of the words so far */
    struct word word, value; /* the NAME=VALUE that is being read, and its value */
};

/* Reads all words of a text; the first one is a preset if it has no '='. */
hibloom_status words_read(struct words *words, const char *text);

/* words->word names a preset: takes what it sets. */
void preset_begin(struct words *words);

/* Fills *out from words->preset and the words beside it. */
hibloom_status preset_spec(struct spec *out, const struct words *words);

/* The spec that the words fix. It is EINVAL, too, if words->lacks. */
hibloom_status words_spec(struct spec *out, struct words *words);

/* The seed of a key hash from its digits. False: it is not one. */
bool words_read_seed(struct spec *, struct word hex, unsigned key_bytes);

/* One word of a spec's canonical text, a GIVEN_ bit; "" if that has it not. Its seed stands there, too. */
void spec_word(const struct spec *, unsigned bit, char *buf, size_t size);

static inline bool word_is(struct word word, const char *name)
{
    return strlen(name) == word.len && memcmp(name, word.text, word.len) == 0;
}

/* A word that a text can have. */
struct known_word {
    const char *name;
    unsigned bit;
    size_t at, size;             /* it is a field of struct words: */
    uint64_t least, most;        /* a count in this range, of which spec_check knows the valid ones; least 0: from 1; */
    const struct names *names;   /* or one of these, by its number; */
    void (*set)(struct words *); /* or something else */
};

/* The first one in `given`, which is not 0. */
const struct known_word *word_of(unsigned given);

static inline const char *word_name(unsigned given)
{
    return word_of(given)->name;
}

/* The number of a name among these. One that is not there is refused, "hash=sipash: no such value; did you mean
 * siphash?", and 0. */
size_t find_name(struct words *words, const char *kind, struct word name, const struct names *names);

#endif
