/* format.h: a filter that the library has, and so has a client that was written from docs/format.md alone; for format.c
 * and format_links.c. */
#ifndef HIBLOOM_TEST_SHARE_FORMAT_H
#define HIBLOOM_TEST_SHARE_FORMAT_H

#pragma GCC diagnostic ignored "-Wunused-function" /* sharing.h also compares bare bitmaps */
#include "share/sharing.h"
#include "base/store.h"
#include "spec/spec.h"

static struct shared {
    struct peer peer;
    struct spec spec;
    char text[SPEC_TEXT_SIZE], name[TEST_NAME_SIZE];
    hibloom_store *store;
    redisContext *redis;
    struct items items;
} s;

/* The client is told the canonical text, and only when it makes the filter. The items are to be pushed. */
static void shared_start(const char *text, const char *program)
{
    s = (struct shared){.peer = {text, {"/usr/bin/python3", "-B", program}, {NULL}}};
    s.spec = test_spec(text);
    assert_ok(spec_format(&s.spec, s.text, sizeof s.text), NULL);
    s.store = test_store(NULL);
    s.redis = test_redis();
    test_name(s.name);
}

static void shared_end(void)
{
    hibloom_store_free(s.store);
    redisFree(s.redis);
    items_free(&s.items);
}

/* Something with n items of which it has nothing to say. */
static void peer_does(const char *mode, const char *setting, size_t n)
{
    struct peer peer = s.peer;

    peer.settings[0] = setting;
    assert_at_end(peer_run(&peer, mode, s.name, s.items.list, n));
}

static hibloom *opened(const struct spec *spec)
{
    return test_open(s.store, s.name, spec != NULL ? test_text(spec) : NULL);
}

static long long keys_of(const char *suffix)
{
    redisReply *reply = redisCommand(s.redis, "KEYS %s%s", s.name, suffix);

    assert_true(reply != NULL && reply->type == REDIS_REPLY_ARRAY);
    const long long n = (long long)reply->elements;
    freeReplyObject(reply);
    return n;
}

#endif
