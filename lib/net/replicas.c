/* replicas.c: adds that replicas must have, look-ups that they answer. See replicas.h. */
#include "net/replicas.h"
#include "base/alloc.h"
#include "net/dispatch.h"
#include "net/locate.h"
#include "redis/scripts.h"

#include <stdio.h>
#include <string.h>

bool replicas_may_answer(const struct carrier *c, const struct call *call)
{
    return c->settings.options.read_from_replicas && call->task->reads && call->task->again != NULL &&
           !call->at_primary;
}

/* ---- WAIT ------------------------------------------------------------------------------------- */

static struct touched *find_touched(const struct call *call, const struct node *node)
{
    struct touched *touched = call->keys;

    while (touched != NULL && touched->node != node)
        touched = touched->next;
    return touched;
}

void replicas_note(struct carrier *c, const struct node *node, const struct flight *flight)
{
    const struct exchange *exchange = &flight->exchange;
    struct call *call = flight->call;

    if (call->task->reads || c->settings.options.min_replicas == 0 || exchange->of == NULL || exchange->proof ||
        call_has_failed(call))
        return;
    struct touched *touched = find_touched(call, node);
    if (touched == NULL) {
        touched = alloc.malloc(sizeof *touched);
        if (touched == NULL) {
            task_no_memory(call->task);
            return;
        }
        touched->next = call->keys;
        touched->node = node;
        call->keys = touched;
    }
    keys_name(touched->key, exchange->of, exchange->key);
}

void replicas_forget(struct call *call)
{
    for (struct touched *touched; (touched = call->keys) != NULL;) {
        call->keys = touched->next;
        alloc.free(touched);
    }
}

/* From Redis 7.2 on, and in Valkey, WAIT waits for what its own connection has written, and a SETBIT that changes nothing
 * is no write: what others have just added, and this call has found in, need not be on a replica yet. So a write goes in
 * front, which is behind theirs. */
static void write_wait(const struct carrier *c, const struct touched *touched, struct commands *out)
{
    if (touched != NULL) {
        script_start(out, SCRIPT_TOUCH, 1, 0);
        command_text(out, touched->key);
    }
    command_start(out, 3, "WAIT");
    command_number(out, c->settings.options.min_replicas);
    command_number(out, c->settings.options.replicas_ms);
}

static void ask_replicas(struct carrier *c, struct call *call)
{
    struct commands commands = {0};

    for (unsigned i = 0; i < c->topology.count; i++) {
        struct node *node = c->topology.nodes[i];
        if (!flags_has(call->touched, i))
            continue;
        write_wait(c, find_touched(call, node), &commands);
        const struct exchange exchange = {.replies = (uint32_t)commands.count};
        struct flight *flight = commands.failed
                                    ? NULL
                                    : flight_new(&c->pool, call, FLIGHT_WAIT, &exchange, commands.bytes, commands.len);
        if (flight == NULL) {
            task_no_memory(call->task);
            break;
        }
        commands_empty(&commands);
        flight->to = node;
        call->replicas_left++;
        flights_put(&call->waiting, flight);
    }
    commands_free(&commands);
    dispatch_call(c, call);
}

/* The write and WAIT once more. */
static void wait_again(struct carrier *c, struct node *node, struct flight *flight)
{
    (void)flight_resend(flight, false);
    flight->index = 0;
    flight->to = node;
    flights_put(&flight->call->waiting, flight);
    call_plan_retry(c, flight->call);
}

/* One of the two was refused. */
static void take_refused(struct carrier *c, struct node *node, struct flight *flight, const char *text)
{
    const enum refusal refusal = refusal_of(text);
    struct call *call = flight->call;
    char words[REPLY_TEXT];

    if (c->topology.clustered &&
        (refusal == REFUSAL_MOVED || refusal == REFUSAL_ASK)) { /* with its key, the write goes */
        flight->refusal = refusal;
        flight->index = 0;
        dispatch_take_refusal(c, node, flight);
    } else if (refusal == REFUSAL_READONLY) { /* it is no primary any more */
        node->leave = true;
        locate_note_stale(c);
        call_flight_failed(c, flight, node, HIBLOOM_EUNAVAILABLE, NULL, false);
    } else if (refusal_status(refusal) == HIBLOOM_EUNAVAILABLE && call_may_retry(c, call)) {
        wait_again(c, node, flight);
    } else {
        refusal_explain(refusal, text, words, sizeof words);
        call_give_up(c, call, node, refusal_status(refusal), words);
        call_end_flight(c, flight);
    }
}

static void take_count(struct carrier *c, struct node *node, struct flight *flight, long long replicas)
{
    const uint32_t wanted = c->settings.options.min_replicas;
    char words[96];

    if (replicas < wanted && call_may_retry(c, flight->call)) {
        wait_again(c, node, flight);
        return;
    }
    if (replicas < wanted) {
        snprintf(words, sizeof words, "%lld replicas have what was written, of %u that min_replicas asks for", replicas,
                 wanted);
        call_give_up(c, flight->call, node, HIBLOOM_EUNAVAILABLE, words);
    }
    call_end_flight(c, flight);
}

/* Of the write in front. A refusal is kept until WAIT is answered, too. */
static void take_touched(struct flight *flight, const struct reply *reply)
{
    if (reply->type == REDIS_REPLY_ERROR) {
        flight->held = 1;
        flight->words = alloc_text(reply->text);
    } else if (reply->type != REDIS_REPLY_INTEGER || reply->integers[0] != 1) {
        flight->call->restarts = UINT64_MAX; /* the key is gone: that is taken for a restart */
    }
}

bool replicas_take(struct carrier *c, struct node *node, const struct reply *reply)
{
    struct flight *flight = node->sent.first;

    if (++flight->index < flight->exchange.replies) {
        take_touched(flight, reply);
        return false;
    }
    (void)flights_take(&node->sent);
    if (flight->held > 0)
        take_refused(c, node, flight, flight->words != NULL ? flight->words : "");
    else if (reply->type == REDIS_REPLY_ERROR)
        take_refused(c, node, flight, reply->text);
    else
        take_count(c, node, flight, reply->type == REDIS_REPLY_INTEGER ? reply->integers[0] : 0);
    return true;
}

/* ---- The end of a call ------------------------------------------------------------------------- */

#define LOST "the server, or the filter's key, was lost before its replicas had what was written: call again"

static bool may_be_kept(const struct carrier *c, const struct call *call)
{
    return c->settings.options.min_replicas > 0 && !call_has_failed(call) && call->carried_out;
}

void replicas_keep(struct carrier *c, struct call *call)
{
    call->keeps = may_be_kept(c, call);
    if (call->keeps)
        ask_replicas(c, call);
    if (call->replicas_left == 0)
        call_set_runnable(c, call);
}

void replicas_note_kept(struct carrier *c, struct call *call)
{
    call->unkept = call->unkept ||
                   (call->keeps && !call_has_failed(call) && call->restarts != c->store.server.stats.restarts);
    call->keeps = false;
    if (call->unkept)
        task_fail(call->task, HIBLOOM_EUNAVAILABLE, LOST);
}

bool replicas_may_end(struct carrier *c, struct call *call)
{
    if (call->unkept && call->task->adds) { /* that was all that it failed of */
        call->unkept = false;
        call->task->status = HIBLOOM_OK;
    }
    const hibloom_status status = call->task->status;

    /* A replica that does not know the filter is not believed, nor is one whose guard another one has answered. */
    if (replicas_may_answer(c, call) &&
        ((status >= HIBLOOM_ENOTFOUND && status <= HIBLOOM_ECORRUPT) || (status == HIBLOOM_OK && call->two_servers))) {
        call->at_primary = true;
        call->task->again(call->task);
        call_set_runnable(c, call);
        return false;
    }
    if (!call->task->adds || !may_be_kept(c, call))
        return true;
    if (call->restarts != c->store.server.stats.restarts) {
        call->restarts = c->store.server.stats.restarts;
        if (call->task->again != NULL && call_may_retry(c, call)) {
            call->task->again(call->task);
            memset(call->touched, 0, sizeof call->touched);
            replicas_forget(call);
            call->wait_asked = false;
            call->anew = true;
            call_plan_retry(c, call);
            return false;
        }
        task_fail(call->task, HIBLOOM_EUNAVAILABLE, LOST);
        return true;
    }
    if (call->wait_asked)
        return true;
    call->wait_asked = true;
    ask_replicas(c, call);
    if (call->replicas_left == 0) /* a server that could not be asked is a restart, seen as the call ends again */
        call_set_runnable(c, call);
    return false;
}
