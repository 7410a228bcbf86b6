/* filter.h: what a handle knows of its filter in Redis: its keys, and who they are. */
#ifndef HIBLOOM_REDIS_FILTER_H
#define HIBLOOM_REDIS_FILTER_H

#include "redis/keys.h"
#include "redis/record.h"
#include "redis/task.h"

/* What a store knows of its server, for all filters on it. */
struct redis_server_traits {
    bool clustered;         /* a key's slot decides which server has it */
    uint32_t count;         /* servers that hold keys */
    uint32_t retry_ms;      /* a call goes on for so long */
    bool bitfield;          /* HIBLOOM_COMMANDS_BITFIELD */
    bool lacks_bitfield_ro; /* found out: it is older than Redis 6 */
    bool sends_all;         /* of adds: they may have to reach replicas, or a replica may have answered */
    bool asks_replicas;     /* look-ups do */
    bool may_not_merge;     /* found out: the ACL has not all of what that takes */
    double link_mb_s;       /* see cost.h */
    uint64_t near_room;     /* bytes that all filters may still take for what is near */
    uint64_t moved;         /* times that a slot was found elsewhere: another server may have taken over in between */
    hibloom_stats stats;
};

struct redis_key {
    uint64_t id;
    uint64_t epoch;     /* as the guard saw it last: how often it was cleared; of a slice see period.h */
    uint64_t changed;   /* redis_filter.clears as that was first seen */
    uint64_t proven_ns; /* when the call began whose guard was good last */
    uint64_t length;    /* bare only: the most this handle has seen; UINT64_MAX once that was lost */
};

/* The trailer of which a guard was good last. */
struct redis_trailer {
    uint64_t generation, id, epoch;
    char trailer[RECORD_TRAILER];
};

/* hibloom.impl */
struct redis_filter {
    struct redis_server_traits *server;
    uint64_t generation;
    uint64_t restarts;  /* of the store's servers, that this handle has been told of */
    uint64_t proven_ns; /* when the talk began whose guard was good last; 0: none was yet */
    uint64_t clears;    /* other epochs seen, over all keys */
    struct near *near;  /* what is known to be set; NULL: the caller wants none of it */
    bool grown;         /* a further link follows this one: a guard has said so, or it was found there */
    bool untold;        /* and this root does not say so, as its primary had it last: links.h */
    bool guard_failed;  /* a guard was not good since an add last proved the root, and */
    uint32_t suspect;   /* this key, whose guard that was */
    uint32_t count;     /* of keys */
    struct redis_trailer good;
    hibloom **further; /* the further links of a growing filter that this handle knows; NULL: none */
    uint32_t further_count;
    uint64_t looked;   /* redis_changes of its server when the roots of its links were looked at last */
    uint32_t reached;  /* of its links: so many roots tell replicas, too, of the next one; see min_replicas */
    uint64_t clock_us; /* of a sliding window: the time that its server has shown last; see window.h */
    uint64_t room;     /* items that this handle may add to this link before it is counted again, */
    uint64_t reserved; /* and those that calls of it are about to add */
    struct redis_key keys[];
};

/* Another number once a server may have forgotten that a filter has grown. */
static inline uint64_t redis_changes(const struct redis_server_traits *server)
{
    return server->stats.restarts + server->moved;
}

static inline struct redis_filter *redis_filter_of(const hibloom *filter)
{
    return filter->impl;
}

static inline void redis_note_epoch(hibloom *filter, uint32_t i, uint64_t epoch)
{
    struct redis_filter *own = redis_filter_of(filter);

    if (own->keys[i].epoch != epoch)
        own->keys[i].changed = ++own->clears;
    own->keys[i].epoch = epoch;
}

/* Is that the record of its key number i, and not of another one in that place? */
static inline bool redis_is_key(const hibloom *filter, uint32_t i, const struct record *record)
{
    const struct redis_filter *own = redis_filter_of(filter);

    return record->generation == own->generation && record->id == own->keys[i].id;
}

/* Of key 0: by that the further links of a chain know their first one. */
static inline uint64_t redis_root_id(const hibloom *filter)
{
    return redis_filter_of(filter)->keys[0].id;
}

/* The filters that a growing one is made of: itself and the further links. Any other has one. */
static inline uint32_t redis_links(const hibloom *filter)
{
    return 1 + redis_filter_of(filter)->further_count;
}

static inline hibloom *redis_link(hibloom *filter, uint32_t i)
{
    return i == 0 ? filter : redis_filter_of(filter)->further[i - 1];
}

static inline hibloom *redis_newest(hibloom *filter)
{
    return redis_link(filter, redis_links(filter) - 1);
}

/* A handle for that link, which is not open; NULL: out of memory. */
hibloom *redis_link_new(hibloom *, uint32_t i);
void redis_link_free(hibloom *);

/* The handle takes it over; one that has it already frees it. False: out of memory. */
bool redis_link_add(hibloom *, hibloom *link);

/* The handle's, for another spec: with its keys, of which nothing is known yet.
 * Notes ERANGE where a bitmap and its tail do not fit one string, and ENOMEM. */
void redis_filter_make(struct task *, const hibloom_spec *);
void redis_filter_free(hibloom *);

/* Key number i as its record should be; without the crc. */
struct record redis_filter_record(const hibloom *, uint32_t i);
uint64_t redis_trailer_at(const hibloom *, uint32_t i);

/* Are all its keys, and those of the other one, on one server? */
bool redis_is_together(const hibloom *, const hibloom *other);

/* Begins an exchange on key number i; its name as an argument. */
struct argument redis_begin(hibloom *, struct outbox *, uint32_t tag, uint32_t i, char key[KEYS_SIZE]);

/* The first two arguments of a script: where key number i has its trailer, and
 * what that must hold of its identity, so many bytes of RECORD_IDENTITY. */
void redis_expect(struct commands *, const hibloom *, uint32_t i, size_t bytes);

/* An argument: the ids of its first keys, as the root's list has them. */
void redis_command_ids(struct commands *, const hibloom *, uint32_t keys);

/* The keys after `range`, from {0, 0} on: as many as a server can make or remove
 * without a long stall, 16 MB of them; false: there is none. */
#define REDIS_STEP_KEYS 128u /* at most */

struct redis_range {
    uint32_t first, count;
};
bool redis_next_step(const hibloom *, struct redis_range *);

#endif
