/* encoding.h: how the bits of items are put into commands, and their answers read.
 *
 *   SETBIT/GETBIT     k commands an item
 *   BITFIELD          one command for a few items; BITFIELD_RO to look. If several adders race for
 *                     one item, exactly one finds it new
 *   block             one GETRANGE of 64 bytes an item, in the blocked layout
 *   each key          partitioned: on each key, one bit of every item; spanning (spec.h): on
 *                     each key, the bits that lie in it
 *   script            the same, but exact: the bits of all items in one step
 *   counted script    where a counter of items lies beside: the bits, and how many items are new
 *   slice             of a slice of a sliding window: a script on one key, which begins with the guard and
 *                     the current period. With is_new it also reads the same key of the other slices
 *   count             counters: a script on one key, which begins with the guard. So nothing is written
 *                     into another filter, and nothing has to be taken back
 *
 * A pack is what of a pipeline (walk.h) lies in one key; partitioned or spanning: all of it. */
#ifndef HIBLOOM_ENCODING_H
#define HIBLOOM_ENCODING_H

#include "redis/link.h"

/* The knowledge about a bit. */
enum encoded_bit { BIT_UNKNOWN, BIT_WAS_SET, BIT_WAS_UNSET };

/* An add to a slice of a sliding window; to anything else all 0. */
struct slice_add {
    uint64_t period;   /* the period to add in, */
    uint64_t from_us;  /* before this time a key is not emptied for it, unless another key there has the period: */
    uint32_t begun;    /* this one had it; the number of keys: none had */
    uint64_t clock_us; /* a server's that refused a part, since it is not in the period; 0: none */
    struct redis_filter
        *window; /* of its other slices none may be of a newer period; NULL: nobody looks whether one is. And: */
    uint64_t known_clears; /* `clears` of this one, as the call looked in all of them */
};

struct pack {
    uint32_t nth; /* of the links of the walk */
    uint32_t segment;
    uint32_t items, first; /* how many, and where they begin in the pipeline */
    const uint64_t *bits;  /* k an item */
    unsigned char *known;  /* enum encoded_bit for each of them */
    uint32_t *order;       /* spanning: the numbers of its bits by key, */
    uint32_t *from;        /* where in `order` those of a key begin, and behind the last one their number; else NULL */
    struct slice_add *slice; /* the call's */
    bool cut;                /* a block came shorter than a filter's can be */
    bool resend;             /* its key was cleared before, so nothing was done: it is sent again */
    bool begins;             /* no bits are sent: its key only becomes one of the period */
    bool late;               /* refused at slice->clock_us: this sending has set nothing */
    uint8_t clears;          /* of its key, since it was sent first: each made it send all again */
};

struct encoding {
    bool sets;            /* or only looks */
    bool each_key;        /* an exchange for each key of the filter, with its bit of every item */
    bool all_keys;        /* one exchange, and one command, on all keys */
    bool each_bit;        /* a command for each bit, else for each item */
    bool several;         /* or for a few: encoding_bitfield_items */
    bool own_guard;       /* its command is its own guard. It answers with an integer where it has done nothing: 0, the
                             key is another; 1 + its epoch, it was cleared since the handle's last guard */
    bool once;            /* it must not be carried out twice */
    uint8_t bit_bytes;    /* of commands for a bit, without its offset and key; about */
    uint8_t item_bytes;   /* of commands for an item beside those */
    uint8_t answer_bytes; /* an item, where that is more than its commands; else 0 */
    /* Writes the commands for a pack on a key, which is number i; without each_key, the segment. */
    void (*ask)(const struct encoding *, const struct link *, struct commands *, struct argument key,
                const struct pack *, uint32_t i);
    /* Takes the reply for the pack's bits from `at` on, on key i; without each_key, i is the segment. */
    void (*take)(struct task *, struct pack *, uint32_t i, size_t at, const struct reply *);
};

/* Was that key of a slice not known to be one of the period as the call looked? Then no bit goes to it: it is only made
 * one, by pack.begins. */
bool encoding_begins_slice(const struct link *, const struct slice_add *, uint32_t i);

/* The encoding to add, exact if the caller asks for is_new; and to look. */
const struct encoding *encoding_to_add(const struct link *, bool exact);
const struct encoding *encoding_to_look(const struct link *);
extern const struct encoding encoding_to_remove;

/* A command costs the server about as much as ten of its arguments. So several items share one, but long commands are
 * slow again. Measured for k = 1 to 16: the server needs the least time where a command has some 32 bits. */
#define BITFIELD_BITS 32u

/* Items of k hashes that one BITFIELD has, at most. */
uint32_t encoding_bitfield_items(uint32_t k);

#endif
