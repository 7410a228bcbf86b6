/* refusal.h: the meaning of an error from the server.
 *
 * An error is a code and words. The code tells where the remedy lies: with a router (MOVED), a
 * caller that waits (LOADING), an operator (OOM). */
#ifndef HIBLOOM_REFUSAL_H
#define HIBLOOM_REFUSAL_H

#include "hibloom/hibloom.h"

enum refusal {
    REFUSAL_OTHER,
    REFUSAL_MOVED,
    REFUSAL_ASK,
    REFUSAL_TRYAGAIN,
    REFUSAL_CLUSTERDOWN,
    REFUSAL_LOADING,
    REFUSAL_BUSY,
    REFUSAL_MASTERDOWN,
    REFUSAL_READONLY,
    REFUSAL_MISCONF,
    REFUSAL_OOM,
    REFUSAL_NOREPLICAS,
    REFUSAL_MAX_CLIENTS,
    REFUSAL_NOAUTH,
    REFUSAL_WRONGPASS,
    REFUSAL_NO_PASSWORD,
    REFUSAL_NOPERM,
    REFUSAL_WRONGTYPE,
    REFUSAL_UNKNOWN_COMMAND
};

/* A small command on one key may be taken all the same: TRYAGAIN is of several keys while a slot moves, and OOM of what
 * needs memory. */
static inline bool refusal_is_of_size(enum refusal refusal)
{
    return refusal == REFUSAL_TRYAGAIN || refusal == REFUSAL_OOM;
}

/* The code of an error's words, "OOM command not allowed ...". */
enum refusal refusal_of(const char *words);

hibloom_status refusal_status(enum refusal refusal);

/* Writes the words and what to do about it, where that is known; cut to `size`. False: in words of our own instead. */
bool refusal_explain(enum refusal refusal, const char *words, char *out, size_t size);

#endif
