/* undo.h: takes back bits that an add set in a wrong place.
 *
 * SETBIT on a key that is gone makes a new string, which is no filter: late bits. SETBIT on a
 * key that another filter took writes into that. The guard behind them shows it. Then each adder
 * takes back its own bits, and nobody else's. The last one's undo removes the late string. */
#ifndef HIBLOOM_UNDO_H
#define HIBLOOM_UNDO_H

#include "redis/encoding.h"

/* Some bits of a run that lie in one key: from `first` on, `step` apart. */
struct undo_part {
    const struct run *run;
    size_t first, step;
};

/* All parts lie in key i, in the order of sending. */
void undo_ask(struct link *, struct outbox *, uint32_t tag, uint32_t i, const struct undo_part *, size_t parts);

#endif
