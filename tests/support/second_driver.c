/* A second driver, and a store on it. See second_driver.h. */
#include "second_driver.h"

#include "redis/store.h"

#include <hiredis/hiredis.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS_MAX = 5000000 }; /* a task that asks for more never ends */

enum fate { CARRIED, NOT_SENT, ANSWER_LOST };

struct flight {
    struct exchange exchange;
    enum fate fate;
    uint32_t index; /* of its next reply */
};

struct pipe {
    redisContext *redis;
    struct flight *flights; /* sent and not wholly answered: from first on */
    size_t first, count, room;
    uint64_t exchanges; /* of this call */
};

struct second {
    struct redis_store store;
    struct pipe pipes[2];
    struct outbox outbox;
    struct reply reply;
    struct test_random random;
    unsigned lose_one_in, lost, sent;
    unsigned hold_at, cut_at; /* cut_at: UINT_MAX where nothing is cut */
    void (*hold)(void *);
    void *hold_argument;
};

static bool chance(struct second *s, unsigned one_in)
{
    return one_in != 0 && test_random_below(&s->random, one_in) == 0;
}

/* ---- Answers ------------------------------------------------------------------- */

static const struct reply *receive(struct second *s, struct pipe *pipe, const struct flight *flight)
{
    const struct exchange *exchange = &flight->exchange;
    redisReply *reply = NULL;

    if (flight->fate == NOT_SENT)
        return NULL;
    assert_int_equal(redisGetReply(pipe->redis, (void **)&reply), REDIS_OK);
    if (flight->fate == ANSWER_LOST) {
        freeReplyObject(reply);
        return NULL;
    }
    reply_reset(&s->reply);
    s->reply.bulk = flight->index == exchange->bulk_index ? exchange->bulk : NULL;
    s->reply.bulk_room = exchange->bulk_room;
    reply_take_object(&s->reply, reply);
    freeReplyObject(reply);
    return &s->reply;
}

static bool is_waiting(const struct second *s)
{
    return s->pipes[0].count + s->pipes[1].count > 0;
}

/* One reply of the oldest exchange of a connection, whichever has one. */
static void deliver(struct second *s, struct task *task)
{
    const unsigned wanted = (unsigned)test_random_below(&s->random, 2);
    struct pipe *pipe = &s->pipes[s->pipes[wanted].count > 0 ? wanted : 1 - wanted];
    struct flight *flight = &pipe->flights[pipe->first];
    const struct reply *reply = receive(s, pipe, flight);
    const uint32_t tag = flight->exchange.tag, index = flight->index++;

    if (reply == NULL)
        task_fail(task, HIBLOOM_EIO, "lost by the second driver");
    if (flight->index == flight->exchange.replies) {
        pipe->first++;
        pipe->count--;
    }
    task->class->reply(task, tag, index, reply);
}

/* ---- Commands ------------------------------------------------------------------- */

static void enqueue(struct second *s, const struct exchange *exchange, const char *bytes, size_t len)
{
    struct pipe *pipe = &s->pipes[exchange->slot & 1];
    const enum fate fate = s->sent >= s->cut_at         ? NOT_SENT
                           : !chance(s, s->lose_one_in) ? CARRIED
                           : chance(s, 2)               ? NOT_SENT
                                                        : ANSWER_LOST;

    assert_true(exchange->replies > 0);
    if (pipe->first + pipe->count == pipe->room) {
        if (pipe->count > 0)
            memmove(pipe->flights, pipe->flights + pipe->first, pipe->count * sizeof *pipe->flights);
        pipe->first = 0;
        pipe->room = pipe->count * 2 + 16;
        pipe->flights = realloc(pipe->flights, pipe->room * sizeof *pipe->flights);
        assert_non_null(pipe->flights);
    }
    pipe->flights[pipe->first + pipe->count++] = (struct flight){*exchange, fate, 0};
    pipe->exchanges++;
    s->lost += fate != CARRIED;
    if (fate != NOT_SENT) /* goes out once somebody asks for a reply */
        assert_int_equal(redisAppendFormattedCommand(pipe->redis, bytes, len), REDIS_OK);
}

/* What was sent before is answered; so what is held is all that is on its way. */
static void hold(struct second *s, struct task *task)
{
    void (*run)(void *) = s->hold;

    s->hold = NULL;
    while (is_waiting(s))
        deliver(s, task);
    run(s->hold_argument);
}

static void send_outbox(struct second *s, struct task *task)
{
    size_t begin = 0;

    assert_true(s->outbox.count > 0);
    if (s->hold != NULL && s->sent == s->hold_at)
        hold(s, task);
    for (size_t i = 0; i < s->outbox.count; i++) {
        const struct exchange *exchange = &s->outbox.exchanges[i];
        enqueue(s, exchange, s->outbox.commands.bytes + begin, exchange->end - begin);
        begin = exchange->end;
    }
    assert_int_equal(begin, s->outbox.commands.len);
    s->sent++;
    outbox_empty(&s->outbox);
}

/* ---- Running a task --------------------------------------------------------------- */

static void carry(struct second *s, struct task *task)
{
    for (unsigned step = 0; step < STEPS_MAX; step++) {
        switch (task->class->next(task, &s->outbox)) {
        case TASK_SEND:
            send_outbox(s, task);
            while (is_waiting(s) && chance(s, 3))
                deliver(s, task);
            break;
        case TASK_WAIT:
            assert_true(is_waiting(s));
            deliver(s, task);
            while (is_waiting(s) && !chance(s, 4))
                deliver(s, task);
            break;
        case TASK_PAUSE: test_sleep_ms(task->pause_ms); break;
        case TASK_KEEP: assert_false(is_waiting(s)); break; /* it has no replicas */
        case TASK_DONE: assert_false(is_waiting(s)); return;
        }
    }
    fail_msg("the task does not end");
}

static hibloom_status run(struct redis_store *store, struct task *task)
{
    struct second *s = (struct second *)store;

    s->sent = 0;
    s->pipes[0].exchanges = s->pipes[1].exchanges = 0;
    carry(s, task);
    s->hold = NULL;
    s->cut_at = UINT_MAX;
    if (task->status != HIBLOOM_OK)
        error_set(&store->base.error, task->status, "%s", task->error.words);
    return task->status;
}

static void close_connections(struct redis_store *store)
{
    struct second *s = (struct second *)store;

    for (int i = 0; i < 2; i++) {
        redisFree(s->pipes[i].redis);
        free(s->pipes[i].flights);
    }
    outbox_free(&s->outbox);
}

/* ---- The store ------------------------------------------------------------------------ */

hibloom_store *second_store(const char *socket, hibloom_commands commands)
{
    struct second *s = calloc(1, sizeof *s);

    assert_non_null(s);
    s->store = (struct redis_store){
        .base.class = &redis_store_class,
        .server.bitfield = commands == HIBLOOM_COMMANDS_BITFIELD,
        .run = run,
        .close = close_connections,
    };
    s->random = test_random_new();
    s->cut_at = UINT_MAX;
    for (int i = 0; i < 2; i++) {
        s->pipes[i].redis = redisConnectUnix(socket);
        assert_true(s->pipes[i].redis != NULL && s->pipes[i].redis->err == 0);
    }
    return &s->store.base;
}

void second_store_lose(hibloom_store *store, unsigned one_in)
{
    ((struct second *)store)->lose_one_in = one_in;
}

unsigned second_store_lost(hibloom_store *store)
{
    struct second *s = (struct second *)store;
    const unsigned lost = s->lost;

    s->lost = 0;
    return lost;
}

void second_store_hold(hibloom_store *store, unsigned at, void (*run_once)(void *argument), void *argument)
{
    struct second *s = (struct second *)store;

    s->hold_at = at;
    s->hold = run_once;
    s->hold_argument = argument;
}

void second_store_cut(hibloom_store *store, unsigned at)
{
    ((struct second *)store)->cut_at = at;
}

unsigned second_store_sent(const hibloom_store *store)
{
    return ((const struct second *)store)->sent;
}

uint64_t second_store_exchanges(const hibloom_store *store, int connection)
{
    return ((const struct second *)store)->pipes[connection].exchanges;
}
