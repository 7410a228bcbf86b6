/* upkeep.h: tasks that go over all keys of an open filter, one after the other:
 * clear, expire, count. Each proves the filter on every key that it touches. */
#ifndef HIBLOOM_UPKEEP_H
#define HIBLOOM_UPKEEP_H

#include "redis/guard.h"

struct upkeep {
    struct talk talk;
    talk_step *first; /* the step behind the question for a config */
    struct link_range range;
    union {
        unsigned char left[LINK_STEP_KEYS]; /* clear: enum left, of each key of the range */
        struct {                            /* expire: */
            uint64_t ms;                    /* 0 = never */
            bool only_newest;               /* the root if it tells of no further link; */
            bool has_grown;                 /* else that is noted, and no more */
            bool but_root;                  /* that has its time to live */
        };
        struct {                     /* count: */
            uint64_t from;           /* where it is: the byte, */
            uint32_t key;            /* of this key */
            hibloom_info count;      /* so far, */
            uint64_t bits;           /* and in the part that is on its way */
            unsigned char *counters; /* of a counting filter: those that were read last */
        };
    };
};

void upkeep_begin_clear(struct upkeep *, struct link *);
void upkeep_begin_expire(struct upkeep *, struct link *, uint64_t ms);
void upkeep_begin_count(struct upkeep *, struct link *);

#endif
