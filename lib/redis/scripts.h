/* scripts.h: the changes to a key that are more than bits, each one atomic step
 * on the server: it reads what is there, and changes it only if that is what
 * the caller expects. So nothing has to be watched, and nothing is half done. */
#ifndef HIBLOOM_SCRIPTS_H
#define HIBLOOM_SCRIPTS_H

#include "resp/command.h"

enum script {
    SCRIPT_MAKE,   /* a key, over nothing or what may be replaced */
    SCRIPT_SWAP,   /* some bytes of a root's tail, and its state */
    SCRIPT_UNLINK, /* a key */
    SCRIPT_CLEAR,  /* a key's bits */
    SCRIPT_EXPIRE, /* a key after some time, or never */
    SCRIPT_UNDO,   /* bits that an add set where they did not belong */
    SCRIPT_MERGE,  /* bits into a key, from the caller or from another key */
    SCRIPT_SET     /* bits in several keys at once */
};

/* Starts an EVAL: so many keys and other arguments must follow, keys first.
 * What each script takes and gives back stands with it in scripts.c. */
void script_start(struct commands *, enum script, size_t keys, size_t arguments);

#endif
