/* alloc.c: the functions that memory comes from. See alloc.h. */
#include "base/alloc.h"

#include <string.h>

/* The one thing that the whole process shares; it is set before anything else is called. */
struct hibloom_allocator alloc = {malloc, calloc, realloc, free};

hibloom_status hibloom_set_allocator(const hibloom_allocator *allocator)
{
    static const hibloom_allocator of_system = {malloc, calloc, realloc, free};

    if (allocator != NULL && (allocator->malloc == NULL || allocator->calloc == NULL || allocator->realloc == NULL ||
                              allocator->free == NULL))
        return HIBLOOM_EINVAL;
    alloc = allocator != NULL ? *allocator : of_system;
    return HIBLOOM_OK;
}

char *alloc_text(const char *text)
{
    const size_t size = strlen(text) + 1;
    char *copy = alloc.malloc(size);

    return copy != NULL ? memcpy(copy, text, size) : NULL;
}
