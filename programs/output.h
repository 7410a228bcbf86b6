/* The program's output: results on standard output, complaints on standard error. See output.c. */
#ifndef HIBLOOM_PROGRAM_OUTPUT_H
#define HIBLOOM_PROGRAM_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

#define OUTPUT_FORMAT __attribute__((format(printf, 1, 2)))

void output_bytes(const void *data, size_t len);
/* Text from a server, as names of keys, may be any bytes, and some of these control a terminal.
 * Each of those becomes a '?': C0, DEL, and C1 as UTF-8 writes it. */
void output_make_plain(char *text);

void output_text(const char *format, ...) OUTPUT_FORMAT;

/* Writes what is in the buffer. False once a write has failed: stop then.
 * output_close will complain. */
bool output_flush(void);

/* Flushes and closes, which can fail on a network file system. False after a
 * complaint if any write has failed. */
bool output_close(void);

/* "hibloom: ..." and a newline on standard error. */
void complain(const char *format, ...) OUTPUT_FORMAT;

#endif
