/* replicas.h: adds that replicas must have (WAIT), and look-ups that replicas answer. */
#ifndef HIBLOOM_REPLICAS_H
#define HIBLOOM_REPLICAS_H

#include "net/flights/call.h"

/* The task is done: does its call end now, too? If a replica did not know the filter, the
 * primary comes next. Until min_replicas have the adds, it sends WAIT. If a server was lost
 * meanwhile, an add begins again. */
bool replicas_may_end(struct carrier *, struct call *);

/* The task goes on once min_replicas have all writes so far. */
void replicas_await(struct carrier *, struct call *);
/* They have answered. If a server was lost before that, the task fails. If it adds, replicas_may_end then begins it
 * again. */
void replicas_note_awaited(struct carrier *, struct call *);

/* Sends WAIT to the node where writes were sent for it, and none is on its way. */
void replicas_wait(struct carrier *, struct node *);

/* A reply to WAIT, or to the write in front of it. */
void replicas_take(struct carrier *, struct node *, const struct reply *);

/* The node has carried out a command of the flight's call: WAIT may have to go there. Then all replies of an exchange
 * have come: notes its key for the touch, until replicas_forget. */
void replicas_note_node(const struct carrier *, const struct flight *, const struct node *);
void replicas_note(const struct node *, const struct flight *);
void replicas_forget(struct call *);

/* May a replica answer it that lacks what was added a moment ago? */
bool replicas_may_answer(const struct carrier *, const struct flight *);

#endif
