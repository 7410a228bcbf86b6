/* links.h: what is done with a whole filter, link after link: it is opened, counted, cleared, given a time to live,
 * repaired or removed. A further link is reached, or made.
 *
 * A growing filter (docs/format.md) is several filters, its links, each as any other:
 *
 *     seen (g) -> seen:+1 (g) -> seen:+2 (r)        the state in the root of each
 *
 * A link in the state g has a further one behind it, which was ready before it said so. So
 * a client that has seen the guard of the newest link knows all of them. One that has not looked
 * for a while learns it there, and opens what follows. Its chain, in its text, is the id of the
 * first link's root: so what another filter of the name left over is not taken for a link.
 *
 * To grow is: make the next link, or open the one that another grower has made; then swap the
 * newest one's state to g. Whoever dies between leaves a link that the next grower takes over.
 * A link that was lost is never made anew by a grower who slept: see fail_overtaken in create.c.
 *
 * A server that comes back from an older dump, or a replica that takes over, may have forgotten the g. Then the link
 * behind that root is there, and no later handle finds its items. So an open looks one link further than the chain tells.
 * An open handle does so again after each restart of a server that its store has seen. It also does so after each
 * MOVED: a replica may have taken over, and the slot may have moved on, before this client asked. If a client finds a
 * ready link there, or knows one, it goes on as its grower: it tells of the link, by the same steps, before it answers.
 * If another grower has just made that link, it is told of a little earlier, and no harm is done.
 *
 * To remove is: mark the root of the first link as removing, remove all further links of its
 * chain, then the first one; whoever finds the mark goes on with it (life.h).
 *
 * A filter that does not grow has one link, itself. */
#ifndef HIBLOOM_LINKS_H
#define HIBLOOM_LINKS_H

#include "redis/life.h"
#include "redis/upkeep.h"
#include "spec/request.h"

struct links {
    struct task task;
    union {
        struct task inner; /* what is under way, which is one of: */
        struct life life;
        struct upkeep upkeep;
        struct talk talk;
    };
    enum links_goal goal;
    struct redis_filter *filter;   /* NULL: there was no memory for it */
    void (*ended)(struct links *); /* the inner task has: ends it, and begins what follows; NULL: nothing does */
    const struct request *wanted;  /* to open; NULL: any */
    uint64_t number;               /* ms to expire, 0: never; or links to reach */
    uint64_t begun_ms;             /* when that was; */
    bool first_has_ttl;            /* and the first root has it */
    struct store_count count;      /* over all links */
    struct link *link;             /* that is being opened, or made; not the handle's yet */
    struct spec next;              /* its spec */
    int64_t ttl_ms;                /* of the newest link */
    unsigned attempts;             /* to grow */
    uint64_t changes;              /* redis_changes, before it inspected the first root */
    uint32_t inspected;            /* links whose roots it has inspected since */
    unsigned inspections;          /* how often it has begun with the first one */
    uint8_t left_over;             /* links of filters before this one, which were in the places of its own */
    bool asks;                     /* its caller only asks: if the server refuses to mend a root, it goes on; */
    bool denied;                   /* and the server has refused that */
    struct failure failed;         /* to grow, or to remove a link */
    uint32_t at;                   /* links that are done with; where a time to live is set but for the first one */
    uint64_t dead;                 /* to grow: a link of another filter, which is left over; 0: none is known */
    uint64_t lost;                 /* the chain of which a repair has missed a link; 0: none */
    uint64_t chain;                /* whose further links are removed: */
    uint32_t there, tried;         /* a bit a link: something is in its place; it was there, and was removed */
};

/* wanted: by LINKS_OPEN; number: milliseconds of LINKS_EXPIRE, links of LINKS_REACH. task_release frees what the handle
 * has of its filter, too, unless that is open. */
void links_begin(struct links *, enum links_goal, hibloom *, const struct request *wanted, uint64_t number);

/* May the handle's links, or their roots, not be what they were, so that it has to inspect, or to tell of a link? */
bool links_are_in_doubt(struct redis_filter *);

#endif
