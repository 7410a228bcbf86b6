/* scandump.h: a task that asks a server with the module RedisBloom for a piece of a filter's dump. */
#ifndef HIBLOOM_REDIS_SCANDUMP_H
#define HIBLOOM_REDIS_SCANDUMP_H

#include "redis/task.h"

struct scandump {
    struct talk talk;
    const char *key;
    struct dumped *piece;
};

/* See struct dumped, which the task fills. */
void scandump_begin(struct scandump *, const char *key, struct dumped *piece);

#endif
