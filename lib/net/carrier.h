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
 * Any event, carrier_begin and carrier_cancel may end calls, this one or others: call.done. */
#ifndef HIBLOOM_CARRIER_H
#define HIBLOOM_CARRIER_H

#include "net/call.h"
#include "net/locate.h"
#include "redis/store.h"

struct carrier;

struct pipe_class {
    /* Begins to connect. OK: the node's state is NODE_OPENING, until the driver calls
     * carrier_opened, or NODE_GREETING if it is connected. */
    hibloom_status (*open)(struct carrier *, struct node *, struct error *);
    bool (*is_alive)(struct node *); /* nothing is on its way; false: the server has hung up */
    void (*put)(struct node *, const char *bytes, size_t len);
    hibloom_status (*flush)(struct carrier *, struct node *,
                            struct error *); /* what was put since; not OK: it is lost */
    void (*close)(struct node *);            /* calls nothing here */
};

struct carrier {
    struct redis_store store;
    struct store_settings settings;
    const struct pipe_class *pipes;
    struct topology topology;
    struct locate locate;
    bool borrowed;
    struct flight_pool pool;
    struct calls calls, ended;
    struct calls runnable; /* the few of a hundred thousand whose task can go on now */
    struct calls asleep;   /* each until its own wake_at; the earliest of them: */
    uint64_t wake_at;
    bool timed;           /* the driver calls carrier_tick when it is time, whatever else comes */
    uint64_t numbers;     /* flights sent so far: the number of the next */
    uint64_t deadline_ms; /* of a call; 0: none */
    uint64_t random;      /* for the pauses between tries */
};

/* Takes the settings over. False: out of memory. */
bool carrier_make(struct carrier *, struct store_settings *, const struct pipe_class *);
void carrier_free(struct carrier *);

void carrier_begin(struct carrier *, struct call *, struct task *);

/* Calls on this handle fail with ECANCELED. They end once what is on its way has been answered. */
void carrier_cancel(struct carrier *, const hibloom *);

void carrier_end(struct carrier *, struct call *); /* once it is done */

/* What has happened. A reply is to the oldest flight of the node. Where it is to a
 * question of its own (greeting, locate) the carrier wants it as an object: carrier_object. */
void carrier_opened(struct carrier *, struct node *);
bool carrier_wants_object(const struct node *);
void carrier_reply(struct carrier *, struct node *, struct reply *);
void carrier_object(struct carrier *, struct node *, const redisReply *);
void carrier_lost(struct carrier *, struct node *, hibloom_status, const char *words);
uint64_t carrier_wake_at(const struct carrier *); /* 0: never */

/* Is it certain that carrier_tick will be called again? */
bool carrier_can_wait(const struct carrier *);

/* Wakes the calls that have slept long enough; whether there was any. Where nothing is sure to
 * call this again (carrier_can_wait), that is all of them. */
bool carrier_tick(struct carrier *);

/* A call's failure as the store's error, with the node where it failed. */
hibloom_status carrier_error(struct carrier *, const struct call *);

/* "host:port", "unix:///path". Returns buf. */
#define WHERE_SIZE (NODE_HOST_SIZE + 16)
const char *carrier_where(const struct carrier *, const struct node *, char *buf, size_t size);

#endif
