/* The different URLs of tests/data/homepages.txt, in order. They are read once; run from the top of the tree. */
#ifndef HIBLOOM_TEST_URLS_H
#define HIBLOOM_TEST_URLS_H

#include <stddef.h>

const char *const *urls_all(size_t *n);

#endif
