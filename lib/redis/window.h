/* window.h: the policy of adds to sliding windows, and of look-ups. Its slices are links (links.h); period.h says
 * which slice holds which items.
 *
 *   look-up   One walk asks all slices, and the clock of the server that has the first one's root, in one round trip.
 *             One of very many items asks the clock, and then reads all bitmaps (bulk.h), where that is less work.
 *             A hit counts if the slice's period counts by that clock. It writes nothing. If a guard shows an epoch
 *             that the handle did not know, a hit there may be older than that: the look-up asks again.
 *   add       Items that are not in the slice of the current period are set there, by a script on their key (scripts.c).
 *             With is_new it also reads the same key of the other slices, but not in a cluster.
 *             It first empties the key, if that still holds an older period. It is one step: one client empties,
 *             nothing is half emptied, and no bit of one period is ever seen, or lost, in another. It refuses if the
 *             period is over by its server's clock, or if the key holds a newer one. Then the add goes on with a newer
 *             period. A merge of bitmaps (bulk.h) compares no period, so no add goes by one.
 *
 * The current period is that of the clock, or the newest that any key has. If a clock steps back, adds go on in the
 * newest one until the clock has caught up. A handle may have seen a clock that was ahead for a moment, or a
 * replica's. So a key is not emptied for a period that its server's clock has not reached. Another key of the slice
 * lifts that, if the script finds this period there. Once another server may have taken over, an add first reads
 * all guards again: keys there need not have the periods that the handle has seen. A handle that reads from
 * replicas may see an older epoch there, and then add in an older period, if the clock has stepped back.
 *
 * If slices lie on several servers, the clock of the first one's root decides which items count and which are
 * emptied. No add is made in an older period than it shows. So items are found long enough, and longer by the
 * difference of the clocks. A server that is ahead refuses adds while that clock is still in a period that is over
 * for it. They wait until then.
 *
 * How an add knows that it is new. An add that wants is_new looks first, in all slices. An item is new if no slice
 * has it and the add finds a bit of it unset. Two rules hold, whatever the clock does:
 *
 *   - Before the look begins, the item's key in the slice of the period is known to be of that period. If it is not, a
 *     script without bits makes it so, and the add looks again.
 *   - The script that sets the bits reads the epochs of the item's keys in the other slices. It refuses if one of them
 *     is of a newer period.
 *
 * So once the look begins, no add that wants is_new sets the item for an older period. The look sees earlier bits.
 * In the period itself the first add that sets the item is new: setting is one step on one key. An add of a later
 * period sees the item there. A script that refuses has set nothing: the add looks again. If an answer was lost,
 * the script may have set the item: then it is new. (An add without is_new reads no other epochs. It may set the
 * item for an older period only beside an add that does not see it.)
 *
 * In a cluster the slices lie on several servers, and a slot that moves takes scripts on one key only. There the
 * script reads no other epochs, and the time alone keeps older periods shut. Then two adds may both get "new" for
 * one item. That is while a clock is set back, and at the end of a period as long as servers' clocks differ.
 * (Slices with one {tag} are on one server.) */
#ifndef HIBLOOM_WINDOW_H
#define HIBLOOM_WINDOW_H

#include "redis/encoding.h"

/* The state of a call. */
struct window {
    unsigned attempts;             /* of the chunk */
    uint32_t read;                 /* slices whose bitmaps were */
    bool *older;                   /* of what is left, an add: it is in, in an older period */
    unsigned char *what;           /* of what is left: enum window_found */
    unsigned char *has;            /* flags, slice after slice: it is in the bitmaps that were read; NULL: none were */
    uint64_t changes;              /* redis_changes as the call began */
    uint64_t clock_us;             /* as it was shown last; 0: not in this call */
    uint64_t looked_ns, looked_us; /* when the look began: here, and by the server's clock */
    uint64_t period;               /* the current one, as it was known when this step began */
    uint64_t refused;              /* where a key's server does not decide: the one that it has refused last */
    union {
        unsigned char clock_text[32]; /* of TIME: two numbers; or */
        struct slice_add slice;       /* the add under way */
    };
    uint64_t clears[]; /* other epochs that had been seen by then, a slice each. Behind it lies `older` */
};

#endif
