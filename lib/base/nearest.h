/* nearest.h: names for error texts: the one that a mistyped word was meant to be, or all that there are. */
#ifndef HIBLOOM_NEAREST_H
#define HIBLOOM_NEAREST_H

#include <stddef.h>

/* A table whose rows have a name each. */
struct names {
    const char *const *first; /* the name in the first row */
    size_t row_size, count;
};

#define NAMES(table, name) \
    { \
        (const char *const *)(name), sizeof *(table), sizeof(table) / sizeof *(table) \
    }

static inline const char *name_at(const struct names *names, size_t i)
{
    return *(const char *const *)(const void *)((const char *)names->first + i * names->row_size);
}

/* Of these names, the nearest one, at most two edits away; NULL: none is. An edit inserts, removes or replaces a
 * character. */
const char *nearest_name(const char *word, size_t len, const struct names *names);

/* "add, lookup", cut at `size`. */
void list_names(char *out, size_t size, const struct names *names);

#endif
