/* A URI with options behind it. See with_options.h. */
#include "with_options.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIZE 2048

const char *with_options(const char *uri, const char *format, ...)
{
    static _Thread_local char texts[16][SIZE];
    static _Thread_local unsigned count;
    char *text = texts[count++ % 16], options[SIZE];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(options, sizeof options, format, arguments);
    va_end(arguments);
    const char *between = *options == '\0' ? "" : strchr(uri, '?') != NULL ? "&" : "?";
    if (snprintf(text, SIZE, "%s%s%s", uri, between, options) >= SIZE)
        abort();
    return text;
}
