/* spec_text.h: what the words of a spec text said, between reading them
 * (spec_text.c) and making a spec of them (there, or in preset.c). */
#ifndef HIBLOOM_SPEC_TEXT_H
#define HIBLOOM_SPEC_TEXT_H

#include "hibloom/hibloom.h"

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
    GIVEN_SEGMENTS = 1 << 9
};

struct settings {
    unsigned given; /* GIVEN_ bits */
    uint32_t seeds;
    char seed[33];
    hibloom_spec spec; /* the values, where given */
};

/* Fills *out from the preset of that name (`len` bytes) and its settings.
 * EINVAL: no such preset, or a setting it does not take or lacks. */
hibloom_status preset_spec(hibloom_spec *out, const char *name, size_t len, const struct settings *settings);

#endif
