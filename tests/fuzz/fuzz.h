/* fuzz.h: what the fuzz targets share.
 *
 * A target reads bytes that come from outside, as one parser of the library does,
 * and requires of the result what the parser promises. clang's libFuzzer calls it
 * with bytes of its making (make fuzz); replay.c calls it with those of
 * corpus/NAME, so that whatever was once found stays tested by every compiler. */
#ifndef HIBLOOM_FUZZ_H
#define HIBLOOM_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Like assert, but NDEBUG does not take it away. */
#define REQUIRE(condition) ((condition) ? (void)0 : fuzz_fail(#condition, __FILE__, __LINE__))

_Noreturn static inline void fuzz_fail(const char *condition, const char *file, int line)
{
    fprintf(stderr, "%s:%d: not so: %s\n", file, line, condition);
    abort();
}

/* A copy that ends where the bytes end, so that a read beyond them is seen; with
 * a zero behind them if it is to be a text. To be freed. */
static inline char *fuzz_copy(const uint8_t *data, size_t size, size_t zeros)
{
    char *copy = calloc(1, size + zeros + (size + zeros == 0));

    REQUIRE(copy != NULL);
    if (size > 0)
        memcpy(copy, data, size);
    return copy;
}

/* A file in memory; it has this path until it is closed. */
static inline int fuzz_file(const void *bytes, size_t size, char path[64])
{
    const int fd = memfd_create("fuzz", MFD_CLOEXEC);

    REQUIRE(fd >= 0);
    REQUIRE(write(fd, bytes, size) == (ssize_t)size);
    snprintf(path, 64, "/proc/self/fd/%d", fd);
    return fd;
}

#endif
