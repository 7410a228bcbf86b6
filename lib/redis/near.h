/* near.h: the bits that this process knows to be set in a filter in Redis, beside its handle.
 *
 * A bit that is set stays so until the filter is cleared, or goes. Both show in the trailer that
 * each guard reads (guard.h): the epoch, and the id. So an item with known bits only needs no
 * command, as long as the guards of its key are good.
 *
 * The known bits are forgotten whenever they could be wrong: after an error, and at another
 * epoch. Also if another server may have answered, which may have lost bits. That is at a new
 * connection, a restart, a redirect, and a second sending. */
#ifndef HIBLOOM_NEAR_H
#define HIBLOOM_NEAR_H

#include "bits/bits.h"
#include "redis/link.h"

struct near {
    struct bits bits; /* of its first keys; start NULL: nothing is known */
    uint64_t max_age_ns;
    uint64_t mark; /* when that was learned */
};

/* From now on the link has one, with nothing known yet. False: out of memory. */
bool near_begin(struct link *, uint64_t max_age_ns);
void near_free(struct link *); /* if it has one */

/* A number that changes when the known bits have to be forgotten. If replicas answer a look-up, a number that it never is:
 * one may get a clear between the bits and their guard. */
uint64_t near_mark(const struct link *, bool looks);

/* The bits known now; NULL: none. */
const struct bits *near_known(struct link *);
void near_forget(struct link *);

/* The bits to set for items that are in, by an answer since near_mark was `mark`. NULL: they
 * must not be learned, or there is no memory for them. */
struct bits *near_to_learn(struct link *, uint64_t mark);

/* Learns all bits of the keys from `from` to below `to`, which `bits` begins with. */
void near_learn_bits(struct link *, const struct bits *bits, uint32_t from, uint32_t to, uint64_t mark);

/* Was a guard of key number i good that was asked then, or later, or at most the greatest age before? */
bool near_is_fresh(const struct link *, uint32_t i, uint64_t then_ns);

#endif
