/* spec_text.h: the content of a spec text. spec_text.c reads its words; it or preset.c makes a spec of them. */
#ifndef HIBLOOM_SPEC_TEXT_H
#define HIBLOOM_SPEC_TEXT_H

#include "base/error.h"

#include <string.h>

enum {
    GIVEN_HASH = 1 << 0,
    GIVEN_LAYOUT = 1 << 1,
    GIVEN_BITS = 1 << 2,
    GIVEN_HASHES = 1 << 3,
    GIVEN_SEED = 1 << 4,  /* seed=HEX, kept as written in `seed` */
    GIVEN_SEEDS = 1 << 5, /* seeds=A,B,..., `seeds` of them in spec.seeds */
    GIVEN_EMPTY = 1 << 6,
    GIVEN_CAPACITY = 1 << 7,
    GIVEN_ERROR = 1 << 8,
    GIVEN_SEGMENTS = 1 << 9,
    GIVEN_COUNTERS = 1 << 10,
    GIVEN_GROWTH = 1 << 11,
    GIVEN_LINK = 1 << 12,
    GIVEN_CHAIN = 1 << 13,
    GIVEN_WINDOW = 1 << 14,
    GIVEN_SLICES = 1 << 15,
    GIVEN_CODEC = 1 << 16,
    GIVEN_KEYS = 1 << 17,
    /* presets only: */
    GIVEN_CHARS = 1 << 18, /* in spec.codec */
    GIVEN_INDEX = 1 << 19  /* in spec.hash */
};

/* A word of the text, or one side of its '='; not terminated. */
struct word {
    const char *text;
    size_t len;
};

struct settings {
    unsigned given; /* GIVEN_ bits */
    uint32_t seeds;
    struct word seed;            /* len 0: none */
    const struct preset *preset; /* NULL: none */
    hibloom_spec spec;           /* the values, where given, or of the preset */
    struct error *error;         /* why the text is refused, in words */
    hibloom_status status;       /* status of the words so far */
    struct word word, value;     /* the NAME=VALUE that is being read, and its value */
};

/* Reads all words of a text; the first one is a preset if it has no '='. */
hibloom_status settings_read(struct settings *settings, const char *text);

/* settings->word names a preset: takes what it sets. */
void preset_begin(struct settings *settings);

/* Fills *out from settings->preset and the settings beside it. */
hibloom_status preset_spec(hibloom_spec *out, const struct settings *settings);

/* The name of the first setting in `given`, which is not 0. */
const char *setting_name(unsigned given);

static inline bool word_is(struct word word, const char *name)
{
    return strlen(name) == word.len && memcmp(name, word.text, word.len) == 0;
}

/* A table whose rows begin with a name. */
struct names {
    const void *rows;
    size_t row_size, count;
};

#define NAMES(table) \
    { \
        (table), sizeof *(table), sizeof(table) / sizeof *(table) \
    }

/* The number of a name among these. One that is not there is refused, "no such hash as 'md5'; there are xxh3, ...",
 * and 0. */
size_t find_name(struct settings *settings, const char *kind, struct word name, const struct names *names);

#endif
