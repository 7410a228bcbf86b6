/* store.h: the store whose bits lie in Redis, without the connections to it.
 *
 * Each function of a store is a task here. A driver has the connections: its own
 * struct begins with this one, and it runs the tasks. */
#ifndef HIBLOOM_REDIS_STORE_H
#define HIBLOOM_REDIS_STORE_H

#include "redis/filter.h"

struct redis_store {
    hibloom_store base;
    struct redis_server_traits server;
    hibloom_status (*run)(struct redis_store *, struct task *); /* the task's status, with words in base.error */
    void (*set_deadline)(struct redis_store *, uint32_t ms);
    void (*close)(struct redis_store *); /* the connections; the store's memory is freed behind it */
};

extern const struct store_class redis_store_class;

#endif
