/* carrier.h: the state that all calls of a store share. It has settings, nodes, the waiting calls, and the present
 * trouble.
 *
 * The carrier brings tasks to their end. It decides which server gets a command, when it is sent again, and when a
 * call has failed. Pipes carry that out: the sockets are a driver's.
 *
 *   task -> exchanges -> flights -> a node's pipe -> replies -> task
 *              ^ lost, refused for now, or redirected: once more
 *
 * Each file here uses those before it. Only flight.c counts in struct call, too:
 *
 *   flight     commands on their way; their call counts them, and has their proofs
 *   carrier    this
 *   call       sleeps, is tried again, fails
 *   node       open -> greet -> ready, and greet again; lost
 *   replicas   WAIT behind adds; look-ups of replicas
 *   setup      the carrier is made of its settings, and freed: for drivers
 *   dispatch   a flight -> a node; refused or redirected: again. Asks for the locations
 *   events     an event -> its call, node or flight: for drivers. Asks tasks for what is next, and has it written */
#ifndef HIBLOOM_CARRIER_H
#define HIBLOOM_CARRIER_H

#include "net/flights/flight.h"
#include "redis/store.h"

#include <sys/queue.h>

struct carrier;
TAILQ_HEAD(calls, call);

struct pipe_class {
    /* Begins to connect. OK: the node's state is NODE_OPENING, until the driver calls
     * events_opened, or NODE_GREETING if it is connected. */
    hibloom_status (*open)(struct carrier *, struct node *, struct error *);
    bool (*is_alive)(struct node *); /* nothing is on its way; false: the server has hung up */
    void (*put)(struct node *, const char *bytes, size_t len); /* whole commands */
    void (*put_long)(struct node *, const struct flight *);    /* one command, whose last argument is a payload */
    hibloom_status (*flush)(struct carrier *, struct node *,
                            struct error *);        /* sends all since the last; not OK: lost */
    void (*close)(struct carrier *, struct node *); /* calls nothing here */
};

/* An answer about a server's run, or about the master, holds for a second. A fail-over and back that loses writes takes
 * longer. */
#define CHECK_NS UINT64_C(1000000000)

/* The search for the locations: the server of each key. It asks one node after the other until one gives them. It asks one
 * node at a time, however many flights were redirected. Between two rounds there is a pause: the last map holds then.
 *
 *   search   they are stale: flights wait until a node gives them; if none does, their calls have failed
 *   check    they are not stale, but a second old, and Sentinels may know better: flights wait a moment, then they go on */
struct locate {
    bool stale;            /* the locations have to come before more is sent; false: a round is a check */
    bool asking;           /* a round is under way, */
    struct node *at;       /* and this node is asked; NULL: it gave no locations, and the next one follows */
    bool sound;            /* no reply of the node was wrong so far */
    bool knows;            /* after the last round they were not stale; */
    bool hopeless;         /* no node can be reached, which no other try mends */
    struct pause pause;    /* before the next one */
    uint64_t round;        /* it asks each node once */
    uint64_t begun_ms;     /* when the first one was asked */
    unsigned asked;        /* nodes in this round */
    uint64_t asked_ns;     /* when the last question was written, or its node opened; 0: not yet */
    uint64_t since_ns;     /* since then calls wait for the node's answer to a check; 0: likewise */
    uint64_t took_ns;      /* a Sentinel to answer the last one; 0: none has */
    uint64_t checked_ns;   /* when the last answered question was written, or a round ended without an answer */
    hibloom_status status; /* why the last node gave no answer, */
    struct error error;    /* and in words */
};

struct carrier {
    struct redis_store store;
    const struct store_settings *settings; /* those of store.base */
    const struct pipe_class *pipes;
    struct topology topology;
    struct locate locate;
    struct flight_pool pool;
    struct calls calls, ended;
    struct calls runnable; /* the few of a hundred thousand whose task can go on now */
    struct calls asleep;   /* each until its own wake_at; the earliest of them: */
    uint64_t wake_at;
    struct outbox outbox; /* of the task that writes just now, a step or what is `remade` */
    bool in_step;         /* no node gets more before all have answered, so that calls share their round trips */
    bool by_turns;        /* the driver calls events_flush once the loop turns: till then a proof may get old */
    uint64_t ends_ms;     /* the first deadline of its calls, or of one that has ended; 0: none has one */
    bool timed;           /* the driver calls events_tick when it is time, whatever else comes */
    bool failing;         /* the last call that ended has failed, and the log tells why */
    uint64_t revivals;    /* new connections so far for calls that have failed */
    uint64_t random;      /* for the pauses between tries */
};

/* Is there one server, by its address or by a name that leads to it? */
static inline bool carrier_is_of_one(const struct carrier *c)
{
    return !c->topology.clustered && !c->topology.sentinels;
}

/* Is there one more to be asked? */
static inline bool carrier_must_ask_on(const struct carrier *c)
{
    return c->locate.asking && c->locate.at == NULL;
}

/* Does the node have a check to answer? That has no call's deadline: dispatch_ask_on gives it up. */
static inline bool carrier_checks(const struct carrier *c, const struct node *node)
{
    return c->locate.at == node && !c->locate.stale;
}

/* A server may have another place now. The node is of no use, so its slots, or the office of the master, may. */
void carrier_note_stale(struct carrier *);
void carrier_note_lost(struct carrier *, const struct node *);

/* It takes no writes any more. Another one is the primary, also for the next call: a map names it, or the name in the URI
 * leads there. */
void carrier_note_demoted(struct carrier *, struct node *);

/* Notes why a node is of no use just now. Writes that to the log once, with `more` behind it; NULL: not yet. The node is of
 * use again. */
void carrier_note_trouble(const struct carrier *, struct node *, hibloom_status, const char *words, const char *more);
void carrier_end_trouble(struct node *);

/* The node gave no locations. The words name a Sentinel; events_error names a cluster's node. */
void carrier_note_unanswered(struct carrier *, const struct node *, hibloom_status, const char *words);

/* "host:port", "unix:///path". Returns buf. */
#define WHERE_SIZE (NODE_HOST_SIZE + 16)
const char *carrier_where(const struct carrier *, const struct node *, char *buf, size_t size);

#endif
