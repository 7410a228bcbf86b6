/* A filter's kind, size and fill as named values: the output of info and list. */
#ifndef HIBLOOM_PROGRAM_DESCRIBE_H
#define HIBLOOM_PROGRAM_DESCRIBE_H

#include "number.h"
#include "report.h"
#include "session.h"

/* "12.5 %" of the capacity, or "-"; "86400 s", or "none". Return out. */
const char *describe_used(char out[NUMBER_SIZE], const hibloom *filter, const hibloom_info *info);
const char *describe_life(char out[NUMBER_SIZE], const hibloom_info *info);

/* All of it. */
void describe(struct report *report, const char *name, const hibloom *filter, const hibloom_info *info);

#endif
