/* nearest.h: the name that a mistyped word was meant to be, for words that say so. */
#ifndef HIBLOOM_NEAREST_H
#define HIBLOOM_NEAREST_H

#include <stddef.h>

/* Of `count` names, the nearest one, at most two edits away; NULL: none is. An edit inserts, removes or replaces a
 * character. `names` points to the first name, and the next one follows `stride` bytes later. */
const char *nearest_name(const char *word, size_t len, const char *const *names, size_t count, size_t stride);

#endif
