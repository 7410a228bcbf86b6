/* events.h: the events of a store's calls, for drivers, and for those that begin calls.
 *
 * A driver tells what has come (carrier_reply), what is broken (carrier_lost) and what time it
 * is (carrier_tick). So blocking calls and an event loop retry and redirect alike.
 *
 * Any event, carrier_begin and carrier_cancel may end calls, this one or others: call.done. */
#ifndef HIBLOOM_EVENTS_H
#define HIBLOOM_EVENTS_H

#include "net/flights/call.h"

void carrier_begin(struct carrier *, struct call *, struct task *);

/* Calls that are begun in between go on together, from the second one on: what they send first shares a flush. */
void carrier_hold(struct carrier *);
void carrier_release(struct carrier *);

/* Calls on this handle fail with ECANCELED. They end once what is on its way has been answered. */
void carrier_cancel(struct carrier *, const hibloom *);

void carrier_end(struct carrier *, struct call *); /* once it is done */

/* Writes what the calls have sent, where the carrier does not (carrier.by_turns). */
void carrier_flush(struct carrier *);

/* What has happened. A reply is to the oldest flight of the node. Where it is to a
 * question of its own (greeting, locate) the carrier wants it as an object. */
void carrier_opened(struct carrier *, struct node *);
bool carrier_wants_object(const struct node *);
void carrier_reply(struct carrier *, struct node *, struct reply *, const redisReply *object);
void carrier_lost(struct carrier *, struct node *, hibloom_status, const char *words);
uint64_t carrier_wake_at(const struct carrier *); /* 0: never */

/* Wakes the calls that have slept long enough. Was there any? Where nothing is sure to call this
 * again (carrier_can_wait), that is all of them. */
bool carrier_tick(struct carrier *);

/* A call's failure as the store's error, with the node where it failed. */
hibloom_status carrier_error(struct carrier *, const struct call *);

#endif
