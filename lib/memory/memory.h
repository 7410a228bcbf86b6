/* memory.h: the store in this process' memory. */
#ifndef HIBLOOM_MEMORY_H
#define HIBLOOM_MEMORY_H

#include "base/store.h"

/* ENOMEM. */
hibloom_status memory_store(hibloom_store **out);

#endif
