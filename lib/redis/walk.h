/* walk.h: the tasks behind add, contains and remove: one walk from items to commands and back.
 *
 * A walk sets items in one link, or removes them there, or looks for them in several links at once. A filter that
 * does not grow has one link, itself. Each item is digested once, whatever the number of links, and all links
 * share two pipelines of 64 KB. So a call's memory does not grow with the links.
 *
 * The task that begins the walk chooses the links to look in, and the meaning of an answer: plain.c, growing.h,
 * window.h, sieve.c. */
#ifndef HIBLOOM_WALK_H
#define HIBLOOM_WALK_H

#include "base/flags.h"
#include "redis/encoding.h"
#include "redis/guard.h"

/* Some items on their way: written, and not answered yet. The items of a call nest. A batch is hashed at a time. A pipeline
 * is sent at a time, and may go on in the next batch. A pack of it lies in one key of one link (encoding.h). */
struct pipeline {
    size_t base; /* the item that `item` counts from */
    uint32_t items, packs;
    uint32_t used;        /* of bits */
    uint32_t *item;       /* their numbers, pack after pack */
    uint64_t *bits;       /* k an item */
    unsigned char *known; /* enum encoded_bit for each of them */
    uint32_t *order;      /* spanning: its one pack's; else NULL */
    uint32_t *from;
    struct pack *pack;
    unsigned char *proven; /* by pack; where each exchange has bits of all items, by key */
    uint32_t *answers;     /* likewise: replies to its commands, the guards' not counted */
};

/* Items that are hashed at a time, for one link after the other. Those of one segment stand together and share its
 * guard. */
struct batch {
    size_t base, end; /* in the items of the call */
    uint32_t nth;     /* of the links of the walk */
    uint32_t items, next;
    uint64_t *values; /* the digests, if there are several links */
    uint64_t *bits;
    uint64_t *order; /* segment << 32 | item, counted from base */
    uint32_t *at;    /* where in `bits` an item's are */
};

/* One of the links that are walked. */
struct walk_link {
    struct link *link;
    uint64_t mark; /* near_mark when the walk began */
};

#define WALK_PIPELINES 2u /* at most: a walk of few commands has one */

/* A question about the first link that a look asks, or the last one. It is sent once, beside the items. */
struct aside {
    void (*ask)(struct talk *, struct outbox *, uint32_t tag);
    talk_take *take; /* its tag is 0 */
    bool of_last;
};

struct walk {
    struct talk talk; /* its task's link is that whose exchange is written, or answered */
    const struct encoding *encoding;
    const hibloom_item *items;
    size_t n;
    void *memory;           /* all that follows, and the arrays of batch and pipelines, lie in it: */
    unsigned char *missing; /* flags, link after link: not all its bits were set; NULL: nobody asks */
    unsigned char *late;    /* flags: it was not set, see pack.late; NULL: that cannot be */
    struct walk_link *in;
    struct pipeline *pipelines;
    struct batch batch;
    size_t item_bytes, guard_bytes, pipeline_bytes; /* of commands */
    uint32_t pipeline_items, batch_items;           /* at most */
    uint32_t before;                                /* replies of guards in front of those of items */
    uint32_t links, keys;                           /* keys: of all links */
    uint32_t undo_at;                               /* the key where undoing is */
    const struct aside *aside;                      /* NULL: nothing */
    struct slice_add *slice;                        /* of an add to a slice, its caller's; else NULL */
    uint8_t pipelined;                              /* pipelines that there are */
    uint8_t last;                                   /* the one that was written */
    bool started;                                   /* a pipeline was written */
    bool together; /* the exchanges of a look are one: its packs, and then what is asked aside */
};

/* Has each exchange, or the one, bits of all items? */
static inline bool walk_by_key(const struct walk *walk)
{
    return walk->encoding->each_key || walk->encoding->all_keys;
}

/* Of so many packs: answers and proofs are noted for each. */
static inline size_t walk_exchanges(const struct walk *walk, size_t packs)
{
    return walk_by_key(walk) ? walk->keys : packs;
}

/* Has the nth link all bits of the item? The look must be OK. */
static inline bool walk_found(const struct walk *walk, uint32_t nth, size_t item)
{
    return !flags_has(walk->missing, nth * walk->n + item);
}

/* The memory of a walk, from that link on; `answers`: somebody asks for them. False: there is none. */
bool pipeline_make(struct walk *, struct link *, bool answers);

/* Puts the next items into a pipeline. False: none is left. */
bool pipeline_fill(struct walk *, struct pipeline *);

/* Of several links, before a pack's bits are read: computes them again from an item's digest, if they share a place. */
void pipeline_index(const struct walk *, const struct pack *);

/* undo.c: the step of an add whose guard was not good. */
void walk_undo(struct talk *, struct outbox *);

/* An add goes to one link, where `exact` says that walk_read is to tell what is new. A look goes to so many links, from
 * the given one on. */
void walk_begin_add(struct walk *, struct link *link, const hibloom_item *, size_t n, bool exact);
void walk_begin_look(struct walk *, struct link *, uint32_t links, const hibloom_item *, size_t n,
                     const struct aside *);
void walk_begin_remove(struct walk *, struct link *, const hibloom_item *, size_t n); /* of a counting filter */

/* Writes is_new, found in any link, or was_in if the task is OK; NULL where it was not asked. */
void walk_read(const struct walk *, bool *answers);

#endif
