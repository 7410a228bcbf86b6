/* linked.h: the bits of one filter in this process. A growing filter has one bitmap for each link, a sliding
 * window one for each slice, any other filter one. See bits.h for one bitmap. */
#ifndef HIBLOOM_LINKED_H
#define HIBLOOM_LINKED_H

#include "bits/bits.h"

struct linked {
    struct bits *link; /* `links` of them; where there may be several there is room for SPEC_LINKS_MAX */
    uint32_t links;
    uint64_t period[SPEC_LINKS_MAX]; /* of each slice of a window: see period.h */
    uint64_t newest;                 /* items in the newest of one that grows */
    bool counted;                    /* that is known; else some were merged into it */
};

/* ENOMEM, ERANGE. Even then linked_free has to follow. */
hibloom_status linked_make(struct linked *, const struct spec *);
void linked_free(struct linked *);

/* Makes a further link, or slice. ENOMEM, ERANGE: it cannot grow further. */
hibloom_status linked_grow(struct linked *);

/* is_new may be NULL; it is written only if the call returns OK. ENOMEM, ERANGE: a further link could not be made. */
hibloom_status linked_add(struct linked *, const hibloom_item *, size_t n, bool *is_new);
void linked_contains(struct linked *, const hibloom_item *, size_t n, bool *found);
void linked_merge(struct linked *, const struct piece *, const unsigned char *bits);
void linked_clear(struct linked *);

#endif
