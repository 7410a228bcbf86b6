/* Named values, for people or as a JSON object. See report.c. */
#ifndef HIBLOOM_PROGRAM_REPORT_H
#define HIBLOOM_PROGRAM_REPORT_H

#include <stdbool.h>
#include <stdint.h>

struct report {
    bool json;
    bool one_line; /* of JSON */

    bool begun; /* for report.c only */
};

void report_string(struct report *report, const char *key, const char *value);
void report_whole(struct report *report, const char *key, uint64_t value);
void report_real(struct report *report, const char *key, double value);
void report_bool(struct report *report, const char *key, bool value);

/* For what is no number: JSON has neither infinity nor "not stated". */
void report_null(struct report *report, const char *key, const char *words);

/* A number, rounded to a whole one; or these words if it is not finite. */
void report_items(struct report *report, const char *key, double items, const char *words);

void report_end(struct report *report);

#endif
