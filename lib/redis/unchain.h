/* unchain.h: a task that removes the further links of a growing filter, by their names.
 *
 * Nobody knows how many there are, once a removal was cut. So one round trip asks for all that there may be. Those that are
 * there go one after the other, each as a filter of its own. Then it asks again, until there are no others. */
#ifndef HIBLOOM_UNCHAIN_H
#define HIBLOOM_UNCHAIN_H

#include "redis/life.h"

struct unchain {
    struct task task;
    union {
        struct task inner; /* what is under way, which is one of: */
        struct talk look;
        struct life life;
    };
    uint32_t number;      /* of the link that is being removed; 0: it looks which are there */
    uint32_t there;       /* a bit a link: something is at its place */
    uint32_t done;        /* the same of those that have been tried */
    uint64_t chain;       /* whose links they are */
    struct failure first; /* of a link that could not be removed */
    struct link *link;    /* that is being removed; NULL: it looks, or is done */
};

/* Those of the filter's name that have this chain. The task fails if any of them could not be removed: not if there was
 * none. */
void unchain_begin(struct unchain *, struct redis_filter *, uint64_t chain);

#endif
