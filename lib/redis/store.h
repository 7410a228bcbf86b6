/* store.h: the store whose bits lie in Redis, without the connections to it.
 *
 * What a store does is a task each (sieve, links, list). Each of these structs begins with the one above it:
 *
 *     hibloom_store           base/store.h            what filter/ knows of any store
 *     struct redis_store      here                    what a task knows of its own
 *     struct carrier          net/flights/carrier.h   the servers, and what is on its way to them
 *     struct blocking, looped net/drivers/            the sockets, and what waits for them */
#ifndef HIBLOOM_REDIS_STORE_H
#define HIBLOOM_REDIS_STORE_H

#include "redis/link.h"

#define REDIS_SERVERS_MAX 1024u

struct redis_store {
    hibloom_store base;
    struct redis_server_traits server;
    /* The task's status, with words in base.error. NULL: on an event loop, which begins tasks itself. */
    hibloom_status (*run)(struct redis_store *, struct task *);
    /* What `begin` begins goes on together; once all of it has ended, `ended` is called. */
    void (*run_all)(struct redis_store *, void (*begin)(void *), void (*ended)(struct redis_store *), void *data);
    void (*refresh)(struct redis_store *); /* the map of the servers is read again before the next call */
    uint32_t (*server_of)(const struct redis_store *, uint16_t slot); /* its number; REDIS_SERVERS_MAX: not known */
};

extern const struct store_class redis_store_class;

#endif
