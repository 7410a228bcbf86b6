/* unchain.h: a task that removes the further links of a growing filter, by their names: all that there may
 * be, since nobody who was cut before has said how many there were. */
#ifndef HIBLOOM_UNCHAIN_H
#define HIBLOOM_UNCHAIN_H

#include "redis/group.h"

struct unchain {
    struct group group; /* the task is its */
    struct removal *removals;
};

/* Those of the filter's name that have this chain. */
void unchain_begin(struct unchain *, hibloom *, uint64_t chain);

/* From then on the task has failed if any of them could not be removed: not if there was none. */
void unchain_end(struct unchain *);

#endif
