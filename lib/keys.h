/* keys.h: which Redis keys a filter's name stands for. */
#ifndef HIBLOOM_KEYS_H
#define HIBLOOM_KEYS_H

#include "hibloom/hibloom.h"

#define KEYS_SIZE (HIBLOOM_NAME_MAX + 16) /* room for any of them */

/* Is this a filter's name? EINVAL, ERANGE. */
hibloom_status keys_check(const char *name);

/* The key of its spec, and of bitmap i of `count`; terminated, but written
 * with its length, which is returned. */
size_t keys_spec(char out[KEYS_SIZE], const char *name);
size_t keys_bitmap(char out[KEYS_SIZE], const char *name, uint32_t count, uint32_t i);

#endif
