/* error.c: a status, and a failure, in words; see error.h. */
#include "base/error.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void error_make_line(char *words)
{
    for (; *words != '\0'; words++)
        if (iscntrl((unsigned char)*words))
            *words = '?';
}

hibloom_status error_set(struct error *error, hibloom_status status, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(error->words, sizeof error->words, format, arguments);
    va_end(arguments);
    error_make_line(error->words);
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
    /* Without a letter or digit nothing can be compared, and any words may repeat it. */
    return secret_len > 0 && n < sizeof piece && memmem(said, said_len, piece + sizeof piece - n, n) != NULL;
}

const char *hibloom_strerror(hibloom_status status)
{
    switch (status) {
    case HIBLOOM_OK: return "success";
    case HIBLOOM_EINVAL: return "invalid argument";
    case HIBLOOM_ERANGE: return "argument out of range";
    case HIBLOOM_ENOMEM: return "out of memory";
    case HIBLOOM_ENOTSUP: return "not supported";
    case HIBLOOM_EIO: return "input or output failed";
    case HIBLOOM_ETIMEDOUT: return "timed out";
    case HIBLOOM_ECANCELED: return "canceled";
    case HIBLOOM_ESERVER: return "the server refused";
    case HIBLOOM_EPROTO: return "unexpected answer from the server";
    case HIBLOOM_EUNAVAILABLE: return "the server is not available now";
    case HIBLOOM_EDENIED: return "the server denies it to this user";
    case HIBLOOM_ENOTFOUND: return "no such filter";
    case HIBLOOM_EMISMATCH: return "not the same filter";
    case HIBLOOM_ECORRUPT: return "the stored filter is damaged";
    case HIBLOOM_ELOST: return "the server may have forgotten adds";
    case HIBLOOM_EBUSY: return "busy: others make or remove the filter, or too many calls are pending";
    case HIBLOOM_STATUS_LAST_: break;
    }
    return "unknown status";
}

bool hibloom_is_retryable(hibloom_status status)
{
    return status == HIBLOOM_EIO || status == HIBLOOM_ETIMEDOUT || status == HIBLOOM_EUNAVAILABLE ||
           status == HIBLOOM_EBUSY;
}

const char *hibloom_version(void)
{
    return HIBLOOM_VERSION;
}

uint32_t hibloom_version_number(void)
{
    return HIBLOOM_VERSION_NUMBER;
}
