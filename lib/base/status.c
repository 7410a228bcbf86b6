/* status.c: the words for a status, and whether another try may succeed. The store's error has
 * the words of the server or the system. */
#include "hibloom/hibloom.h"

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
    case HIBLOOM_EBUSY: return "being made or removed by somebody else";
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
