/* replicas.c: adds that replicas must have, look-ups that they answer. See replicas.h. */
#include "net/flights/replicas.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "net/flights/node.h"

#include <stdio.h>

static bool asks_replicas(const struct carrier *c, const struct call *call)
{
    return c->settings->options.read_from_replicas && call->task->reads && call->task->redo != NULL &&
           !call->task->at_primary && !call->replica_lacked;
}

bool replicas_may_answer(const struct carrier *c, const struct flight *flight)
{
    return asks_replicas(c, flight->call) && !flight->replica_failed && !flight->exchange.at_primary;
}

static bool wants_replicas(const struct carrier *c)
{
    return c->settings->options.min_replicas > 0;
}

/* ---- WAIT ------------------------------------------------------------------------------------- */

static struct touched *find_touched(const struct call *call, const struct node *node)
{
    struct touched *touched = call->touched;

    while (touched != NULL && touched->node != node)
        touched = touched->next;
    return touched;
}

/* A replica that answers has written nothing. Without memory no replica is waited for. So the node counts as one that lost its
 * part. */
void replicas_note_node(const struct carrier *c, const struct flight *flight, const struct node *node)
{
    struct call *call = flight->call;

    if (!wants_replicas(c) || (node->role == NODE_REPLICA && replicas_may_answer(c, flight)) ||
        find_touched(call, node) != NULL)
        return;
    struct touched *touched = alloc.malloc(sizeof *touched);
    if (touched == NULL) {
        task_no_memory(call->task);
        call_note_loss(call);
        return;
    }
    touched->next = call->touched;
    touched->node = node;
    touched->key[0] = '\0';
    call->touched = touched;
}

void replicas_note(const struct node *node, const struct flight *flight)
{
    const struct exchange *exchange = &flight->exchange;
    struct touched *touched = find_touched(flight->call, node);

    if (touched != NULL && node->role != NODE_REPLICA && !exchange->proof && !task_has_failed(flight->call->task) &&
        exchange->of != NULL)
        (void)keys_name(touched->key, exchange->of, exchange->key);
}

void replicas_forget(struct call *call)
{
    for (struct touched *touched; (touched = call->touched) != NULL;) {
        call->touched = touched->next;
        alloc.free(touched);
    }
}

/* From Redis 7.2 on, and in Valkey, WAIT covers only the writes of its own connection. A SETBIT that changes
 * nothing is no write. So items that others have just added, and this call has found in, may not be on a replica
 * yet. A touch is behind their writes: a write that changes nothing, in front of WAIT. Without a key, WAIT 0 0 takes
 * its place. */
static struct flight *new_touch(struct carrier *c, struct call *call, struct node *node, const struct touched *touched)
{
    const struct exchange exchange = {.replies = 1, .tag = touched->key[0] != '\0'};
    struct commands commands = {0};

    if (exchange.tag != 0) {
        task_touch(&commands, touched->key);
    } else {
        command_start(&commands, 3, "WAIT");
        command_number(&commands, 0);
        command_number(&commands, 0);
    }
    struct flight *flight = flight_of(&c->pool, call, FLIGHT_TOUCH, &exchange, &commands);
    if (flight != NULL)
        flight->to = node;
    return flight;
}

static void ask_replicas(struct carrier *c, struct call *call)
{
    for (unsigned i = 0; i < c->topology.count; i++) {
        struct node *node = c->topology.nodes[i];
        const struct touched *touched = find_touched(call, node);
        if (touched == NULL)
            continue;
        if (node->role == NODE_REPLICA) { /* deposed since: its writes may be lost */
            call_note_loss(call);
            continue;
        }
        struct flight *flight = new_touch(c, call, node, touched);
        if (flight == NULL) {
            task_no_memory(call->task);
            break;
        }
        call->replicas_left++;
        flights_put(&call->waiting, flight);
    }
    if (call->replicas_left == 0)
        call_set_runnable(c, call);
}

/* The time of the next WAIT, at most `ms`. A call that has less gets the number of replicas before its deadline. 0: no write
 * is there: their calls ended meanwhile. */
static uint64_t time_of_wait(const struct node *node, uint64_t ms)
{
    const struct flight *const first[] = {node->touched.first, node->sent.first, node->unwritten.first};
    const uint64_t now = clock_now_ms();
    uint64_t least = 0;

    for (size_t i = 0; i < sizeof first / sizeof *first; i++)
        for (const struct flight *flight = first[i]; flight != NULL; flight = flight->next) {
            const uint64_t deadline = flight->kind == FLIGHT_TOUCH ? flight->call->deadline : 0;
            const uint64_t time = deadline == 0 ? ms : deadline > now + 1 ? (deadline - now) / 2 : 1;
            if (flight->kind == FLIGHT_TOUCH && (least == 0 || time < least))
                least = time < ms ? time : ms;
        }
    return least;
}

/* WAIT stops the whole connection at the server, so there is one at a time. Writes in between share the next one. */
void replicas_wait(struct carrier *c, struct node *node)
{
    struct commands commands = {0};

    if (!node->wants_wait || node->waits || node->state != NODE_READY)
        return;
    node->wants_wait = false;
    const uint64_t ms = time_of_wait(node, c->settings->options.replicas_ms);
    if (ms == 0)
        return;
    command_start(&commands, 3, "WAIT");
    command_number(&commands, c->settings->options.min_replicas);
    command_number(&commands, ms);
    struct flight *flight = flight_of(&c->pool, NULL, FLIGHT_WAIT, &(struct exchange){.replies = 1}, &commands);
    if (flight == NULL) {
        node_lose(c, node, HIBLOOM_ENOMEM, "out of memory");
        return;
    }
    node->waits = true;
    node_queue(c, node, flight);
}

/* Sends the write and WAIT again. */
static void wait_again(struct carrier *c, struct node *node, struct flight *flight)
{
    (void)flight_resend(flight, false);
    c->store.server.stats.retries++;
    flight->index = 0;
    flight->to = node;
    flights_put(&flight->call->waiting, flight);
    call_plan_retry(c, flight->call);
}

/* The write was refused, or WAIT. */
static void take_refused(struct carrier *c, struct node *node, struct flight *flight, const char *text)
{
    const enum refusal refusal = refusal_of(text);
    struct call *call = flight->call;
    char words[REPLY_TEXT];

    if (refusal == REFUSAL_READONLY ||
        (c->topology.clustered && (refusal == REFUSAL_MOVED || refusal == REFUSAL_ASK))) {
        /* Deposed; or the key has moved, but others of the call have not. Nobody would wait for these. It is made again. */
        carrier_note_stale(c);
        call_note_loss(call);
        call_end_flight(c, flight);
    } else if (refusal_status(refusal) == HIBLOOM_EUNAVAILABLE && call_may_retry(c, call)) {
        wait_again(c, node, flight);
    } else {
        refusal_explain(refusal, text, words, sizeof words);
        call_give_up(c, call, node, refusal_status(refusal), words);
        call_end_flight(c, flight);
    }
}

/* Between a write and its WAIT the server may have been a replica, and have lost the write. Then WAIT counts by a history
 * that is no more. At the end of an add that is told within a second. But a call that goes on may tell of a link that is
 * lost, or remove one that is not left over. So the server first says that it still is the same run. */
static void take_count(struct carrier *c, struct node *node, struct flight *flight, long long replicas)
{
    const uint32_t wanted = (uint32_t)c->settings->options.min_replicas;
    char words[160];

    if (replicas >= wanted) {
        if (flight->call->replicates)
            node_greet_behind(c, node, flight);
        else
            call_end_flight(c, flight);
        return;
    }
    const int len = snprintf(words, sizeof words, "replicas with the write: %lld, min_replicas=%u", replicas, wanted);
    if (call_may_retry(c, flight->call)) {
        carrier_note_trouble(c, node, HIBLOOM_EUNAVAILABLE, words, "; trying again");
        wait_again(c, node, flight);
    } else {
        snprintf(words + len, sizeof words - (size_t)len,
                 "; the primary has it: call again, and take the items of an add for new");
        call_give_up(c, flight->call, node, HIBLOOM_EUNAVAILABLE, words);
        call_end_flight(c, flight);
    }
}

/* The answer to the write is here. Its call waits for the answer to WAIT behind it, also if the write was refused. */
static void take_touched(struct carrier *c, struct node *node, struct flight *flight, const struct reply *reply)
{
    flight->index = 1;
    if (reply->type == REDIS_REPLY_ERROR) {
        flight->held = 1;
        flight->words = alloc_text(reply->text);
        if (refusal_of(reply->text) == REFUSAL_READONLY)
            carrier_note_demoted(c, node);
    } else if (flight->exchange.tag != 0 && (reply->type != REDIS_REPLY_INTEGER || reply->integers[0] != 1)) {
        call_note_loss(flight->call); /* the key is gone: that counts as a restart */
    }
    flights_put(&node->touched, flight);
}

/* It covers all writes whose answers came before it. */
static void take_wait(struct carrier *c, struct node *node, const struct reply *reply)
{
    struct flights covered = {0};

    node->waits = false;
    flights_join(&covered, &node->touched);
    for (struct flight *flight; (flight = flights_take(&covered)) != NULL;)
        if (flight->held > 0 && flight->words == NULL) { /* there was no memory to keep them */
            call_flight_failed(c, flight, node, HIBLOOM_ENOMEM, "out of memory", false);
        } else if (flight->held > 0) {
            take_refused(c, node, flight, flight->words);
        } else if (reply->type == REDIS_REPLY_ERROR) {
            take_refused(c, node, flight, reply->text);
        } else {
            take_count(c, node, flight, reply->type == REDIS_REPLY_INTEGER ? reply->integers[0] : 0);
        }
}

void replicas_take(struct carrier *c, struct node *node, const struct reply *reply)
{
    struct flight *flight = flights_take(&node->sent);

    if (flight->kind == FLIGHT_TOUCH) {
        take_touched(c, node, flight, reply);
    } else {
        take_wait(c, node, reply);
        flight_free(&c->pool, flight);
    }
}

/* ---- The end of a call ------------------------------------------------------------------------- */

#define LOST "the connection, the server or the filter's key was lost before replicas had the write: call again"

void replicas_await(struct carrier *c, struct call *call)
{
    call->replicates = wants_replicas(c) && !task_has_failed(call->task) && call->nodes != 0;
    if (call->replicates)
        ask_replicas(c, call);
    else
        call_set_runnable(c, call);
}

void replicas_note_awaited(struct carrier *c, struct call *call)
{
    call->unreplicated = call->unreplicated || (call->replicates && !task_has_failed(call->task) &&
                                                call->restarts != c->store.server.stats.restarts);
    call->replicates = false;
    if (call->unreplicated)
        task_fail(call->task, HIBLOOM_EUNAVAILABLE, LOST);
}

bool replicas_may_end(struct carrier *c, struct call *call)
{
    const bool unreplicated = call->unreplicated && call->task->redo != NULL;

    if (unreplicated) { /* that was all that it failed of */
        call->unreplicated = false;
        call->task->status = HIBLOOM_OK;
    }
    const hibloom_status status = call->task->status;

    /* The result of a replica does not count in two cases. It does not know the filter, or it got the filter
     * between two commands (EPROTO). */
    if (asks_replicas(c, call) &&
        ((status >= HIBLOOM_ENOTFOUND && status <= HIBLOOM_ECORRUPT) || status == HIBLOOM_EPROTO)) {
        call->replica_lacked = true;
        call->task->redo(call->task);
        call_set_runnable(c, call);
        return false;
    }
    if (!(call->task->adds || unreplicated) || task_has_failed(call->task) || call->nodes == 0)
        return true;
    if (call->restarts != c->store.server.stats.restarts) {
        if (call_begin_again(c, call)) {
            replicas_forget(call);
            call->wait_asked = false;
            return false;
        }
        if (wants_replicas(c))
            task_fail(call->task, HIBLOOM_EUNAVAILABLE, LOST);
        return true;
    }
    if (!wants_replicas(c) || call->wait_asked)
        return true;
    call->wait_asked = true;
    ask_replicas(c, call); /* a server that could not be asked is a restart, seen as the call ends again */
    return false;
}
