/* dispatch.h: the node that a flight goes to, the search for it, and the meaning of replies for the way. */
#ifndef HIBLOOM_DISPATCH_H
#define HIBLOOM_DISPATCH_H

#include "net/flights/call.h"

/* Sends a call's waiting flights. */
void dispatch_call(struct carrier *, struct call *);

/* What the node has not written yet waits again, if a Sentinel has to be asked first. */
void dispatch_recall(struct carrier *, struct node *);

/* Asks the next node for the locations, if the one before was lost. A check gives up a node after a second. */
void dispatch_ask_on(struct carrier *);

/* What was sent is written now. Calls wait for a check from then on: before, a loop's program may have computed. */
void dispatch_note_written(struct carrier *);

/* Reply number `index` of the node, with locations. Last: no further one will come. */
void dispatch_take_location(struct carrier *, const struct node *, uint32_t index, bool last, const redisReply *);

/* A reply to the oldest flight of the node: the task's, or a reason to send it again. True: it
 * was the flight's last one. Before that, nothing moves. */
bool dispatch_take_reply(struct carrier *, struct node *, struct flight *, struct reply *);

#endif
