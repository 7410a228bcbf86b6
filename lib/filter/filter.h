/* filter.h: handles that are not open, and what is checked before a call, blocking or not. */
#ifndef HIBLOOM_FILTER_FILTER_H
#define HIBLOOM_FILTER_FILTER_H

#include "base/store.h"
#include "spec/request.h"

hibloom_status filter_check_name(hibloom_store *, const char *name);

/* Nothing is known of it but its name. NULL: *status says why, and the store's error. */
hibloom *filter_new(hibloom_store *, const char *name, hibloom_status *);

/* May it be opened with that, or attached? */
hibloom_status filter_check(hibloom *, const struct request *, bool bare);

/* The same for a text, which becomes the handle's: what it says, and the filter that is made on this store. */
hibloom_status filter_want(hibloom *, struct request *, const char *text, bool bare);

/* Fills the caller's struct: min(size, from_size) bytes, the rest zero. */
void filter_fill(void *out, size_t size, const void *from, size_t from_size);

void filter_free(hibloom *); /* accepts NULL */

/* Once it is open: the same handle, perhaps elsewhere, without the room for seeds that it has not. */
hibloom *filter_settle(hibloom *);

/* Is that call allowed of these items? Is this time to live? The store's error says why not. */
hibloom_status filter_check_items(hibloom *, enum store_call, const hibloom_item *, size_t n);
hibloom_status filter_check_expiry(hibloom *, uint64_t ms);

/* As hibloom_get_info. */
void filter_say_count(const struct store_count *, hibloom_info *out, size_t size);

#endif
