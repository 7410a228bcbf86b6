/* chain.h: the task of an add to a growing filter, or of a look-up in one. What its links are: links.h.
 *
 *   look-up   all links are asked side by side (group.h), in one round trip, and a "no" counts only
 *             if in the same call the root's guard of the newest link said that it still is
 *   add       what is in no older link goes to the newest: one round trip more, once there are two
 *
 * Where a guard says that there is a further link, that is opened and asked, too, within the same call.
 *
 * Which add is new. An item is looked for in a link only by who knows that it has a further one, and
 * is set only in what is the newest link as far as that adder knows. Setting it is one step, so of
 * those who set it in one link one finds it new. The guard behind that tells that adder whether the
 * link had a further one by then:
 *
 *   no   It is new, for everybody. Who sets it in this link comes later; who looks for it here does so
 *        since the link has a further one, so later, too.
 *   yes  Others may have looked for it here before it was set, and set it in a further link. So
 *        nothing is decided here: this adder goes on to the further links, looks for it in those that
 *        are older than the newest, and sets it there. All others who set it in this link have found
 *        it in, and leave it to this one.
 *
 * In the highest link where anybody sets the item, the first who does so is told that it is new, and
 * nobody else: not there, and not in another link, where that would have been seen. (An adder that
 * fails half-way may leave an item that is new to nobody, as ever.)
 *
 * An add that wants no is_new need not go on: what it has set is found where it is.
 *
 * When it grows. Adders count the newest link (BITCOUNT) before their first add, and again once they
 * have added a part of what is still missing to its capacity: so with many adders, too, it is hardly
 * exceeded. A look-up never writes, but where a server has forgotten that a link has grown.
 *
 * When a server forgot that a link has grown (links.h). An add mends that before it adds, so that others find its items,
 * and once more before it answers. A look-up mends it before it answers: it asks the links that it knows anyway. */
#ifndef HIBLOOM_CHAIN_H
#define HIBLOOM_CHAIN_H

#include "redis/links.h"
#include "redis/many.h"

enum chain_phase { CHAIN_BEGIN, CHAIN_LOOK, CHAIN_ADD, CHAIN_PROVE, CHAIN_COUNT, CHAIN_LINKS, CHAIN_DONE };

struct chain {
    struct task task;
    union {
        struct task inner; /* what is under way, which is one of: */
        struct group group;
        struct links links;
        struct upkeep upkeep;
        struct plain plain;
        struct talk talk;
    };
    enum chain_phase phase;
    bool denied; /* a look-up: a link stays untold, of which it may not tell */
    bool exact;  /* an add: is_new is wanted */
    const hibloom_item *items;
    size_t n, at, chunk; /* all of them; where the chunk begins, and how many it has */
    unsigned char *yes;  /* flags: it is new, or found */
    hibloom_item *left;  /* of the chunk: what is in none of the links so far. Here begins the memory of the next two */
    uint32_t *which;     /* they are, counted from `at` */
    bool *answers;
    size_t count;        /* of left */
    struct plain *calls; /* look-ups, a link each */
    struct talk newest;  /* beside them: the guard of the newest link's root, where they need not ask it */
    uint32_t from, to;   /* the links that are asked */
    uint32_t asked;      /* links that have been, for all of `left` */
    uint32_t reached;    /* roots of links whose replicas know of the next one, once this call is over */
    struct redis_filter
        *reserved;                /* the link where the chunk has its room; NULL: it needs none, or has given it back */
    hibloom *counted;             /* the link that is */
    void (*then)(struct chain *); /* the inner task has ended well */
};

void chain_begin_add(struct chain *, hibloom *, const hibloom_item *, size_t n, bool exact);
void chain_begin_contains(struct chain *, hibloom *, const hibloom_item *, size_t n);
void chain_end(struct chain *, bool *answers);

#endif
