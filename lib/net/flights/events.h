/* events.h: the events of a store's calls, for drivers, and for those that begin calls.
 *
 * A driver tells what has come (events_reply), what is broken (events_lost) and what time it
 * is (events_tick). So blocking calls and an event loop retry and redirect alike.
 *
 * Any event, events_go and events_cancel may end calls, this one or others: call.done. */
#ifndef HIBLOOM_EVENTS_H
#define HIBLOOM_EVENTS_H

#include "net/flights/call.h"

/* A call begins, and goes on with the next events_go. Calls that began before that go on together: what they send first
 * shares a flush. */
void events_begin(struct carrier *, struct call *, struct task *);
void events_go(struct carrier *);

/* Calls on this handle fail with ECANCELED. They end once what is on its way has been answered. */
void events_cancel(struct carrier *, const hibloom *);

void events_end(struct carrier *, struct call *); /* once it is done */

/* Writes what calls have sent and no event has written: as a loop turns (carrier.by_turns), or once blocking calls no
 * longer go in step. */
void events_flush(struct carrier *);

/* What has happened. A reply is to the oldest flight of the node. Where it is to a
 * question of its own (greeting, locate) the carrier wants it as an object. */
void events_opened(struct carrier *, struct node *);
void events_reply(struct carrier *, struct node *, struct reply *, const redisReply *object);
void events_lost(struct carrier *, struct node *, hibloom_status, const char *words);
uint64_t events_wake_at(const struct carrier *); /* 0: never */

/* Wakes the calls that have slept long enough. Was there any? Where neither a timer nor an answer is sure to call this
 * again, that is all of them. On a loop it ends the calls that have no time left, and wait for a connection. */
bool events_tick(struct carrier *);

/* A call's failure as the store's error, with the node where it failed. */
hibloom_status events_error(struct carrier *, const struct call *);

#endif
