/* The filters that the options of a command line ask for, as texts of the library. See choice.c. */
#ifndef HIBLOOM_PROGRAM_CHOICE_H
#define HIBLOOM_PROGRAM_CHOICE_H

#include "command.h"

/* The spec of -n, -p, -k, --layout, --prefer, --counting, --grow and --window. It leaves out options that are not
 * given. The library chooses these for a new filter, and takes them as stored of one that exists. */
void choice_spec(const struct request *request, char out[SPEC_SIZE]);

/* The same with this layout and this number of hashes, and without --prefer. NULL and 0 leave them out. */
void choice_spec_of(const struct request *request, const char *layout, uint32_t hashes, char out[SPEC_SIZE]);

/* The choices of K and layout, as a table for people. */
void choice_put_table(const struct request *request);

/* Items a second, by --commands of the request. */
double choice_adds(const struct request *request, const hibloom_plan *plan);
double choice_look_ups(const struct request *request, const hibloom_plan *plan);

/* No key is larger than Redis allows. */
bool choice_can_be_made(const hibloom_plan *plan);

#endif
