/* glob.c: patterns of names. See glob.h. */
#include "base/glob.h"

#include <string.h>

/* Behind the '['; *at is left behind the ']', which may be missing at the end. */
static bool is_in_set(const char **at, unsigned char byte)
{
    const unsigned char *p = (const unsigned char *)*at;
    const bool negated = *p == '^';
    bool found = false;

    p += negated;
    for (; *p != '\0' && *p != ']'; p++) {
        const bool escaped = *p == '\\' && p[1] != '\0';
        p += escaped;
        unsigned char low = *p, high = low;
        if (!escaped && p[1] == '-' && p[2] != '\0') {
            high = p[2];
            p += 2;
        }
        found = found || (low <= high ? low <= byte && byte <= high : high <= byte && byte <= low);
    }
    *at = (const char *)p + (*p == ']');
    return found != negated;
}

/* Does the byte match the pattern at *at? Moves *at behind that part of the pattern. */
static bool is_next(const char **at, char byte)
{
    const char *p = *at;

    if (*p == '[') {
        *at = p + 1;
        return is_in_set(at, (unsigned char)byte);
    }
    if (*p == '?') {
        *at = p + 1;
        return true;
    }
    p += *p == '\\' && p[1] != '\0';
    *at = p + 1;
    return *p == byte; /* at the pattern's end it is not */
}

/* Only the last '*' may have to take more: the match of those before it is enough. */
bool glob_matches(const char *pattern, const char *name)
{
    const char *behind_star = NULL, *star_ends = NULL;

    while (*name != '\0') {
        const char *next = pattern;
        if (*pattern == '*') {
            behind_star = ++pattern;
            star_ends = name;
        } else if (is_next(&next, *name)) {
            pattern = next;
            name++;
        } else if (behind_star != NULL) {
            pattern = behind_star;
            name = ++star_ends;
        } else {
            return false;
        }
    }
    return pattern[strspn(pattern, "*")] == '\0';
}

size_t glob_prefix(const char *pattern)
{
    return strcspn(pattern, "*?[\\");
}
