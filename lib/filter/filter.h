/* filter.h: handles that are not open. */
#ifndef HIBLOOM_FILTER_FILTER_H
#define HIBLOOM_FILTER_FILTER_H

#include "base/store.h"

hibloom_status filter_check_name(hibloom_store *, const char *name);

/* Nothing is known of it but its name. NULL: *status says why, and the store's error. */
hibloom *filter_new(hibloom_store *, const char *name, hibloom_status *);

/* May it be opened with that spec, which may be NULL, or attached? */
hibloom_status filter_check(hibloom *, const hibloom_spec *, bool bare);

void filter_free(hibloom *); /* accepts NULL */

#endif
