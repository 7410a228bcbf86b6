/* hash.h: what a hash is to the rest of the library.
 *
 * Each hash is one file that ends in a const record; hash.c lists the records
 * in the order of enum hibloom_hash. A hash knows no layout and no key: it
 * gives k numbers in [0, m) and a segment, and positions.c says what they mean. */
#ifndef HIBLOOM_HASH_H
#define HIBLOOM_HASH_H

#include "hibloom/hibloom.h"

/* What a spec's seeds[] mean to a hash, and so how its text shows them. */
enum seeding {
    SEEDING_NONE,    /* no seeds */
    SEEDING_KEY,     /* `key_bytes` random bytes, drawn at creation; seed=HEX */
    SEEDING_PER_HASH /* one 32-bit seed for each hash; seeds=A,B,... */
};

struct hash {
    const char *name; /* as in hash=NAME */
    enum seeding seeding;
    unsigned key_bytes; /* SEEDING_KEY: 8 or 16 */
    /* Writes spec->hashes numbers below the bits of one bitmap, and returns the
     * segment, 0 where there is but one. The spec is valid. */
    uint32_t (*numbers)(const hibloom_spec *spec, const void *item, size_t len, uint64_t *out);
};

extern const struct hash hash_xxh3, hash_siphash, hash_murmur3, hash_poly, hash_php_mt, hash_php_mt_legacy;

/* The record of a hash, or NULL if there is none with that number or name
 * (`len` bytes, not terminated). */
const struct hash *hash_by_id(hibloom_hash id);
const struct hash *hash_by_name(const char *name, size_t len, hibloom_hash *id);

#endif
