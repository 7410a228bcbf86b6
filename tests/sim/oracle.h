/* oracle.h: the promises of hibloom.h, async.h and docs/format.md, held against what a world's clients are told.
 *
 * They are written from these texts, not from the code, and read the raw keys with reader.h. */
#ifndef HIBLOOM_SIM_ORACLE_H
#define HIBLOOM_SIM_ORACLE_H

#include "sim/world.h"

#include <hibloom/hibloom.h>

enum { CALL_KEYS = 4 };

/* The numbers of a filter by its raw keys: of its links, all together. */
struct counted {
    uint64_t bits, bits_set, bytes, keys, links, capacity;
};

/* What a call tells beside its status and answers. */
struct told {
    hibloom_info info;
    hibloom_comparison comparison;
    uint32_t listed; /* a bit for each of the world's names; */
    bool stray;      /* and one that is no filter's */
    bool created;
};

/* A call on its way. */
struct call {
    struct call *next;
    int client, ordinal, name;
    enum verb verb;
    uint32_t items;                         /* of those the world has */
    size_t times;                           /* each item is in the call */
    uint64_t arg;                           /* of the step */
    uint64_t faults, cuts, struck, held_us; /* so far, as it began */
    uint64_t paused_us, answered_us;
    uint64_t begun_us, begun_clock_us; /* the second by the server's clock */
    /* The filter's state at moments of the call: a bit is set for an item that it had, or had not, at one of them. */
    uint32_t had, had_not, had_at_begin, had_or_lost; /* the last: as it began, too */
    uint32_t settled;                                 /* items of which no add was on its way as it began */
    uint32_t demanded;                                /* items that it has to find: in all the time so far */
    uint32_t near;           /* items that were there when what is near, as old as it may be, was proven, or since */
    uint64_t age_us;         /* that age, or 0 */
    uint64_t lives, ready;   /* of the name, as it began; and those that were ready, in the call */
    uint64_t handle;         /* the id of the root that its handle has opened; 0: not known */
    uint64_t ids[CALL_KEYS]; /* of the keys of its first link */
    bool handle_met;         /* that root was there at a moment of the call */
    bool handle_gone;        /* and was not for long, as it began */
    int raw_at_begin;        /* the status that an open had to give */
    bool forgotten;          /* a link is ready of which no root told as it began */
    bool doubtful;           /* something was sent again */
    bool refused;            /* a guard of an add was, by a server that is busy: so are the bits in front of it */
    bool canceled;           /* its filter was closed meanwhile */
    const char *text;        /* the words of its failure */
    unsigned parts;          /* of imports that were there as it began */
    uint64_t runs;           /* other ones that its store had met as it began */
    uint64_t run;            /* of the root's server, as it began */
    uint64_t met_run;        /* the same, if its client had met that run by then; else 0 */
    bool knew_run;           /* and whether server 0 had told its client of that */
    bool alone;              /* no other call on the name was on its way meanwhile */
    bool beside;             /* one of the same client was */
    bool removes_alone;      /* no other one that may remove was: others only help it */
    bool undisturbed;        /* none that may change keys, or times to live */
    bool grows;              /* it has made a link, or told of one */
    int from;                /* the name of what it merges, and 1; 0: that has none of the world, */
    uint64_t from_root;      /* and the root by which it is opened, also of what replaces, */
    bool filled;             /* which has the items now; */
    bool from_own;           /* by the handle that its client has of that; */
    uint64_t from_run;       /* and the run of its server, as it began */
    uint64_t placed;         /* the root that its replacement has put there; 0: none yet */
    uint64_t period;         /* for which it has added to a window; 0: it has not */
    uint32_t period_key;     /* the number of the key to which it has */
    bool crossed;            /* another one set, or took, a time to live meanwhile */
    bool agreed;             /* as it began, all keys had their times to live as they should */
    uint64_t expiry_ms;      /* of the root, as it began */
    bool without;            /* something has served it without the filter that it has opened */
    int lacked[CALL_KEYS];   /* the server, and 1, that gave bits of each key without it, and has not shown it since */
    bool by_pairs;           /* a part of a call over many filters */
    bool asked;              /* for the filter's root, and that is there */
    unsigned proofs;         /* how often a primary's root has shown that, since the write before; */
    bool wrote;              /* and it has written since */
    bool set;                /* a command of it that sets bits was carried out */
    uint64_t connected_us;   /* when its client has connected in it, to the only server; 0: it has not */
    uint64_t touched_us;     /* when the write in front of its WAIT was last carried out; 0: it was not */
    unsigned scanned;        /* the run of a server that gave it the last cursor; */
    bool torn;               /* and it has gone on with that at another one */
    bool only_new;           /* create=only */
    bool reopens, made;      /* its handle: what that has not told is still to be told, unless this made a filter */
    const struct told *told;
    struct counted counted; /* as it began */
    uint64_t roots[NAMES];  /* 0: there was none; UINT64_MAX: it was not whole */
    /* The bytes of a bare bitmap at moments of the call. */
    size_t shortest, longest, bytes_at_begin;
    bool displaced; /* a filter with a spec stood in its place at each of them */
};

void oracle_begin_world(void);
bool oracle_failed(void);
const char *oracle_words(void); /* the first promise that was broken */
void oracle_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
void fail_call(const struct call *, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Whether a call of that verb goes by a handle. */
static inline bool needs_handle(enum verb verb)
{
    return verb != VERB_OPEN && verb != VERB_DELETE && verb != VERB_REPLACE && verb != VERB_REPAIR &&
           verb != VERB_LIST && verb != VERB_IMPORT;
}

/* Whether its other filter is at the same servers. */
static inline bool merges_here(const struct call *c)
{
    return c->verb == VERB_MERGE && c->times == MERGED_HERE;
}
/* Whether others replace by the same filter. */
static inline bool shares(const struct call *c)
{
    return c->verb == VERB_REPLACE && c->times == SHARED;
}
/* Whether it says that the filter which the handle has opened is gone, or damaged. */
static inline bool loses_handle(hibloom_status status)
{
    return status == HIBLOOM_ENOTFOUND || status == HIBLOOM_EMISMATCH || status == HIBLOOM_ECORRUPT;
}

void oracle_begin(struct call *); /* client, ordinal, name, verb, items, handle are set */
/* answers: one for each item of `items`, from the lowest bit, `times` times. */
void oracle_end(struct call *, hibloom_status, const bool *answers, const char *words);
uint64_t oracle_root(int name);            /* the id of the root that is there; 0: none */
uint64_t oracle_root_of(const char *name); /* the same, of any name */
uint32_t oracle_in(int name);              /* the items that must be in now */
void oracle_ids(int name, uint64_t ids[CALL_KEYS]);

/* After all is well again: what a new store says must be what the raw keys say. */
int oracle_raw_status(int name);
void oracle_check_open(int client, int name, hibloom_status, int before);
void oracle_check_answer(int client, int name, int item, bool found, bool new_store);
void oracle_check_end(void);

const char *oracle_name(int name);
struct blob oracle_item(int item);

/* The world tells. `who` is a client, or -1. */
void oracle_before(void);                     /* something may end a filter's life */
void oracle_after(int who, const char *what); /* that is done */
void oracle_after_loss(void);                 /* a server's data were replaced by older ones */
void oracle_forget_lost(int client);          /* nothing tells it of what is lost by now */
void oracle_connects(int client);             /* anew: answers may be lost */

/* A command that a server carries out for a client. */
struct command_seen {
    int client, server;
    const char *place; /* see struct anchor */
    size_t argc;
    const struct blob *argv;
    struct blob key;                   /* its first; empty: it has none */
    uint64_t sent_us, clock_us;        /* when the client gave it away; and by the server's clock, now */
    bool connected, mute, met, asking; /* see struct wire, and struct session */
    unsigned run;                      /* of the server: no other has it, be it of another server */
    bool is_truth, by_replica;         /* the server's data count; it is a replica, as the client knows */
    const char *denied;                /* the command that its user is denied there; NULL: none */
    /* What the oracles note between the two: */
    struct blob was; /* the key's string */
    bool watched, foreign, redirected;
    unsigned strangers;
    uint64_t expiry_ms;
};
void oracle_before_command(struct command_seen *);
void oracle_after_command(struct command_seen *, struct blob reply);

#endif
