/* carrier.c: brings tasks to their end. See carrier.h.
 *
 *   a call          step: what does the task want next? -> dispatch
 *   a flight        dispatch -> to a node -> send; what failed -> again, or lost
 *   a node          open -> greet -> ready; lost
 *   where           locate: ask one node after the other who is where (locate.c)
 *
 * Events note what has moved, and settle goes on with it at their end: so no task is
 * asked while it is being told, and nothing here calls itself. */
#include "net/carrier.h"
#include "base/clock.h"
#include "net/locate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define REDIRECTS_MAX 16u  /* of one exchange: two nodes that send it to each other know nothing */
#define PAUSE_MAX_MS 1000u /* between two tries */
#define PAUSE_DOUBLINGS 7u /* 10 ms, 20, 40 ... */

/* ---- Calls that have moved, or wait -------------------------------------------------------- */

/* Its task is asked for what is next, by carrier_settle. */
static void note_moved(struct carrier *c, struct call *call)
{
    if (!call->queued)
        TAILQ_INSERT_TAIL(&c->moved, call, in_moved);
    call->queued = true;
}

static void sleep_until(struct carrier *c, struct call *call, uint64_t at)
{
    if (call->wake_at == 0)
        TAILQ_INSERT_TAIL(&c->asleep, call, in_asleep);
    call->wake_at = at;
    if (c->wake_at == 0 || at < c->wake_at)
        c->wake_at = at;
}

static void wake_up(struct carrier *c, struct call *call)
{
    if (call->wake_at != 0)
        TAILQ_REMOVE(&c->asleep, call, in_asleep);
    call->wake_at = 0;
}

/* ---- May it be tried again? ---------------------------------------------------------- */

static bool has_failed(const struct call *call)
{
    return call->task->status != HIBLOOM_OK;
}

static bool is_under_way(const struct node *node)
{
    return node->state == NODE_OPENING || node->sent.first != NULL;
}

/* Is it certain that carrier_tick will be called again? */
static bool can_wait(const struct carrier *c)
{
    if (c->timed)
        return true;
    for (unsigned i = 0; i < c->topology.count; i++)
        if (is_under_way(c->topology.nodes[i]))
            return true;
    return false;
}

/* The first time it is tried again at once. */
static bool may_retry(const struct carrier *c, const struct call *call)
{
    const uint64_t now = clock_now_ms();

    return c->settings.options.retry_ms != 0 && (call->attempts == 0 || call->wake_at != 0 || can_wait(c)) &&
           !c->borrowed && !has_failed(call) && (call->deadline == 0 || now < call->deadline) &&
           (call->retry_until == 0 || now < call->retry_until);
}

/* Half of the pause is drawn, so that a thousand clients do not come back at once. */
static uint64_t draw_pause(struct carrier *c, unsigned attempts)
{
    const unsigned doublings = attempts < PAUSE_DOUBLINGS ? attempts : PAUSE_DOUBLINGS;
    const uint64_t pause = attempts == 0 ? 0 : UINT64_C(5) << doublings;

    c->random = c->random * UINT64_C(6364136223846793005) + 1442695040888963407u; /* Knuth, MMIX */
    const uint64_t drawn = pause == 0 ? 0 : pause / 2 + (c->random >> 33) % (pause / 2 + 1);
    return drawn < PAUSE_MAX_MS ? drawn : PAUSE_MAX_MS;
}

static void plan_retry(struct carrier *c, struct call *call)
{
    const uint64_t now = clock_now_ms();

    if (call->retry_until == 0)
        call->retry_until = now + c->settings.options.retry_ms;
    if (call->wake_at != 0)
        return;
    const uint64_t at = now + draw_pause(c, call->attempts++);
    sleep_until(c, call, call->deadline != 0 && call->deadline < at ? call->deadline : at);
}

static void note_progress(struct call *call)
{
    call->retry_until = 0;
    call->attempts = 0;
}

/* ---- A call ends or fails ------------------------------------------------------------ */

/* Its replies will not come. */
static void lose(struct carrier *c, struct flight *flight)
{
    struct call *call = flight->call;

    if (flight->errand == ERRAND_TASK)
        for (; flight->index < flight->exchange.replies; flight->index++)
            call->task->class->reply(call->task, flight->exchange.tag, flight->index, NULL);
    else if (flight->errand == ERRAND_REPLICAS)
        call->replicas_left--;
    note_moved(c, call);
    flight_free(flight);
}

static void lose_all(struct carrier *c, struct flights *flights)
{
    for (struct flight *flight; (flight = flights_take(flights)) != NULL;)
        lose(c, flight);
}

/* Takes what the call has in the queue out of it. */
static void recall(struct flights *from, const struct call *call, struct flights *to)
{
    struct flights rest;

    flights_make(&rest);
    for (struct flight *flight; (flight = flights_take(from)) != NULL;)
        flights_put(flight->call == call ? to : &rest, flight);
    flights_join(from, &rest);
}

/* What is on its way is still answered; what is not sent yet never is. */
static void drop_unsent(struct carrier *c, struct call *call)
{
    struct flights unsent;

    flights_make(&unsent);
    flights_join(&unsent, &call->waiting);
    for (unsigned i = 0; i < c->topology.count; i++)
        recall(&c->topology.nodes[i]->pending, call, &unsent);
    wake_up(c, call);
    lose_all(c, &unsent);
}

static void give_up(struct carrier *c, struct call *call, const struct node *at, hibloom_status status,
                    const char *words)
{
    if (!has_failed(call))
        call->at = at;
    if (call->attempts > 0)
        task_fail(call->task, status, "%s (tried %u times)", words, call->attempts + 1);
    else
        task_fail(call->task, status, "%s", words);
    drop_unsent(c, call);
}

/* A refusal that was held back, told to the task after all. */
static void tell_refusal(struct flight *flight)
{
    struct reply *reply = calloc(1, sizeof *reply);
    struct task *task = flight->call->task;

    if (reply == NULL) {
        task_no_memory(task);
        return;
    }
    reply->type = REDIS_REPLY_ERROR;
    reply->repeated = flight->index >= flight->doubtful && !task->reads;
    reply->text_len = (size_t)snprintf(reply->text, sizeof reply->text, "%s",
                                       flight->words != NULL ? flight->words : "");
    task->class->reply(task, flight->exchange.tag, flight->index++, reply);
    free(reply);
}

/* What did not come through is sent again, or the call fails. Of a refusal, words is NULL. */
static void fail(struct carrier *c, struct flight *flight, struct node *node, hibloom_status status, const char *words,
                 bool lost)
{
    struct call *call = flight->call;
    const bool elsewhere = node->role == NODE_REPLICA && !flight->at_primary && !has_failed(call);

    if (flight->errand == ERRAND_REPLICAS) { /* is_kept goes on with it */
        call->restarts = UINT64_MAX;
        lose(c, flight);
        return;
    }
    if (!elsewhere && !may_retry(c, call)) {
        if (!has_failed(call)) {
            call->at = node;
            if (words == NULL)
                tell_refusal(flight);
            else
                give_up(c, call, node, status, words);
        }
        lose(c, flight);
        return;
    }
    const uint32_t in_doubt = flight_again(flight, lost);
    if (lost && !call->task->reads)
        c->store.server.stats.in_doubt += in_doubt;
    c->store.server.stats.retries++;
    flight->at_primary = elsewhere || flight->at_primary;
    flight->redirects = 0; /* there is a pause now, and an end to them */
    flights_put(&call->waiting, flight);
    if (!elsewhere)
        plan_retry(c, call);
    else if (call->wake_at == 0)
        sleep_until(c, call, clock_now_ms());
}

/* ---- A server that forgot --------------------------------------------------------------- */

/* Does the handle not know yet that a server forgot? */
static bool has_forgotten(const struct carrier *c, const struct call *call)
{
    const struct redis_filter *own = call->task->filter != NULL ? redis_filter_of(call->task->filter) : NULL;

    return own != NULL && own->restarts != c->store.server.stats.restarts && !c->settings.options.accept_restarts;
}

static void tell_forgotten(struct carrier *c, struct call *call, const struct node *at)
{
    redis_filter_of(call->task->filter)->restarts = c->store.server.stats.restarts;
    give_up(c, call, at, HIBLOOM_ELOST,
            "the server was restarted, or another took over: adds that were acknowledged may be missing (the next "
            "call goes on)");
}

void carrier_restarted(struct carrier *c, const struct node *node)
{
    char where[NODE_HOST_SIZE + 16];

    c->store.server.stats.restarts++;
    settings_log(&c->settings, HIBLOOM_LOG_WARNING,
                 "%s: another run of the server than before: it was restarted, or another took over; adds that were "
                 "acknowledged may be missing",
                 carrier_where(c, node, where, sizeof where));
    for (struct call *call = TAILQ_FIRST(&c->calls); call != NULL; call = TAILQ_NEXT(call, in_calls))
        if ((!call->sent || call->task->reads) && !has_failed(call) && has_forgotten(c, call))
            tell_forgotten(c, call, node);
}

/* ---- Nodes ------------------------------------------------------------------------------- */

static void shut(struct carrier *c, struct node *node)
{
    c->pipes->close(node);
    node->state = NODE_CLOSED;
    node->dirty = false;
}

static void send(struct carrier *c, struct node *node, struct flight *flight)
{
    static const char asking[] = "*1\r\n$6\r\nASKING\r\n";
    hibloom_stats *stats = &c->store.server.stats;
    size_t at = flight_from(flight);

    if (flight->exchange.replies == 0) { /* it only wanted to get here */
        lose(c, flight);
        return;
    }
    flight->number = c->numbers++;
    stats->commands += flight->exchange.replies - flight->index;
    stats->bytes_sent += flight->len - at;
    while (flight->asking && at < flight->len) {
        const size_t len = command_length(flight->bytes + at, flight->len - at);
        c->pipes->put(node, asking, sizeof asking - 1);
        c->pipes->put(node, flight->bytes + at, len);
        at += len;
    }
    if (at < flight->len)
        c->pipes->put(node, flight->bytes + at, flight->len - at);
    flights_put(&node->sent, flight);
    node->dirty = true;
    if (flight->call != NULL) {
        flight->call->sent = true;
        flight->call->touched[node->number / 64] |= UINT64_C(1) << node->number % 64;
    }
}

static void make_ready(struct carrier *c, struct node *node)
{
    node->state = NODE_READY;
    for (struct flight *flight; (flight = flights_take(&node->pending)) != NULL;)
        send(c, node, flight);
}

static hibloom_status greet(struct carrier *c, struct node *node)
{
    struct commands commands = {0};
    struct flight *flight = NULL;

    if (c->borrowed) {
        make_ready(c, node);
        return HIBLOOM_OK;
    }
    greeting_write(&node->greeting, &commands, &c->settings, node->role);
    if (!commands.failed)
        flight = flight_new(&c->hangar, NULL, ERRAND_GREETING, &(struct exchange){.replies = node->greeting.count},
                            commands.bytes, commands.len);
    commands_free(&commands);
    if (flight != NULL)
        send(c, node, flight);
    return flight != NULL ? HIBLOOM_OK : HIBLOOM_ENOMEM;
}

static void note_stale(struct carrier *c)
{
    c->stale = c->topology.clustered || c->settings.uri.kind == URI_SENTINEL;
}

static void lose_node(struct carrier *c, struct node *node, hibloom_status status, const char *words)
{
    struct flights sent, pending;
    char where[NODE_HOST_SIZE + 16];

    settings_log(&c->settings, HIBLOOM_LOG_WARNING, "%s: %s", carrier_where(c, node, where, sizeof where), words);
    flights_make(&sent);
    flights_make(&pending);
    flights_join(&sent, &node->sent);
    flights_join(&pending, &node->pending);
    shut(c, node);
    note_stale(c);
    for (struct flight *flight; (flight = flights_take(&sent)) != NULL;) {
        if (flight->call != NULL) {
            fail(c, flight, node, status, words, true);
            continue;
        }
        if (flight->errand == ERRAND_LOCATE)
            locate_failed(c, status, words);
        flight_free(flight);
    }
    for (struct flight *flight; (flight = flights_take(&pending)) != NULL;) {
        if (flight->call != NULL) {
            fail(c, flight, node, status, words, false);
            continue;
        }
        locate_failed(c, status, words);
        flight_free(flight);
    }
}

static void take_greeting(struct carrier *c, struct node *node, struct flight *flight, const redisReply *object)
{
    struct greeting *g = &node->greeting;
    struct error error;
    const hibloom_status status = greeting_take(g, &c->settings, flight->index++, object, &error);
    char where[NODE_HOST_SIZE + 16];

    if (status != HIBLOOM_OK) {
        lose_node(c, node, status, error.words);
        return;
    }
    if (flight->index < flight->exchange.replies)
        return;
    flight_free(flights_take(&node->sent));
    settings_log(&c->settings, HIBLOOM_LOG_INFO, "%s: connected", carrier_where(c, node, where, sizeof where));
    /* a replica that restarts gets all of it from its primary */
    const bool restarted = node->role == NODE_PRIMARY && node->run_id[0] != '\0' && g->run_id[0] != '\0' &&
                           strcmp(node->run_id, g->run_id) != 0;
    if (g->run_id[0] != '\0')
        strcpy(node->run_id, g->run_id);
    if (restarted)
        carrier_restarted(c, node);
    make_ready(c, node);
}

/* Makes the connection, if there is none. Not OK: it cannot be made. */
static hibloom_status reach(struct carrier *c, struct node *node, struct error *error)
{
    const bool quiet = node->state == NODE_READY && node->sent.first == NULL;

    if (quiet && (node->leave || !c->pipes->is_alive(node)))
        shut(c, node);
    if (node->state != NODE_CLOSED)
        return !node->leave ? HIBLOOM_OK
                            : error_set(error, HIBLOOM_EUNAVAILABLE, "it is no master any more, and still answering");
    node->leave = false;
    hibloom_status status = c->pipes->open(c, node, error);
    if (status != HIBLOOM_OK)
        return status;
    c->store.server.stats.connections += !c->borrowed;
    if (node->state != NODE_GREETING)
        return HIBLOOM_OK;
    status = greet(c, node);
    if (status != HIBLOOM_OK)
        shut(c, node);
    return status != HIBLOOM_OK ? error_set(error, status, "out of memory") : HIBLOOM_OK;
}

void carrier_opened(struct carrier *c, struct node *node)
{
    node->state = NODE_GREETING;
    if (greet(c, node) != HIBLOOM_OK)
        lose_node(c, node, HIBLOOM_ENOMEM, "out of memory");
    carrier_settle(c);
}

hibloom_status carrier_send_to(struct carrier *c, struct node *node, struct flight *flight, struct error *error)
{
    const hibloom_status status = reach(c, node, error);

    if (status != HIBLOOM_OK)
        return status;
    if (node->state == NODE_READY)
        send(c, node, flight);
    else
        flights_put(&node->pending, flight);
    return HIBLOOM_OK;
}

/* ---- Flights ------------------------------------------------------------------------------ */

/* A call that has failed gets one new connection to a node, to take back what it did. */
static bool is_spent(struct node *node, const struct call *call)
{
    return node->state == NODE_CLOSED && has_failed(call) && node->revived_by == call->number;
}

static void send_flight(struct carrier *c, struct node *node, struct flight *flight)
{
    struct call *call = flight->call;
    struct error error;

    if (is_spent(node, call)) {
        lose(c, flight);
        return;
    }
    if (node->state == NODE_CLOSED && has_failed(call))
        node->revived_by = call->number;
    const hibloom_status status = carrier_send_to(c, node, flight, &error);
    if (status != HIBLOOM_OK) {
        note_stale(c);
        fail(c, flight, node, status, error.words, false);
    }
}

/* May replicas answer? Where one does not know the filter yet, the primary is asked again. */
static bool may_lag(const struct carrier *c, const struct call *call)
{
    return c->settings.options.read_from_replicas && call->task->reads && call->task->again != NULL &&
           !call->at_primary;
}

/* What waits goes to where its keys are; all of it waits on while nobody knows where that is. */
static void dispatch(struct carrier *c, struct call *call)
{
    struct flights now;

    flights_make(&now);
    flights_join(&now, &call->waiting);
    for (struct flight *flight; (flight = flights_take(&now)) != NULL;) {
        struct node *node = flight->to;
        if (flight->exchange.replies == 0 && c->topology.clustered && !c->stale) {
            lose(c, flight); /* of a cluster, to know who is where is enough */
            continue;
        }
        if (node == NULL && !c->stale)
            node = topology_route(&c->topology, flight->exchange.slot, may_lag(c, call) && !flight->at_primary);
        if (node == NULL && !c->stale && flight->redirects++ == 0)
            note_stale(c); /* somebody may have it now */
        if (node != NULL)
            send_flight(c, node, flight);
        else if (c->stale)
            flights_put(&call->waiting, flight);
        else
            fail(c, flight, c->topology.nodes[0], HIBLOOM_EUNAVAILABLE, "no node of the cluster has the key's slot",
                 false);
    }
    if (call->waiting.first != NULL && call->wake_at == 0)
        locate_begin(c);
}

/* Refused for now: redirected, or to be sent again later. */
static void send_elsewhere(struct carrier *c, struct node *node, struct flight *flight)
{
    const enum refusal refusal = flight->refusal;
    const bool was_fine = !has_failed(flight->call);
    struct node *to = NULL;
    bool took_over = false;

    if (refusal == REFUSAL_MOVED || refusal == REFUSAL_ASK)
        to = topology_redirect(&c->topology, node, flight->words, &took_over);
    if (took_over)
        carrier_restarted(c, to);
    if (was_fine && has_failed(flight->call)) { /* it has just been told that a server forgot */
        lose(c, flight);
        return;
    }
    if (refusal == REFUSAL_READONLY || refusal == REFUSAL_MASTERDOWN || refusal == REFUSAL_MOVED)
        note_stale(c);
    node->leave = node->leave || refusal == REFUSAL_READONLY;
    if (to == NULL || flight->redirects++ == REDIRECTS_MAX) {
        fail(c, flight, node, refusal_status(refusal), NULL, false);
        return;
    }
    c->store.server.stats.redirects++;
    (void)flight_again(flight, false);
    flight->to = to;
    flight->asking = refusal == REFUSAL_ASK;
    flights_put(&flight->call->waiting, flight);
    if (flight->call->wake_at == 0)
        sleep_until(c, flight->call, clock_now_ms());
}

/* Can somebody else answer it, or the same server later? */
static bool is_held(const struct carrier *c, const struct node *node, const struct flight *flight, enum refusal refusal)
{
    if (c->topology.clustered && (refusal == REFUSAL_MOVED || refusal == REFUSAL_ASK))
        return true;
    return refusal_status(refusal) == HIBLOOM_EUNAVAILABLE &&
           (may_retry(c, flight->call) || (node->role == NODE_REPLICA && !flight->at_primary));
}

static void take_task_reply(struct carrier *c, struct node *node, struct flight *flight, struct reply *reply)
{
    struct call *call = flight->call;
    struct task *task = call->task;
    const bool refused = reply->type == REDIS_REPLY_ERROR;
    const enum refusal refusal = refused ? refusal_of(reply->text) : REFUSAL_OTHER;

    if (flight->held == 0 && !(refused && is_held(c, node, flight, refusal))) {
        reply->repeated = flight->index >= flight->doubtful && !task->reads;
        const bool fine = !has_failed(call);
        task->class->reply(task, flight->exchange.tag, flight->index++, reply);
        if (fine && has_failed(call))
            call->at = node;
    } else if (flight->held++ == 0) {
        flight->refusal = refusal;
        flight->words = strdup(reply->text);
    } else {
        const uint32_t command = flight->index + flight->held - 1;
        flight->carried_out = !refused && command < flight->carried_out ? command : flight->carried_out;
    }
    if (flight->index + flight->held < flight->exchange.replies)
        return;
    (void)flights_take(&node->sent);
    if (flight->held > 0) {
        send_elsewhere(c, node, flight);
        return;
    }
    note_progress(call);
    note_moved(c, call);
    flight_free(flight);
}

/* ---- Replicas that must have it ------------------------------------------------------------- */

static void ask_replicas(struct carrier *c, struct call *call)
{
    struct commands commands = {0};

    command_start(&commands, 3, "WAIT");
    command_number(&commands, c->settings.options.min_replicas);
    command_number(&commands, c->settings.options.replicas_ms);
    for (unsigned i = 0; i < c->topology.count; i++) {
        if ((call->touched[i / 64] >> i % 64 & 1) == 0)
            continue;
        struct flight *flight = commands.failed
                                    ? NULL
                                    : flight_new(&c->hangar, call, ERRAND_REPLICAS, &(struct exchange){.replies = 1},
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
    dispatch(c, call);
}

static void take_replicas(struct carrier *c, struct node *node, const struct reply *reply)
{
    struct flight *flight = flights_take(&node->sent);
    struct call *call = flight->call;
    const uint32_t wanted = c->settings.options.min_replicas;
    const bool refused = reply->type == REDIS_REPLY_ERROR;
    const enum refusal refusal = refused ? refusal_of(reply->text) : REFUSAL_NOREPLICAS;
    char words[REPLY_TEXT];

    if (reply->type == REDIS_REPLY_INTEGER && reply->integers[0] >= wanted) {
        lose(c, flight);
        return;
    }
    if (refusal == REFUSAL_READONLY) { /* it is no primary any more */
        node->leave = true;
        note_stale(c);
        fail(c, flight, node, HIBLOOM_EUNAVAILABLE, NULL, false);
        return;
    }
    if (refusal_status(refusal) == HIBLOOM_EUNAVAILABLE && may_retry(c, call)) {
        flight->to = node;
        flights_put(&call->waiting, flight);
        plan_retry(c, call);
        return;
    }
    if (refused)
        refusal_explain(refusal, reply->text, words, sizeof words);
    else
        snprintf(words, sizeof words, "%lld of the %u replicas that are asked for have the adds", reply->integers[0],
                 wanted);
    give_up(c, call, node, refusal_status(refusal), words);
    lose(c, flight);
}

/* Whether the call ends now: all that it added is where it has to be. */
static bool is_kept(struct carrier *c, struct call *call)
{
    if (may_lag(c, call) && call->task->status >= HIBLOOM_ENOTFOUND && call->task->status <= HIBLOOM_ECORRUPT) {
        call->at_primary = true;
        call->task->again(call->task);
        note_moved(c, call);
        return false;
    }
    if (!call->task->adds || c->settings.options.min_replicas == 0 || has_failed(call) || !call->sent)
        return true;
    if (call->restarts != c->store.server.stats.restarts) {
        call->restarts = c->store.server.stats.restarts;
        if (call->task->again != NULL && may_retry(c, call)) {
            call->task->again(call->task);
            memset(call->touched, 0, sizeof call->touched);
            note_moved(c, call);
            call->wait_asked = false;
            return false;
        }
        task_fail(call->task, HIBLOOM_EUNAVAILABLE,
                  "the server was lost before its replicas had the adds: add them again");
        return true;
    }
    if (call->wait_asked)
        return true;
    call->wait_asked = true;
    ask_replicas(c, call);
    return call->replicas_left == 0;
}

/* ---- A call ------------------------------------------------------------------------------------ */

static void take_outbox(struct carrier *c, struct call *call)
{
    struct outbox *outbox = &call->outbox;
    const char *bytes = outbox->commands.len > 0 ? outbox->commands.bytes : ""; /* who only reaches writes none */
    size_t from = 0;

    for (size_t i = 0; i < outbox->count; i++) {
        const struct exchange *exchange = &outbox->exchanges[i];
        struct flight *flight = flight_new(&c->hangar, call, ERRAND_TASK, exchange, bytes + from, exchange->end - from);
        from = exchange->end;
        if (flight != NULL) {
            flights_put(&call->waiting, flight);
            continue;
        }
        task_no_memory(call->task);
        for (uint32_t index = 0; index < exchange->replies; index++)
            call->task->class->reply(call->task, exchange->tag, index, NULL);
        note_moved(c, call);
    }
    outbox_empty(outbox);
}

/* A call that failed before anything was sent has nothing to take back. */
static bool is_vain(struct carrier *c, struct call *call)
{
    if (!has_failed(call) || call->sent)
        return false;
    drop_unsent(c, call);
    return true;
}

/* Whether the call ends. */
static bool step(struct carrier *c, struct call *call)
{
    if (call->waiting.first != NULL && call->wake_at == 0)
        dispatch(c, call);
    if (call->replicas_left > 0)
        return false;
    if (is_vain(c, call))
        return true;
    switch (call->task->class->next(call->task, &call->outbox)) {
    case TASK_SEND:
        take_outbox(c, call);
        dispatch(c, call);
        note_moved(c, call);
        break;
    case TASK_WAIT: break;
    case TASK_PAUSE: sleep_until(c, call, clock_now_ms() + call->task->pause_ms); break;
    case TASK_DONE: return is_kept(c, call);
    }
    return false;
}

static void end(struct carrier *c, struct call *call)
{
    call->done = true;
    wake_up(c, call);
    if (call->queued)
        TAILQ_REMOVE(&c->moved, call, in_moved);
    call->queued = false;
    TAILQ_REMOVE(&c->calls, call, in_calls);
    TAILQ_INSERT_TAIL(&c->ended, call, in_calls);
}

static void flush(struct carrier *c)
{
    struct error error;

    for (unsigned i = 0; i < c->topology.count; i++) {
        struct node *node = c->topology.nodes[i];
        if (!node->dirty)
            continue;
        node->dirty = false;
        c->store.server.stats.round_trips++;
        const hibloom_status status = c->pipes->flush(node, &error);
        if (status != HIBLOOM_OK)
            lose_node(c, node, status, error.words);
    }
}

void carrier_settle(struct carrier *c)
{
    do {
        for (struct call *call; (call = TAILQ_FIRST(&c->moved)) != NULL;) {
            TAILQ_REMOVE(&c->moved, call, in_moved);
            call->queued = false;
            if (step(c, call))
                end(c, call);
        }
        flush(c);
    } while (!TAILQ_EMPTY(&c->moved));
}

void carrier_dispatch_all(struct carrier *c)
{
    for (struct call *call = TAILQ_FIRST(&c->calls); call != NULL; call = TAILQ_NEXT(call, in_calls))
        if (call->waiting.first != NULL) {
            wake_up(c, call);
            dispatch(c, call);
        }
}

void carrier_fail_all(struct carrier *c, hibloom_status status, const char *words)
{
    for (struct call *call = TAILQ_FIRST(&c->calls); call != NULL; call = TAILQ_NEXT(call, in_calls)) {
        struct flights waiting;
        flights_make(&waiting);
        flights_join(&waiting, &call->waiting);
        for (struct flight *flight; (flight = flights_take(&waiting)) != NULL;)
            fail(c, flight, c->topology.nodes[0], status, words, false);
    }
}

void carrier_begin(struct carrier *c, struct call *call, struct task *task)
{
    struct outbox outbox = call->outbox;

    *call = (struct call){.task = task, .outbox = outbox, .number = ++c->store.server.stats.calls};
    flights_make(&call->waiting);
    TAILQ_INSERT_TAIL(&c->calls, call, in_calls);
    note_moved(c, call);
    call->restarts = c->store.server.stats.restarts;
    call->deadline = c->deadline_ms != 0 ? clock_now_ms() + c->deadline_ms : 0;
    if (task->status == HIBLOOM_OK && has_forgotten(c, call))
        tell_forgotten(c, call, NULL);
    carrier_settle(c);
}

/* Flights of those that have failed otherwise take back what they did: they stay. */
static bool is_canceled(const struct flight *flight, const hibloom *filter)
{
    const struct call *call = flight->call;

    return call != NULL && call->task->filter == filter && call->task->status == HIBLOOM_ECANCELED;
}

static void drop_canceled(struct carrier *c, struct flights *flights, const hibloom *filter)
{
    struct flights all;

    flights_make(&all);
    flights_join(&all, flights);
    for (struct flight *flight; (flight = flights_take(&all)) != NULL;)
        if (is_canceled(flight, filter))
            lose(c, flight);
        else
            flights_put(flights, flight);
}

void carrier_cancel(struct carrier *c, const hibloom *filter)
{
    for (struct call *call = TAILQ_FIRST(&c->calls); call != NULL; call = TAILQ_NEXT(call, in_calls)) {
        if (call->task->filter != filter)
            continue;
        task_fail(call->task, HIBLOOM_ECANCELED, "given up before it was answered");
        drop_canceled(c, &call->waiting, filter);
        wake_up(c, call);
        note_moved(c, call);
    }
    for (unsigned i = 0; i < c->topology.count; i++)
        drop_canceled(c, &c->topology.nodes[i]->pending, filter);
    carrier_settle(c);
}

void carrier_end(struct carrier *c, struct call *call)
{
    TAILQ_REMOVE(&c->ended, call, in_calls);
    outbox_empty(&call->outbox); /* one that failed before it was sent; the next call begins there */
    if (call->task->status != HIBLOOM_EPROTO)
        return;
    /* who answered nonsense may be counting differently, too */
    for (unsigned i = 0; i < c->topology.count; i++)
        if ((call->touched[i / 64] >> i % 64 & 1) != 0)
            c->topology.nodes[i]->leave = true;
}

/* ---- Events ------------------------------------------------------------------------------------- */

bool carrier_wants_object(const struct node *node)
{
    return node->sent.first->call == NULL;
}

void carrier_reply(struct carrier *c, struct node *node, struct reply *reply)
{
    struct flight *flight = node->sent.first;

    if (flight->asking && !flight->asked) {
        flight->asked = true;
    } else {
        flight->asked = false;
        if (flight->errand == ERRAND_REPLICAS)
            take_replicas(c, node, reply);
        else
            take_task_reply(c, node, flight, reply);
    }
    carrier_settle(c);
}

static void take_location(struct carrier *c, struct node *node, struct flight *flight, const redisReply *object)
{
    const uint32_t index = flight->index++;
    const bool last = flight->index == flight->exchange.replies;

    if (last)
        flight_free(flights_take(&node->sent));
    locate_take(c, node, index, last, object);
}

void carrier_object(struct carrier *c, struct node *node, const redisReply *object)
{
    struct flight *flight = node->sent.first;

    if (flight->errand == ERRAND_GREETING)
        take_greeting(c, node, flight, object);
    else
        take_location(c, node, flight, object);
    carrier_settle(c);
}

void carrier_lost(struct carrier *c, struct node *node, hibloom_status status, const char *words)
{
    lose_node(c, node, status, words);
    carrier_settle(c);
}

bool carrier_tick(struct carrier *c)
{
    const uint64_t now = can_wait(c) ? clock_now_ms() : UINT64_MAX;
    struct call *next;

    if (TAILQ_EMPTY(&c->asleep) || now < c->wake_at)
        return false;
    c->wake_at = 0;
    for (struct call *call = TAILQ_FIRST(&c->asleep); call != NULL; call = next) {
        next = TAILQ_NEXT(call, in_asleep);
        if (call->wake_at <= now) {
            wake_up(c, call);
            note_moved(c, call);
        } else if (c->wake_at == 0 || call->wake_at < c->wake_at) {
            c->wake_at = call->wake_at;
        }
    }
    carrier_settle(c);
    return true;
}

uint64_t carrier_wake_at(const struct carrier *c)
{
    return TAILQ_EMPTY(&c->asleep) ? 0 : c->wake_at;
}

/* ---- The store's ---------------------------------------------------------------------------------- */

bool carrier_make(struct carrier *c, struct settings *settings, const struct pipe_class *pipes)
{
    c->settings = *settings;
    *settings = (struct settings){0};
    c->pipes = pipes;
    TAILQ_INIT(&c->calls);
    TAILQ_INIT(&c->ended);
    TAILQ_INIT(&c->asleep);
    TAILQ_INIT(&c->moved);
    c->store.server.bitfield = c->settings.options.commands == HIBLOOM_COMMANDS_BITFIELD;
    if (getrandom(&c->random, sizeof c->random, GRND_NONBLOCK) < 0)
        c->random = clock_now_ms();
    if (!topology_make(&c->topology, &c->settings.uri))
        return false;
    note_stale(c);
    c->store.server.clustered = c->topology.clustered;
    c->store.server.retry_ms = c->settings.options.retry_ms;
    return true;
}

void carrier_free(struct carrier *c)
{
    for (unsigned i = 0; i < c->topology.count; i++) {
        struct node *node = c->topology.nodes[i];
        for (struct flight *flight; (flight = flights_take(&node->sent)) != NULL;)
            flight_free(flight);
        for (struct flight *flight; (flight = flights_take(&node->pending)) != NULL;)
            flight_free(flight);
        c->pipes->close(node);
        free(node->pipe);
    }
    hangar_free(&c->hangar);
    topology_free(&c->topology);
    settings_free(&c->settings);
}

const char *carrier_where(const struct carrier *c, const struct node *node, char *buf, size_t size)
{
    if (c->borrowed)
        snprintf(buf, size, "borrowed connection");
    else if (c->settings.uri.kind == URI_UNIX)
        snprintf(buf, size, "unix://%s", c->settings.uri.path);
    else if (node == NULL || node->host[0] == '\0')
        snprintf(buf, size, c->topology.clustered ? "the cluster" : "the master");
    else
        snprintf(buf, size, strchr(node->host, ':') != NULL ? "[%s]:%u" : "%s:%u", node->host, node->port);
    return buf;
}

hibloom_status carrier_error(struct carrier *c, const struct call *call)
{
    const struct node *at = call->at == NULL && !c->topology.clustered ? c->topology.nodes[0] : call->at;
    const struct task *task = call->task;
    char where[NODE_HOST_SIZE + 16];

    if (task->status == HIBLOOM_OK)
        return HIBLOOM_OK;
    if (task->status < HIBLOOM_EIO) /* the caller's, not the server's */
        return error_set(&c->store.base.error, task->status, "%s", task->error.words);
    (void)error_set(&c->store.base.error, task->status, "%s: %s", carrier_where(c, at, where, sizeof where),
                    task->error.words);
    settings_log(&c->settings, HIBLOOM_LOG_ERROR, "%s", c->store.base.error.words);
    return task->status;
}
