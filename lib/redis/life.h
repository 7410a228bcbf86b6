/* life.h: how a filter comes to be and goes: what its files share.
 *
 *   life.c     the task; the commands of several files, and what is in the way
 *   open.c     read what is under a name
 *   attach.c   join a bare bitmap
 *   create.c   make the root, then the other keys, and swap the root to ready
 *   remove.c   swap the root to removing, unlink the other keys, then the root
 *   repair.c   check all keys of several; make lost ones anew, and list them
 *
 * The root's state says what is going on, so that whoever finds it goes on with it:
 *
 *     make root (creating) -> make keys 1, 2, ... -> swap root to ready, with the list of ids
 *     swap root to removing -> unlink keys of that generation -> unlink root
 *
 * A filter of one key is its root, and is unlinked at once.
 *
 * Every step is a compare-and-set on one key, so helpers and sleepers do no
 * harm; tests/model checks all orders of them. */
#ifndef HIBLOOM_LIFE_H
#define HIBLOOM_LIFE_H

#include "redis/guard.h"
#include "spec/request.h"

#define LIFE_PATIENCE_NS UINT64_C(250000000) /* so long bits in the way, which may be late ones, are waited for */
#define LIFE_PAUSE_MS 5
#define LIFE_AFTER_ROOT_MS 1000 /* the other keys live longer than the root, so that it goes first */

enum life_goal { LIFE_OPEN, LIFE_REPAIR, LIFE_DELETE, LIFE_DROP, LIFE_GROW, LIFE_INSPECT };

/* A further link of a growing filter; all 0: of any other. */
struct life_link {
    uint64_t chain;
    struct link *before; /* the link that is to tell of it, or does; NULL: whoever makes it sees to that */
    uint64_t dead; /* id of another filter's link in its place, which is known to be gone: that is left over; 0: none */
};

/* What is at one of the places that a name stands for: NAME, NAME:0. */
struct life_place {
    enum record_found found;
    struct record record;
    struct failure refused; /* to look there */
};

struct life {
    struct talk talk;

    /* what is to be done */
    enum life_goal goal;
    const struct spec *makes;   /* an open, if there is none; NULL: it must be there */
    const struct request *said; /* of what is there; NULL: whatever is stored */
    struct life_link link;      /* what is looked for */
    uint64_t unlinked_chain;    /* a growing filter of which no further link is left: that chain */

    /* what is for who began it, at the end */
    uint64_t chain;   /* the root of a growing filter is marked, or has to go unmarked, and its further links must be
                         removed first: those of this chain; 0: no such thing */
    uint64_t foreign; /* id of a link of another filter, where one has to be made, or to go; 0: none was met */
    bool overtaken;   /* a further link was not made ready: there is another one, or was, or the one before is gone */

    /* the last answers */
    struct life_place place[2];
    char answer;                 /* of a script: '+', '=', '!' */
    struct record answer_record; /* the trailer with it */

    /* the filter that was found, or made */
    enum record_state root_state;
    int64_t ttl_ms;          /* of the root */
    bool clearing_way;       /* it is not what the task is about, and goes */
    struct link_range range; /* of its keys: those that are checked, made, unlinked now */
    uint64_t newer;          /* a generation above the root's that a key has; 0: none */
    bool taken;              /* something is in the way of a key, or stays where a key was removed: */
    uint32_t taken_key;      /* of this one, */
    bool taken_by_filter;    /* by a key of a filter */

    struct {                  /* life.c */
        unsigned attempts;    /* how often the places were read */
        uint32_t reached;     /* the last key that a repair has made again */
        uint64_t begun_ns;    /* for retry_ms they are read again in any case. What is found counts as proven then */
        uint64_t patience_ns; /* until then bits in the way are waited for; 0: none were met */
    } waiting;

    struct {                                              /* repair.c */
        uint64_t seen[LINK_STEP_KEYS];                    /* the ids found in range, 0: none of this generation */
        char list[LINK_STEP_KEYS * RECORD_ID_DIGITS + 1]; /* the ids that the root lists */
        bool changed;                                     /* the root, since a key seemed to be lost */
        uint32_t key;                                     /* that is made anew */
        bool made;                                        /* by this call, not found */
    } checking;

    struct { /* open.c, for create.c, too: what is in the place of the link that would follow */
        bool asked;
        bool taken;        /* a filter of its own */
        uint64_t chain[2]; /* of a ready link, as in place; 0: there is none */
        struct failure refused;
    } ahead;

    struct {                 /* create.c */
        unsigned char *mine; /* flags, of keys: made by this call */
        bool unwanted;       /* overtaken, and the one before it is gone */
    } creating;

    struct {               /* remove.c */
        bool has_links;    /* it may have further ones */
        uint64_t unlinked; /* keys, by this removal */
        bool in_doubt;     /* an answer of a removal was lost: it may have been carried out then */
    } removing;
};

static inline struct life *life_of(struct talk *talk)
{
    return (struct life *)talk;
}

/* The places that a name stands for: a filter of one key, the root of several. Replies about a place have it as their
 * tag. Behind it come the tags of what is asked beside it: the two places of the link that would follow, the root of the
 * link before, the root's time to live. */
enum { PLACE_ALONE, PLACE_ROOT, LIFE_TAG_AHEAD, LIFE_TAG_BEFORE = LIFE_TAG_AHEAD + 2, LIFE_TAG_TTL };

/* Asks what is at a place; is there a filter of this name? The place where the
 * handle's filter is not. */
void life_ask_place(struct talk *, struct outbox *, unsigned place);
void life_take_place(struct talk *, uint32_t tag, uint32_t index, const struct reply *);
bool life_has_filter(const struct life *, unsigned place);
unsigned life_other_place(const struct life *);

/* Asks what is in the place of the link that would follow. life_take_place takes these replies, too. */
void life_ask_ahead(struct life *, struct outbox *);

/* The handle's root says ready. Is a ready link of its chain ahead all the same? Then it has grown, and does not tell. */
void life_note_ahead(struct life *);

/* Is it a growing filter's first link, whose root tells whether all of it is there? Then it is marked before it goes. */
bool life_heads_chain(const struct link *);

/* Steps; each may be the first of a task. */
void life_read_places(struct talk *, struct outbox *); /* open.c: and goes on with what is there */
void life_check_keys(struct talk *, struct outbox *);  /* repair.c: once the root is known */
void life_attach(struct talk *, struct outbox *);      /* attach.c: a bare bitmap, once the places are known */
void life_create(struct talk *, struct outbox *);      /* create.c: the root, for life.makes */
void life_complete(struct talk *, struct outbox *);    /* create.c: from a root in the state creating on */
void life_tidy(struct talk *, struct outbox *);        /* create.c: keys that it has made for a root that is gone */
void life_remove(struct talk *, struct outbox *);      /* remove.c: the handle's filter, or the one that was found */
void life_remove_keys(struct talk *, struct outbox *); /* remove.c: from a root in the state removing on */
void life_swap_grown(struct talk *, struct outbox *);  /* create.c: the handle's filter is followed by another link */
void life_inspect(struct talk *, struct outbox *);     /* open.c: the handle's root, and one link further */

/* Asks the guards of the keys behind life.range, which becomes theirs; false: there is none. */
bool life_ask_next_keys(struct life *, struct outbox *);

/* May bits in the way be waited for once more? */
bool life_has_patience(uint64_t *patience_ns);

/* Reads the places again, after a pause if that was often; gives up with EBUSY. */
void life_start_over(struct talk *);

/* Where the root has the id of key number i in its list. */
uint64_t life_list_at(const struct life *, uint32_t i);

/* Takes a root's record over as the handle's filter: spec, state, generation, and key's id. */
void life_adopt(struct life *, const struct spec *, const struct record *);

/* Reads a script's answer '+', '=' or '!', with a trailer behind it or not; false:
 * it is none, which is noted. The same as a talk's `take`, where tags are keys. */
bool life_read_answer(struct life *, const struct reply *, uint32_t i);
void life_take_answer(struct talk *, uint32_t tag, uint32_t index, const struct reply *);

/* EVAL make of key number i, which gets that time to live; -1: none. `keeps_ttl`: one that is there keeps its own. */
void life_ask_make(struct life *, struct outbox *, uint32_t i, uint64_t id, int64_t ttl_ms, bool keeps_ttl);

/* EVAL swap on the root: bytes at an offset, and the state; if it lives no longer than that: -1 for ever. `then` NULL: the
 * list of all ids. */
#define LIFE_ANY_TTL INT64_MIN
void life_ask_swap(struct life *, struct outbox *, enum record_state from, uint64_t at, struct argument there,
                   struct argument then, enum record_state to, int64_t ttl_ms);

/* EVAL unlink of key number i: of its id, or of the filter's generation; in that
 * state, "" for any. The step counts what was unlinked in removing.unlinked. */
void life_ask_unlink(struct life *, struct outbox *, uint32_t i, bool by_id, const char *state);
void life_take_unlinked(struct talk *, uint32_t tag, uint32_t index, const struct reply *);

/* By the answer to a swap of it. If not, somebody may be listing the keys of its generation. */
bool life_root_is_gone(const struct life *);

/* A new id for a key. False: the system has no random numbers; noted. */
bool life_draw_id(struct task *, uint64_t *id);

/* EMISMATCH: the key holds something that is no filter of ours. */
void life_fail_taken(struct life *, const char *key, bool is_filter);

/* EMISMATCH: where a growing filter has its links there is a filter of that name. */
void life_fail_link_taken(struct task *, const char *name);

/* ---- The tasks ------------------------------------------------------------------- */

/* For open, repair, delete by name; and for drop, growth and an inspection by handle. task_release frees
 * the handle's keys, too, unless it has been opened or was before. */
void life_begin(struct life *, enum life_goal, struct link *, const struct spec *makes, const struct request *said);

#endif
