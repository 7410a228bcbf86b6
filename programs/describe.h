/* What a filter is, and how full, as named values: what info and list print. */
#ifndef HIBLOOM_PROGRAM_DESCRIBE_H
#define HIBLOOM_PROGRAM_DESCRIBE_H

#include "number.h"
#include "report.h"
#include "session.h"

/* What kind of filter it is, in a word. */
const char *describe_kind(const hibloom_spec *spec);

/* "12.5 %" of the capacity, or "-"; "86400 s", or "none". Return out. */
const char *describe_used(char out[NUMBER_SIZE], const hibloom *filter, const hibloom_info *info);
const char *describe_life(char out[NUMBER_SIZE], const hibloom_info *info);

/* All of it. */
hibloom_status describe(struct report *report, const char *name, const hibloom *filter, const hibloom_info *info);

#endif
