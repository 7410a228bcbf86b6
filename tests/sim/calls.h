/* calls.h: what the files of a world's programs share: a client, its store and handles, and its calls on their way.
 *
 * client.c takes one step after the other, calls.c tells the oracles of it, and verbs.c has the library do it. */
#ifndef HIBLOOM_SIM_CALLS_H
#define HIBLOOM_SIM_CALLS_H

#include "sim/client.h"
#include "sim/oracle.h"

enum { AT_ONCE = 3, FILL_LENGTH = 8, UNWRITTEN = 0x5a };

struct handle {
    hibloom *filter;
    uint64_t root; /* its id; 0: not known */
    uint64_t ids[CALL_KEYS];
    uint64_t told, told_us; /* ELOST, so many times; and the last time */
    uint64_t told_runs;     /* other runs that its store knew as the call began that was told last */
    bool failed;            /* its last call has */
};

/* A step on its way. For the oracles a call of pairs is a call for each of its filters. */
struct running {
    struct call calls[NAMES];
    size_t parts; /* of these */
    struct client *client;
    hibloom_status each[NAMES * ITEMS]; /* by pairs: of each item */
    size_t count, unwritten;            /* of items; of answers that may not come any more */
    bool busy, by_pairs, as_one;        /* the last: of pairs, and nobody asks for `each` */
    bool ends, away;                    /* its `done` closes the handle; see AWAY */
    uint64_t again;                     /* what its store had sent again as it began */
    size_t filling;                     /* so many fillers are on their way */
    hibloom_status filled;
    hibloom *other, *twice; /* what a merge, a replace or an import makes beside; the latter by a name that is taken, */
    hibloom_store *memory;  /* there, or NULL */
    char name[32];          /* its, while clients take turns */
    int phase;              /* of a step of several calls */
    struct told told;
    hibloom_item items[ITEMS * TIMES_ROOM]; /* from here on all is large, mostly unused, and each step's own */
    unsigned char part[ITEMS * TIMES_ROOM]; /* of each item */
    bool answers[ITEMS * TIMES_ROOM];
    char fillers[FILL][FILL_LENGTH + 1];
    char lent[ITEMS][8]; /* items that are there while the library is called */
};

struct client {
    int id;
    hibloom_store *store;
    struct loop *loop; /* the store's; NULL: its calls wait */
    struct handle handles[NAMES];
    uint32_t saved; /* items that were in as it saved a file */
    int saved_name;
    bool done, checked;
    enum { STAYS, BESIDE, WITHIN, GOES } store_goes; /* beside the next call of its loop; within its next `done`; now */
    hibloom *closing;
    struct running running[AT_ONCE]; /* a blocking one uses the first */
};

/* ---- stores.c: the store of a client, and its handles ---- */

bool make_store(struct client *);
hibloom_store *connect_blocking(struct client *);                               /* one more store; NULL: it cannot */
hibloom_status connect_once(struct client *, bool to_memory, hibloom_store **); /* else to its servers */
/* A store goes with all that is pending: each call has its `done` before that returns. Its handles go before it, or after. */
void free_store(struct client *, bool closes_first);
void close_handle(struct client *, int name); /* on a loop what is pending is cancelled */

/* ---- calls.c: a step as calls that the oracles know ---- */

size_t parts_of(const struct client *, const struct step *);
int name_of(const struct step *, size_t part);
bool is_reopen(const struct client *, const struct step *);
hibloom_stats stats_of(const struct client *);
/* One call of the library, begun and ended for the oracles. */
hibloom_status call_blocking(struct client *, const struct step *);
void call_start(struct client *, struct running *, const struct step *); /* on a loop: it may end later */
void call_end(hibloom_status, void *running);                            /* the `done` of a step */
/* The answers as the oracles want them. They last until the next call. */
const bool *answers_of(const struct running *, size_t part);
/* Results are written only if the status is OK (hibloom.h): not before another one, and not behind it. */
void check_unwritten(const struct running *);

/* ---- verbs.c: the functions of the library that do a step ---- */

hibloom_status carry_out(struct client *, struct running *, const struct step *);
void remove_folder(void); /* with the files of all clients */

#endif
