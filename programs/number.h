/* Numbers as people write and read them. See number.c. */
#ifndef HIBLOOM_PROGRAM_NUMBER_H
#define HIBLOOM_PROGRAM_NUMBER_H

#include <stdint.h>

/* NULL, or what is wrong with the text, to be printed after it: "is too large". */
const char *number_whole(const char *text, uint64_t *out); /* 1000, 10M, 1.5k, 1e7 */
const char *number_rate(const char *text, double *out);    /* above 0 and below 1 */

/* 500ms, 90s, 30min, 24h, 7d, in units of `unit_ms`: 1, or 1000 for seconds. Only 0 needs no unit. */
const char *number_time(const char *text, uint64_t unit_ms, uint64_t *out);

#define NUMBER_SIZE 32 /* room that number_scaled needs */

/* "1.20 M" for 1200000. Returns out. */
const char *number_scaled(char *out, double value);

/* "1.14 MB" for 1200000: as hibloom.h has it, 1 MB is 2^20 bytes. Returns out. */
const char *number_bytes(char *out, double bytes);

/* "1.2M" for 1234567: two digits, for what is only about right. Returns out. */
const char *number_rough(char *out, double value);

#endif
