/* nearest.c: edit distances between short names. See nearest.h. */
#include "base/nearest.h"

#include <stdio.h>
#include <string.h>

#define LONGEST 32u /* no name is longer */
#define MOST_EDITS 2u

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* Levenshtein's distance, one row at a time: row[j] is that of the word's first i characters to the name's first j. */
static unsigned distance(const char *word, size_t len, const char *name, size_t name_len)
{
    unsigned row[LONGEST + 1];

    for (unsigned j = 0; j <= name_len; j++)
        row[j] = j;
    for (unsigned i = 1; i <= len; i++) {
        unsigned corner = row[0];
        row[0] = i;
        for (size_t j = 1; j <= name_len; j++) {
            const unsigned replaced = corner + (word[i - 1] != name[j - 1]);
            corner = row[j];
            row[j] = least(replaced, least(row[j - 1], corner) + 1);
        }
    }
    return row[name_len];
}

const char *nearest_name(const char *word, size_t len, const struct names *names)
{
    const char *nearest = NULL;
    unsigned edits = MOST_EDITS + 1;

    if (len > LONGEST)
        return NULL;
    for (size_t i = 0; i < names->count; i++) {
        const char *name = name_at(names, i);
        const size_t name_len = strlen(name);
        const unsigned d = name_len <= LONGEST ? distance(word, len, name, name_len) : edits;
        if (d < edits && d < least((unsigned)len, (unsigned)name_len)) { /* "x" is no typo of "db" */
            edits = d;
            nearest = name;
        }
    }
    return nearest;
}

void list_names(char *out, size_t size, const struct names *names)
{
    for (size_t i = 0, used = 0; i < names->count && used < size; i++)
        used += (size_t)snprintf(out + used, size - used, "%s%s", i > 0 ? ", " : "", name_at(names, i));
}
