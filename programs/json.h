/* Strings in JSON. See json.c. */
#ifndef HIBLOOM_PROGRAM_JSON_H
#define HIBLOOM_PROGRAM_JSON_H

void json_put_string(const char *text); /* to standard output, quoted */

#endif
