/* A progress bar on standard error, and its clock. See progress.c. */
#ifndef HIBLOOM_PROGRAM_PROGRESS_H
#define HIBLOOM_PROGRAM_PROGRESS_H

#include <stdint.h>

void progress_start(uint64_t total_bytes); /* 0 = not known */
void progress_show(uint64_t items, uint64_t bytes);
void progress_erase(void); /* before anything else is written to the terminal */

double seconds_now(void); /* of a clock that nobody sets */

#endif
