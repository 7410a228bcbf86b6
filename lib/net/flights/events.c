/* events.c: an event -> its call, node or flight. See events.h.
 *
 * An event makes calls runnable, and events_go(), at its end, asks their tasks for what is next. So
 * task_next is never called from within task_reply. */
#include "net/flights/events.h"
#include "base/clock.h"
#include "net/flights/dispatch.h"
#include "net/flights/node.h"
#include "net/flights/replicas.h"

#include <stdio.h>
#include <string.h>

/* ---- A call ------------------------------------------------------------------------------------ */

static void take_outbox(struct carrier *c, struct call *call)
{
    struct outbox *outbox = &c->outbox;
    const char *bytes = outbox->commands.len > 0 ? outbox->commands.bytes : ""; /* hibloom_connect's writes none */
    size_t from = 0;

    for (size_t i = 0; i < outbox->count; i++) {
        const struct exchange *exchange = &outbox->exchanges[i];
        struct flight *flight = flight_new(&c->pool, call, FLIGHT_TASK, exchange, bytes + from, exchange->end - from);
        from = exchange->end;
        if (flight != NULL) {
            if (exchange->guarded && call->wake_at == 0 && !call->begun_again && !c->locate.stale)
                flight->proven_ns = exchange_proven_ns(exchange);
            flights_put(&call->waiting, flight);
            continue;
        }
        task_no_memory(call->task);
        for (uint32_t index = 0; index < exchange_replies(exchange); index++)
            task_reply(call->task, exchange->tag, index, NULL);
        call_set_runnable(c, call);
    }
    outbox_empty(outbox);
}

/* A call that failed before anything was sent has nothing to take back: it ends. */
static bool end_unsent(struct carrier *c, struct call *call)
{
    if (!task_has_failed(call->task) || call->sent)
        return false;
    call_begin_drop(c, call);
    if (call->alive > 0)
        call_end_drops(c);
    task_fail_as_inner(call->task); /* whose end would tell */
    return true;
}

/* Asks its task for what is next. Does the call end? */
static bool ask_task(struct carrier *c, struct call *call)
{
    if (call->drops)
        call_end_drops(c);
    if (call->waiting.first != NULL && call->wake_at == 0)
        dispatch_call(c, call);
    if (call->replicas_left > 0)
        return false;
    replicas_note_awaited(c, call);
    if (end_unsent(c, call))
        return true;
    switch (task_next(call->task, &c->outbox)) {
    case TASK_SEND:
        take_outbox(c, call);
        dispatch_call(c, call);
        call_set_runnable(c, call);
        break;
    case TASK_WAIT: break;
    case TASK_PAUSE:
        if (call->task->pause_ms == TASK_UNTIL_MADE)
            call_begin_wait(c, call);
        call_sleep(c, call, clock_now_ms() + call->task->pause_ms);
        break;
    case TASK_REPLICATE:
        replicas_await(c, call);
        dispatch_call(c, call);
        break;
    case TASK_DONE:
        if (replicas_may_end(c, call))
            return true;
        dispatch_call(c, call);
        break;
    }
    return false;
}

static void end(struct carrier *c, struct call *call)
{
    call->done = true;
    call_wake(c, call);
    if (call->runnable)
        TAILQ_REMOVE(&c->runnable, call, in_runnable);
    call->runnable = false;
    TAILQ_REMOVE(&c->calls, call, in_calls);
    TAILQ_INSERT_TAIL(&c->ended, call, in_calls);
}

/* A step of a call may need the answers of two nodes, so those of all nodes count. No step waits long for a check. */
static bool some_node_owes(const struct carrier *c)
{
    for (unsigned i = 0; i < c->topology.count; i++)
        if (node_owes(c->topology.nodes[i]) && !carrier_checks(c, c->topology.nodes[i]))
            return true;
    return false;
}

static void flush(struct carrier *c)
{
    const bool waits = c->in_step && some_node_owes(c);
    struct error error;

    for (unsigned i = 0; i < c->topology.count; i++) {
        struct node *node = c->topology.nodes[i];
        if (waits && node->unwritten_bytes < UNWRITTEN_MOST)
            continue;
        dispatch_recall(c, node);
        node_greet_again(c, node); /* touches that wait for the answer need no WAIT yet */
        replicas_wait(c, node);
        if (node->unwritten_bytes == 0) {
            node_close_unused(c, node);
            continue;
        }
        const hibloom_status status = node_flush(c, node, &error);
        if (status != HIBLOOM_OK)
            node_lose(c, node, status, error.words);
    }
}

static void note_made(struct call *call)
{
    call->waited = false;
    call_note_progress(call);
}

/* Calls that wait until another one of their handle has made links, or has failed. */
static void wake_others(struct carrier *c, struct call *maker, bool ends)
{
    struct redis_filter *made = task_take_made(maker->task, ends);

    if (made != NULL && !task_has_failed(maker->task))
        note_made(maker);
    for (struct call *call; made != NULL && (call = TAILQ_FIRST(&made->waiters)) != NULL;) {
        if (!task_has_failed(maker->task))
            note_made(call);
        call_wake(c, call);
        call_set_runnable(c, call);
    }
}

void events_go(struct carrier *c)
{
    do {
        dispatch_ask_on(c);
        for (struct call *call; (call = TAILQ_FIRST(&c->runnable)) != NULL;) {
            TAILQ_REMOVE(&c->runnable, call, in_runnable);
            call->runnable = false;
            const bool ends = ask_task(c, call);
            wake_others(c, call, ends);
            if (ends)
                end(c, call);
        }
        if (!c->by_turns)
            flush(c);
    } while (!TAILQ_EMPTY(&c->runnable) || carrier_must_ask_on(c));
}

void events_flush(struct carrier *c)
{
    flush(c);
    events_go(c);
}

void events_begin(struct carrier *c, struct call *call, struct task *task)
{
    *call = (struct call){.task = task, .number = ++c->store.server.stats.calls, .revivals = c->revivals};
    TAILQ_INSERT_TAIL(&c->calls, call, in_calls);
    call_set_runnable(c, call);
    call->deadline = c->store.base.deadline_ms != 0 ? clock_now_ms() + c->store.base.deadline_ms : 0;
    c->ends_ms = sooner(c->ends_ms, call->deadline);
    (void)call_tell_restart(c, call, NULL);
}

void events_cancel(struct carrier *c, const hibloom *filter)
{
    for (struct call *call = TAILQ_FIRST(&c->calls); call != NULL; call = TAILQ_NEXT(call, in_calls)) {
        if (!task_is_of(call->task, filter))
            continue;
        const bool cleans = task_is_cleaning(call->task); /* it goes on: why it failed need not be known yet */
        task_fail(call->task, HIBLOOM_ECANCELED, "canceled before it was answered");
        call->unreplicated = false;
        if (call->task->status == HIBLOOM_ECANCELED && !cleans)
            call_begin_drop(c, call);
        call_wake(c, call);
        call_set_runnable(c, call);
    }
    events_go(c);
}

void events_end(struct carrier *c, struct call *call)
{
    TAILQ_REMOVE(&c->ended, call, in_calls);
    replicas_forget(call);
    task_end(call->task);
    if (call->task->status != HIBLOOM_EPROTO)
        return;
    /* a server that answered nonsense may have lost count of its answers, too */
    for (unsigned i = 0; i < c->topology.count; i++)
        if ((call->nodes >> i % 64 & 1) != 0)
            c->topology.nodes[i]->leave = true;
}

/* ---- Events ------------------------------------------------------------------------------------- */

void events_opened(struct carrier *c, struct node *node)
{
    if (node_greet(c, node) != HIBLOOM_OK)
        node_lose(c, node, HIBLOOM_ENOMEM, "out of memory");
    events_go(c);
}

void events_reply(struct carrier *c, struct node *node, struct reply *reply, const redisReply *object)
{
    struct flight *flight = node->sent.first;

    if (flight->by_ask && !flight->ask_answered) {
        flight->ask_answered = true;
        return;
    }
    flight->ask_answered = false;
    switch (flight->kind) {
    case FLIGHT_TASK:
        if (!dispatch_take_reply(c, node, flight, reply))
            return;
        break;
    case FLIGHT_GREETING: node_take_greeting(c, node, flight, object); break;
    case FLIGHT_LOCATE: dispatch_take_location(c, node, flight, object); break;
    case FLIGHT_WAIT:
    case FLIGHT_TOUCH: replicas_take(c, node, reply); break;
    }
    events_go(c);
}

void events_lost(struct carrier *c, struct node *node, hibloom_status status, const char *words)
{
    node_lose(c, node, status, words);
    events_go(c);
}

/* ---- Calls that have no time left ---------------------------------------------------------------- */

/* One that sleeps wakes by its deadline. */
static bool waits_for_locations(const struct carrier *c, const struct call *call)
{
    return c->locate.asking && call->waiting.first != NULL && call->wake_at == 0;
}

/* When the first call of a loop ends that waits for a connection, its turn or the locations; 0: none does. */
static uint64_t expiry_at(const struct carrier *c)
{
    uint64_t at = c->by_turns && c->locate.asking ? c->ends_ms : 0;

    for (unsigned i = 0; c->by_turns && i < c->topology.count; i++)
        at = sooner(at, c->topology.nodes[i]->expires_ms);
    return at;
}

static void expire(struct carrier *c, struct flight *flight, struct node *node)
{
    static const char words[] = "timed out waiting to be sent (hibloom_store_deadline)";

    call_flight_failed(c, flight, node, HIBLOOM_ETIMEDOUT, words, false);
}

/* Connections that are made, and a question for the locations, go on for those that come. */
static void expire_all(struct carrier *c, uint64_t now)
{
    for (unsigned i = 0; i < c->topology.count; i++) {
        struct node *node = c->topology.nodes[i];
        struct flights unwritten = node_take_unwritten(node);
        for (struct flight *flight; (flight = flights_take(&unwritten)) != NULL;)
            if (flight->call != NULL && call_has_expired(c, flight->call, now))
                expire(c, flight, node);
            else
                node_queue(c, node, flight);
    }
    c->ends_ms = 0;
    for (struct call *call = TAILQ_FIRST(&c->calls); call != NULL; call = TAILQ_NEXT(call, in_calls))
        if (!call_has_expired(c, call, now))
            c->ends_ms = sooner(c->ends_ms, call_deadline(c, call));
        else if (waits_for_locations(c, call))
            expire(c, flights_take(&call->waiting), NULL); /* its others go with it */
    events_go(c);
}

bool events_tick(struct carrier *c)
{
    const uint64_t ends = expiry_at(c);
    struct call *next;

    if (ends != 0 && clock_now_ms() >= ends)
        expire_all(c, clock_now_ms());
    if (TAILQ_EMPTY(&c->asleep))
        return false;
    const bool comes_again = c->timed || c->topology.nodes[0]->sent.first != NULL; /* the caller's is one */
    const uint64_t now = comes_again ? clock_now_ms() : UINT64_MAX;
    if (now < c->wake_at)
        return false;
    c->wake_at = 0;
    for (struct call *call = TAILQ_FIRST(&c->asleep); call != NULL; call = next) {
        next = TAILQ_NEXT(call, in_asleep);
        if (call->wake_at <= now) {
            call_wake(c, call);
            call_set_runnable(c, call);
        } else {
            c->wake_at = sooner(c->wake_at, call->wake_at);
        }
    }
    events_go(c);
    return true;
}

uint64_t events_wake_at(const struct carrier *c)
{
    return sooner(expiry_at(c), TAILQ_EMPTY(&c->asleep) ? 0 : c->wake_at);
}

/* One cause may fail many calls. The log tells of it once, until a call succeeds. */
static void tell_failure(struct carrier *c, const struct error *failure, size_t len)
{
    struct error *error = &c->store.base.error;

    if (!c->failing || strncmp(failure->words, error->words, len) != 0)
        settings_log(c->settings, HIBLOOM_LOG_ERROR, "%s", failure->words);
    c->failing = true;
    *error = *failure;
}

hibloom_status events_error(struct carrier *c, const struct call *call)
{
    const struct node *at = call->at == NULL && !c->topology.clustered ? c->topology.nodes[0] : call->at;
    const struct task *task = call->task;
    char where[WHERE_SIZE], tried[32] = "";
    struct error failure;

    if (task->status == HIBLOOM_OK) {
        c->failing = false;
        return HIBLOOM_OK;
    }
    if (task->status < HIBLOOM_EIO || task->elsewhere)
        return error_set(&c->store.base.error, task->status, "%s", task->words);
    if (call->tried != 0)
        snprintf(tried, sizeof tried, " (tried %u times)", call->tried);
    (void)error_set(&failure, task->status, "%s: %s%s", carrier_where(c, at, where, sizeof where), task->words, tried);
    tell_failure(c, &failure, strlen(failure.words) - strlen(tried)); /* others may have been tried more often */
    return task->status;
}
