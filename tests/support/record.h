/* The record behind the bits of a key, read from outside and by hand: what
 * docs/format.md says, and not what the library does with it. */
#ifndef HIBLOOM_TEST_RECORD_H
#define HIBLOOM_TEST_RECORD_H

#include "test.h"
#include "spec/spec.h"

enum { TRAILER = 92, STATE_AT = 37 };

struct stored_record {
    uint64_t length; /* of the string */
    unsigned text_len, key, keys, crc;
    unsigned long long bytes, generation, id, epoch;
    char state;
    char text[SPEC_TEXT_SIZE];
    char trailer[TRAILER + 1];
};

/* Reads what is stored under a key; the test fails where a column is not as it
 * must be, the crc is wrong, or the string is longer or shorter than it says. */
void record_stored(struct redisContext *redis, const char *key, struct stored_record *out);

/* Bytes of a key with a record that has the spec's text. */
uint64_t record_length(const struct spec *spec, uint32_t key);

/* How many keys have this word in their names. */
long long keys_with(struct redisContext *redis, const char *word);

#endif
