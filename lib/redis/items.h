/* items.h: the tasks behind add, contains and remove. */
#ifndef HIBLOOM_ITEMS_H
#define HIBLOOM_ITEMS_H

#include "base/flags.h"
#include "redis/encoding.h"
#include "redis/guard.h"

/* Some items on their way: written, and not answered yet. The items of a call nest:
 * chunk (hashed at a time) > pipeline (sent at a time, and may go on in the next chunk)
 * > run (in one key, encoding.h). */
struct pipeline {
    size_t base; /* the item that `item` counts from */
    uint32_t items, runs;
    uint32_t *item;       /* which they are */
    uint64_t *bits;       /* k an item */
    unsigned char *known; /* enum encoded_bit, as many */
    uint32_t *order;      /* spanning: of its one run; else NULL */
    uint32_t *from;
    struct run *run;
    unsigned char *proven; /* by run; where each exchange has bits of all items, by key */
    uint32_t *answers;     /* likewise: replies to its commands, the guards' not counted */
};

/* Items that are hashed at a time; where there are segments, put in their order,
 * so that the guard is asked once for a run of them and not for every item. */
struct chunk {
    size_t base, end; /* of the items of the call */
    uint32_t items, next;
    uint64_t *bits;
    uint64_t *order; /* segment << 32 | item, counted from base */
    uint32_t *at;    /* where in `bits` an item's are */
};

struct items {
    struct talk talk;
    const struct encoding *encoding;
    const hibloom_item *items;
    size_t n;
    unsigned char *missing;                         /* flags: not all its bits were set; NULL: nobody asks */
    unsigned char *late;                            /* flags: it was not set, see run.late; NULL: that cannot be */
    void *memory;                                   /* what all arrays lie in */
    size_t item_bytes, guard_bytes, pipeline_bytes; /* of commands */
    uint32_t pipeline_items, chunk_items;           /* at most */
    uint32_t step;                                  /* positions from those of one answer to the next one's */
    uint32_t before;                                /* replies of guards in front of those of items */
    struct slice_add slice;
    struct chunk chunk;
    struct pipeline pipelines[2];
    uint64_t mark;    /* near_mark when it began */
    bool started;     /* a pipeline was written */
    unsigned clears;  /* that came between, for which something was sent again */
    bool held;        /* the first one, before it may be sent */
    bool proven_late; /* the answer to the proof was read late, so it was asked again */
    unsigned last;    /* pipeline that was written */
    uint32_t undo_at; /* the key where undoing is */
};

/* Whether each exchange, or the one, has bits of all items. */
static inline bool items_by_key(const struct items *walk)
{
    return walk->encoding->each_key || walk->encoding->all_keys;
}

/* The memory of chunk and pipelines. False: there is none. */
bool pipeline_make(struct items *);

/* Puts the next items into a pipeline. False: there are no more. */
bool pipeline_fill(struct items *, struct pipeline *);

/* exact: items_end is to tell what is new. */
void items_begin_add(struct items *, hibloom *, const hibloom_item *, size_t n, bool exact);
void items_begin_contains(struct items *, hibloom *, const hibloom_item *, size_t n);
void items_begin_remove(struct items *, hibloom *, const hibloom_item *, size_t n); /* of a counting filter */

/* Frees, and writes is_new, found or was_in if the task is OK; NULL where it was not asked. */
void items_end(struct items *, bool *answers);

#endif
