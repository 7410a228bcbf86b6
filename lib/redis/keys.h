/* keys.h: which Redis keys a filter's name stands for. */
#ifndef HIBLOOM_KEYS_H
#define HIBLOOM_KEYS_H

#include "hibloom/hibloom.h"

#include <string.h>

/* Room for any of them. */
#define KEYS_SIZE (HIBLOOM_NAME_MAX + KEYS_LONGER)
#define KEYS_LONGER 32 /* than the name: {} :4294967295 :hibloom-a, and the end */

static inline size_t keys_size(const char *name)
{
    return strlen(name) + KEYS_LONGER;
}

/* Is this a filter's name? EINVAL, ERANGE. */
hibloom_status keys_check(const char *name);

/* The key of its spec, and of bitmap i of `count`; the key of a segment is the
 * name of its copy's. Terminated, but written with its length, which is
 * returned. */
size_t keys_spec(char *out, const char *name);
size_t keys_bitmap(char *out, const char *name, uint32_t count, uint32_t i);

/* A key for what is only there within a transaction, or for seconds, in the slot
 * of the key `name`; `what` tells several apart. */
size_t keys_passing(char *out, const char *name, char what);

#endif
