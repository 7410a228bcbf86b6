/* store_redis.h: what the files of the Redis store share.
 *
 *   store_redis.c    the store: connect, borrow, free; its table of functions
 *   redis_filter.c   the keys of a filter, as a handle knows them
 *   redis_guard.c    is what is stored still this handle's filter?
 *   redis_dialect.c  how an item's bits are put into commands, and its answers read
 *   redis_items.c    add, contains: the walk from items to pipelines and back
 *   redis_count.c    how many bits are set
 *   redis_change.c   one change to whole keys, at once or not at all
 *   redis_open.c     those that make a filter: open, attach
 *   redis_life.c     those to one that stands: clear, expire, drop, repair, ...
 *   redis_transfer.c pieces of bitmaps, read and merged */
#ifndef HIBLOOM_STORE_REDIS_H
#define HIBLOOM_STORE_REDIS_H

#include "net/connection.h"
#include "redis/keys.h"
#include "spec/spec.h"
#include "base/store.h"

#define REDIS_BITS_MAX (UINT64_C(1) << 32) /* in one string: 512 MB */

struct redis_store {
    hibloom_store base;
    struct connection connection;
    struct commands out; /* the pipeline being written */
    bool bitfield;       /* HIBLOOM_COMMANDS_BITFIELD */
    const char *bitfield_ro; /* BITFIELD_RO, or BITFIELD once the server has turned out not to know it */
};

/* Room for what is stored as a filter's spec, see redis_state_of. */
#define REDIS_MARK_SIZE (HIBLOOM_SPEC_TEXT_SIZE + 32)

/* What a created bitmap ends in, behind its bits. No add of its filter can write
 * there, and none of another could write just this, so it proves that the
 * bitmap is the one that was created. */
#define REDIS_SEAL "hibloom1"
#define REDIS_SEAL_BYTES 8u

/* ---- redis_filter.c: the keys of a filter, as a handle knows them ---- */

struct redis_bitmap {
    struct argument key;
    struct argument spec; /* beside it: its segment's copy, or the filter's own */
    uint64_t whole;    /* its length as created; bare: the most this handle has seen, UINT64_MAX once it was lost */
    uint64_t length;   /* as the guard saw it last */
    uint64_t unproven; /* bits that a call has set in it since its guard last held */
};

/* What a handle keeps: hibloom.own */
struct redis_filter {
    struct argument spec; /* the key of the filter's own spec */
    bool sealed;          /* a bare one is not, and the longest string that Redis allows has no room for it */
    bool segmented;       /* with a copy of the spec beside each bitmap */
    bool block_cut;       /* a block came short, which only the loss of the bitmap excuses */
    char mark[REDIS_MARK_SIZE]; /* what was stored as its spec when it was found: being created, or removed */
    char *names;          /* what the keys lie in */
    uint32_t count;
    struct redis_bitmap bitmaps[];
};

/* Some bitmaps of a filter, one after the other. */
struct redis_range {
    uint32_t first, count;
};

static inline struct redis_store *redis_store_of(const hibloom *filter)
{
    return (struct redis_store *)filter->store;
}

static inline struct redis_filter *redis_filter_of(const hibloom *filter)
{
    return filter->impl;
}

static inline struct redis_range redis_all(const hibloom *filter)
{
    return (struct redis_range){0, redis_filter_of(filter)->count};
}

/* The bitmaps that an item of this segment has bits in. */
static inline struct redis_range redis_touched(const hibloom *filter, uint32_t segment)
{
    return redis_filter_of(filter)->segmented ? (struct redis_range){segment, 1} : redis_all(filter);
}

/* Does a bitmap of this spec fit a Redis key? Else notes ERANGE. */
bool redis_fits(hibloom *filter, const hibloom_spec *spec);

/* Takes a spec over, if it fits, and makes filter->impl for it; may be called
 * again. */
void redis_set_spec(hibloom *filter, const hibloom_spec *spec);
void redis_forget(hibloom *filter); /* frees filter->impl */

/* The range after `range`, from {0, 0} on: bitmaps to look at in one pipeline;
 * or as many as a server can make or remove without a long stall, 16 MB of them.
 * False: there is none. */
bool redis_next_look(const hibloom *filter, struct redis_range *range);
bool redis_next_step(const hibloom *filter, struct redis_range *range);
bool redis_is_one_step(const hibloom *filter); /* all of it */

/* What is stored as a filter's own spec is its text. While it is created or
 * removed in several steps, that is marked, and each step is made only if the
 * very mark is still there:
 *
 *     "creating 0123456789abcdef hash=..."
 *
 * The number is drawn, so that no mark comes twice. */
enum redis_state { REDIS_STANDS, REDIS_CREATING, REDIS_REMOVING };

/* The state of a stored spec, and where in it the spec's text begins. */
enum redis_state redis_state_of(const char *stored, const char **text);

/* A new mark. False: the system has no random numbers; noted in the connection. */
bool redis_new_mark(hibloom *filter, enum redis_state, char mark[REDIS_MARK_SIZE]);

/* Ask for something of keys; the number of commands. NAME key, or NAME key number: */
unsigned redis_ask_one(struct commands *, const char *name, struct argument key, const uint64_t *number);
unsigned redis_ask_each_bitmap(hibloom *, struct redis_range, struct commands *, const char *name,
                               const uint64_t *number);
unsigned redis_ask_each_key(hibloom *, struct redis_range, struct commands *, const char *name,
                            const uint64_t *number); /* and the copies of the spec */

/* Writes a spec, or the copies of it. */
unsigned redis_ask_set(struct commands *, struct argument key, const char *text);
unsigned redis_ask_copies(hibloom *, struct redis_range, struct commands *);

/* Makes bitmaps where there are none. A bare one gets the length that it had;
 * one that was not there is left to its first add. */
unsigned redis_ask_bitmaps(hibloom *, struct redis_range, struct commands *);

/* ---- redis_guard.c ---- */

/* What the guard saw. */
struct guard {
    bool has_spec;                /* each spec that lies beside them is there */
    char spec[REPLY_TEXT + 1];    /* or the first of them that is not this filter's */
    uint64_t bytes;               /* of all bitmaps together */
    bool existing, gone, changed; /* of the bitmaps: one is there, is not there, is not what it was */
};

/* Asks: GET of the spec beside them, STRLEN and seal of each bitmap. */
void guard_ask(hibloom *filter, struct commands *out, struct redis_range range);

/* Asks for the filter's own spec, and receives the answer: whether there is
 * one. One that is no text at all becomes "", which is no spec either. */
void guard_ask_spec(hibloom *filter, struct commands *out);
bool guard_receive_spec(hibloom *filter, char text[REPLY_TEXT + 1]);

/* Receives the answers to all that was asked, judging nothing. */
void guard_receive(hibloom *filter, struct redis_range range, struct guard *guard);

/* Asks and receives: a round trip for the guard alone. */
void guard_look(hibloom *filter, struct redis_range range, struct guard *guard);

/* Judge: ENOTFOUND, EMISMATCH or ECORRUPT, noted in the connection; the last
 * one judges both. After another failure they mean nothing and do nothing. */
void guard_judge_spec(hibloom *filter, bool has_spec, const char *spec);
void guard_judge_bitmaps(hibloom *filter, const struct guard *guard);
void guard_judge(hibloom *filter, const struct guard *guard);

/* EMISMATCH, or ECORRUPT where the stored text is no spec, in words; ENOTFOUND
 * where it is one in the making. */
void guard_fail_spec(hibloom *filter, const char *stored);

/* Receives and judges. */
void guard_check(hibloom *filter, struct redis_range range, struct guard *guard);

/* Where only copies of the spec lie beside the bitmaps, either end of each
 * pipeline: asks for the filter's own; receives and judges it. Else they do
 * nothing. */
void guard_ask_own(hibloom *filter, struct commands *out);
void guard_check_own(hibloom *filter);
void guard_look_own(hibloom *filter); /* both, as a round trip of its own */

/* ---- redis_dialect.c ---- */

struct dialect {
    bool sets;           /* or only looks */
    size_t answer_bytes; /* an item, where that is more than its commands; else 0 */
    void (*ask)(hibloom *, struct commands *, const struct dialect *, uint32_t segment, const uint64_t *bits);
    /* Receives the answers; how many of its bits were not set (before)? */
    uint32_t (*missing)(hibloom *, const hibloom_item *);
};

/* The one in which to add, whether the caller asks for is_new or not; and to look. */
const struct dialect *dialect_to_add(const hibloom *, bool exact);
const struct dialect *dialect_to_look(const hibloom *);

/* ---- redis_items.c ---- */

hibloom_status redis_add(hibloom *, const hibloom_item *, size_t n, bool *is_new);
hibloom_status redis_contains(hibloom *, const hibloom_item *, size_t n, bool *found);

/* ---- redis_count.c ---- */

hibloom_status redis_count(hibloom *, struct store_count *);

/* Inside a conversation: counts bitmap i, as far as the spec's bits go (a bare
 * one may be longer), and looks with the guard at the same time. */
uint64_t redis_count_bits(hibloom *, uint32_t i, struct guard *);

/* ---- redis_transfer.c ---- */

hibloom_status redis_read(hibloom *, const struct piece *, unsigned char *out);
hibloom_status redis_merge(hibloom *, const struct piece *, const unsigned char *bits);
hibloom_status redis_merge_within(hibloom *into, hibloom *from, const struct piece *);

/* ---- redis_change.c ---- */

#define REDIS_ATTEMPTS 100 /* each one that fails is another client's that succeeded */

/* What was seen before a change: of the filter's own spec, and of some bitmaps. */
struct redis_look {
    bool has_spec;
    char spec[REPLY_TEXT + 1];
    struct guard guard;
    long long spec_ttl_ms, bitmap_ttl_ms; /* time to live, of the last bitmap, as that goes last; negative: none */
    uint64_t seen_ms;                     /* when, by our clock */
    void *argument;                       /* of the change */
};

struct redis_change {
    bool watch_bitmaps; /* too; adders change them all the time */
    /* Whether it is to be made; or notes in the connection why it may not be
     * (4x only if that is so in one state, else it looks again). */
    bool (*judge)(hibloom *, struct redis_range, const struct redis_look *);
    /* Asks for it; the number of commands. */
    unsigned (*ask)(hibloom *, struct redis_range, struct commands *, const struct redis_look *);
};

/* Inside a conversation: looks, and no more. Whether the spec was the same at
 * either end of it. */
bool redis_look_at(hibloom *, struct redis_range, struct redis_look *);

/* Of what was seen: is the filter's own spec stored, and just so? Are the
 * bitmaps as they were created, with their copies of the spec? */
bool redis_spec_is(const struct redis_look *, const char *text);
bool redis_bitmaps_stand(const hibloom *, const struct redis_look *);

/* Inside a conversation: makes the change; whether it was made, and by us. */
bool redis_make_change(hibloom *, const struct redis_change *, struct redis_range, void *argument);
void redis_make_each_step(hibloom *, const struct redis_change *, void *argument); /* to all bitmaps, step by step */

/* ---- redis_open.c ---- */

hibloom_status redis_open(hibloom *, const hibloom_spec *wanted);
hibloom_status redis_attach(hibloom *);

/* Inside a conversation: takes the stored spec over, if there is one and it is
 * the wanted one (NULL: any). Whether there is one. */
bool redis_load(hibloom *, const hibloom_spec *wanted, enum redis_state *);

/* ---- redis_life.c ---- */

/* Inside a conversation: removes a filter that is marked as being removed. */
void redis_go_on_removing(hibloom *);

/* Of a change: asks for the removal of the spec, of bitmaps and of the copies beside them. */
unsigned redis_ask_drop(hibloom *, struct redis_range, struct commands *, const struct redis_look *);

hibloom_status redis_clear(hibloom *);
hibloom_status redis_drop(hibloom *);
hibloom_status redis_expire(hibloom *, uint64_t seconds);
hibloom_status redis_repair(hibloom *);
hibloom_status redis_remove(hibloom *);

/* After an add that failed: takes back the bits that it has set after the
 * filter was gone, if it was, and forgets them. Removes the bitmaps that they
 * made, if nobody but late adders has set any in them. */
void redis_sweep(hibloom *filter, bool gone);

#endif
