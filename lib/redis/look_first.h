/* look_first.h: the task that adds, and first looks what is there already, where that
 * pays: then it sends the rest only. */
#ifndef HIBLOOM_LOOK_FIRST_H
#define HIBLOOM_LOOK_FIRST_H

#include "redis/items.h"

#define LOOK_CHUNK (32u << 10)
#define LOOK_SAMPLE 512u

enum look_phase { LOOK_AT_SAMPLE, LOOK_AT_REST, LOOK_ADD };

struct look_first {
    struct task task;
    struct items inner;
    enum look_phase phase;
    const hibloom_item *items; /* of the chunk, and what follows */
    size_t n, chunk;           /* that are left; of them in this chunk */
    bool *found;
    hibloom_item *missing;
};

/* Does it pay for so many items? */
bool look_first_pays(const hibloom *, size_t n);

void look_first_begin(struct look_first *, hibloom *, const hibloom_item *, size_t n);
void look_first_end(struct look_first *);

#endif
