/* call.h: a task on its way, for the carrier: what waits of it, until when, and
 * whether what did not come through is sent again. */
#ifndef HIBLOOM_CALL_H
#define HIBLOOM_CALL_H

#include "base/flags.h"
#include "net/flights/carrier.h"

/* A key on which the call was answered at a node: there WAIT goes behind a write to that. */
struct touched {
    struct touched *next;
    const struct node *node;
    char key[KEYS_SIZE];
};

struct call {
    TAILQ_ENTRY(call) in_calls; /* those under way, or those that have ended */
    TAILQ_ENTRY(call) in_runnable, in_asleep;
    uint64_t number; /* no other call of the store has it */
    struct task *task;
    struct outbox outbox;
    struct flights waiting; /* to be sent: at wake_at, or once it is known where to */
    uint64_t wake_at;       /* the call sleeps until then, also in a pause of its task's; 0: it does not */
    uint64_t heard_ns;      /* when it began, or the last flight of it was answered */
    uint64_t deadline;      /* 0: none */
    uint64_t retry_until;   /* 0: nothing has failed since the last answer */
    unsigned attempts;      /* to send again, since the last answer */
    unsigned tried;         /* for the error's words: sendings of what it failed of; 0: one */
    uint64_t restarts;      /* of servers, that the store knew of as the first command was carried out */
    unsigned replicas_left; /* nodes whose answer to WAIT is to come */
    bool wait_asked;        /* WAIT was sent, at the end */
    bool keeps;             /* it was sent in the middle; */
    bool unkept;            /* and then a server was lost, by which the task fails, so that it ends and begins anew */
    bool anew;              /* a server was lost before its replicas had the adds: from then on no answer is progress */
    bool at_primary;        /* replicas are not asked: one did not know the filter */
    bool astray;            /* it has failed, and while it took back what it did nobody could say who is where */
    bool two_servers;       /* of a flight one has answered, a replica, and another the rest with the guard */
    bool sent;              /* something was, */
    bool carried_out;       /* and of that something */
    bool runnable;          /* in carrier.runnable */
    bool done;
    const struct node *at;                /* where it failed */
    unsigned char touched[NODES_MAX / 8]; /* flags of nodes: it carried out commands of it */
    struct touched *keys;                 /* the last one of each of these nodes, for WAIT */
};

void call_set_runnable(struct carrier *, struct call *);       /* its task is asked what is next */
void call_sleep(struct carrier *, struct call *, uint64_t at); /* until then */
void call_wake(struct carrier *, struct call *);               /* it sleeps no more */

bool call_may_retry(const struct carrier *, const struct call *);         /* what failed may be sent again */
void call_plan_retry(struct carrier *, struct call *);                    /* sleeps until that is due */
bool call_hold(struct carrier *, struct call *, const struct pause *);    /* sleeps until its end; false: it may not */
void call_note_progress(struct call *);                                   /* an answer came: tries are counted anew */
void call_note_elsewhere(const struct flight *, const struct node *from); /* it goes on at another server */

/* A pause that all calls keep, as each has its own; has it to be kept just now? One call alone is bound by its own only. */
void call_begin_pause(struct carrier *, struct pause *);
bool call_must_pause(const struct carrier *, const struct pause *);

/* A flight did not come through: it is sent again, or its call fails. Words NULL: it was
 * refused, in flight->words. Lost: it may have been carried out. */
void call_flight_failed(struct carrier *, struct flight *, struct node *, hibloom_status, const char *words, bool lost);

/* The task has just failed, at that node. */
void call_note_failure(struct call *, const struct node *at);

/* The call fails. What is on its way is still answered; what is not sent yet never is. */
void call_give_up(struct carrier *, struct call *, const struct node *at, hibloom_status, const char *words);
void call_drop_unsent(struct carrier *, struct call *);

/* Frees a flight. Replies that have not come are told to the task as NULL. */
void call_end_flight(struct carrier *, struct flight *);

/* A server was restarted, or another took over: ELOST, to each handle once. Is it still to
 * be told so? Tell it. Count a restart, and tell all that can be told now. */
bool call_missed_restart(const struct carrier *, const struct call *);
void call_tell_restart(struct carrier *, struct call *, const struct node *at);
void call_tell_all_restart(struct carrier *, const struct node *);

#endif
