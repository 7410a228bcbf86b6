/* A connection that is its owner's. See borrowed.h. */
#include "borrowed.h"

#include <sys/socket.h>

redisContext *connect_owner(const char *path)
{
    redisContext *context = redisConnectUnix(path);

    assert_non_null(context);
    assert_int_equal(context->err, 0);
    return context;
}

void borrow_begin(struct subject *subject, redisContext *context, const struct variant *variant)
{
    hibloom_store *store;

    assert_ok(hibloom_borrow(&store, context, NULL), store);
    subject_open(subject, store, variant);
}

void borrow_end(struct subject *subject, redisContext *context)
{
    subject_end(subject);
    test_command(context, "PING");
    redisFree(context);
}

struct found look_at(const redisContext *context)
{
    struct found found = {context->fd, context->flags, context->reader->fn, context->reader->privdata, {0, 0}, {0, 0}};
    socklen_t size = sizeof found.receive;

    assert_int_equal(getsockopt(context->fd, SOL_SOCKET, SO_RCVTIMEO, &found.receive, &size), 0);
    assert_int_equal(getsockopt(context->fd, SOL_SOCKET, SO_SNDTIMEO, &found.send, &size), 0);
    return found;
}

void assert_as_found(const redisContext *context, const struct found *before)
{
    const struct found now = look_at(context);

    assert_int_equal(now.fd, before->fd);
    assert_int_equal(now.flags, before->flags);
    assert_ptr_equal(now.functions, before->functions);
    assert_ptr_equal(now.privdata, before->privdata);
    assert_memory_equal(&now.receive, &before->receive, sizeof now.receive);
    assert_memory_equal(&now.send, &before->send, sizeof now.send);
}

void assert_usable(redisContext *context)
{
    redisReply *reply;

    assert_int_equal(context->err, 0);
    assert_string_equal(context->errstr, "");
    assert_string_equal(context->obuf, "");
    assert_true(context->reader->pos >= context->reader->len);
    reply = redisCommand(context, "ECHO %s", "the owner's");
    assert_non_null(reply);
    assert_string_equal(reply->str, "the owner's");
    freeReplyObject(reply);
}

hibloom *attach_any(hibloom_store *store)
{
    return test_attach(store, "any", variants[0].spec);
}
