/* A tiny filter in memory, and a path for its file. Both are the state of a test. */
#ifndef HIBLOOM_TEST_TINY_H
#define HIBLOOM_TEST_TINY_H

#include "files.h"
#include "test.h"

#define TINY "hash=poly layout=partitioned bits=20 hashes=2 seeds=3,5"

/* Its file, byte for byte. */
enum { TEXT_AT = 24, BITS_AT = TEXT_AT + sizeof TINY - 1, TINY_BYTES = BITS_AT + 6 + 8 };
extern const unsigned char tiny_bytes[TINY_BYTES + 1];

struct tiny_file {
    hibloom_store *store;
    hibloom *filter; /* a tiny one with "a", "b" and "abc" in it */
    char *dir, *path;
};

int tiny_set_up(void **state);
int tiny_tear_down(void **state);
#define TINY_TEST(f) cmocka_unit_test_setup_teardown(f, tiny_set_up, tiny_tear_down)

uint64_t bits_set(hibloom *filter);

#endif
