/* bulk.h: the task that answers many items from whole bitmaps, or adds them by whole bitmaps.
 *
 *   look up       a key's bits are read (transfer.h), and all items of that key answered here
 *   add           the bits of all items of a key are set here, and merged into it
 *   add, is_new   the same; then the bits that were there before are read, and tell which items are new
 *
 * It goes by groups of keys of 16 MB, and over all items for each group. The model of cost.h tells if that is less work
 * than a command an item: for all keys of a link at once, as the hash spreads items evenly. */
#ifndef HIBLOOM_BULK_H
#define HIBLOOM_BULK_H

#include "bits/bits.h"
#include "redis/transfer.h"

struct bulk {
    struct task task;
    enum store_op op; /* all but STORE_REMOVE, which goes by commands only */
    struct transfer transfer;
    struct piece piece;
    struct bits bits;   /* the present keys' */
    struct bits before; /* those that they had before; start NULL: nobody asks */
    uint32_t group;     /* keys at a time */
    uint64_t mark;      /* near_mark when they were begun */
    const hibloom_item *items;
    size_t n;
    unsigned char *yes; /* flags: found, or new */
};

/* Can it be done by 16 MB at a time? */
bool bulk_can(const struct link *);

/* Is it less work to read or merge bitmaps for n items than to send `sent` of them? */
bool bulk_pays(enum store_op, const struct link *, size_t n, double sent);

/* It has failed, for a reason that does not concern commands: the user may not merge, or the server cannot, a slot moves,
 * memory for bitmaps is missing, here or at the server, or connections are lost too often for something so large. */
bool bulk_gave_way(const struct bulk *);

/* One of the first two: no merge will do better. */
bool bulk_may_not(const struct bulk *);

/* If an add that asks for is_new fails half-way, `yes` has the new items of the keys that it came to. */
void bulk_begin(struct bulk *, enum store_op, struct link *, const hibloom_item *, size_t n, unsigned char *yes);

#endif
