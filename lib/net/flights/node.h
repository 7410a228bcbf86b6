/* node.h: a server of the store: its connection from the first word to the last. */
#ifndef HIBLOOM_NODE_H
#define HIBLOOM_NODE_H

#include "net/flights/carrier.h"

/* Queues a flight, and connects to the server first if that has to be. Not OK: no connection can be made, and the flight
 * is the caller's again. */
hibloom_status node_reach(struct carrier *, struct node *, struct flight *, struct error *);

/* Queues it for the next flush; if the server has to be greeted, for the one behind that. There is a connection, or it is
 * being made. */
void node_queue(struct carrier *, struct node *, struct flight *);

/* Takes back what is not written yet. */
struct flights node_take_unwritten(struct node *);

/* Asks which run the server is, if a second has passed since it said so. What is unwritten waits for the answer. */
void node_greet_again(struct carrier *, struct node *);

/* Asks it behind all that was answered so far. The flight ends with the answer; at once, if the server tells nothing. */
void node_greet_behind(struct carrier *, struct node *, struct flight *);

/* Writes all that need not wait for a greeting. Not OK: the connection is lost. */
hibloom_status node_flush(struct carrier *, struct node *, struct error *);

/* So many bytes wait for no other node. To make 1,000 filters takes less. The next commands of a large call are on
 * their way while it is answered. */
#define UNWRITTEN_MOST ((size_t)4 << 20)

/* What is to be written does not wait for the answers of other nodes. */
static inline void node_hurry(struct node *node)
{
    node->unwritten_bytes = node->unwritten_bytes > 0 ? UNWRITTEN_MOST : 0;
}

/* The connection is made: says who we are. */
hibloom_status node_greet(struct carrier *, struct node *);
void node_take_greeting(struct carrier *, struct node *, struct flight *, const redisReply *);

/* Are answers to come? */
static inline bool node_owes(const struct node *node)
{
    return node->sent.first != NULL;
}

/* Closes a connection that nobody needs any more. Nothing is on its way, and `leave` is set or
 * the known locations do not name it. */
void node_close_unused(struct carrier *, struct node *);

/* Closes those that are dead: a map may say that such a server has given slots away, before anybody meets it again. */
void node_close_dead(struct carrier *);

/* It is broken: all that was sent or waits there has failed. */
void node_lose(struct carrier *, struct node *, hibloom_status, const char *words);

#endif
