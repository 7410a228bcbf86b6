/* dispatch.h: which node a flight goes to, and what its replies mean for the way. */
#ifndef HIBLOOM_DISPATCH_H
#define HIBLOOM_DISPATCH_H

#include "net/carrier.h"

/* Sends what waits of a call; of all calls, once it is known again who is where. */
void dispatch_call(struct carrier *, struct call *);
void dispatch_all(struct carrier *);

/* Nobody knows who is where: what waits in all calls has failed. */
void dispatch_fail_all(struct carrier *);

/* A reply to the oldest flight of the node: the task's, or a reason to send it again.
 * Whether it was the flight's last one: before that, nothing moves. */
bool dispatch_take_reply(struct carrier *, struct node *, struct flight *, struct reply *);

/* A flight was refused for now: it goes to the node that the refusal names, or is sent again later. */
void dispatch_take_refusal(struct carrier *, struct node *, struct flight *);

#endif
