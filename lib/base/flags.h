/* flags.h: an array of one bit an item. */
#ifndef HIBLOOM_FLAGS_H
#define HIBLOOM_FLAGS_H

#include <stdbool.h>
#include <stddef.h>

#define FLAGS_BYTES(n) ((n) / 8 + 1) /* one at least, so that none is no NULL */

static inline bool flags_has(const unsigned char *flags, size_t i)
{
    return (flags[i / 8] >> i % 8 & 1) != 0;
}

static inline void flags_set(unsigned char *flags, size_t i)
{
    flags[i / 8] |= (unsigned char)(1u << i % 8);
}

static inline void flags_unset(unsigned char *flags, size_t i)
{
    flags[i / 8] &= (unsigned char)~(1u << i % 8);
}

static inline void flags_read(const unsigned char *flags, bool *out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = flags_has(flags, i);
}

#endif
