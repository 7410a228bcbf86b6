/* pipes.h: connections of ours as the pipes of a carrier. Both drivers use them: they differ only in how they wait. */
#ifndef HIBLOOM_PIPES_H
#define HIBLOOM_PIPES_H

#include "net/drivers/connection.h"
#include "net/flights/events.h"

struct pollfd;

static inline struct connection *pipe_of(const struct node *node)
{
    return node->pipe;
}

/* Of struct pipe_class. The node keeps the connection's memory until the carrier is freed. */
hibloom_status pipes_open(struct carrier *, struct node *, struct error *);
bool pipes_are_alive(struct node *);
void pipes_put(struct node *, const char *bytes, size_t len);
void pipes_put_long(struct node *, const struct flight *);
void pipes_close(struct carrier *, struct node *);
hibloom_status pipes_take_words(const struct connection *, struct error *); /* its status */

/* Is there anything to wait for? */
bool pipes_wait(const struct node *);

/* The deadline of the call that has waited longest for the node; 0: none. Of the server, the milliseconds that are left. */
uint64_t pipes_deadline(const struct carrier *, const struct node *);
uint32_t pipes_time_left(const struct carrier *, struct node *);

/* Takes the events of poll for a node that waits, without any: is its time over? With `until_idle` it ends early once no
 * call is under way. */
void pipes_polled(struct carrier *, struct node *, const struct pollfd *, bool until_idle);

/* It is dead, for the reason that it has. */
void pipes_lose(struct carrier *, struct node *);

/* Takes all answers that are here. */
void pipes_receive(struct carrier *, struct node *, bool until_idle);

#endif
