/* replicas.c: adds that replicas must have, look-ups that they answer. See replicas.h. */
#include "net/replicas.h"
#include "net/dispatch.h"
#include "net/locate.h"

#include <stdio.h>
#include <string.h>

bool replicas_may_answer(const struct carrier *c, const struct call *call)
{
    return c->settings.options.read_from_replicas && call->task->reads && call->task->again != NULL &&
           !call->at_primary;
}

static void ask_replicas(struct carrier *c, struct call *call)
{
    struct commands commands = {0};

    command_start(&commands, 3, "WAIT");
    command_number(&commands, c->settings.options.min_replicas);
    command_number(&commands, c->settings.options.replicas_ms);
    for (unsigned i = 0; i < c->topology.count; i++) {
        if (!flags_has(call->touched, i))
            continue;
        struct flight *flight = commands.failed
                                    ? NULL
                                    : flight_new(&c->pool, call, FLIGHT_WAIT, &(struct exchange){.replies = 1},
                                                 commands.bytes, commands.len);
        if (flight == NULL) {
            task_no_memory(call->task);
            break;
        }
        flight->to = c->topology.nodes[i];
        call->replicas_left++;
        flights_put(&call->waiting, flight);
    }
    commands_free(&commands);
    dispatch_call(c, call);
}

void replicas_take(struct carrier *c, struct node *node, const struct reply *reply)
{
    struct flight *flight = flights_take(&node->sent);
    struct call *call = flight->call;
    const uint32_t wanted = c->settings.options.min_replicas;
    const bool refused = reply->type == REDIS_REPLY_ERROR;
    const enum refusal refusal = refused ? refusal_of(reply->text) : REFUSAL_NOREPLICAS;
    char words[REPLY_TEXT];

    if (reply->type == REDIS_REPLY_INTEGER && reply->integers[0] >= wanted) {
        call_end_flight(c, flight);
        return;
    }
    if (refusal == REFUSAL_READONLY) { /* it is no primary any more */
        node->leave = true;
        locate_note_stale(c);
        call_flight_failed(c, flight, node, HIBLOOM_EUNAVAILABLE, NULL, false);
        return;
    }
    if (refusal_status(refusal) == HIBLOOM_EUNAVAILABLE && call_may_retry(c, call)) {
        flight->to = node;
        flights_put(&call->waiting, flight);
        call_plan_retry(c, call);
        return;
    }
    if (refused)
        refusal_explain(refusal, reply->text, words, sizeof words);
    else
        snprintf(words, sizeof words, "%lld replicas have the adds, of %u that min_replicas asks for",
                 reply->integers[0], wanted);
    call_give_up(c, call, node, refusal_status(refusal), words);
    call_end_flight(c, flight);
}

#define LOST "the server was lost before its replicas had the adds: add them again"

static bool must_be_kept(const struct carrier *c, const struct call *call)
{
    return call->task->adds && c->settings.options.min_replicas > 0 && !call_has_failed(call) && call->sent;
}

void replicas_keep(struct carrier *c, struct call *call)
{
    call->keeps = must_be_kept(c, call);
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
    if (call->unkept) { /* that was all that it failed of */
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
    if (!must_be_kept(c, call))
        return true;
    if (call->restarts != c->store.server.stats.restarts) {
        call->restarts = c->store.server.stats.restarts;
        if (call->task->again != NULL && call_may_retry(c, call)) {
            call->task->again(call->task);
            memset(call->touched, 0, sizeof call->touched);
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
    return call->replicas_left == 0;
}
