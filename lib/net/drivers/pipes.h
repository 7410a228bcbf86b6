/* pipes.h: connections of ours, or the caller's that blocks, as the pipes of a carrier. Both drivers use them: they differ
 * only in how they wait. */
#ifndef HIBLOOM_PIPES_H
#define HIBLOOM_PIPES_H

#include "base/clock.h"
#include "net/drivers/connection.h"
#include "net/flights/events.h"

static inline struct connection *pipe_of(const struct node *node)
{
    return node->pipe;
}

/* Of struct pipe_class. The node keeps the connection's memory until the carrier is freed. */
hibloom_status pipes_open(struct carrier *, struct node *, struct error *);
bool pipes_are_alive(struct node *);
void pipes_put(struct node *, const char *bytes, size_t len);
void pipes_put_long(struct node *, const struct flight *);
hibloom_status pipes_flush(struct carrier *, struct node *, struct error *);
void pipes_close(struct carrier *, struct node *);

/* Is there anything to wait for? Until when at most, for all nodes and for what sleeps? 0: for ever. */
bool pipes_wait(const struct node *);
uint64_t pipes_due(const struct carrier *);

/* Takes the events of poll for an open node, and all answers that are here. Without any: is its time over? */
void pipes_take(struct carrier *, struct node *, short came);

/* Takes a Sentinel's answer to a check. It comes before all events: while the client stood still, others may have answered,
 * too, and their calls would go on without it. */
void pipes_take_check(struct carrier *);

#endif
