/* Where a value of Redis' protocol ends. See resp.h. */
#include "resp.h"

#include <stdlib.h>
#include <string.h>

size_t resp_length(const char *bytes, size_t len)
{
    const char *end = len > 0 ? memchr(bytes, '\n', len) : NULL;
    size_t used;
    long count;

    if (end == NULL)
        return 0;
    used = (size_t)(end - bytes) + 1;
    count = strtol(bytes + 1, NULL, 10);
    switch (bytes[0]) {
    case '$':
        if (count >= 0) /* -1 is nil, which has no bytes to follow */
            used += (size_t)count + 2;
        return used <= len ? used : 0;
    case '%': /* pairs */
        count *= 2;
        /* fall through */
    case '*':
    case '>':
        for (long i = 0; i < count; i++) {
            size_t element = resp_length(bytes + used, len - used);

            if (element == 0)
                return 0;
            used += element;
        }
        return used;
    default: return used;
    }
}
