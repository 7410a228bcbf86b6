/* Files that the tests write and look at. */
#ifndef HIBLOOM_TEST_FILES_H
#define HIBLOOM_TEST_FILES_H

#include "test.h"

void write_file(const char *path, const void *bytes, size_t len);

/* What it holds must be exactly this. */
void assert_file(const char *path, const void *bytes, size_t len);

/* How many are in the directory. */
unsigned files_in(const char *directory);

#endif
