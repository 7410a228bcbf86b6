/* sieve.h: the task of an add or a look-up that takes more than one walk. Its items go chunk by chunk, until each is
 * decided.
 *
 *   plain.c     one link. A call need not send all of its items
 *   growing.c   the items of an add go to the newest link, if no older one has them
 *   window.c    what is found counts for a time
 *
 * Each of these is a policy: which links are looked in, which one is set, and what an answer means. It begins one inner
 * task after the other, and says what follows it.
 *
 * A call of very many items reads whole bitmaps, or merges its own into them (bulk.h), where that is less work (cost.h).
 * Two things leave items out of a chunk:
 *
 *   near     what this process knows to be in (near.h) costs no command
 *   look     an add to the blocked layout that wants no is_new looks first, where half of a sample is in already. A look
 *            costs the server a quarter of setting the bits. In the other layouts it costs nearly the same, and never paid
 *
 * What is left out relies on guards. If one is older than it may be, it is asked once the other items are answered. */
#ifndef HIBLOOM_SIEVE_H
#define HIBLOOM_SIEVE_H

#include "redis/bulk.h"
#include "redis/growing.h"
#include "redis/links.h"
#include "redis/upkeep.h"
#include "redis/walk.h"
#include "redis/window.h"

#define SIEVE_CHUNK (32u << 10) /* items, at most */

struct policy {
    void (*begin)(struct sieve *);   /* the call, also where it is begun anew: nothing is decided */
    void (*chunk)(struct sieve *);   /* more items are left: sieve_take, and what follows */
    void (*end)(struct sieve *);     /* all are decided; NULL: nothing follows */
    void (*release)(struct sieve *); /* what it holds, also in the middle; NULL: nothing */
};

extern const struct policy plain_policy, growing_policy, window_policy;

/* What of a chunk is left out. */
struct left_out {
    unsigned char *touched; /* a byte a key, of all links: it lies there; NULL: nothing was left out yet */
    uint32_t keys;
    bool any;
    size_t known, spared; /* of the chunk, what is near; the same of the chunks that have ended */
    uint64_t mark;        /* of all links, as the chunk began: near_mark */
    uint64_t since_ns;    /* the guards of `touched` must be as young as this, or nearly: near_is_fresh */
    uint32_t at;          /* the next key that is proven */
};

/* An add to one link, which may look first, or merge bitmaps. */
struct setting {
    struct link *link;
    void (*ended)(struct sieve *);
};

struct sieve {
    struct task task;
    struct task *run; /* the task to be run: that one, or one walk does it all */
    union {
        struct task inner; /* what is under way, which is one of: */
        struct walk walk;
        struct upkeep upkeep;
        struct talk talk;
    };
    struct links *links; /* or one of these two. They are large, and rarely wanted */
    struct bulk *bulk;
    bool walks;                    /* it is the walk: `ended` reads its answers, and frees it */
    void (*ended)(struct sieve *); /* the inner task has, well; NULL: nothing is under way */
    const struct policy *policy;
    struct redis_filter *filter;
    bool begun;
    bool rests;   /* task.pause_ms, before `ended` */
    bool refused; /* the bitmaps were not read, or merged: the items go by commands */
    bool denied;  /* a look-up: a link stays untold, of which it may not tell */
    bool exact;   /* an add: is_new is wanted */
    const hibloom_item *items;
    size_t n, at, chunk; /* all of them; where the chunk begins, and how many it has, */
    size_t most;         /* at most */
    unsigned char *yes;  /* flags: it is new, or found */
    hibloom_item *left;  /* of the chunk: what is not decided. Here begins the memory of the next two */
    uint32_t *which;     /* they are, counted from `at` */
    bool *answers;       /* of the inner task */
    size_t count;        /* of left */
    unsigned char *in;   /* flags: it is in the bitmaps that were read; NULL: none were. A look-up's `yes` */
    uint64_t begun_ns;   /* the call: a guard is good for all of its chunks */
    struct left_out out;
    struct setting set;
    union {
        struct growing growing;
        struct window window;
    };
};

void sieve_begin(struct sieve *, enum store_call, hibloom *, const hibloom_item *, size_t n);
void sieve_end(struct sieve *, bool *answers); /* as walk_read, and frees */

/* ---- For the policies ------------------------------------------------------------------------- */

/* Is it worth while for one link, or does one walk do all? */
bool plain_pays(const struct link *, size_t n, bool adds, bool exact);

/* The chunk is decided: what is left out is proven, and the next one begins. */
void sieve_end_chunk(struct sieve *);

/* The next items, at most so many, become those that are left. */
void sieve_take(struct sieve *, size_t most);

/* Only items whose answer is this stay. Notes those that are left as new. */
void sieve_keep(struct sieve *, bool answer);
void sieve_note(struct sieve *);
void sieve_note_found(struct sieve *); /* those whose answer is yes; the others are left */

/* Begins an inner task, behind which `ended` follows: the caller has begun one of that kind, or links; or this begins a
 * look in so many links, an add to one, or reads a link's bitmaps, or merges where `yes` is NULL. Or it rests. */
void sieve_await(struct sieve *, void (*ended)(struct sieve *));
void sieve_await_walk(struct sieve *, void (*ended)(struct sieve *));
void sieve_await_links(struct sieve *, enum links_goal, void (*ended)(struct sieve *));
void sieve_look(struct sieve *, struct link *, uint32_t links, const struct aside *, void (*ended)(struct sieve *));
void sieve_set(struct sieve *, struct link *, void (*ended)(struct sieve *));
void sieve_by_bitmaps(struct sieve *, struct link *, const hibloom_item *, size_t n, unsigned char *yes,
                      void (*ended)(struct sieve *));
void sieve_rest(struct sieve *, unsigned ms, void (*ended)(struct sieve *));

/* The walk has ended: its answers become the sieve's. And any inner task: what it holds is freed. */
void sieve_read_walk(struct sieve *);
void sieve_free_inner(struct sieve *);

/* What is left out lies in all keys. False: out of memory. Then, or anyhow: the guards of the keys that were touched. */
bool sieve_touch_all(struct sieve *);
void sieve_prove(struct sieve *, void (*ended)(struct sieve *));

/* Does an add of so many items look first? */
bool sieve_looks_first(const struct link *, size_t n, bool exact);

/* How many of n items have to be sent, as a sample says. */
double sieve_expect_sent(struct sieve *);

#endif
