/* replace.h: a task that puts a filter in the place of another name. */
#ifndef HIBLOOM_REDIS_REPLACE_H
#define HIBLOOM_REDIS_REPLACE_H

#include "redis/guard.h"

struct replacement {
    struct talk talk;
    struct redis_filter *filter;
    const char *name;         /* the new one, */
    char **spare;             /* and the same, which the handle gets for its own: see handle_swap_name */
    struct redis_filter *old; /* that has it; NULL: none has */
    long long answer;         /* of the script */
    uint32_t taken;           /* the further link of that name in whose place something else is; 0: of none */
    uint64_t patience_ns;     /* as that of a life */
};

/* All links of both are open. Ends in EBUSY where `old` has the name no more, or one of the two has grown. */
void replace_begin(struct replacement *, struct redis_filter *, const char *name, char **spare,
                   struct redis_filter *old);

#endif
