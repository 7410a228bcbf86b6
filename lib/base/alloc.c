/* alloc.c: the functions that memory comes from. See alloc.h. */
#include "base/alloc.h"

#include <string.h>

/* The one thing that the whole process shares; it is set before anything else is called. */
struct allocator alloc = {malloc, calloc, realloc, free};

hibloom_status hibloom_set_allocator(void *(*own_malloc)(size_t), void *(*own_calloc)(size_t, size_t),
                                     void *(*own_realloc)(void *, size_t), void (*own_free)(void *))
{
    const int own = (own_malloc != NULL) + (own_calloc != NULL) + (own_realloc != NULL) + (own_free != NULL);

    if (own != 0 && own != 4)
        return HIBLOOM_EINVAL;
    alloc = own != 0 ? (struct allocator){own_malloc, own_calloc, own_realloc, own_free}
                     : (struct allocator){malloc, calloc, realloc, free};
    return HIBLOOM_OK;
}

char *alloc_text(const char *text)
{
    const size_t size = strlen(text) + 1;
    char *copy = alloc.malloc(size);

    return copy != NULL ? memcpy(copy, text, size) : NULL;
}
