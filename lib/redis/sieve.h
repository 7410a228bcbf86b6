/* sieve.h: a call on items: add, contains, remove. It is one walk (walk.h), if a plain filter's call sends all of its
 * items. Else it is a sieve. Its items go chunk by chunk, until each is decided.
 *
 *   plain.c     one link. A call need not send all of its items
 *   growing.c   the items of an add go to the newest link, if no older one has them
 *   window.c    what is found counts for a time
 *
 * These are policies. A policy chooses the links to look in, the one to set, and the meaning of an answer. It
 * begins one inner task after the other, and says what follows it.
 *
 * A call of very many items reads whole bitmaps, or merges its own into them (bulk.h), where that is less work
 * (cost.h). Two things leave items out of a chunk:
 *
 *   near     what this process knows to be in (near.h) costs no command
 *   look     an add to the blocked layout that wants no is_new looks first, where half of a sample is in already. A look
 *            costs the server a quarter of setting the bits. In the other layouts it costs nearly the same, and never paid
 *
 * Items that are left out rely on guards. If a guard is too old, it is sent again once the other items have their
 * answers. */
#ifndef HIBLOOM_SIEVE_H
#define HIBLOOM_SIEVE_H

#include "redis/bulk.h"
#include "redis/growing.h"
#include "redis/links.h"
#include "redis/upkeep.h"
#include "redis/walk.h"
#include "redis/window.h"

struct sieve;

struct policy {
    void (*begin)(struct sieve *);   /* the call, also if it begins again: nothing is decided */
    void (*chunk)(struct sieve *);   /* more items are left: sieve_take, and what follows */
    void (*end)(struct sieve *);     /* all are decided; NULL: nothing follows */
    void (*release)(struct sieve *); /* its memory, also in the middle; NULL: it has none */
    uint32_t (*most)(const struct link *, size_t n, bool adds); /* items of a chunk; NULL: as many as others have */
};

extern const struct policy plain_policy, growing_policy, window_policy;

/* The items of a chunk that are left out. */
struct left_out {
    unsigned char *relied; /* a byte a key, of all links: they rely on it; NULL: nothing was left out yet */
    uint32_t keys;
    uint32_t at;    /* the next key that is proven */
    uint32_t known; /* near items of the chunk, */
    bool any;
    bool none;         /* the chunk has begun again: nothing is left out of it any more */
    size_t spared;     /* near items of the chunks that have ended */
    uint64_t mark;     /* of all links, as the chunk began: near_mark */
    uint64_t since_ns; /* the guards of `relied` must be as young as this, or nearly: near_is_fresh */
};

/* An add to one link, which may look first, or merge bitmaps. */
struct setting {
    struct link *link;
    unsigned char *fresh; /* flags: new by the bitmap, of those that are left; NULL: it went by commands only */
    void (*ended)(struct sieve *);
};

struct items_task {
    struct sieve *of; /* NULL: it is a walk, which no sieve runs */
    union {
        struct task task; /* what the sieve runs now, or has run last, one of: */
        struct walk walk;
        struct upkeep upkeep;
        struct talk talk;
    };
};

struct sieve {
    struct task task;
    struct items_task *inner; /* the task under way, whose memory is there until the next one begins. */
    struct links *links;      /* Or one of these two. They are large, and rarely wanted */
    struct bulk *bulk;
    void (*ended)(struct sieve *); /* the inner task has, well; NULL: nothing is under way */
    const struct policy *policy;
    struct redis_filter *filter;
    bool bulk_gave_way; /* the bitmaps were not read, or merged: the items go by commands */
    bool denied;        /* a look-up: a root does not tell of the next link, and the server refuses to mend that */
    enum store_op op;   /* all but STORE_REMOVE, which is one walk */
    const hibloom_item *items;
    size_t n, at;         /* all of them; where the chunk begins, */
    uint32_t chunk, most; /* how many it has; at most */
    uint32_t count;       /* of left */
    uint32_t waited;      /* redis_filter.made + 1 when it waited last; 0: it has not */
    uint32_t *which;      /* items of the chunk that are not decided, counted from `at`; they are in `left` */
    bool *answers;        /* the inner task's */
    unsigned char *yes;   /* flags: it is new, or found */
    unsigned char *in;    /* flags: it is in the bitmaps that were read; NULL: none were. A look-up's `yes` */
    uint64_t begun_ns;    /* the call: a guard is good for all of its chunks */
    struct left_out out;
    struct setting set;
    union { /* the policy's: */
        struct growing growing;
        struct window *window; /* NULL: it has not begun */
    };
    hibloom_item left[]; /* and then the other arrays */
};

/* The sieve whose inner task it is: a talk of its own, or the walk's. */
static inline struct sieve *sieve_of(struct talk *talk)
{
    return ((struct items_task *)((char *)talk - offsetof(struct items_task, talk)))->of;
}

/* Returns the task to be run. */
struct task *items_task_begin(struct items_task *, enum store_op, hibloom *, const hibloom_item *, size_t n);
void items_task_end(struct items_task *, bool *answers); /* as walk_read, and frees */

/* ---- For the policies ------------------------------------------------------------------------- */

/* Is it worth while for one link, or does one walk do all? */
bool plain_pays(const struct link *, size_t n, enum store_op);

/* The chunk is decided: what is left out is proven, and the next one begins. */
void sieve_end_chunk(struct sieve *);

/* The next items, at most `most`, become those that are left. */
void sieve_take(struct sieve *, uint32_t most);

/* Only items whose answer is this stay. Notes those that are left as new. */
void sieve_keep(struct sieve *, bool answer);
void sieve_note(struct sieve *);
void sieve_note_found(struct sieve *); /* those whose answer is yes; the others are left */

/* Waits for an inner task; `ended` follows it. For sieve_await the caller has begun it, behind sieve_may_make. The others
 * begin it: a talk, LINKS_REACH, a look in `links` links, an add to one by commands or as is less work, or a bulk
 * (s->bulk_gave_way: it was none). */
void sieve_await(struct sieve *, void (*ended)(struct sieve *));
void sieve_ask(struct sieve *, struct link *, talk_step *, void (*ended)(struct sieve *));
void sieve_reach(struct sieve *, uint32_t links, void (*ended)(struct sieve *));
void sieve_look(struct sieve *, struct link *, uint32_t links, const hibloom_item *, size_t n, const struct aside *,
                void (*ended)(struct sieve *));
void sieve_add(struct sieve *, struct link *, struct slice_add *, void (*ended)(struct sieve *));
void sieve_set(struct sieve *, struct link *, void (*ended)(struct sieve *));
void sieve_by_bitmaps(struct sieve *, enum store_op, struct link *, const hibloom_item *, size_t n, unsigned char *yes,
                      void (*ended)(struct sieve *));

/* May this call make links, or count them? False: another call of the handle does so now. This one waits for it, and
 * `ended` looks again for what is there. So many calls in flight take little memory and time. */
bool sieve_may_make(struct sieve *, void (*ended)(struct sieve *));

/* Items that are left out rely on all keys. False: out of memory. sieve_prove sends the guards of those that they rely
 * on. */
bool sieve_rely_on_all(struct sieve *);
void sieve_prove(struct sieve *, void (*ended)(struct sieve *));
/* What bitmaps have shown an add need not be sent, once all keys are proven. Else, or without memory, all goes. */
void sieve_prove_read(struct sieve *, bool read);

/* If an add is not sent, the server has to show that it would have taken it. A demoted primary, which may lack known
 * bits, refuses only writing commands. BITFIELD counts as one, and this one changes nothing. */
void sieve_put_write(struct commands *, struct argument key);
/* Takes the reply to the guard of key i, number 0, or to that behind it. */
void sieve_take_proof(struct talk *, uint32_t i, uint32_t index, const struct reply *);
/* The guards of an add so far were behind reads, which a demoted primary answers, too: they prove nothing to come. */
void sieve_distrust(struct sieve *);

/* Fewer than half of a sample of the call's items are in: the look for it, and its answer. False: it would not pay. */
bool sieve_sample(struct sieve *, void (*ended)(struct sieve *));
bool sieve_sample_is_new(struct sieve *);

/* Is it an add that looks first? */
bool sieve_looks_first(const struct link *, size_t n, enum store_op);

/* The number of the items left that have to be sent, by a sample. */
double sieve_expect_sent(struct sieve *);

#endif
