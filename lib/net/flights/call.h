/* call.h: a task on its way, for the carrier. It has the waiting commands, until when they wait,
 * and whether lost ones are sent again. */
#ifndef HIBLOOM_CALL_H
#define HIBLOOM_CALL_H

#include "net/flights/carrier.h"

/* With min_replicas: a node that carried out commands of the call. There WAIT goes behind a write to the last key that it
 * gave an answer for. */
struct touched {
    struct touched *next;
    const struct node *node;
    char key[KEYS_SIZE]; /* "": none */
};

struct call {
    LIST_HEAD(first, flight) first; /* those that go before later ones: a guard went alone */
    TAILQ_ENTRY(call) in_calls;     /* those under way, or those that have ended */
    TAILQ_ENTRY(call) in_runnable, in_asleep, in_waiters;
    struct waiters *waiters; /* it is one of these; NULL: it does not wait for another call */
    uint64_t number;         /* no other call of the store has it */
    struct task *task;
    struct flights waiting; /* to be sent: at wake_at, or once it is known where to */
    uint64_t wake_at;       /* the call sleeps until then, also in a pause of its task's; 0: it does not */
    uint64_t slow_ns;       /* the round trip of the last proof */
    uint64_t deadline;      /* 0: none */
    uint64_t retry_until;   /* 0: nothing has failed since the last answer */
    uint64_t restarts; /* the store's as its first command was carried out; UINT64_MAX: call_note_loss was called */
    unsigned attempts; /* to send again, since the last answer */
    unsigned tried;    /* for the error's words: sendings of what it failed of; 0: one */
    unsigned flights;  /* so many were made; */
    unsigned alive;    /* those that have not ended */
    unsigned replicas_left; /* nodes whose answer to WAIT is to come */
    uint8_t late : 2;       /* 1: its answer was old at the read; 2: the next one, too: the server is slow */
    bool sent : 1;          /* a flight of it was written */
    bool wait_asked : 1;    /* WAIT was sent, at the end */
    bool replicates : 1;    /* it was sent in the middle; */
    bool unreplicated : 1;  /* and then a server was lost: the task fails, so that it ends and begins again */
    bool begun_again : 1;   /* it began again, as a server was lost: no answer is progress, no old proof counts */
    bool waited : 1; /* for another call that makes links, which are not there yet: no answer is progress, either */
    bool replica_lacked : 1; /* the filter: none is asked any more */
    bool astray : 1;         /* it has failed, and no locations were known while it took back its writes */
    bool runnable : 1;       /* in carrier.runnable */
    bool drops : 1;          /* its flights that wait for a connection are about to end */
    bool done : 1;
    const struct node *at;   /* where it failed, */
    uint64_t revivals;       /* and as many connections had been made for failed calls by then */
    uint64_t nodes;          /* that carried out commands of it: a bit for each number modulo 64; 0: none did */
    struct touched *touched; /* these nodes; NULL: there are none, or no min_replicas */
};

void call_set_runnable(struct carrier *, struct call *);       /* its task goes on */
void call_sleep(struct carrier *, struct call *, uint64_t at); /* until then, or its deadline */
void call_next_tick(struct carrier *, struct call *);          /* unless it sleeps already */
void call_wake(struct carrier *, struct call *);               /* it no longer sleeps */

/* Its deadline; 0: none. To take bits back it has a command's time more. */
uint64_t call_deadline(const struct carrier *, const struct call *);
bool call_has_expired(const struct carrier *, const struct call *, uint64_t now);

bool call_may_retry(const struct carrier *, const struct call *);      /* a failed flight may be sent again */
void call_plan_retry(struct carrier *, struct call *);                 /* sleeps until that is due */
bool call_hold(struct carrier *, struct call *, const struct pause *); /* sleeps until its end; false: it has no time */
void call_begin_wait(struct carrier *, struct call *); /* for another call; its tries take that time, too */
void call_note_progress(struct call *);                /* an answer came: tries are counted from 0 */

/* Begins a pause of a node, or of the locations. Does it last, with another call under way? One alone keeps its own
 * only. */
void call_begin_pause(struct carrier *, struct pause *);
bool call_must_pause(const struct carrier *, const struct pause *);

/* A flight did not come through: it is sent again, or its call fails. Node NULL: none is to blame, though the log names
 * the first. Words NULL: it was refused, in flight->words. Lost: it may have been carried out. */
void call_flight_failed(struct carrier *, struct flight *, struct node *, hibloom_status, const char *words, bool lost);

/* The node has carried out a command of the call: a restart from now on may lose a part of it. */
void call_note_node(const struct carrier *, struct call *, const struct node *);

/* What a server has lost of an add is added once more, if it may be. */
bool call_begin_again(struct carrier *, struct call *);

/* What it has added may be lost: at its end it begins again, or fails, as behind a restart. */
static inline void call_note_loss(struct call *call)
{
    call->restarts = UINT64_MAX;
}

/* The task has just failed, at the node. */
void call_note_failure(const struct carrier *, struct call *, const struct node *at);

/* The call fails. Answers to sent commands still come; others are never sent. */
void call_give_up(struct carrier *, struct call *, const struct node *at, hibloom_status, const char *words);

/* What it has not sent ends, for all such calls together: at the latest before one of them takes its next step. */
void call_begin_drop(struct carrier *, struct call *);
void call_end_drops(struct carrier *);

/* Frees a flight. The task gets NULL for replies that have not come. */
void call_end_flight(struct carrier *, struct flight *);

/* A server was restarted, or another took over: ELOST, to each handle once. Gives it to a call that still has to get it;
 * false: it has not, or has failed. Counts a restart, and gives it to all calls that can take it now.
 *
 * Three files notice it: node.c by a greeting (take_run), routes/topology.c by a slot map or a redirect that names an heir,
 * and dispatch.c (take_last) by the answer of a server that had been a replica. A call that begins is told in events.c. An
 * add in the middle goes on, and replicas.c has it begin again at its end. */
bool call_tell_restart(struct carrier *, struct call *, const struct node *at);
void call_tell_all_restart(struct carrier *, const struct node *);

#endif
