/* nearest.h: names for error texts: the one that a mistyped word was meant to be, or all that there are. */
#ifndef HIBLOOM_NEAREST_H
#define HIBLOOM_NEAREST_H

#include <stddef.h>

/* `names` points to the first name of a table, and the next one follows `stride` bytes later. */
static inline const char *name_in(const char *const *names, size_t i, size_t stride)
{
    return *(const char *const *)(const void *)((const char *)names + i * stride);
}

/* Of `count` names, the nearest one, at most two edits away; NULL: none is. An edit inserts, removes or replaces a
 * character. */
const char *nearest_name(const char *word, size_t len, const char *const *names, size_t count, size_t stride);

/* "add, lookup", cut at `size`. */
void list_names(char *out, size_t size, const char *const *names, size_t count, size_t stride);

#endif
