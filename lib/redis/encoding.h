/* encoding.h: how the bits of items are put into commands, and their answers read.
 *
 *   SETBIT/GETBIT     k commands an item
 *   BITFIELD          one command an item; BITFIELD_RO to look. Of racing adders of
 *                     one item exactly one is told that it was first
 *   block             one GETRANGE of 64 bytes an item, in the blocked layout
 *   each key          partitioned: on each key, one bit of every item
 *   script            partitioned and exact: the bits of all items in one step
 *
 * A run is what of a window (items.h) lies in one key; partitioned: all of it. */
#ifndef HIBLOOM_ENCODING_H
#define HIBLOOM_ENCODING_H

#include "redis/filter.h"

/* What is known of a bit that was asked for. */
enum encoded_bit { BIT_UNKNOWN, BIT_WAS_SET, BIT_WAS_UNSET };

struct run {
    uint32_t segment;
    uint32_t items;
    const uint64_t *bits; /* k an item */
    unsigned char *known; /* enum encoded_bit, as many */
    bool cut;             /* a block came shorter than a filter's can be */
    uint32_t answers;     /* replies to its commands on a key, the guards' not counted */
};

struct encoding {
    bool sets;            /* or only looks */
    bool each_key;        /* an exchange for each key of the filter, with its bit of every item */
    bool all_keys;        /* one exchange, and one command, on all keys */
    bool each_bit;        /* a command for each bit, else for each item */
    uint8_t bit_bytes;    /* of commands for a bit, without its offset and key; about */
    uint8_t item_bytes;   /* of commands for an item beside those */
    uint8_t answer_bytes; /* an item, where that is more than its commands; else 0 */
    /* Writes the commands for `items` of a run on a key. `bits` are the run's, of each_key from the key's first on. */
    void (*ask)(const struct encoding *, const hibloom *, struct commands *, struct argument key, const uint64_t *bits,
                uint32_t items);
    /* Takes the reply to what was asked of the run's bits from `at` on, on key i; without each_key, the segment. */
    void (*take)(struct task *, struct run *, uint32_t i, size_t at, const struct reply *);
};

/* The one in which to add, whether the caller asks for is_new or not; and to look. */
const struct encoding *encoding_to_add(const hibloom *, bool exact);
const struct encoding *encoding_to_look(const hibloom *);

#endif
