/* What the tests of the command ask Redis over a plain connection, to see from outside what a run has done. */
#ifndef HIBLOOM_TEST_CLI_REDIS_H
#define HIBLOOM_TEST_CLI_REDIS_H

#include "cli/program.h"

#include <hiredis/hiredis.h>

/* The integer that Redis answers to a command with one key. */
static inline long long ask(const char *command, const char *key)
{
    redisContext *redis = test_redis();
    const long long answer = test_command(redis, "%s %s", command, key);

    redisFree(redis);
    return answer;
}

/* How many keys have this in their names: all keys of a filter, and whatever may be beside them. */
static inline size_t count_keys(const char *name)
{
    redisContext *redis = test_redis();
    redisReply *reply = redisCommand(redis, "KEYS *%s*", name);
    size_t n;

    assert_non_null(reply);
    assert_int_equal(reply->type, REDIS_REPLY_ARRAY);
    n = reply->elements;
    freeReplyObject(reply);
    redisFree(redis);
    return n;
}

static inline void set_bit(const char *key, uint64_t bit)
{
    redisContext *redis = test_redis();

    test_command(redis, "SETBIT %s %llu 1", key, (unsigned long long)bit);
    redisFree(redis);
}

#endif
