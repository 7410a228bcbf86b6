/* items.h: what adds, removes and look-ups say of each item, held against the raw keys. */
#ifndef HIBLOOM_SIM_ITEMS_H
#define HIBLOOM_SIM_ITEMS_H

#include "sim/names.h"

void items_begin(const struct call *);
void items_end(const struct call *, hibloom_status);  /* whatever has become of it */
void items_check(struct call *, const bool *answers); /* it is OK */
bool items_cover(int name, int item);                 /* items that others may have added cover all bits of this one */
/* A primary that had lost its office may have been told of a growth: who has met its heir before it is not. */
bool grew_apart(int name);
bool copy_came_back(void); /* an older copy was put in a filter's place by hand: nothing tells of it */

#endif
