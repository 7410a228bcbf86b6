/* merge.h: the task that sets many bits of a key in one step of the server, by a whole bitmap.
 *
 *     PSETEX tmp 60000 bits       the bits to set, under a temporary name
 *     EVAL merge key tmp [old]    guard, BITOP OR tmp key tmp, [RENAME key old,] RENAME tmp key
 *     GETRANGE old 0 262143 ...   only if somebody asks: the bits that were there before
 *     UNLINK old
 *
 * Nothing large passes through Lua, so this is several times as fast as to set or merge parts. All bits of an item
 * lie in one key, and the script is one step. So the bits before tell exactly which items are new, among any number of
 * adders. tests/model/merge.py searches all that may happen to it; the words "rule ..." in merge.c are that model's.
 *
 * The server holds the key's bytes three times for a moment. The names hold a number that only this task has (rule
 * "unique"). */
#ifndef HIBLOOM_REDIS_MERGE_H
#define HIBLOOM_REDIS_MERGE_H

#include "redis/guard.h"

struct merge {
    struct talk talk;
    uint32_t key;
    size_t len;                /* of its bitmap */
    const unsigned char *bits; /* to set; NULL: those of */
    struct link *from;         /* this link's key */
    unsigned char *old;        /* gets the bits before; NULL: nobody asks for them */
    uint64_t number;           /* in its temporary names */
    unsigned tries;            /* bits were sent, or the key was cleared meanwhile */
    char answer;               /* of the script */
    bool replaceable;          /* the caller has another way, should the key's slot move just now */
    bool stored;               /* the bits to set were, behind the last answer of the script */
    bool sent_again;           /* bits were, so `old` may hold them */
    bool repeated; /* an answer of the script was lost: it may have been carried out before it was refused */
    bool cut;      /* a part of `old` was not there */
    uint64_t asked, part_at[2];
};

/* Is the piece a whole key that may go so, and is a bit set in it? `bits` NULL: any may be. Unless the bits before are
 * wanted, a key that would stall the server for longer than 15 ms may not: it goes in parts (transfer.h). */
bool merge_can(const struct link *, const struct piece *, const unsigned char *bits, bool wants_old);

/* That is the size of such a key, at least. */
#define MERGE_PARTS_BYTES (12u * 1000 * 1000)

/* A whole bitmap of the size of that key. `old`: its size, too. If it is not known what was set before, it is all
 * zeros: then all items are new, in doubt. */
void merge_begin(struct merge *, struct link *, uint32_t key, const unsigned char *bits, unsigned char *old);

/* The bits of the same key of another link. Both keys are in one slot. */
void merge_begin_within(struct merge *, struct link *into, struct link *from, uint32_t key);

/* It has failed: may the bits be set all the same? Rule "refused". */
bool merge_may_be_done(const struct merge *);

#endif
