/* handle.h: handles, from the first to the last call that uses one. */
#ifndef HIBLOOM_FILTER_HANDLE_H
#define HIBLOOM_FILTER_HANDLE_H

#include "base/store.h"
#include "spec/request.h"

hibloom_status filter_check_name(hibloom_store *, const char *name);

/* Nothing is known of it but its name. NULL: *status says why, and the store's error. */
hibloom *filter_new(hibloom_store *, const char *name, hibloom_status *);

/* Fills the caller's struct: min(size, from_size) bytes, the rest zero. */
void filter_fill(void *out, size_t size, const void *from, size_t from_size);

void filter_free(hibloom *); /* accepts NULL */

/* What the text says, for the filter of this name that is made on this store. */
hibloom_status filter_want(hibloom_store *, const char *name, struct request *, const char *text, bool bare);

/* The handle takes over what was said. */
hibloom_status filter_say(hibloom *, const struct request *, const char *text, bool bare);

/* Does the filter take these items? */
hibloom_status filter_check_items(hibloom *, enum store_op, const hibloom_item *, size_t n);

/* An open handle goes to its caller: the same one, perhaps elsewhere, without the room for seeds that it has not. */
hibloom *filter_opened(hibloom *);

/* The filter of `fresh`, which is open and nobody's, becomes that of the handle; the one of before is closed. Not OK: it
 * is as before, and `fresh` is gone. */
hibloom_status filter_take_over(hibloom *, hibloom *fresh);

/* Closes an open handle that no call uses; accepts NULL. */
void filter_close(hibloom *);

/* A call holds a handle while it uses it. A release by its owner closes it, or the last call's behind that. Both accept
 * NULL. */
void filter_hold(hibloom *);
void filter_release(hibloom *);

/* The store goes: its handles can only be closed from now on. */
void filters_leave(hibloom_store *);

/* Makes a store of its kind. It takes the settings over, even if it fails. ENOMEM: *out is NULL, or has to be freed. */
typedef hibloom_status store_maker(hibloom_store **out, struct store_settings *, void *with);

/* Makes a store by its maker. ENOMEM: *out is NULL. Any other failure: *out has its words. `wrong`: what is wrong with the
 * caller's other arguments, in words; NULL: nothing. */
hibloom_status store_make(hibloom_store **out, const char *wrong, bool borrowed, const char *uri, const hibloom_setup *,
                          store_maker *, void *with);

#endif
