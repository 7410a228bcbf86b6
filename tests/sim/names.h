/* names.h: the names of a world as the oracles know them: their raw keys, their lives, and the calls on their way.
 *
 * names.c reads the keys again at each moment that may have changed them. Each other oracle keeps its own part of
 * struct name, and has its functions below. */
#ifndef HIBLOOM_SIM_NAMES_H
#define HIBLOOM_SIM_NAMES_H

#include "sim/oracle.h"
#include "sim/reader.h"

#define EVERY_ITEM UINT32_MAX
#define NEXT_ROOT UINT64_MAX /* in place of a root's id: of the one that comes next */
enum { LATE_US = 4000000 };  /* the longest that a command is held, and more */

/* Verbs whose commands may end a life, or take bits away. */
#define EVERY_VERB UINT32_MAX
enum {
    MAY_REMOVE = 1u << VERB_CLEAR | 1u << VERB_DROP | 1u << VERB_DELETE | 1u << VERB_EXPIRE | 1u << VERB_REPLACE |
                 1u << VERB_REMOVE,
    MAY_SET = 1u << VERB_ADD | 1u << VERB_ADD_NEW | 1u << VERB_MERGE | 1u << VERB_LOAD | 1u << VERB_REPLACE
};

enum { KNOWN = 8 };

struct name {
    struct filter_seen seen;

    /* ---- names.c ---- */
    uint64_t lives;                 /* ended so far */
    uint64_t ready;                 /* begun so far with a filter that is whole */
    bool hurt;                      /* a life has ended, or lost a part, of one that was whole */
    uint32_t in, possible, items;   /* see oracle.c; the last: those that were there at the last moment, */
    uint64_t items_us[ITEMS];       /* and when each was, at the latest */
    uint64_t expiry_ms;             /* of the key that goes first; 0: none */
    uint32_t did;                   /* verbs that have been used on it: a bit for each */
    uint32_t may[CLIENTS];          /* of these, those of each client whose commands may still arrive */
    uint64_t there, there_since_us; /* the root's id, of a damaged filter, too; and since when */
    uint64_t broken;                /* the root of a growing filter that has lost a key; 0: it has not */
    uint64_t known[CLIENTS][KNOWN]; /* roots that the client's handles have opened, in turn */
    unsigned known_count[CLIENTS];
    bool vague[CLIENTS];    /* and one of which nobody knows which it was */
    uint64_t late_until_us; /* what a failed call removes may arrive until then */
    bool unclean;           /* a call on it has failed, or was sent again: commands may arrive late */
    bool bits_late;         /* and it was one that sets bits, */
    bool haunted;           /* in a life that has ended, so they may come into this one */
    uint64_t strayed;       /* the root whose filter has bits of an add to another one; or NEXT_ROOT */
    uint32_t veiled;        /* items whose filter late bits hide, before a script (docs/format.md, 8) */

    /* ---- items.c ---- */
    uint32_t untold_adds;    /* items that somebody may have added without being told whether they are new */
    int low[ITEMS];          /* of a counting filter: how often it is in, at least, */
    int high[ITEMS];         /* and at most */
    bool full;               /* nobody knows how often; or a counter may have reached its end, at which it stays */
    uint32_t removing;       /* items that a call has removed, or will: since the last clear, */
    uint32_t removing_since; /* and since one began */
    bool spoiled;            /* something was removed that was not in: other items may be denied */
    uint8_t winners[ITEMS], doubtful_winners[ITEMS];

    /* ---- windows.c ---- */
    uint64_t until_us[ITEMS];   /* they are `in` until then, by the server's clock */
    uint64_t last_us[ITEMS];    /* when somebody has added them last, or may have, by the server's clock */
    uint64_t newest_us[ITEMS];  /* and the latest that this had been by the end of that call */
    uint64_t latest_us;         /* the latest that the clock of its root's server has been */
    uint32_t counted;           /* items that count, before a script, */
    uint32_t placed[CALL_KEYS]; /* and those that each of its slices has */
    bool adds_late[CLIENTS];    /* adds without is_new of that client may arrive */
    uint64_t period[CLIENTS], period_of[CLIENTS]; /* the newest that each has added for; and its root */
    uint32_t period_key[CLIENTS];                 /* the number of the key in its slice */
    uint64_t period_us[CLIENTS];                  /* when that add ended */

    /* ---- times.c ---- */
    uint64_t expired_us;   /* when a script has set one last, be it of a filter that had ended */
    uint64_t later_us;     /* when its time to live was last put off */
    uint64_t unsettled_us; /* when a call that may change keys, or times to live, did so last; 0: none */
    size_t told_links;     /* behind the last script */
    bool differs;          /* their times to live do, by far */
    bool expire_failed;    /* or a replace or load, which set times to live, too */
    bool repair_failed;    /* so it may give a key, late, the time to live that the root had before */
    bool crossed;          /* one call that sets a time to live, and one that takes it, were under way at once */
    bool crowded;          /* two calls that let it grow, or may set times to live, were under way at once */
    uint64_t grown_us;     /* when the latest call that let it grow ended */

    /* ---- told.c ---- */
    uint64_t created;          /* the root of which a client was told that it has made it */
    uint64_t knew_us[CLIENTS]; /* since then its handle knows a link of which no root told; 0: not noted */

    /* ---- watch.c ---- */
    uint64_t broke[CLIENTS];     /* the root that a call has failed of, since of its first link */
    uint32_t broke_key[CLIENTS]; /* this key is lost; if it is not the root, no other is */
    uint64_t broke_us[CLIENTS];  /* when that call ended */
    uint64_t shown_us[CLIENTS];  /* when a primary has last shown the client a key that it has opened */
    size_t shown_bytes[CLIENTS]; /* of a bare bitmap, to the client's handle */

    /* ---- oracle.c ---- */
    uint64_t run[CLIENTS];     /* of the root's server, of which the client's handle knows; 0: not known */
    uint64_t run_us[CLIENTS];  /* when the call began that has shown it last */
    uint64_t owed[CLIENTS];    /* an add went on over that one, so the next call tells, */
    uint64_t owed_us[CLIENTS]; /* of those that begin behind the end of that add */
    uint32_t lost[CLIENTS];    /* items that servers have lost, of which the client's handle was not told; */
    uint32_t told[CLIENTS];    /* and those of which it was, when a call of it ended the last time so: */
    uint64_t told_us[CLIENTS]; /* so were all look-ups that were pending then */
};

extern struct name names[NAMES];
extern struct call *calls; /* in flight; those of killed clients stay, as they may still be carried out */

static inline bool caused(enum cause cause, uint64_t since)
{
    return world.last_us[cause] >= since && world.last_us[cause] != 0;
}

/* ---- The raw keys ---- */

static inline const struct kind *kind_of(int name)
{
    return plan_kind(world.plan, name);
}

struct blob root_key(int name);
static inline struct blob key_of(const struct link_seen *link, uint32_t number)
{
    return reader_key(link, link->root.keys > 1, number);
}

uint64_t clock_of(int name);      /* of the root's server */
int name_of_key(struct blob key); /* -1: none */
bool some_link_has(reader_fetch *, int name, const struct filter_seen *, struct blob item);
uint32_t items_there(int name, const struct filter_seen *, uint32_t of);
bool has_several_keys(int name);
bool read_key(struct blob key, struct record_seen *); /* false: it has no record */
bool is_taken(int name);                              /* a string is under the name, be it of a filter or not */

/* ---- Moments ---- */

void read_name(int name, struct filter_seen *);
/* Reads the keys again: items that are not in any more may only be these. */
void look_again(int name, uint32_t may_go, const char *what);
void note_call(struct call *);        /* what the keys of its name have now */
void note_moment(void);               /* of all calls on their way */
void leave(int name, uint32_t items); /* they need not be in any more */
void end_life(int name);
uint32_t items_under_way(const struct call *but, int name, uint32_t verbs); /* of other calls that are such verbs */
static inline bool is_add(const struct call *c)
{
    return c->verb == VERB_ADD || c->verb == VERB_ADD_NEW;
}

/* ---- Who may do what ---- */

bool commands_may_be_late(void);
bool somebody_may_remove(int name);
bool something_may_arrive(int name);
bool was_expired(int name);
uint32_t may_go_by_itself(int name);

/* ---- items.c: what adds, removes and look-ups say of each item, held against the raw keys ---- */

void items_begin(const struct call *);
void items_begin_life(int name);
/* Counts a remove that was alone, and is OK. Of the items that it must have taken out: those that are in. */
uint32_t items_stay(const struct call *);
void items_end(const struct call *, hibloom_status);  /* whatever has become of it */
void items_check(struct call *, const bool *answers); /* it is OK */
bool items_cover(int name, int item);                 /* items that others may have added cover all bits of this one */
/* A primary that had lost its office may have been told of a growth. An older copy of a root may have forgotten one. */
bool grew_apart(int name);
bool copy_came_back(void); /* an older copy was put in a filter's place by hand: nothing tells of it */

/* ---- windows.c: a window counts an item as long as it says, adds are for one period, slices end in time ---- */

void windows_begin(struct call *);
void windows_look(int name);                                            /* its keys were read again */
void windows_before(int name);                                          /* a script */
void windows_after(int name, int who, const char *what, uint64_t root); /* the root before it */
void windows_end(const struct call *, hibloom_status, bool open_end);
void windows_note_added(const struct call *, int item);
/* The script that adds to a slice was carried out: the key's string now; it sets bits, or only empties. */
void windows_check_slice(const struct command_seen *, struct blob now, bool sets);
void windows_note_shown(int client, struct blob key, const struct blob *string); /* a string, by a server */
bool windows_depends_on_clocks(int name);
uint64_t windows_counts_until_us(const struct call *);  /* at least what the call has added */
bool windows_is_overdue(const struct call *, int item); /* it should have been forgotten */

/* ---- times.c: all keys of a filter go with its root, and a call leaves the times to live that it should ---- */

void times_begin(struct call *);
void times_meet(struct call *, struct call *other); /* it begins while that one is under way */
void times_check_listed(int name, const struct filter_seen *now, const struct filter_seen *was);
/* A script was carried out; root and expiry_ms are those before it. */
void times_after(int name, int who, const char *what, uint64_t root, uint64_t expiry_ms);
void times_end(struct call *, hibloom_status, bool open_end); /* it is open what of it arrives late */
void times_check_left(const struct call *);
void times_check_end(int name);
bool times_may_be_over(int name); /* a key may go between an answer and its check */

/* ---- watch.c: commands as servers carry them out: what serves a look-up, and what adds set and take back ---- */

void watch_begin_world(void);
void watch_begin(const struct call *);
void watch_end(const struct call *, hibloom_status, bool open_end);
void watch_check(const struct call *, const bool *answers); /* a "no" was served by its filter */

/* ---- told.c: numbers, names, and who has made a filter ---- */

void told_begin(struct call *);
void told_check(const struct call *, bool unclean); /* it is OK */

/* ---- left.c: what a call leaves behind, and what is there once all is well ---- */

/* Late bits, though nothing has happened that excuses them. `unclean`: as it began. */
bool leaves_late_bits(const struct call *, hibloom_status, bool unclean);
bool leaves_part(const struct call *);
void check_grown(int name, int client, size_t links); /* that it had before */
void check_left(const struct call *, bool unclean);   /* it is OK */

/* ---- causes.c: a status has a cause in its world, and a call ends in time ---- */

bool has_cause(const struct call *, hibloom_status);
uint64_t bound_ms(const struct call *); /* the longest that it may take */

/* ---- handles.c: a script changes only the filter that its client has opened ---- */

void note_handle(const struct call *);
/* Whatever is late: some scripts take only from the filter that their caller has opened, and an undo from none. */
bool may_take(int name, int client, const char *what);
/* Whether the script, which compares identities, comes from a client that has never opened the filter that is there. */
bool is_foreign(int client, const char *script, struct blob key);

#endif
