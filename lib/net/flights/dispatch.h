/* dispatch.h: the node that a flight goes to, the search for it, and the meaning of replies for the way. */
#ifndef HIBLOOM_DISPATCH_H
#define HIBLOOM_DISPATCH_H

#include "net/flights/call.h"

/* Sends a call's waiting flights. All go on waiting while the locations are not known. */
void dispatch_call(struct carrier *, struct call *);

/* The node is about to write what it has not written yet. That waits again, if a Sentinel has to be asked first. */
void dispatch_recall(struct carrier *, struct node *);

/* Asks the next node for the locations, if the one before was lost. A check gives up a node after a second. */
void dispatch_ask_on(struct carrier *);

/* A reply to the oldest flight of the node, which asks for the locations. */
void dispatch_take_location(struct carrier *, struct node *, struct flight *, const redisReply *);

/* A reply to the oldest flight of the node: the task's, or a reason to send it again. True: it
 * was the flight's last one. Before that, nothing moves. */
bool dispatch_take_reply(struct carrier *, struct node *, struct flight *, struct reply *);

#endif
