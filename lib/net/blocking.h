/* blocking.h: a Redis store whose calls block. */
#ifndef HIBLOOM_BLOCKING_H
#define HIBLOOM_BLOCKING_H

#include "base/store.h"
#include "net/uri.h"

/* Where it fails, *out is not written. */
hibloom_status blocking_new(hibloom_store **out, struct redisContext *borrowed);

/* Connects a store made with borrowed = NULL; the URI moves into it. */
hibloom_status blocking_connect(hibloom_store *, struct uri *, const hibloom_connect_options *);

#endif
