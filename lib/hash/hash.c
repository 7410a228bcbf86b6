/* hash.c: the one list of hashes.
 *
 * A hash is added by writing its file, its number in the public enum and its
 * line here; nothing else in the library knows how many there are. */
#include "hash/hash.h"

#include <string.h>

static const struct hash *const hashes[] = {
    [HIBLOOM_HASH_XXH3] = &hash_xxh3,
    [HIBLOOM_HASH_SIPHASH] = &hash_siphash,
    [HIBLOOM_HASH_MURMUR3] = &hash_murmur3,
    [HIBLOOM_HASH_POLY] = &hash_poly,
    [HIBLOOM_HASH_PHP_MT] = &hash_php_mt,
    [HIBLOOM_HASH_PHP_MT_LEGACY] = &hash_php_mt_legacy,
};

enum { HASHES = sizeof hashes / sizeof hashes[0] };

const struct hash *hash_by_id(hibloom_hash id)
{
    /* Whether the enum is signed is the compiler's choice; as a size_t a
     * negative number is too large as well. */
    return (size_t)id < HASHES ? hashes[id] : NULL;
}

const struct hash *hash_by_name(const char *name, size_t len, hibloom_hash *id)
{
    for (size_t i = 0; i < HASHES; i++) {
        if (strlen(hashes[i]->name) == len && memcmp(hashes[i]->name, name, len) == 0) {
            *id = (hibloom_hash)i;
            return hashes[i];
        }
    }
    return NULL;
}
