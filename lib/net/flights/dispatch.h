/* dispatch.h: which node a flight goes to, whom to ask for that, and what a flight's replies mean for the way. */
#ifndef HIBLOOM_DISPATCH_H
#define HIBLOOM_DISPATCH_H

#include "net/flights/call.h"

/* Sends what waits of a call. */
void dispatch_call(struct carrier *, struct call *);

/* Asks the next node who is where, if the one before is lost. */
void dispatch_ask_on(struct carrier *);

/* Reply number `index` of the node that was asked. Last: no more will come of it. */
void dispatch_take_location(struct carrier *, const struct node *, uint32_t index, bool last, const redisReply *);

/* A reply to the oldest flight of the node: the task's, or a reason to send it again.
 * Whether it was the flight's last one: before that, nothing moves. */
bool dispatch_take_reply(struct carrier *, struct node *, struct flight *, struct reply *);

#endif
