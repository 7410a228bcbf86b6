/* blocking.h: a Redis store whose calls block. */
#ifndef HIBLOOM_BLOCKING_H
#define HIBLOOM_BLOCKING_H

#include "net/settings.h"

/* Connected; takes the settings over. Not connected: *out is good for its error, if it is not NULL. */
hibloom_status blocking_connect(hibloom_store **out, struct store_settings *);

/* On the caller's connection; takes the settings over. */
hibloom_status blocking_borrow(hibloom_store **out, struct redisContext *, struct store_settings *);

#endif
