/* keys.h: the Redis keys of a filter's name.
 *
 *   seen                      a filter of one key
 *   seen:0, seen:1, ...       of several; number 0 is the root
 *   seen:+1, seen:+1:0, ...   the same of link number 1 of a growing filter, or of slice 1 of a window.
 *                             Each is a filter of this name
 *   {seen} and the like       another library's, and what that has beside it (enum key_rule)
 *
 * In a cluster the part of a key between its first '{' and the next '}' decides the slot, if it
 * is not empty (Redis Cluster specification, "Hash tags"). */
#ifndef HIBLOOM_KEYS_H
#define HIBLOOM_KEYS_H

#include "base/store.h"

#include <string.h>

/* Room for any of them. */
#define KEYS_SIZE \
    (HIBLOOM_NAME_MAX + \
     36) /* {} :config, or {} :+31 :65535 and for a temporary key a zero byte, letter, 16 digits; the end */

/* The size of a further link's name, with ":+31". */
#define LINK_NAME_SIZE (HIBLOOM_NAME_MAX + 5)

struct link;

/* Is this a filter's name? EINVAL, ERANGE. */
hibloom_status keys_check(const char *name);

/* Has the name a {tag}? Then all its keys lie in one slot. */
static inline bool keys_has_tag(const char *name)
{
    return strchr(name, '{') != NULL; /* keys_check takes no other brace */
}

/* Key number i of a name that has one, or several; or of an open filter. Written terminated;
 * returns the length. */
size_t keys_at(char out[KEYS_SIZE], const char *name, bool several, uint32_t i);
size_t keys_name(char out[KEYS_SIZE], const struct link *, uint32_t i);

/* The key that another library has beside the bitmap, always in its slot; 0: it has none. It is
 * a counter of items, or a hash that says how large the bitmap is. */
size_t keys_beside(char out[KEYS_SIZE], const struct link *);

static inline bool keys_have_counter(const struct spec *spec)
{
    return spec->keys == KEYS_RUEIDIS;
}

static inline bool keys_have_config(const struct spec *spec)
{
    return spec->keys == KEYS_REDISSON;
}

/* The name of link number i of a growing filter. */
void keys_link(char out[LINK_NAME_SIZE], const char *name, uint32_t i);

/* A temporary key in the slot of key number i: `what`, and a number that only one call has. */
size_t keys_temporary(char out[KEYS_SIZE], const struct link *, uint32_t i, char what, uint64_t number);

/* The cluster slot of a key. */
#define KEYS_SLOTS 16384u
uint16_t keys_slot(const char *key, size_t len);

#endif
