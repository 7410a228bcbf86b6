/* reply.c: RESP -> one answer at a time, with no allocation. See reply.h.
 *
 * hiredis calls one of these functions for each value, children after their array; task->parent tells whether it is
 * nested. It wants an object for each, and does not look at them. On an event loop it reads the type of the outermost.
 * So all get the address of `something`; NULL makes it give the reply up. */
#include "resp/reply.h"

#include <string.h>

static redisReply something; /* of no type */

void reply_reset(struct reply *reply)
{
    reply->type = 0;
    reply->elements = 0;
    reply->count = 0;
    reply->text_len = 0;
    reply->object_bytes = 0;
    reply->bulk = NULL;
    reply->text[0] = '\0';
    reply->pushed = reply->objects = reply->repeated = false;
}

void reply_leave(redisReader *reader)
{
    if (reader->reply == &something)
        reader->reply = NULL;
}

static struct reply *reply_of(const redisReadTask *task)
{
    return task->privdata;
}

/* RESP3 lets a server push messages between answers, if the owner of a borrowed connection asked
 * for them. They belong to the owner, and its functions build them. */
static bool is_owners(const redisReadTask *task)
{
    if (reply_of(task)->objects)
        return true;
#ifdef REDIS_REPLY_PUSH
    while (task->parent != NULL)
        task = task->parent;
    return task->type == REDIS_REPLY_PUSH;
#else
    return false;
#endif
}

/* The number of arrays around it. */
static unsigned depth_of(const redisReadTask *task)
{
    unsigned depth = 0;

    for (const redisReadTask *above = task->parent; above != NULL; above = above->parent)
        depth++;
    return depth;
}

/* An object is bounded, in its depth and in all its bytes. hiredis 1.x frees a nested one by recursion. Each hiredis makes
 * room for all elements that a server announces. A map of 16,384 ranges, with two replicas each, takes some 23 MB. */
#define OBJECT_DEPTH 8u
#define OBJECT_BYTES (UINT64_C(64) << 20)

/* False: `owner` shall not build it. NULL then says that the reply is nonsense. */
static bool may_build(const redisReadTask *task, uint64_t parts, size_t of_bytes)
{
    struct reply *reply = reply_of(task);

    if (reply->owner == NULL || depth_of(task) > OBJECT_DEPTH || parts > OBJECT_BYTES)
        return false;
    reply->object_bytes += sizeof(redisReply) + parts * of_bytes;
    return reply->object_bytes <= OBJECT_BYTES;
}

/* Takes a value's type: an error's wherever it is, else the outermost. */
static void take_type(struct reply *reply, int type, bool outermost)
{
    if (outermost || type == REDIS_REPLY_ERROR)
        reply->type = type;
}

static void list_string(struct reply *reply, const char *text, size_t len)
{
    const uint16_t head = (uint16_t)len;

    if (len > REPLY_LISTED || reply->text_len > reply->bulk_room)
        return;
    if (sizeof head + len > reply->bulk_room - reply->text_len) {
        reply->text_len = reply->bulk_room + 1;
        return;
    }
    memcpy(reply->bulk + reply->text_len, &head, sizeof head);
    memcpy(reply->bulk + reply->text_len + sizeof head, text, len);
    reply->text_len += sizeof head + len;
}

bool reply_next_string(const unsigned char *bulk, size_t used, size_t *at, const char **text, size_t *len)
{
    uint16_t head;

    if (*at >= used || used - *at < sizeof head)
        return false;
    memcpy(&head, bulk + *at, sizeof head);
    if (used - *at - sizeof head < head) /* a server's nonsense: a string that was not listed */
        return false;
    *text = (const char *)bulk + *at + sizeof head;
    *len = head;
    *at += sizeof head + head;
    return true;
}

static void take_string(struct reply *reply, int type, bool outermost, const char *text, size_t len)
{
    const size_t kept = len < REPLY_TEXT ? len : REPLY_TEXT;
    const bool listed = !outermost && reply->count == 0;

    if (reply->bulk != NULL && type == REDIS_REPLY_STRING && listed) {
        list_string(reply, text, len);
    } else if (reply->bulk != NULL && type == REDIS_REPLY_STRING) {
        memcpy(reply->bulk, text, len < reply->bulk_room ? len : reply->bulk_room);
        reply->text_len = len;
    } else if (reply->type != REDIS_REPLY_ERROR) { /* the first of several errors counts */
        memcpy(reply->text, text, kept);
        reply->text[kept] = '\0';
        reply->text_len = len;
    }
    take_type(reply, type, outermost);
}

static void take_integer(struct reply *reply, long long value, bool outermost)
{
    if (reply->count < REPLY_INTEGERS)
        reply->integers[reply->count] = value;
    reply->count++;
    take_type(reply, REDIS_REPLY_INTEGER, outermost);
}

static void note(const redisReadTask *task)
{
    take_type(reply_of(task), task->type, task->parent == NULL);
}

static void *note_string(const redisReadTask *task, char *text, size_t len)
{
    struct reply *reply = reply_of(task);

    if (is_owners(task))
        return may_build(task, len, 1) ? reply->owner->createString(task, text, len) : NULL;
    take_string(reply, task->type, task->parent == NULL, text, len);
    return &something;
}

static void *note_integer(const redisReadTask *task, long long value)
{
    struct reply *reply = reply_of(task);

    if (is_owners(task))
        return may_build(task, 0, 0) ? reply->owner->createInteger(task, value) : NULL;
    take_integer(reply, value, task->parent == NULL);
    return &something;
}

static void *note_nil(const redisReadTask *task)
{
    const struct reply *reply = reply_of(task);

    if (is_owners(task)) /* a push that is nothing as a whole is nonsense */
        return (reply->objects || task->parent != NULL) && may_build(task, 0, 0) ? reply->owner->createNil(task) : NULL;
    if (task->parent == NULL)
        reply_of(task)->type = REDIS_REPLY_NIL; /* the task's type is that of what is missing */
    return &something;
}

static void discard(void *object)
{
    if (object != &something) /* see is_owners */
        freeReplyObject(object);
}

/* An EXEC of BITFIELDs is two deep. hiredis 1.x sets no limit of its own. */
#define DEPTH_MAX 4

#if HIREDIS_MAJOR >= 1
typedef size_t element_count;
#else
typedef int element_count;
#endif

static void *note_array(const redisReadTask *task, element_count elements)
{
    struct reply *reply = reply_of(task);

    if (is_owners(task)) {
        if (!may_build(task, (uint64_t)elements, sizeof(redisReply *)))
            return NULL;
        reply->pushed = true;
        return reply->owner->createArray(task, elements);
    }
    if (depth_of(task) >= DEPTH_MAX)
        return NULL;
    if (task->parent == NULL)
        reply->elements = (size_t)elements;
    note(task);
    return &something;
}

#if HIREDIS_MAJOR >= 1
static void *note_double(const redisReadTask *task, double value, char *text, size_t len)
{
    if (is_owners(task))
        return may_build(task, len, 1) ? reply_of(task)->owner->createDouble(task, value, text, len) : NULL;
    note(task);
    return &something;
}

static void *note_bool(const redisReadTask *task, int value)
{
    if (is_owners(task))
        return may_build(task, 0, 0) ? reply_of(task)->owner->createBool(task, value) : NULL;
    note(task);
    return &something;
}
#endif

redisReplyObjectFunctions reply_functions = {
    .createString = note_string,
    .createArray = note_array,
    .createInteger = note_integer,
    .createNil = note_nil,
#if HIREDIS_MAJOR >= 1
    .createDouble = note_double,
    .createBool = note_bool,
#endif
    .freeObject = discard,
};

/* ---- Of an object ------------------------------------------------------------- */

static void take_object(struct reply *reply, const redisReply *object, unsigned depth)
{
    const bool outermost = depth == 0;

    switch (object->type) {
    case REDIS_REPLY_INTEGER: take_integer(reply, object->integer, outermost); break;
    case REDIS_REPLY_STRING:
    case REDIS_REPLY_STATUS:
    case REDIS_REPLY_ERROR: take_string(reply, object->type, outermost, object->str, (size_t)object->len); break;
    case REDIS_REPLY_ARRAY:
        take_type(reply, object->type, outermost);
        if (outermost)
            reply->elements = object->elements;
        if (depth == DEPTH_MAX)
            reply->type = 0; /* that is no answer to anything */
        for (size_t i = 0; depth < DEPTH_MAX && i < object->elements; i++)
            take_object(reply, object->element[i], depth + 1);
        break;
    default: take_type(reply, object->type, outermost); break;
    }
}

void reply_take_object(struct reply *reply, const redisReply *object)
{
    take_object(reply, object, 0);
}
