/* The text of any spec of a small filter: its hash, layout, size, segments, counters. */
#ifndef HIBLOOM_TEST_RANDOM_SPEC_H
#define HIBLOOM_TEST_RANDOM_SPEC_H

#include "test.h"
#include "spec/spec.h"

void random_spec(struct test_random *random, char text[SPEC_TEXT_SIZE]);

#endif
