/* scripts.h: the changes to a key that are more than bits. Each is one atomic step on the
 * server: it reads the key, and changes only a key that the caller expects. So nothing has to be
 * watched, and nothing is half done. */
#ifndef HIBLOOM_SCRIPTS_H
#define HIBLOOM_SCRIPTS_H

#include "resp/command.h"

enum script {
    SCRIPT_MAKE,        /* a key, over nothing or what may be replaced */
    SCRIPT_SWAP,        /* some bytes of a root's tail, and its state */
    SCRIPT_UNLINK,      /* a key */
    SCRIPT_CLEAR,       /* a key's bits */
    SCRIPT_EXPIRE,      /* a key after some time, or never */
    SCRIPT_UNDO,        /* bits that an add set where they did not belong */
    SCRIPT_MERGE,       /* all bits into a key, from a temporary key or from another filter's */
    SCRIPT_MERGE_PART,  /* the bits of a part, from the caller or from another key */
    SCRIPT_SET,         /* bits in several keys at once */
    SCRIPT_SET_COUNTED, /* bits, and how many items are new in a counter beside */
    SCRIPT_SLICE,       /* bits in a key of a sliding window, for a period */
    SCRIPT_COUNT_UP,    /* the counters of items */
    SCRIPT_COUNT_DOWN,  /* the same, of those that are in */
    SCRIPT_SUM,         /* the counters of a part, from the caller */
    SCRIPT_REPLACE,     /* the keys of one filter by those of another one */
    SCRIPT_TOUCH        /* nothing, but it is a write */
};

/* The time to live of temporary keys that are there between two commands, in milliseconds: a client that dies leaves
 * them behind. Whoever needs longer begins again. */
#define TEMPORARY_MS "60000"

/* Starts an EVAL: the keys, and then the other arguments, must follow. In scripts.c each
 * script's comment has its arguments and result. */
void script_start(struct commands *, enum script, size_t keys, size_t arguments);

#endif
