/* carrier.h: brings tasks to their end: what goes to which server, what is sent
 * again, and when a call has failed.
 *
 * It decides, and pipes do: the sockets are a driver's, which tells the carrier
 * what has come (carrier_reply), what is broken (carrier_lost) and what time it
 * is (carrier_tick). So blocking calls and an event loop retry and redirect alike.
 *
 *   task -> exchanges -> flights -> a node's pipe -> replies -> task
 *              ^ lost, refused for now, or redirected: once more
 *
 * Calls end in call.done, by one of those four or by carrier_begin. */
#ifndef HIBLOOM_CARRIER_H
#define HIBLOOM_CARRIER_H

#include "net/topology.h"
#include "redis/store.h"

#include <sys/queue.h>

struct call {
    TAILQ_ENTRY(call) in_calls; /* those under way, or those that have ended */
    TAILQ_ENTRY(call) in_moved, in_asleep;
    uint64_t number; /* no other call of the store has it */
    struct task *task;
    struct outbox outbox;
    struct flights waiting; /* to be sent, now or at: */
    uint64_t wake_at;       /* also the end of a pause of the task's; 0: it waits for replies */
    uint64_t deadline;      /* 0: none */
    uint64_t retry_until;   /* 0: nothing has failed since the last answer */
    unsigned attempts;      /* since then */
    uint64_t restarts;      /* that the store knew of as it began */
    unsigned replicas_left; /* nodes whose answer to WAIT is to come */
    bool wait_asked;        /* of them */
    bool at_primary;        /* a replica did not know the filter */
    bool sent;              /* something was */
    bool queued;            /* among those that have moved: the task has what it waited for */
    bool done;
    const struct node *at;            /* where it failed */
    uint64_t touched[NODES_MAX / 64]; /* nodes that took commands of it */
};

TAILQ_HEAD(calls, call);

struct carrier;

struct pipe_class {
    /* Begins to connect. OK: the node's state is NODE_OPENING, until the driver calls
     * carrier_opened, or NODE_GREETING if it is connected. */
    hibloom_status (*open)(struct carrier *, struct node *, struct error *);
    bool (*is_alive)(struct node *); /* nothing is on its way; false: the server has hung up */
    void (*put)(struct node *, const char *bytes, size_t len);
    hibloom_status (*flush)(struct node *, struct error *); /* what was put since; not OK: it is lost */
    void (*close)(struct node *);                           /* calls nothing here */
};

struct carrier {
    struct redis_store store;
    struct settings settings;
    const struct pipe_class *pipes;
    struct topology topology;
    bool borrowed;
    bool stale;           /* who is where has to be asked (locate.c): */
    bool locating;        /* it is being asked, */
    bool told;            /* by the one that is asked now */
    uint64_t round;       /* for the so-manyth time */
    struct error nowhere; /* why the last node that was asked did not tell */
    hibloom_status nowhere_status;
    struct hangar hangar;
    struct calls calls, ended;
    struct calls moved;  /* so that nobody walks a hundred thousand calls for each reply */
    struct calls asleep; /* until their wake_at, of which none is before: */
    uint64_t wake_at;
    bool timed; /* the driver calls carrier_tick when it is time, whatever else comes */
    uint64_t numbers;
    uint64_t deadline_ms; /* of a call; 0: none */
    uint64_t random;
};

/* Takes the settings over. False: out of memory. */
bool carrier_make(struct carrier *, struct settings *, const struct pipe_class *);
void carrier_free(struct carrier *);

void carrier_begin(struct carrier *, struct call *, struct task *);

/* Calls on this handle fail with ECANCELED. They end once what is on its way has been answered. */
void carrier_cancel(struct carrier *, const hibloom *);

void carrier_end(struct carrier *, struct call *); /* once it is done */

/* What has happened. A reply goes to the oldest flight of the node; those that the
 * carrier has asked for want an object. */
void carrier_opened(struct carrier *, struct node *);
bool carrier_wants_object(const struct node *);
void carrier_reply(struct carrier *, struct node *, struct reply *);
void carrier_object(struct carrier *, struct node *, const redisReply *);
void carrier_lost(struct carrier *, struct node *, hibloom_status, const char *words);
uint64_t carrier_wake_at(const struct carrier *); /* 0: never */

/* Goes on with what has waited long enough; whether there was any. Where the driver is not
 * timed and nothing is on its way, nobody would come again: so all has waited long enough. */
bool carrier_tick(struct carrier *);

/* A call's failure as the store's error, with the node where it failed. */
hibloom_status carrier_error(struct carrier *, const struct call *);

/* Of locate.c. Not OK: it is the caller's again. */
hibloom_status carrier_send_to(struct carrier *, struct node *, struct flight *, struct error *);
void carrier_restarted(struct carrier *, const struct node *);
void carrier_dispatch_all(struct carrier *);
void carrier_fail_all(struct carrier *, hibloom_status, const char *words); /* what waits in all calls */

/* After an event that was no reply: goes on with what has moved. */
void carrier_settle(struct carrier *);

/* "host:port", "unix:///path". Returns buf. */
const char *carrier_where(const struct carrier *, const struct node *, char *buf, size_t size);

#endif
