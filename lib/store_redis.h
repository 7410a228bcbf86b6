/* store_redis.h: what the files of the Redis store share.
 *
 *   store_redis.c  the store: connect, borrow, free; its table of functions
 *   redis_guard.c  is what is stored still this handle's filter?
 *   redis_items.c  add, contains: the walk from items to pipelines and back
 *   redis_count.c  how many bits are set
 *   redis_change.c one change to whole keys, at once or not at all
 *   redis_life.c   those changes: open, clear, expire, drop, repair, ... */
#ifndef HIBLOOM_STORE_REDIS_H
#define HIBLOOM_STORE_REDIS_H

#include "connection.h"
#include "keys.h"
#include "spec.h"
#include "store.h"

#define REDIS_BITS_MAX (UINT64_C(1) << 32) /* in one string: 512 MB */

struct redis_store {
    hibloom_store base;
    struct connection connection;
    struct commands out; /* the pipeline being written */
    bool bitfield;       /* HIBLOOM_COMMANDS_BITFIELD */
    const char *bitfield_ro; /* BITFIELD_RO, or BITFIELD once the server has turned out not to know it */
};

/* What a created bitmap ends in, behind its bits. No add of its filter can write
 * there, and none of another could write just this, so it proves that the
 * bitmap is the one that was created. */
#define REDIS_SEAL "hibloom1"
#define REDIS_SEAL_BYTES 8u

struct redis_key {
    uint64_t whole;  /* its length as created; bare: the most this handle has seen, UINT64_MAX once it was lost */
    bool sealed;     /* a bare one is not, and the longest string that Redis allows has no room for it */
    uint64_t length; /* as the guard saw it last */
    size_t len;      /* of the name */
    char name[KEYS_SIZE];
};

/* What a handle keeps: hibloom.own */
struct redis_filter {
    struct redis_key spec;
    bool block_cut; /* a block came short, which only the loss of the bitmap excuses */
    uint32_t count;
    struct redis_key bitmaps[];
};

static inline struct redis_store *redis_store_of(const hibloom *filter)
{
    return (struct redis_store *)filter->store;
}

static inline struct redis_filter *redis_filter_of(const hibloom *filter)
{
    return filter->own;
}

static inline struct argument redis_key_argument(const struct redis_key *key)
{
    return (struct argument){key->name, key->len};
}

/* ---- redis_guard.c ---- */

/* What the guard saw. */
struct guard {
    bool has_spec;
    char spec[REPLY_TEXT + 1];
    uint64_t bytes;               /* of all bitmaps together */
    bool existing, gone, changed; /* of the bitmaps: one is there, is not there, is not what it was */
};

/* Asks: GET of the spec, STRLEN and seal of each bitmap. */
void guard_ask(hibloom *filter, struct commands *out);

/* Receives the answer to the GET of a spec; whether there is one. One that is
 * no text at all becomes "", which is no spec either. */
bool guard_receive_spec(struct connection *c, char text[REPLY_TEXT + 1]);

/* Receives the answers to all that was asked, judging nothing. */
void guard_receive(hibloom *filter, struct guard *guard);

/* Judge: ENOTFOUND, EMISMATCH or ECORRUPT, noted in the connection; the last
 * one judges both. After another failure they mean nothing and do nothing. */
void guard_judge_spec(hibloom *filter, const struct guard *guard);
void guard_judge_bitmaps(hibloom *filter, const struct guard *guard);
void guard_judge(hibloom *filter, const struct guard *guard);

/* EMISMATCH, or ECORRUPT where the stored text is no spec, in words. */
void guard_fail_spec(hibloom *filter, const char *stored);

/* Receives and judges. */
void guard_check(hibloom *filter, struct guard *guard);

/* ---- redis_items.c ---- */

hibloom_status redis_add(hibloom *, const hibloom_item *, size_t n, bool *is_new);
hibloom_status redis_contains(hibloom *, const hibloom_item *, size_t n, bool *found);

/* ---- redis_count.c ---- */

hibloom_status redis_count(hibloom *, uint64_t *bits_set, uint64_t *bytes);

/* Inside a conversation: counts bitmap i, as far as the spec's bits go (a bare
 * one may be longer), and looks with the guard at the same time. */
uint64_t redis_count_bits(hibloom *, uint32_t i, struct guard *);

/* ---- redis_change.c ---- */

#define REDIS_ATTEMPTS 100 /* each one that fails is another client's that succeeded */

/* What was seen before a change. */
struct redis_look {
    struct guard guard;
    long long spec_ttl_ms, bitmap_ttl_ms; /* time to live; negative: none */
    uint64_t argument;                    /* of the change: expire's seconds, sweep's bits */
};

struct redis_change {
    bool watch_bitmaps; /* too; adders change them all the time */
    /* Whether it is to be made; or notes in the connection why it may not be. */
    bool (*judge)(hibloom *, const struct redis_look *);
    /* Asks for it; the number of commands. */
    unsigned (*ask)(hibloom *, struct commands *, const struct redis_look *);
};

/* Inside a conversation: makes the change; whether it was made, and by us. */
bool redis_make_change(hibloom *, const struct redis_change *, uint64_t argument);

/* ---- redis_life.c ---- */

hibloom_status redis_open(hibloom *, const hibloom_spec *wanted);
hibloom_status redis_attach(hibloom *);
hibloom_status redis_clear(hibloom *);
hibloom_status redis_drop(hibloom *);
hibloom_status redis_expire(hibloom *, uint64_t seconds);
hibloom_status redis_repair(hibloom *);
hibloom_status redis_remove(hibloom *);

/* Takes back the `bits` that an add has set after the filter was gone: removes
 * the bitmaps that they made, if nobody else has set any in them. */
void redis_sweep(hibloom *, uint64_t bits);

#endif
