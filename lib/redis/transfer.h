/* transfer.h: tasks that move a piece of one key's bits: out of Redis, into it,
 * or from one filter to another within one server, which counters are not. */
#ifndef HIBLOOM_REDIS_TRANSFER_H
#define HIBLOOM_REDIS_TRANSFER_H

#include "redis/guard.h"

struct transfer {
    struct talk talk;
    const struct piece *piece;
    unsigned char *out;        /* read: to here */
    const unsigned char *bits; /* merge: from here, or from the same piece of */
    struct link *from;         /* this filter */
    uint64_t asked;            /* bytes of the piece so far */
    bool sent;                 /* something */
    uint64_t part_at[2];       /* of the pipelines that are on their way */
    bool cut[2];               /* a part of theirs came short */
    bool replaceable;          /* the caller has another way, should the key's slot move just now */
};

void transfer_begin_read(struct transfer *, struct link *, const struct piece *, unsigned char *out);
void transfer_begin_merge(struct transfer *, struct link *, const struct piece *, const unsigned char *bits);
void transfer_begin_merge_within(struct transfer *, struct link *into, struct link *from, const struct piece *);

#endif
