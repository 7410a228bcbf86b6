/* hash.c: the table of hashes, and the walk from an item to its offsets.
 *
 * A hash is added by its number in the public enum and its line here. */
#include "hash/hash.h"
#include "hash/spread.h"
#include "hash/xxh3.h"

static void digest_xxh3(const struct hasher *hasher, const void *item, size_t len, uint64_t *values)
{
    xxh3(item, len, hasher->seeds, values);
}

static const struct index_rule index_spread = {true, spread}, index_spread_blocked = {true, spread_blocked};

static const struct hash hashes[] = {
    [HIBLOOM_HASH_XXH3] = {"xxh3", SEEDING_KEY, 8, {digest_xxh3}, &index_spread, &index_spread_blocked, 0, 0, 0},
    [HIBLOOM_HASH_SIPHASH] =
        {"siphash", SEEDING_KEY, 16, {digest_siphash}, &index_spread, &index_spread_blocked, 0, 0, 0},
    [HIBLOOM_HASH_MURMUR3] = {"murmur3", SEEDING_PER_HASH, 0, {digest_murmur3}, &index_python_modulo, NULL, 0, 0, 0},
    [HIBLOOM_HASH_POLY] = {"poly", SEEDING_PER_HASH, 0, {digest_poly}, &index_mask, NULL, 0, 0, 0},
    [HIBLOOM_HASH_PHP_MT] = {"php-mt", SEEDING_NONE, 0, {digest_crc32}, &index_php_mt, NULL, 0, 0, 0},
    [HIBLOOM_HASH_PHP_MT_LEGACY] =
        {"php-mt-legacy", SEEDING_NONE, 0, {digest_crc32}, &index_php_mt_legacy, NULL, 0, 0, 0},
    [HIBLOOM_HASH_PYREBLOOM] =
        {"pyrebloom", SEEDING_PER_HASH, 0, {digest_murmur64}, &index_modulo, NULL, 0, 0, HIBLOOM_KEYS_PYREBLOOM},
    [HIBLOOM_HASH_SCRAPY_REDIS] =
        {"scrapy-redis", SEEDING_PER_HASH, 0, {digest_poly64, digest_poly64_text}, &index_mask, NULL, 0, 0, 0},
    [HIBLOOM_HASH_GO_ZERO] = {"go-zero", SEEDING_NONE, 0, {digest_go_zero}, &index_modulo, NULL, 0, 0, 0},
    [HIBLOOM_HASH_RUEIDIS] =
        {"rueidis", SEEDING_NONE, 0, {digest_murmur3_128}, &index_double, NULL, 0, 0, HIBLOOM_KEYS_RUEIDIS},
    [HIBLOOM_HASH_REDISSON] = {"redisson",
                               SEEDING_NONE,
                               0,
                               {digest_highway, digest_highway, digest_highway_kryo5},
                               &index_redisson,
                               NULL,
                               0,
                               0,
                               HIBLOOM_KEYS_REDISSON},
    [HIBLOOM_HASH_BLOOMFILTER_RB] =
        {"bloomfilter-rb", SEEDING_PER_HASH, 0, {digest_crc32_numbered}, &index_modulo, NULL, 0, 0, 0},
    [HIBLOOM_HASH_TAGANAKA] = {"taganaka", SEEDING_NONE, 0, {digest_sha1}, &index_taganaka, NULL, 0, 0, 0},
    [HIBLOOM_HASH_ORESTES] =
        {"orestes", SEEDING_NONE, 0, {digest_murmur3_pair}, &index_double, NULL, 0, 0, HIBLOOM_KEYS_ORESTES},
    [HIBLOOM_HASH_ORESTES_MURMUR3] = {"orestes-murmur3",
                                      SEEDING_NONE,
                                      0,
                                      {digest_murmur3_chain},
                                      &index_modulo,
                                      NULL,
                                      0,
                                      INT32_MAX,
                                      HIBLOOM_KEYS_ORESTES},
    [HIBLOOM_HASH_REDISBLOOM] =
        {"redisbloom", SEEDING_NONE, 0, {digest_murmur64_pair}, &index_redisbloom, NULL, 8, 0, 0},
};

static uint32_t two_steps(const struct hasher *hasher, const void *item, size_t len, uint64_t *out)
{
    uint64_t values[HIBLOOM_HASHES_MAX];

    hasher->digest(hasher, item, len, values);
    return hasher->rule->indexes(values, hasher, out);
}

/* The same with XXH3, the default, where the compiler makes one step of the two. */
__attribute__((flatten)) static uint32_t one_step(const struct hasher *hasher, const void *item, size_t len,
                                                  uint64_t *out)
{
    uint64_t values[2];

    xxh3(item, len, hasher->seeds, values);
    return hasher->rule == &index_spread ? spread(values, hasher, out) : spread_blocked(values, hasher, out);
}

void hasher_set(struct hasher *hasher, const struct hash *hash, hibloom_codec codec, bool blocked)
{
    hasher->digest = hash->digest[codec];
    hasher->rule = blocked ? hash->blocked : hash->rule;
    hasher->indexes = hash == &hashes[HIBLOOM_HASH_XXH3] ? one_step : two_steps;
}

const struct hash *hash_by_id(hibloom_hash id)
{
    /* The compiler may make the enum signed or not. As a size_t a negative number is too large
     * as well. */
    return (size_t)id < sizeof hashes / sizeof *hashes ? &hashes[id] : NULL;
}
