/* alloc.h: memory, from the caller's functions where hibloom_set_allocator has named some. */
#ifndef HIBLOOM_ALLOC_H
#define HIBLOOM_ALLOC_H

#include "hibloom/hibloom.h"

#include <stdlib.h>

extern struct hibloom_allocator alloc; /* the functions that are in use */

char *alloc_text(const char *text); /* a copy; NULL: out of memory */

#endif
