/* memory.h: the store in this process' memory. */
#ifndef HIBLOOM_MEMORY_H
#define HIBLOOM_MEMORY_H

#include "base/store.h"

/* NULL: out of memory. */
hibloom_store *memory_store(struct store_settings *settings);

#endif
