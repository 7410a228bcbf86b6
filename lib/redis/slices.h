/* slices.h: the task of an add to a sliding window, or of a look-up in one. Its slices are links (links.h), period.h
 * says which holds what.
 *
 *   look-up   all slices are asked side by side (group.h), and the clock of the server that has the first one's root,
 *             in one round trip. What is found counts if the slice's period does, by that clock. It writes nothing.
 *             Where a guard shows an epoch that the handle did not know, what was found there may be older than that:
 *             it is asked for again
 *   add       what is not in the slice of the current period is set there, by a script on one key (scripts.c). That
 *             empties the key first, if it still holds an older period: one step, so there is one who does, nothing is
 *             half emptied, and no bit of one period is ever seen, or lost, in another. It refuses where that period
 *             is over, by its server's clock, or the key holds a newer one; then the add goes on with a newer period
 *
 * The current period is the one that the clock shows, or the newest that any key has: where a clock steps back, adds go
 * on in that one until it has caught up. A handle may have seen a clock that was ahead for a moment, or that of a replica:
 * so a key is not emptied for a period that its server's clock has not reached, unless another key is of it by then.
 *
 * Where slices lie on several servers the clock of the first one's root decides what counts, and what is emptied. An add
 * is never made in an older period than it shows, so it is found long enough, and as much longer as the clocks differ. A
 * server that is ahead refuses adds while that clock is still in a period that is over for it: they wait for it.
 *
 * Which add is new. One that wants is_new looks first, in all slices; only what it finds neither in them, nor set when it
 * sets it, is new. It looks when it knows the period c to have begun: so whatever will ever be set for older periods
 * is set by then, as their time is over and the script refuses. Thus all who add an item in c see the same in the older
 * slices. If that is nothing, the first of them who sets it is told that it is new: setting is one step, in one slice.
 * Who adds it in a later period of the window sees it in that of c. What was refused was not set, and is looked for
 * again; where a sending was lost that may have set it, it is new. (Where clocks of several servers differ, or one steps back, the time of a period may not be over for all when
 * the next one begins: for so long two may be told. Slices with one {tag} are on one server.) */
#ifndef HIBLOOM_SLICES_H
#define HIBLOOM_SLICES_H

#include "redis/group.h"
#include "redis/items.h"

enum slices_phase { SLICES_BEGIN, SLICES_CLOCK, SLICES_LOOK, SLICES_SET, SLICES_REST, SLICES_DONE };

#define NOT_REFUSED UINT64_MAX

struct slices {
    struct task task;
    union {
        struct task inner; /* what is under way, which is one of: */
        struct group group;
        struct items walk;
        struct talk talk;
    };
    enum slices_phase phase;
    bool exact; /* an add: is_new is wanted */
    const hibloom_item *items;
    size_t n, at, chunk; /* all of them; where the chunk begins, and how many it has */
    unsigned attempts;   /* of the chunk */
    unsigned char *yes;  /* flags: it is new, or found */
    hibloom_item *left;  /* of the chunk: what is not decided. Here begins the memory of the next four */
    uint32_t *which;     /* they are, counted from `at` */
    bool *one;           /* answers, of one slice */
    bool *older;         /* an add: it is in, in an older period */
    unsigned char *what; /* enum slices_found */
    size_t count;        /* of left */
    struct items *calls; /* look-ups, a slice each, */
    uint32_t ended;      /* of which so many have been freed */
    struct talk clock;   /* beside them */
    unsigned char clock_text[64];
    uint64_t clock_us;                  /* as it was shown last; 0: not in this call */
    uint64_t period;                    /* the current one, as it was known when this step began */
    uint64_t refused;                   /* where a key's server does not decide: the one that it has refused last */
    uint64_t clears[HIBLOOM_LINKS_MAX]; /* other epochs that had been seen by then, a slice each */
};

void slices_begin_add(struct slices *, hibloom *, const hibloom_item *, size_t n, bool exact);
void slices_begin_contains(struct slices *, hibloom *, const hibloom_item *, size_t n);
void slices_end(struct slices *, bool *answers);

#endif
