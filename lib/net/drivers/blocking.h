/* blocking.h: a Redis store whose calls block. */
#ifndef HIBLOOM_BLOCKING_H
#define HIBLOOM_BLOCKING_H

#include "net/settings.h"

/* On the caller's connection, `theirs`; if that is NULL, on our own, which is made first. Takes the settings over. Not
 * OK: *out is good for its error, if it is not NULL. */
hibloom_status blocking_make(hibloom_store **out, struct store_settings *, struct redisContext *theirs);

#endif
