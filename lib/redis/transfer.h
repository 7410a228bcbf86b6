/* transfer.h: the task that moves a piece of one key's bits: out of Redis, into it, or from one filter to another
 * within one server, which counters are not.
 *
 * A whole key of bits is merged in one step of the server. Nothing large passes through Lua, so this is several times
 * as fast as to set or merge parts. All bits of an item lie in one key, and the step is a script. So the bits that were
 * there before tell exactly which items are new, among any number of adders. tests/model/merge.py searches all that may
 * happen to it; the words "rule ..." in transfer.c are that model's.
 *
 * The server holds the key's bytes three times for a moment. The names hold a number that only this task has (rule
 * "unique").
 *
 * Any other piece is merged by parts: of a bare bitmap, of counters, or of a key above 16 MB. So is a key of
 * TRANSFER_PARTS_BYTES, unless the bits before are wanted: in one step it would stall the server for longer than 15 ms. */
#ifndef HIBLOOM_REDIS_TRANSFER_H
#define HIBLOOM_REDIS_TRANSFER_H

#include "redis/guard.h"

#define TRANSFER_PARTS_BYTES (12u * 1000 * 1000)

struct transfer {
    struct talk talk;
    const struct piece *piece;
    unsigned char *out;        /* read: to here. Merge: the bits before go here; NULL: nobody asks for them */
    const unsigned char *bits; /* merge: from here; NULL: from the same piece of talk.task.from */
    uint64_t asked;            /* bytes of the piece so far */
    uint64_t part_at[2];       /* of the pipelines that are on their way */
    bool cut[2];               /* a part of theirs came short */
    bool sent;                 /* by parts: something was */
    /* In one step: */
    uint64_t number;  /* in its temporary names */
    unsigned tries;   /* bits were sent, or the key was cleared meanwhile */
    char answer;      /* of the script */
    bool replaceable; /* the caller has another way: see refusal_is_of_size */
    bool stored;      /* the bits to set were, behind the last answer of the script */
    bool sent_again;  /* bits were, so the bits before may hold them */
    bool repeated;    /* an answer of the script was lost: it may have been carried out before it was refused */
    bool lost;        /* a part of the bits before was not there */
};

void transfer_begin_read(struct transfer *, struct link *, const struct piece *, unsigned char *out);

/* `before`: of the piece's size, for a whole key. If it is not known what was set there, it is all zeros: then all items
 * are new, in doubt. It stays as it is if there is no bit to set. */
void transfer_begin_merge(struct transfer *, struct link *into, const struct piece *, const unsigned char *bits,
                          unsigned char *before);

/* Both keys are in one slot. */
void transfer_begin_merge_within(struct transfer *, struct link *into, struct link *from, const struct piece *);

/* It has failed: may the bits of a whole key be set all the same? Rule "refused". */
bool transfer_may_be_done(const struct transfer *);
bool transfer_gave_up(const struct transfer *); /* what it had sent was lost each time */

#endif
