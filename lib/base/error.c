/* error.c: a failure in words; see error.h. */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>

hibloom_status error_set(struct error *error, hibloom_status status, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(error->words, sizeof error->words, format, arguments);
    va_end(arguments);
    return status;
}
