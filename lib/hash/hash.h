/* hash.h: from an item's bytes to k bit offsets.
 *
 * It takes two independent steps. A digest makes values of the bytes; an index rule makes
 * offsets below m of the values. A spec's hash is a row of the table in hash.c that pairs a
 * digest with a rule. So another library's filter is a row and, where it differs, a digest or a
 * rule. A digest reads an item as its codec says (enum codec), so a row has one for each. */
#ifndef HIBLOOM_HASH_H
#define HIBLOOM_HASH_H

#include "base/spec.h"

struct hasher;

/* Writes the values of an item: one or two, or one for each hash. */
typedef void hash_digest(const struct hasher *, const void *item, size_t len, uint64_t *values);

/* An index rule writes hasher->hashes offsets below hasher->bits. It reads one value, or two, or one for each hash: the
 * digest in its row gives that number. */
typedef void hash_rule(const uint64_t *values, const struct hasher *, uint64_t *out);

/* The meaning of a spec's seeds[] to a hash, and their form in its text. */
enum seeding {
    SEEDING_NONE,    /* no seeds */
    SEEDING_KEY,     /* `key_bytes` random bytes, drawn at creation; seed=HEX */
    SEEDING_PER_HASH /* one 32-bit seed for each hash; seeds=A,B,... */
};

#define HASH_CODECS 3

struct hash {
    const char *name; /* as in hash=NAME */
    enum seeding seeding;
    hash_digest *digest[HASH_CODECS]; /* by enum codec; NULL: not with that */
    hash_rule *rule;
    hash_rule *blocked; /* in the blocked layout; NULL: it has none, nor can it choose among several segments */
    unsigned key_bytes; /* SEEDING_KEY: 8 or 16 */
    unsigned unit;      /* its bits are a multiple of this; 0: any number */
    uint64_t most;      /* and no more than this; 0: any number */
    enum key_rule keys; /* of its library, beside those of our own */
};

/* A hash with all that a filter fixes of it, ready for any number of items. */
struct hasher {
    /* Writes the offsets of an item, and returns its segment. */
    uint32_t (*indexes)(const struct hasher *, const void *item, size_t len, uint64_t *out);
    hash_digest *digest;
    hash_rule *rule;
    const uint64_t *seeds;
    uint64_t bits; /* in one key's bitmap */
    uint32_t hashes, segments;
};

/* Sets the functions of a hasher; `blocked` and `codec` only if the hash has them. */
void hasher_set(struct hasher *hasher, const struct hash *hash, enum codec codec, bool blocked);

/* The second of its two steps: the offsets and the segment, from what hasher->digest has made of the item. */
uint32_t hasher_offsets(const struct hasher *, const uint64_t *values, uint64_t *out);

/* The table, by enum hash_id. */
#define HASH_COUNT (HASH_REDISBLOOM + 1)
extern const struct hash hash_table[HASH_COUNT];

extern hash_digest digest_siphash, digest_murmur3, digest_poly, digest_crc32;
extern hash_rule index_python_modulo, index_mask, index_php_mt, index_php_mt_legacy;

/* Of other libraries. */
extern hash_digest digest_murmur64, digest_murmur64_pair, digest_murmur3_128, digest_go_zero, digest_murmur3_pair,
    digest_murmur3_chain, digest_crc32_numbered, digest_poly64, digest_poly64_text, digest_sha1, digest_highway,
    digest_highway_kryo5;
extern hash_rule index_modulo, index_double, index_redisbloom, index_redisson, index_taganaka;

#endif
