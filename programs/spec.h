/* The words of a spec, which is a text: NAME=VALUE, with blanks between them. See spec.c. */
#ifndef HIBLOOM_PROGRAM_SPEC_H
#define HIBLOOM_PROGRAM_SPEC_H

#include <hibloom/hibloom.h>

/* A text of the library, and a word more. One that is cut to this size is still too long for the library. */
#define SPEC_SIZE (HIBLOOM_TEXT_SIZE + 32)

/* The value of a word, which ends at a blank. NULL: the spec does not say it. */
const char *spec_value(const char *spec, const char *name);
uint64_t spec_number(const char *spec, const char *name); /* 0: it does not say it */

/* Copies the spec, but with this value, which may end at a blank. Value NULL: without the word. Returns out. */
char *spec_with(char out[SPEC_SIZE], const char *spec, const char *name, const char *value);

/* Are they equal, apart from seed=? */
bool spec_differs_in_seed_only(const char *a, const char *b);

/* These take a canonical spec. */
const char *spec_kind(const char *spec);        /* in a word */
uint64_t spec_filters(const char *spec);        /* a window has one for each slice and one more; else 1 */
bool spec_has_empty_excluded(const char *spec); /* the empty item is never in */
bool spec_wants_seed(const char *spec);         /* its hash takes seed=, and it has none */

#endif
