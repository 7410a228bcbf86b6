/* keys.c: which Redis keys a filter's name stands for.
 *
 *   seen       seen         {seen}:spec         one bitmap
 *   seen       seen:0 ...   {seen}:spec         several
 *              seen:0       {seen:0}:spec       and of segments a copy beside each
 *   {a}seen    {a}seen      {a}seen:spec        a name with its own hash tag
 *
 * In a cluster, the part of a key between its first '{' and the next '}', if
 * it is not empty, decides the slot (Redis Cluster specification, "Hash
 * tags"); the spec must share its bitmap's. */
#include "redis/keys.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static bool has_tag(const char *name)
{
    const char *open = strchr(name, '{'), *close = open != NULL ? strchr(open, '}') : NULL;

    return close != NULL && close > open + 1;
}

hibloom_status keys_check(const char *name)
{
    if (strnlen(name, HIBLOOM_NAME_MAX + 1) > HIBLOOM_NAME_MAX)
        return HIBLOOM_ERANGE;
    if (*name == '\0' || (strpbrk(name, "{}") != NULL && !has_tag(name)))
        return HIBLOOM_EINVAL;
    /* "{seen}" would have the spec key of "seen" */
    if (*name == '{' && has_tag(name) && strchr(name, '}')[1] == '\0')
        return HIBLOOM_EINVAL;
    return HIBLOOM_OK;
}

size_t keys_spec(char *out, const char *name)
{
    return (size_t)snprintf(out, keys_size(name), has_tag(name) ? "%s:spec" : "{%s}:spec", name);
}

size_t keys_bitmap(char *out, const char *name, uint32_t count, uint32_t i)
{
    if (count == 1)
        return (size_t)snprintf(out, keys_size(name), "%s", name);
    return (size_t)snprintf(out, keys_size(name), "%s:%" PRIu32, name, i);
}

size_t keys_passing(char *out, const char *name, char what)
{
    return (size_t)snprintf(out, KEYS_SIZE, has_tag(name) ? "%s:hibloom-%c" : "{%s}:hibloom-%c", name, what);
}
