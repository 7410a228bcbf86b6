/* error.c: a failure in words; see error.h. */
#include "base/error.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

hibloom_status error_set(struct error *error, hibloom_status status, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(error->words, sizeof error->words, format, arguments);
    va_end(arguments);
    error->for_good = false;
    return status;
}

bool error_repeats(const char *words, const char *secret, size_t secret_len)
{
    char said[sizeof((struct error *)0)->words * 4], piece[4];
    size_t said_len = 0, n = 0;

    for (; *words != '\0' && said_len < sizeof said; words++)
        if (isalnum((unsigned char)*words))
            said[said_len++] = *words;
    for (size_t i = 0; i < secret_len; i++) {
        if (!isalnum((unsigned char)secret[i]))
            continue;
        memmove(piece, piece + 1, sizeof piece - 1);
        piece[sizeof piece - 1] = secret[i];
        if (++n >= sizeof piece && memmem(said, said_len, piece, sizeof piece) != NULL)
            return true;
    }
    return n > 0 && n < sizeof piece && memmem(said, said_len, piece + sizeof piece - n, n) != NULL;
}
