/* store.h: the functions of a store for a filter.
 *
 * filter.c checks what the caller said; a store does the rest. That in memory does it by its table of functions; in Redis
 * it is tasks (filter/how.c). Both take items, and compute positions (positions.h) when they want them. The memory
 * store prefetches bits; the Redis store overlaps pipelines. */
#ifndef HIBLOOM_STORE_H
#define HIBLOOM_STORE_H

#include "base/spec.h"

#include <sys/queue.h>

#define STORE_PIECE (UINT64_C(16) << 20) /* bytes that one step of a long operation moves */

/* A part of the bitmap of one key. */
struct piece {
    uint32_t link; /* its number in a growing filter; 0: the first, or the filter itself */
    uint32_t key;
    uint64_t from, len; /* bytes */
};

/* Over all keys, and all links: see spec_note_count. */
struct store_count {
    hibloom_info info;
    uint64_t bits; /* in all, set or not */
};

/* A piece of the dump of a filter of RedisBloom. */
struct dumped {
    uint64_t at;          /* the iterator of the request; 0: the header */
    unsigned char *bytes; /* where it goes, as far as there is `room` */
    size_t room;
    uint64_t next; /* the iterator of what follows; 0: nothing does */
    size_t len;    /* more than there was room for: it is cut */
};

/* The answers are none; is_new; found; of a counting filter, was_in. */
enum store_op { STORE_ADD, STORE_ADD_NEW, STORE_LOOK, STORE_REMOVE };

static inline enum store_op store_add(const bool *is_new)
{
    return is_new != NULL ? STORE_ADD_NEW : STORE_ADD;
}

/* What is done with a whole filter, all its links (redis/links.h). */
enum links_goal {
    /* Opens or creates; `wanted` NULL: any, which must exist. Sets filter->spec to the stored one, and
     * filter->created; for a bare filter the caller has set the spec. If it fails, the filter is freed without
     * `close`. */
    LINKS_OPEN,
    LINKS_COUNT,
    LINKS_CLEAR,
    LINKS_EXPIRE, /* `number` ms from now on; 0: never */
    LINKS_DROP,
    LINKS_DELETE, /* of these two filters only store and name are set; they are not closed */
    LINKS_REPAIR,
    /* Opens all links, and makes more until there are `number`. A task may give 0: it opens the links that guards tell
     * of, and mends roots that do not tell of the next link. */
    LINKS_REACH,
    /* Of a task only: removes the further ones of its chain. It fails if any of them could not be removed. */
    LINKS_UNCHAIN
};

struct request;

struct store_class {
    void (*close)(hibloom *);
    hibloom_status (*near_cache)(hibloom *, uint64_t max_age_ms); /* NULL: all its bits are near */
    /* The rest is that of a store in memory; NULL: these are tasks. */
    hibloom_status (*links)(hibloom *, enum links_goal, const struct request *wanted, uint64_t number,
                            struct store_count *); /* of LINKS_COUNT; NULL will do for the others */
    /* Items are valid, and there is one at least. */
    hibloom_status (*items)(hibloom *, enum store_op, const hibloom_item *, size_t n, bool *answers);
    hibloom_status (*list)(hibloom_store *, const char *pattern, hibloom_list_fn *, void *data);
    /* Takes the place of `old`, a handle of what has that name now; NULL: nothing. */
    hibloom_status (*replace)(hibloom *, char **name, hibloom *old); /* see handle_swap_name */
    uint32_t (*count_links)(const hibloom *);
    /* A piece: at most STORE_PIECE bytes, within the bits of its key. Read copies it out. Merge sets its set bits
     * and clears none; it adds counters. */
    hibloom_status (*read)(hibloom *, const struct piece *, unsigned char *out);
    hibloom_status (*merge)(hibloom *, const struct piece *, const unsigned char *bits);
};

struct store_settings; /* lib/net's */

struct hibloom_store {
    const struct store_class *class; /* NULL: it never came about, only its error is left */
    void (*free)(hibloom_store *);   /* NULL: nothing but its memory; on a loop see async_free */
    struct store_settings *settings; /* freed behind the rest */
    const hibloom_stats *stats;      /* NULL: nothing is counted */
    uint32_t deadline_ms;            /* of a call; 0: none */
    struct error error;
    LIST_HEAD(handles, hibloom) filters; /* that are open */
    struct async *async;                 /* filter/async.h; NULL: calls wait */
};

static inline bool store_is_in_memory(const hibloom_store *of)
{
    return of->class->links != NULL;
}

/* Does a call that fails leave no words? Many threads may look up in memory at once; on a loop there is one. */
static inline bool store_is_silent(const hibloom_store *of, enum store_op op)
{
    return op == STORE_LOOK && store_is_in_memory(of) && of->async == NULL;
}

struct hibloom {
    hibloom_store *store; /* NULL: it was freed, and the handle can only be closed */
    bool bare;
    bool created; /* by the last open, or perhaps */
    bool closing; /* it takes no more calls */
    bool near;    /* hibloom_near_cache was called, with this age: */
    uint64_t near_ms;
    void *impl;                   /* the store's own data of an open filter */
    char *text;                   /* that it was opened with; NULL: none */
    char *said[2];                /* of hibloom_spec_of, and with the seed; NULL: nobody has asked yet */
    LIST_ENTRY(hibloom) in_store; /* if its caller has it */
    char *name;
    size_t part;   /* 1 and more: number of its part, while a call of pairs sorts its items (filter/many.c) */
    unsigned uses; /* by calls under way: it is freed behind the last */
    size_t room;   /* bytes of the spec; an open handle has no more than its seeds take: see spec_copy */
    struct spec spec;
};

/* It goes by the name from now on, and *name is the one of before. */
static inline void handle_swap_name(hibloom *handle, char **name)
{
    char *const before = handle->name;

    handle->name = *name;
    *name = before;
}

#endif
