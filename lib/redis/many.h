/* many.h: the task of a call that need not send all of its items.
 *
 * A call of very many items goes by whole bitmaps (bulk.h), where that is less work (cost.h):
 * a look-up reads them; an add merges its own into them, or, where is_new is wanted, reads
 * them, and sends what is not in. Else, and then, it goes by chunks, and leaves out of each
 * what is known already:
 *
 *   near     what this process knows to be in (near.h) costs no command; where the guard of
 *            its key is older than it may be, that is asked once the others are answered
 *   look     an add to the blocked layout that wants no is_new looks first, where half of a
 *            sample is in already: a look costs the server a quarter of setting the bits.
 *            In the other layouts looking costs nearly what setting does, and never paid
 *
 * The rest are items (walk.h), as those of any other call. */
#ifndef HIBLOOM_MANY_H
#define HIBLOOM_MANY_H

#include "redis/bulk.h"
#include "redis/walk.h"

enum many_phase { MANY_BEGIN, MANY_BULK, MANY_CHUNK, MANY_SAMPLE, MANY_LOOK, MANY_ITEMS, MANY_PROOF, MANY_DONE };

/* The guards of the keys that known items lie in. */
struct proof {
    struct talk talk;
    bool adds;
    const unsigned char *touched; /* a byte a key */
    uint64_t since_ns;
    uint32_t at; /* the next key */
};

struct many {
    struct task task;
    union {
        struct task inner; /* what is under way, which is one of: */
        struct walk walk;
        struct proof proof;
        struct bulk bulk;
    };
    enum many_phase phase;
    bool exact; /* an add: is_new is wanted */
    const hibloom_item *items;
    size_t n, at, chunk;    /* all of them; where the chunk begins, and how many it has */
    unsigned char *yes;     /* flags: it is new, or found */
    hibloom_item *left;     /* of the chunk: what is not known. Here begins the memory of the next three */
    uint32_t *which;        /* they are, counted from `at` */
    bool *answers;          /* as many */
    unsigned char *touched; /* a byte a key: what was left out lies in it */
    size_t count;           /* of left; less than the chunk: the others were left out */
    size_t known, spared;   /* of the chunk, what is near; the same of the chunks that have ended */
    unsigned char *present; /* flags: it is in, as the bitmaps were read; NULL: they were not */
    uint64_t mark;          /* near_mark when it began with the chunk, or with whole bitmaps */
    uint64_t begun_ns;      /* the call: a guard is good for all of its chunks */
    uint64_t since_ns;      /* the guards of `touched` must be as young as this, or nearly: near_is_fresh */
};

/* Is it worth while for so many items? */
bool many_pays(const struct link *, size_t n, bool adds, bool exact);

void many_begin_add(struct many *, struct link *, const hibloom_item *, size_t n, bool exact);
void many_begin_contains(struct many *, struct link *, const hibloom_item *, size_t n);

/* As walk_end. */
void many_end(struct many *, bool *answers);

/* A call on one filter, or one link: all of its items, or not all. */
struct plain {
    union {
        struct task task; /* to be run, which is one of: */
        struct walk items;
        struct many many;
    };
    bool is_many;
};

void plain_begin_add(struct plain *, struct link *, const hibloom_item *, size_t n, bool exact);
void plain_begin_contains(struct plain *, struct link *, const hibloom_item *, size_t n);
void plain_end(struct plain *, bool *answers);

#endif
