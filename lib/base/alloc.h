/* alloc.h: memory, from the caller's functions where hibloom_set_allocator has named some. */
#ifndef HIBLOOM_ALLOC_H
#define HIBLOOM_ALLOC_H

#include "hibloom/hibloom.h"

#include <stdlib.h>

struct allocator {
    void *(*malloc)(size_t size);
    void *(*calloc)(size_t count, size_t size);
    void *(*realloc)(void *memory, size_t size);
    void (*free)(void *memory);
};

extern struct allocator alloc; /* the functions that are in use */

char *alloc_text(const char *text); /* a copy; NULL: out of memory */

#endif
