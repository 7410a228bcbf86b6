/* What the program says: results on standard output, complaints on standard
 * error. See output.c. */
#ifndef HIBLOOM_PROGRAM_OUTPUT_H
#define HIBLOOM_PROGRAM_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

#define OUTPUT_FORMAT __attribute__((format(printf, 1, 2)))

void output_bytes(const void *data, size_t len);
void output_text(const char *format, ...) OUTPUT_FORMAT;

/* Writes what was gathered. False once a write has failed: stop then; it is
 * output_close that complains. */
bool output_flush(void);

/* The last flush, and the close, which on a network's file system may be what
 * fails. False after a complaint if any of it did. */
bool output_close(void);

/* "hibloom: ..." and a newline on standard error. */
void complain(const char *format, ...) OUTPUT_FORMAT;

#endif
