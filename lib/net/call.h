/* call.h: a task on its way, for the carrier: what waits of it, until when, and
 * whether what did not come through is sent again. */
#ifndef HIBLOOM_CALL_H
#define HIBLOOM_CALL_H

#include "net/topology.h"

#include <sys/queue.h>

struct carrier;

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
    unsigned attempts;      /* since then, to send it again */
    unsigned tried;         /* how often, in all, what it failed of; 0: once */
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

bool call_has_failed(const struct call *);

/* It is gone on with by carrier_settle; not before a time; now. */
void call_moved(struct carrier *, struct call *);
void call_sleep(struct carrier *, struct call *, uint64_t at);
void call_wake(struct carrier *, struct call *);

/* May what failed be tried again? If so, when; something has come through. */
bool call_may_retry(const struct carrier *, const struct call *);
void call_plan_retry(struct carrier *, struct call *);
void call_note_progress(struct call *);

/* Is it certain that carrier_tick will be called again? */
bool carrier_can_wait(const struct carrier *);

/* A flight did not come through: it is sent again, or its call fails. Words NULL: it was
 * refused, in its own. Lost: it may have been carried out. */
void call_fail(struct carrier *, struct flight *, struct node *, hibloom_status, const char *words, bool lost);

/* The task has just failed, at that node. */
void call_note_failure(struct call *, const struct node *at);

/* The call fails. What is on its way is still answered; what is not sent yet never is. */
void call_give_up(struct carrier *, struct call *, const struct node *at, hibloom_status, const char *words);
void call_drop_unsent(struct carrier *, struct call *);

/* The flight's replies will not come. */
void call_lose(struct carrier *, struct flight *);

/* Another run of a server than before: ELOST, to each handle once. */
bool call_has_forgotten(const struct carrier *, const struct call *);
void call_tell_forgotten(struct carrier *, struct call *, const struct node *at);
void call_tell_all_forgotten(struct carrier *, const struct node *);

#endif
