/* linked.h: the bits of one filter in this process: of one that grows those of all its links, of a sliding
 * window those of all its slices; of any other one bitmap. bits.h has what is done with one of them. */
#ifndef HIBLOOM_LINKED_H
#define HIBLOOM_LINKED_H

#include "bits/bits.h"

struct linked {
    struct bits first;
    struct bits *more; /* further ones; NULL: none */
    uint32_t links;    /* in all */
    uint64_t *period;  /* of a window, a slice each: see period.h; NULL: it is none */
    uint64_t newest;   /* items in the newest of one that grows */
    bool counted;      /* that is known; else some were merged into it */
};

/* ENOMEM, ERANGE. The end frees it in any case. */
hibloom_status linked_make(struct linked *, const hibloom_spec *);
void linked_free(struct linked *);

struct bits *linked_at(struct linked *, uint32_t link);

/* Makes a further link of one that grows. ENOMEM, ERANGE: it can grow no more. */
hibloom_status linked_grow(struct linked *);

/* is_new may be NULL; it is written only where all of it is OK. ENOMEM, ERANGE: a further link could not be made. */
hibloom_status linked_add(struct linked *, const hibloom_item *, size_t n, bool *is_new);
void linked_contains(struct linked *, const hibloom_item *, size_t n, bool *found);
void linked_merge(struct linked *, const struct piece *, const unsigned char *bits);
void linked_clear(struct linked *);

#endif
