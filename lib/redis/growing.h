/* growing.h: the policy of adds to growing filters, and of look-ups. links.h has the links.
 *
 *   look-up   one walk asks all links, in one round trip. A "no" counts only if the newest link still is the newest: the
 *             guard of its root has to say so in the same call
 *   add       the older links are asked first. What none of them has goes to the newest, in a second round trip. Where
 *             is_new is wanted and that has several keys, its root is asked behind it
 *
 * A call of very many items reads bitmaps instead (bulk.h): those of each link where that is less work, each once. One
 * that makes links reads them as they become older.
 *
 * A guard may tell of a further link. The same call opens that, and asks it, too.
 *
 * How an add knows that it is new. An adder looks for an item in all links that have a further one, as far as it
 * knows. It sets the item in the newest link that it knows. To set it is one step, so in one link one adder finds
 * it new. The guard behind the set tells this adder whether the link had a further one by then:
 *
 *   no   The item is new, for everybody. Others set it in this link later. Those who look for it here know of a further
 *        link, so they look later, too.
 *   yes  Others may have looked here before the item was set, and set it in a further link. So nothing is decided here.
 *        The adder goes on: it looks in the further links but the newest, and sets the item there. All others who
 *        set it in this link have found it in, and leave it to this adder.
 *
 * So in the highest link where anybody sets the item, exactly the first adder gets "new". Others in the same link
 * find it in, and those from another one would have seen it. (An adder that fails half-way may leave an item that
 * is new to nobody, as in any filter.)
 *
 * An add that wants no is_new need not go on: its item is found where it is.
 *
 * When it grows. A link grows once its items come to its capacity less 1/64 and eight, or less a quarter of a small
 * one (limit_of). Adders count them (BITCOUNT) before their first add. Each counts again after a part of what is
 * missing. So many adders, too, hardly exceed the capacity. Calls of one handle share a count, and each gets its part
 * (sieve_may_make). A look-up writes only where a server has forgotten that a link has grown.
 *
 * When a server forgot that a link has grown (links.h). An add mends that before it adds, so that others find its
 * items, and again before it answers. A look-up mends it before it answers: it asks the links that it knows
 * anyway. */
#ifndef HIBLOOM_GROWING_H
#define HIBLOOM_GROWING_H

#include "redis/link.h"

/* The state of a call. */
struct growing {
    uint32_t older;        /* links of which that was considered: */
    uint32_t read;         /* links whose bitmaps were, for all items that are left */
    uint32_t asked;        /* links that have been, for all that is left of the chunk */
    uint32_t replicated;   /* roots of links whose replicas know of the next one, once this call is over */
    uint32_t making;       /* links, with the one that it has to make, or has made last; 0: none */
    struct link *reserved; /* where the chunk has its room; NULL: it needs none, or has given it back */
};

#endif
