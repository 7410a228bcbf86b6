/* how.h: how a call ends: it waits, or its function is called later, from a loop.
 *
 *   hibloom_X, hibloom_async_X -> one function, which is told how -> checks -> a work (work.h) -> its task
 *                                     waits: the store runs it
 *                                     later: its loop carries it -> the owner's function
 *
 * A store in memory has no tasks. There the call is made at once, and only its function waits for the loop. */
#ifndef HIBLOOM_FILTER_HOW_H
#define HIBLOOM_FILTER_HOW_H

#include "base/store.h"
#include "hibloom/async.h"

struct how {
    const char *name; /* of the function, behind its prefix */
    bool async;
    hibloom_done_fn *done;
    void *data;
    uint64_t *told; /* of a part of a call: see task_take_told; NULL: it is a whole call */
};

#define WAITS(name) (&(const struct how){#name, false, NULL, NULL, NULL})
#define LATER(name) (&(const struct how){#name, true, done, data, NULL})

/* May a call of n items be made so on this store, and on this handle of it? NULL: on none, or on several. The store allows
 * a part along with its whole call. */
hibloom_status how_check(hibloom_store *, const hibloom *, const struct how *, size_t n);

/* ---- Calls that are one task. how_items checks itself; how_check comes before how_links ---------- */

hibloom_status how_items(hibloom *, enum store_op, const hibloom_item *, size_t n, bool *answers, const struct how *);

/* `made`: it is not open, and the call's. It is opened, and goes to *out, or its filter becomes that of `filter`; or it is
 * there for its name alone. */
struct links_args {
    enum links_goal goal;
    hibloom *filter, *made; /* NULL: none */
    const struct request *wanted;
    uint64_t ms;
    hibloom **out;
    hibloom_info *info; /* of a count; NULL: it is none */
    size_t size;
};
hibloom_status how_links(hibloom_store *, const struct links_args *, const struct how *);

#endif
