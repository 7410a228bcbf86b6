/* Memory that runs out, for programs that include this, in one file only: malloc and its kin are replaced for the whole
 * process. Only calls from the program's own code fail, of which the library is a part and hiredis is not. Under ASan,
 * which cannot bear it, nothing is replaced. */
#ifndef HIBLOOM_TEST_FAILING_MEMORY_H
#define HIBLOOM_TEST_FAILING_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include "replaced.h"

static long live;      /* allocations not freed yet */
static long countdown; /* 0: no failing; n: the nth from now fails */
static size_t largest; /* what is larger fails; 0: nothing for that */
static bool failed;    /* since the call under test began */
static bool reached;   /* the nth, in this life */

#if REPLACED

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *old, size_t size);
void __libc_free(void *old);
extern const char __executable_start, etext; /* the linker's: where our code lies */

static bool fails(const char *caller, size_t size)
{
    if (caller < &__executable_start || caller >= &etext)
        return false;
    if ((largest == 0 || size <= largest) && (countdown == 0 || --countdown > 0))
        return false;
    failed = reached = true;
    return true;
}

static void *count(void *fresh)
{
    live += fresh != NULL;
    return fresh;
}

void *malloc(size_t size)
{
    return fails(__builtin_return_address(0), size) ? NULL : count(__libc_malloc(size));
}

void *calloc(size_t n, size_t size)
{
    return fails(__builtin_return_address(0), n * size) ? NULL : count(__libc_calloc(n, size));
}

void *realloc(void *old, size_t size)
{
    if (fails(__builtin_return_address(0), size))
        return NULL;
    void *fresh = __libc_realloc(old, size);
    if (fresh != NULL) {
        live -= old != NULL;
        count(fresh);
    }
    return fresh;
}

void free(void *old)
{
    live -= old != NULL;
    __libc_free(old);
}

#endif

#endif
