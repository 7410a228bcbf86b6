/* The stores that what a filter does is tested on: memory, and a real Redis by either encoding of commands. A test is
 * listed by ON_ALL or ON_REDIS, and its state is the backend that it is run on. */
#ifndef HIBLOOM_TEST_BACKEND_H
#define HIBLOOM_TEST_BACKEND_H

#include "test.h"

struct backend {
    bool redis;           /* whether it is behind the store */
    const char *commands; /* the option */
    hibloom_store *store;
    struct redisContext *outside; /* NULL: in memory */
};

extern struct backend backend_memory, backend_setbit, backend_bitfield;

int backend_set_up(void **state);
int backend_tear_down(void **state);

/* clang-format off */
#define ON(function, backend) \
    {#function " (" #backend ")", function, backend_set_up, backend_tear_down, &backend_##backend}
/* clang-format on */
#define ON_ALL(function) ON(function, memory), ON(function, setbit), ON(function, bitfield)
#define ON_REDIS(function) ON(function, setbit), ON(function, bitfield)

/* Calls that must be OK, in short. */
hibloom *backend_open(struct backend *b, const char *name, const char *text);
void backend_drop(struct backend *b, hibloom *filter); /* and closes it */
bool backend_contains(struct backend *b, hibloom *filter, const void *item, size_t len);
bool backend_add(struct backend *b, hibloom *filter, const void *item, size_t len); /* whether it is new */

#endif
