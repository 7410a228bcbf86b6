/* indexes.h: the offsets that a hash gives, without a spec around it.
 *
 * What is under test has its own ideas of k and m, which no valid spec has:
 * m = 2^63, that shows nearly all of 64 bits, and more than 128 hashes. */
#ifndef HIBLOOM_TEST_INDEXES_H
#define HIBLOOM_TEST_INDEXES_H

#include "support/test.h"

#include "hash/hash.h"
#include "spec/spec.h"

#define TEXT(literal) \
    { \
        literal, sizeof(literal) - 1 \
    }
#define URL "https://www.debian.org/doc/manuals/debian-reference/index.en.html"

/* The seeds after the first two are 0; seeds NULL: these, too. */
static inline void indexes(enum hash_id hash, uint64_t bits, uint32_t hashes, const uint64_t seeds[2],
                           hibloom_item item, uint64_t *out)
{
    const uint64_t all[HIBLOOM_HASHES_MAX] = {seeds != NULL ? seeds[0] : 0, seeds != NULL ? seeds[1] : 0};
    struct hasher hasher = {.seeds = all, .bits = bits, .hashes = hashes, .segments = 1};

    hasher_set(&hasher, hash_by_id(hash), CODEC_BYTES, false);
    assert_int_equal(hasher.indexes(&hasher, item.data, item.len, out), 0);
}

#endif
