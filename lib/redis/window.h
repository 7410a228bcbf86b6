/* window.h: the policy of adds to sliding windows, and of look-ups. Its slices are links (links.h), period.h
 * says which holds what.
 *
 *   look-up   all slices are asked in one walk, and the clock of the server that has the first one's root,
 *             in one round trip. One of very many items asks the clock, and then reads all bitmaps (bulk.h), where
 *             that is less work. What is found counts if the slice's period does, by that clock. It writes nothing.
 *             Where a guard shows an epoch that the handle did not know, what was found there may be older than that:
 *             it is asked for again
 *   add       what is not in the slice of the current period is set there, by a script on one key (scripts.c). That
 *             empties the key first, if it still holds an older period: one step, so there is one who does, nothing is
 *             half emptied, and no bit of one period is ever seen, or lost, in another. It refuses where that period
 *             is over, by its server's clock, or the key holds a newer one; then the add goes on with a newer period
 *
 * The current period is the one that the clock shows, or the newest that any key has: where a clock steps back, adds go
 * on in that one until it has caught up. A handle may have seen a clock that was ahead for a moment, or a replica's. So
 * a key is not emptied for a period that its server's clock has not reached. Another key that is of it by then lifts that.
 *
 * Where slices lie on several servers the clock of the first one's root decides what counts, and what is emptied. An add
 * is never made in an older period than it shows. So it is found long enough, and longer by as much as clocks differ. A
 * server that is ahead refuses adds while that clock is still in a period that is over for it: they wait for it.
 *
 * Which add is new. An add that wants is_new looks first, in all slices. An item is new if no slice has it and the add
 * finds a bit of it unset. Two rules hold, whatever the clock does:
 *
 *   - Before the look begins, the item's key in the slice of the period is known to be of that period. If it is not, a
 *     script without bits makes it so, and the add looks again.
 *   - The script that sets the bits reads the epochs of the item's keys in the other slices. It refuses if one of them is
 *     of a newer period.
 *
 * So once the look begins, no add that wants is_new sets the item for an older period: the look sees what was set there.
 * In the period itself the first add that sets the item is new, since setting is one step on one key. An add of a later
 * period sees the item there. Nothing was set by a script that refuses: the add looks again. If an answer was lost, the
 * script may have set the item: then it is new. (An add without is_new reads no other epochs. It may set the item for
 * an older period only beside an add that does not see it.)
 *
 * In a cluster the slices lie on several servers, and a slot that moves takes scripts on one key only. There the script
 * reads no other epochs, and the time alone keeps older periods shut. There two adds may both be told that an item is
 * new: while a clock is set back, and as a period ends, for as long as clocks of servers differ. (Slices with one {tag} are on
 * one server.) */
#ifndef HIBLOOM_WINDOW_H
#define HIBLOOM_WINDOW_H

#include "redis/link.h"

struct sieve;

/* Items of a chunk, at most: where bitmaps are read, once for so many. */
size_t window_most(const struct link *, size_t n, bool adds);

/* Of a call. */
struct window {
    unsigned attempts;   /* of the chunk */
    bool *older;         /* of what is left, an add: it is in, in an older period */
    unsigned char *what; /* of what is left: enum window_found */
    unsigned char *has;  /* flags, slice after slice: it is in the bitmaps that were read; NULL: none were */
    uint32_t read;       /* slices that were */
    unsigned char clock_text[64];
    uint64_t clock_us;             /* as it was shown last; 0: not in this call */
    uint64_t looked_ns, looked_us; /* when the look began: here, and by that clock */
    uint64_t period;               /* the current one, as it was known when this step began */
    uint64_t refused;              /* where a key's server does not decide: the one that it has refused last */
    uint64_t *clears;              /* other epochs that had been seen by then, a slice each. Here begins `older` */
};

#endif
