/* Strings in JSON. See json.c. */
#ifndef HIBLOOM_PROGRAM_JSON_H
#define HIBLOOM_PROGRAM_JSON_H

#include <stddef.h>

void json_put_string(const char *text); /* to standard output, quoted */

/* The length of the UTF-8 character at p, 0 if there is none. */
size_t json_character_length(const unsigned char *p);

#endif
