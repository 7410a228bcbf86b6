/* group.h: several tasks side by side, as one task: what all of them ask now is one round trip.
 *
 * A filter that is made of several (chain.h) asks all of them at once. Each part has an
 * outbox of its own, which is moved into the group's; a tag tells the part in its lowest bits.
 * The group has failed where one of its parts has, and ends when all have ended: so nothing
 * of them is left in a pipe. A part looks up, reads a guard or TIME, or removes: none of these
 * waits for replicas by TASK_KEEP, which a group cannot do for one of its parts. */
#ifndef HIBLOOM_GROUP_H
#define HIBLOOM_GROUP_H

#include "redis/task.h"

#define GROUP_MAX (1u << OUTBOX_PART_BITS)
_Static_assert(HIBLOOM_LINKS_MAX < GROUP_MAX, "all links, and the guard of one");

struct part {
    struct task *task; /* the caller's */
    struct outbox outbox;
    bool ended;
    bool rests; /* it pauses */
};

struct group {
    struct task task;
    struct part *parts;
    uint32_t count;
};

/* None yet, of up to `room`, GROUP_MAX at most. Without memory it has failed. */
void group_begin(struct group *, hibloom *, uint32_t room);

/* Adds a task that has been begun. They stay the caller's, until group_end at least. */
void group_add(struct group *, struct task *);

void group_end(struct group *);

#endif
