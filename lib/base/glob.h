/* glob.h: does a name match a pattern? As Redis' KEYS and SCAN have it, on bytes:
 *
 *   *      any bytes, none too          [a-f^]   one of these        \x   x itself
 *   ?      one byte                     [^a-f]   one that is none of these
 */
#ifndef HIBLOOM_GLOB_H
#define HIBLOOM_GLOB_H

#include <stdbool.h>
#include <stddef.h>

bool glob_matches(const char *pattern, const char *name);

/* Bytes that each match begins with: those before the first of "*?[\". */
size_t glob_prefix(const char *pattern);

#endif
