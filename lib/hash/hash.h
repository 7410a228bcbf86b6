/* hash.h: from an item's bytes to k bit offsets.
 *
 * It takes two steps that do not know each other. A digest makes values of the
 * bytes; an index rule makes offsets below m of the values. A hash, as a spec
 * names it, is a row of the table in hash.c that pairs a digest with a rule: so
 * another library's filter is a row, and where it differs a digest or a rule. */
#ifndef HIBLOOM_HASH_H
#define HIBLOOM_HASH_H

#include "hibloom/hibloom.h"

struct digest {
    /* false: computed once, with seeds[0] and [1], and gives up to two values.
     * true: computed for each hash, with its seed, and gives one value. */
    bool per_hash;
    void (*compute)(const void *item, size_t len, const uint64_t *seeds, uint64_t *values);
};

struct hasher;

struct index_rule {
    bool segments; /* it can also choose among several segments */
    /* Writes hasher->hashes offsets below hasher->bits, and returns the segment,
     * 0 where there is one. It reads one value, or two, or one for each hash:
     * its row pairs it with a digest that gives so many. */
    uint32_t (*indexes)(const uint64_t *values, const struct hasher *hasher, uint64_t *out);
};

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
    const struct digest *digest;
    const struct index_rule *rule;
    const struct index_rule *blocked; /* in the blocked layout; NULL: it has none */
};

/* A hash with all that a filter fixes of it, ready for any number of items. */
struct hasher {
    /* Writes the offsets of an item, and returns its segment. */
    uint32_t (*indexes)(const struct hasher *, const void *item, size_t len, uint64_t *out);
    const struct digest *digest;
    const struct index_rule *rule;
    const uint64_t *seeds;
    uint64_t bits; /* of the bitmap in one key */
    uint32_t hashes, segments;
};

/* Sets the functions of a hasher; `blocked` only if the hash has that rule. */
void hasher_set(struct hasher *hasher, const struct hash *hash, bool blocked);

/* The row of a hash, or NULL if there is none with that number. */
const struct hash *hash_by_id(hibloom_hash id);

extern const struct digest digest_siphash, digest_murmur3, digest_poly, digest_crc32;
extern const struct index_rule index_python_modulo, index_mask, index_php_mt, index_php_mt_legacy;

#endif
