/* filter.h: handles that are not open, and what is checked before a call, blocking or not. */
#ifndef HIBLOOM_FILTER_FILTER_H
#define HIBLOOM_FILTER_FILTER_H

#include "base/store.h"

hibloom_status filter_check_name(hibloom_store *, const char *name);

/* Nothing is known of it but its name. NULL: *status says why, and the store's error. */
hibloom *filter_new(hibloom_store *, const char *name, hibloom_status *);

/* May it be opened with that spec, which may be NULL, or attached? */
hibloom_status filter_check(hibloom *, const hibloom_spec *, bool bare);

void filter_free(hibloom *); /* accepts NULL */

/* An open handle goes to its caller. Returns it. */
hibloom *filter_opened(hibloom *);

/* Closes an open handle that no call uses. For calls that use it: while one holds it, release does not close it. Both
 * accept NULL. */
void filter_close(hibloom *);
void filter_hold(hibloom *);
void filter_release(hibloom *);

/* The store goes: its handles can only be closed from now on. */
void filters_leave(hibloom_store *);

/* A store that never came about, for its error's sake: the status, or ENOMEM. */
hibloom_status store_unmade(hibloom_store **out, hibloom_status, const struct error *);

/* As hibloom_get_info. */
void filter_say_count(const struct store_count *, hibloom_info *out);

#endif
