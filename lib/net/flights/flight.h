/* flight.h: commands on their way to a server.
 *
 * A copy of each exchange is kept until its last reply has come. So commands that were lost, or
 * refused for now, can be sent again. That begins with the first one whose reply the task has
 * not seen, or with the first one of all (exchange.as_one). If it is `remade`, its task writes it each time it is sent. */
#ifndef HIBLOOM_FLIGHT_H
#define HIBLOOM_FLIGHT_H

#include "net/routes/topology.h"
#include "redis/task.h"

#include <sys/queue.h>

struct call;

/* The receiver of the replies: the task, or the carrier itself. The carrier takes those to a greeting, a question
 * for locations, WAIT, and the touch in front of it. Of these only touches belong to a call. */
enum flight_kind { FLIGHT_TASK, FLIGHT_GREETING, FLIGHT_LOCATE, FLIGHT_WAIT, FLIGHT_TOUCH };

#define NO_COMMAND UINT32_MAX

/* The memory of flights that have ended, for the next ones. So a call that takes back its writes
 * when memory runs out can still send. The usual call allocates none. */
struct flight_pool {
    struct flight *first;
    size_t bytes; /* the sum of their room */
};

struct flight {
    struct flight *next;
    LIST_ENTRY(flight) in_first;
    struct call *call; /* NULL: none waits for it */
    const struct node
        *at;         /* it was written there, or its guard alone; NULL: it is to be written, or to be sent again */
    struct node *to; /* only there: redirected, or a write in front of WAIT; NULL: where its slot is */
    struct exchange exchange;
    uint64_t sent_ns;   /* when it was written last, or its last command alone; 0: never */
    uint64_t proven_ns; /* when a good guard of its link was asked; 0: none counts any more, or none was asked */
    uint32_t order;     /* among those of its call, as its task wrote them */
    uint32_t index;     /* the reply that is delivered next */
    uint32_t delivered; /* replies that the task has had, before an exchange that goes `as_one` was sent again */
    uint32_t held;      /* replies kept from the task; the first is a refusal. Their commands are sent again */
    char *words;        /* of that refusal; its meaning is: */
    enum refusal refusal : 8;
    enum flight_kind kind : 8;
    uint8_t redirects;
    bool after_map : 1;      /* before it is sent, the map may tell of a take-over */
    bool by_ask : 1;         /* in front of each command goes ASKING, */
    bool ask_answered : 1;   /* whose reply has come */
    bool unserved : 1;       /* a replica refuses so, too: it has not looked for the key yet */
    bool by_replica : 1;     /* it was written to a replica */
    bool replica_failed : 1; /* so the primary answers */
    bool written : 1;        /* and not only its guard */
    bool goes_first : 1;     /* its guard went alone, and it is not written since: in call.first */
    bool guard_ahead : 1;    /* its last command goes alone (exchange.guarded); */
    bool proven_late : 1;    /* its answer was old at the read, and it was sent again; */
    uint32_t resume;         /* then it goes on with the reply of this number */
    uint32_t carried_out;    /* first command behind it that was carried out; NO_COMMAND: none */
    uint32_t doubtful;       /* from this command on, they may have been carried out before; NO_COMMAND: none */
    uint32_t len; /* a few pipelines' bytes, or a list of keys, at most; of what is `remade`, as it was written last */
    uint32_t room;
    char bytes[]; /* none of an exchange that is `remade` */
};

void flights_put(struct flights *, struct flight *);
struct flight *flights_take(struct flights *);             /* the first; NULL: none */
void flights_join(struct flights *, struct flights *rest); /* then `rest` is empty */
void flights_put_back(struct flights *, struct flight *);  /* of one call: before those that its task wrote later */

/* NULL: out of memory. */
struct flight *flight_new(struct flight_pool *, struct call *, enum flight_kind, const struct exchange *,
                          const char *bytes, size_t len);

/* The same of these commands, which are freed. */
struct flight *flight_of(struct flight_pool *, struct call *, enum flight_kind, const struct exchange *,
                         struct commands *);

void flight_free(struct flight_pool *, struct flight *);
void flight_pool_free(struct flight_pool *);

/* Where in its bytes the commands begin whose replies have not been delivered. */
size_t flight_from(const struct flight *, const char *bytes);

/* Its guard goes alone first, which node.c decides. The guard's answer has come. */
void flight_begin_guard_ahead(struct flight *);
void flight_end_guard_ahead(struct flight *);

/* Its bytes, or those of its guard alone, are on their way. */
void flight_note_written(struct flight *, const struct node *);

/* Was its guard answered, and nothing of it written since? */
static inline bool flight_is_proven(const struct flight *flight)
{
    return flight->sent_ns != 0 && flight->proven_ns == flight->sent_ns && !flight->guard_ahead;
}

/* Prepares it to be sent again, from the first command on whose reply the task has not seen, or anew.
 * Lost: it is unknown which commands were carried out. Returns the number of further commands
 * that are doubtful now. */
uint32_t flight_resend(struct flight *, bool lost);

/* Is the next reply the one that goes into the exchange's memory? One that is kept from the task does not. */
static inline bool flight_takes_bulk(const struct flight *flight)
{
    return flight->held == 0 && flight->index == flight->exchange.bulk_index;
}

#endif
