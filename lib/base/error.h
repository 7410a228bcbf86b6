/* error.h: a failure in words, kept for hibloom_store_error. */
#ifndef HIBLOOM_ERROR_H
#define HIBLOOM_ERROR_H

#include "hibloom/hibloom.h"

struct error {
    char words[1024]; /* the longest name and a reason */
    bool for_good;    /* no other try mends it; false unless it is set behind error_set */
};

/* Puts the words down and returns the status, so that a failing function can
 * end in `return error_set(...)`. Words that do not fit are cut. */
__attribute__((format(printf, 3, 4))) hibloom_status error_set(struct error *error, hibloom_status status,
                                                               const char *format, ...);

/* Puts '?' in place of each control character: words, and those of a server in them, are one line. */
void error_make_line(char *words);

/* Do the words hold a piece of the secret, four characters in a row or all of it?
 * Only letters and digits count: how others are written is the server's choice. */
bool error_repeats(const char *words, const char *secret, size_t secret_len);

#endif
