/* list.h: the filters on the servers of a store: a task that goes over their keys. */
#ifndef HIBLOOM_LIST_H
#define HIBLOOM_LIST_H

#include "redis/store.h"

struct listing;

/* NULL: out of memory. To be freed with alloc.free. The pattern must outlive it. */
struct listing *listing_make(struct redis_store *, const char *pattern);

bool listing_is_over(const struct listing *);
struct task *listing_begin(struct listing *); /* the next some hundred keys, to be run */
const char *listing_next(struct listing *);   /* a filter among these; NULL: none is left */

#endif
