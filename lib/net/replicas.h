/* replicas.h: adds that replicas must have (WAIT), and look-ups that replicas answer. */
#ifndef HIBLOOM_REPLICAS_H
#define HIBLOOM_REPLICAS_H

#include "net/carrier.h"

/* The task is done: whether its call ends now, since all that it added is where it
 * has to be, and what it was answered can be believed. */
bool replicas_have_it(struct carrier *, struct call *);

/* A reply to WAIT. */
void replicas_take(struct carrier *, struct node *, const struct reply *);

/* May a replica answer it that lacks what was added a moment ago? */
bool replicas_may_lag(const struct carrier *, const struct call *);

#endif
