/* error.h: a failure in words, kept for hibloom_store_error. */
#ifndef HIBLOOM_ERROR_H
#define HIBLOOM_ERROR_H

#include "hibloom/hibloom.h"

struct error {
    char words[1024]; /* the longest name and a reason */
};

/* Puts the words down and returns the status, so that a failing function can
 * end in `return error_set(...)`. Words that do not fit are cut. */
__attribute__((format(printf, 3, 4)))
hibloom_status error_set(struct error *error, hibloom_status status, const char *format, ...);

#endif
