/* link.h: a handle's knowledge of its filter in Redis: its links, their keys, and the identities of these.
 *
 * A filter that does not grow has one link. A growing filter and a sliding window have further ones (links.h).
 * Their keys have names of their own. */
#ifndef HIBLOOM_REDIS_LINK_H
#define HIBLOOM_REDIS_LINK_H

#include "redis/cost.h"
#include "redis/keys.h"
#include "redis/record.h"
#include "redis/task.h"

/* A store's knowledge of its server, for all filters on it. */
struct redis_server_traits {
    bool clustered;         /* a key's slot decides which server has it */
    uint32_t count;         /* servers that hold keys */
    uint32_t retry_ms;      /* a call goes on trying for this time */
    bool lacks_bitfield_ro; /* found out: it is older than Redis 6 */
    bool sends_all;         /* of adds: they may have to reach replicas, or a replica may have answered */
    bool asks_replicas;     /* look-ups do */
    bool may_not_merge;     /* found out: the ACL, or the server, has not all of what that takes */
    uint64_t near_room;     /* bytes that all filters may still take for what is near */
    uint64_t moved;         /* times that a slot was found elsewhere: another server may have taken over in between */
    hibloom_stats stats;
    struct cost_server cost;
};

struct link_key {
    uint64_t id;
    uint64_t epoch;     /* from the last guard: number of clears; for a slice see period.h */
    uint64_t changed;   /* link.clears as that was first seen */
    uint64_t proven_ns; /* when its last good guard was asked; 0: none was */
    uint64_t length;    /* bare only: the most this handle has seen; UINT64_MAX once that was lost */
};

/* The last trailer with a good guard. */
struct link_trailer {
    uint64_t generation, id, epoch;
    char trailer[RECORD_TRAILER];
};

struct redis_filter;

struct link {
    struct redis_filter *of;
    struct redis_server_traits *server;
    uint32_t number; /* 0: the first one, or the only one */
    bool bare;
    struct spec *spec; /* the first link has the handle's */
    uint32_t text_len; /* length of the spec as text */
    uint32_t count;    /* of keys; 0: it is not open */
    struct link_key *keys;
    uint64_t generation;
    uint64_t proven_ns; /* when the last guard was asked that a primary showed to be good; 0: none was yet */
    uint64_t clears;    /* other epochs seen, over all keys */
    struct near *near;  /* the known set bits; NULL: the caller wants none */
    bool grown;         /* a further link follows this one: a guard has said so, or it was found there */
    bool unannounced;   /* and this root does not say so, as its primary had it last: links.h */
    bool root_failed;   /* the root's guard has failed, and was not good again; */
    uint32_t suspect;   /* and that of this other key; 0: of none */
    uint64_t room;      /* items that this handle may add before the link is counted again, */
    uint64_t reserved;  /* and items that its calls are about to add */
    struct link_trailer good;
};

/* hibloom.impl */
struct redis_filter {
    hibloom *handle;
    uint64_t restarts;     /* restarts of the store's servers that this handle has reported */
    uint64_t seen_changes; /* redis_changes as the roots of its links, or a window's periods, were read last */
    uint64_t clock_us;     /* sliding window: the last time from its server; see window.h */
    uint32_t replicated;   /* links whose roots tell replicas, too, of the next one; see min_replicas */
    uint32_t further_count;
    struct link **further;             /* NULL: there is none */
    const struct task *maker;          /* the call that makes links, or counts them; NULL: none does */
    uint32_t made;                     /* times that one has done so well; */
    uint32_t waiting;                  /* calls that wait for the present one, or did until their deadline; */
    TAILQ_HEAD(waiters, call) waiters; /* those that still do */
    struct link first;
};

/* Makes handle->impl, whose first link is not open. False: out of memory. */
bool redis_filter_make(hibloom *handle);
void redis_filter_free(hibloom *handle);

/* The filter is this handle's now, and was another's. */
void redis_filter_moved(hibloom *handle);

static inline struct redis_filter *redis_filter_of(const hibloom *handle)
{
    return handle->impl;
}

/* Its caller has learned of so many restarts. */
static inline void redis_filter_told(struct redis_filter *filter, uint64_t restarts)
{
    if (filter->restarts < restarts)
        filter->restarts = restarts;
}

/* The links that are known. */
static inline uint32_t redis_links(const struct redis_filter *filter)
{
    return 1 + filter->further_count;
}

static inline struct link *redis_link(struct redis_filter *filter, uint32_t i)
{
    return i == 0 ? &filter->first : filter->further[i - 1];
}

static inline struct link *redis_newest(struct redis_filter *filter)
{
    return redis_link(filter, redis_links(filter) - 1);
}

/* Key number `of_all` of all links: its link, and its number there. */
struct link *redis_key_of(struct redis_filter *, uint32_t of_all, uint32_t *i);

/* Another number once a server may have forgotten that a filter has grown. */
static inline uint64_t redis_changes(const struct redis_server_traits *server)
{
    return server->stats.restarts + server->moved;
}

/* A further link, which is not open; NULL: out of memory. */
struct link *link_new(struct redis_filter *, uint32_t number);
void link_free(struct link *);

/* The filter takes it over, or frees it if it already has that link. False: out of memory. */
bool link_add(struct link *);

/* Opens it for a spec, with its keys; nothing is known about them yet. The first one forgets the further ones.
 * Notes ERANGE where a bitmap and its tail do not fit one string, and ENOMEM. */
void link_open(struct task *, const struct spec *);
void link_close(struct link *);

/* For words: its name. LINK_NAME makes the room. */
#define LINK_NAME ((char[LINK_NAME_SIZE]){""})
const char *link_name(const struct link *, char name[LINK_NAME_SIZE]);

/* The same of its key number i. */
#define KEY_NAME ((char[KEYS_SIZE]){""})
const char *link_key(const struct link *, uint32_t i, char key[KEYS_SIZE]);

static inline void link_note_epoch(struct link *link, uint32_t i, uint64_t epoch)
{
    if (link->keys[i].epoch != epoch)
        link->keys[i].changed = ++link->clears;
    link->keys[i].epoch = epoch;
}

/* Is it the record of key number i, and not of another key in its place? */
static inline bool link_is_key(const struct link *link, uint32_t i, const struct record *record)
{
    return record->generation == link->generation && record->id == link->keys[i].id;
}

/* The id of the first link's root: the further ones know their filter by it. */
static inline uint64_t redis_chain(const struct redis_filter *filter)
{
    return filter->first.keys[0].id;
}

/* Where the trailer of key i begins. */
uint64_t link_trailer_at(const struct link *, uint32_t i);

/* Are all its keys, and those of the other one, on one server? */
bool link_is_together(const struct link *, const struct link *other);

/* Begins an exchange on key number i; its name as an argument. */
struct argument link_begin(const struct link *, struct outbox *, uint32_t tag, uint32_t i, char key[KEYS_SIZE]);

/* The first two arguments of a script: the place of key number i's trailer, and the first
 * `bytes` of its RECORD_IDENTITY. */
void link_expect(struct commands *, const struct link *, uint32_t i, size_t bytes);

/* An argument: the ids of its first keys, as the root's list has them. */
void link_command_ids(struct commands *, const struct link *, uint32_t keys);

/* The keys after `range`, from {0, 0} on. They are 16 MB at most, which a server makes or
 * removes without a long stall. False: there is none. */
#define LINK_STEP_KEYS 128u /* at most */

struct link_range {
    uint32_t first, count;
};
bool link_next_step(const struct link *, struct link_range *);

#endif
