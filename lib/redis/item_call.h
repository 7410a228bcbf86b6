/* item_call.h: a call on items: add, contains, remove.
 *
 * It is one walk (walk.h), if a plain filter's call sends all of its items. Else a sieve takes several (sieve.h). */
#ifndef HIBLOOM_ITEM_CALL_H
#define HIBLOOM_ITEM_CALL_H

#include "redis/sieve.h"

struct item_call {
    struct task *run;         /* the task to be run: the walk's, or the sieve's */
    struct sieve_inner inner; /* the walk; or the sieve `of` which it is */
};

void item_call_begin(struct item_call *, enum store_call, hibloom *, const hibloom_item *, size_t n);
void item_call_end(struct item_call *, bool *answers); /* as walk_read, and frees */

#endif
