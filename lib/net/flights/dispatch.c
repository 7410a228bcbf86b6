/* dispatch.c: which node a flight goes to. See dispatch.h. */
#include "net/flights/dispatch.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "net/flights/node.h"
#include "net/flights/replicas.h"

#define PATIENCE_NS (CHECK_NS / 10)     /* of a call that could go on, with a check; */
#define MOST_PATIENCE_NS (CHECK_NS / 2) /* at most, where Sentinels are far */
#define REDIRECTS_MAX 16u               /* of one exchange: two nodes that send it to each other know nothing */

/* It could not be reached just now, for another call or another flight of this one. So it is not tried at once. */
static bool must_wait(struct carrier *c, const struct node *node, struct call *call)
{
    if (node->state != NODE_CLOSED)
        return false;
    return (!node->hopeless && call_must_pause(c, &node->pause) && call_hold(c, call, &node->pause)) ||
           (node->unreached_by == call->number && call->wake_at != 0);
}

static void give_to_node(struct carrier *c, struct node *node, struct flight *flight)
{
    struct call *call = flight->call;
    const bool revives = node->state == NODE_CLOSED && task_has_failed(call->task);
    struct error error;

    /* to take back what they did, if anything, the calls that have failed get one new connection to a node: one for all */
    if (revives && (!call->sent || node->revived > call->revivals)) {
        call_end_flight(c, flight);
        return;
    }
    if (must_wait(c, node, call)) {
        flights_put(&call->waiting, flight);
        return;
    }
    if (revives)
        node->revived = ++c->revivals;
    const hibloom_status status = node_reach(c, node, flight, &error);
    if (status != HIBLOOM_OK) {
        node->unreached_by = call->number;
        carrier_note_lost(c, node);
        call_flight_failed(c, flight, node, status, error.words, false);
    }
}

/* No node gives the locations: the call's waiting flights have failed. */
static void fail_astray(struct carrier *c, struct call *call)
{
    struct flights waiting = {0};

    if (c->locate.hopeless && call->waiting.first != NULL)
        call_give_up(c, call, NULL, c->locate.status, c->locate.error.words);
    flights_join(&waiting, &call->waiting);
    call->astray = call->astray || (task_has_failed(call->task) && waiting.first != NULL);
    for (struct flight *flight; (flight = flights_take(&waiting)) != NULL;)
        call_flight_failed(c, flight, NULL, c->locate.status, c->locate.error.words, false);
}

/* ---- Locations ------------------------------------------------------------------------------------ */

/* Until then a call waits for a check: twice as long as the last one took, and a little. Half of its time is left for the
 * call itself. */
static uint64_t end_of_patience_ns(const struct carrier *c, const struct call *call, uint64_t now)
{
    const uint64_t since = c->locate.since_ns != 0 ? c->locate.since_ns : now, deadline = call->deadline * 1000000;
    const uint64_t half = deadline > since ? (deadline - since) / 2 : 0, far = PATIENCE_NS + 2 * c->locate.took_ns;
    const uint64_t patience = far < MOST_PATIENCE_NS ? far : MOST_PATIENCE_NS;

    return since + (call->deadline != 0 && half < patience ? half : patience);
}

/* A former master may not know for ten seconds that another one has taken over, and answer as before. So Sentinels are
 * asked, too, as often as servers are. */
static bool is_current(const struct carrier *c)
{
    return !c->locate.stale && (!c->topology.sentinels || clock_now_ns() <= c->locate.checked_ns + CHECK_NS);
}

/* Are the locations known, as far as a node may be asked just now? If Sentinels stand still, the last answer holds. */
static bool may_send(const struct carrier *c, const struct call *call)
{
    if (is_current(c))
        return true;
    if (c->locate.stale)
        return c->locate.knows && call_must_pause(c, &c->locate.pause);
    const uint64_t now = clock_now_ns();
    return c->locate.asking && now >= end_of_patience_ns(c, call, now);
}

static hibloom_status ask(struct carrier *c, struct node *node, struct error *error)
{
    struct commands commands = {0};
    const uint32_t replies = topology_ask(&c->topology, c->settings, &commands);
    struct flight *flight = flight_of(&c->pool, NULL, FLIGHT_LOCATE, &(struct exchange){.replies = replies}, &commands);

    c->locate.sound = true;
    if (flight == NULL)
        return error_set(error, HIBLOOM_ENOMEM, "out of memory");
    c->locate.asked_ns = c->locate.since_ns = 0;
    const hibloom_status status = node_reach(c, node, flight, error);
    if (status != HIBLOOM_OK)
        flight_free(&c->pool, flight);
    else
        c->locate.at = node;
    return status;
}

/* Has each waiting call used up its time? Each silent node takes a time-out. A node that is asked after the calls' time
 * would count as silent, too. A time-out is the first failure of a call. But if only those are known that the URI
 * names, each is asked. A check goes on: no call waits long for it. */
static bool is_over(struct carrier *c)
{
    const bool knows_more = c->topology.clustered && topology_primaries(&c->topology) > 0;
    const uint64_t now = clock_now_ms();

    if (c->locate.asked == 0)
        c->locate.begun_ms = now;
    if (c->locate.asked == 0 || !c->locate.stale)
        return false;
    const uint64_t had_time = c->locate.begun_ms + c->settings->options.command_timeout_ms;
    for (const struct call *call = TAILQ_FIRST(&c->calls); call != NULL; call = TAILQ_NEXT(call, in_calls)) {
        const uint64_t until = call->retry_until != 0 ? call->retry_until : knows_more ? had_time : UINT64_MAX;
        if (call->waiting.first != NULL && now < until && !call_has_expired(c, call, now))
            return false;
    }
    return true;
}

/* Waiting flights can go out, or have failed. */
static void end_round(struct carrier *c, bool knows, uint64_t since_ns)
{
    c->locate.asking = false;
    c->locate.knows = knows;
    c->locate.stale = !knows;
    c->locate.checked_ns = since_ns;
    call_begin_pause(c, &c->locate.pause);
    for (struct call *call = TAILQ_FIRST(&c->calls); call != NULL; call = TAILQ_NEXT(call, in_calls))
        if (call->waiting.first != NULL && !knows) {
            fail_astray(c, call);
        } else if (call->waiting.first != NULL) {
            call_wake(c, call);
            dispatch_call(c, call);
        }
}

/* Asks the next node that can be reached; if there is none, or no time, all that waits has failed. */
static void ask_next(struct carrier *c)
{
    struct node *node;
    bool had_memory = true;

    while (!is_over(c) && (node = topology_next_to_ask(&c->topology, c->locate.round)) != NULL) {
        c->locate.asked++;
        struct error error = {0};
        const hibloom_status status = ask(c, node, &error);
        if (status == HIBLOOM_OK)
            return;
        had_memory = had_memory && status != HIBLOOM_ENOMEM;
        carrier_note_unanswered(c, node, status, error.words);
    }
    /* A check that nobody answers changes nothing. Without memory to ask there was no check. */
    end_round(c, !c->locate.stale && had_memory, clock_now_ns());
}

static void begin_asking(struct carrier *c)
{
    if (c->locate.asking)
        return;
    c->locate.asking = true;
    c->locate.round++;
    c->locate.asked = 0;
    c->locate.hopeless = false;
    c->locate.status = error_set(&c->locate.error, HIBLOOM_EUNAVAILABLE, "no node is left to ask for the slot map");
    ask_next(c);
}

void dispatch_ask_on(struct carrier *c)
{
    struct node *const at = c->locate.at;

    if (at != NULL && carrier_checks(c, at) && c->locate.asked_ns != 0 &&
        clock_now_ns() > c->locate.asked_ns + CHECK_NS)
        node_lose(c, at, HIBLOOM_ETIMEDOUT, "timed out waiting for the server");
    if (carrier_must_ask_on(c))
        ask_next(c);
}

/* ---- What goes out ---------------------------------------------------------------------------------- */

/* To where its keys are. */
static void route(struct carrier *c, struct call *call, struct flight *flight)
{
    bool known = may_send(c, call);
    const bool named = c->topology.clustered && !flight->after_map; /* else that may be a former master */
    struct node *node = known || named ? flight->to : NULL;

    if (flight->exchange.replies == 0 && c->topology.clustered && known) {
        call_end_flight(c, flight); /* in a cluster it only wants the locations */
        return;
    }
    if (node == NULL && known)
        node = topology_route(&c->topology, flight->exchange.slot, replicas_may_answer(c, flight));
    if (node == NULL && known && flight->redirects++ == 0) {
        carrier_note_stale(c); /* somebody may have it now */
        known = may_send(c, call);
    }
    flight->by_replica = node != NULL && node->role == NODE_REPLICA;
    if (node != NULL)
        give_to_node(c, node, flight);
    else if (known)
        call_flight_failed(c, flight, NULL, HIBLOOM_EUNAVAILABLE, "no node of the cluster has the key's slot", false);
    else if (call->astray && task_has_failed(call->task)) /* it may have gone another way since */
        call_end_flight(c, flight);
    else
        flights_put(&call->waiting, flight);
}

void dispatch_call(struct carrier *c, struct call *call)
{
    struct flights now = {0};

    flights_join(&now, &call->waiting);
    for (struct flight *flight; (flight = flights_take(&now)) != NULL;)
        route(c, call, flight);
    if (call->waiting.first == NULL || call->wake_at != 0)
        return;
    /* It may be over already: it has slept, or was in flight. */
    c->ends_ms = sooner(c->ends_ms, call_deadline(c, call));
    if (!c->locate.stale) { /* a check */
        begin_asking(c);
        if (call->waiting.first != NULL && call->wake_at == 0) /* the round may have ended, and the call have failed */
            call_sleep(c, call, end_of_patience_ns(c, call, clock_now_ns()) / 1000000 + 1);
    } else if (!call_must_pause(c, &c->locate.pause)) {
        begin_asking(c);
    } else if (c->locate.hopeless || !call_hold(c, call, &c->locate.pause)) {
        fail_astray(c, call);
    }
}

/* Since it was routed it has waited: for a connection, its guard, or the loop's next turn. Meanwhile the client may have stood
 * still. */
void dispatch_recall(struct carrier *c, struct node *node)
{
    if (c->locate.at == node && c->locate.asked_ns == 0) /* before, a loop's program may have computed */
        c->locate.asked_ns = clock_now_ns();
    if (c->locate.since_ns == 0)
        c->locate.since_ns = c->locate.asked_ns;
    if (!c->topology.sentinels || node->unwritten_bytes == 0 || is_current(c))
        return;
    struct flights unwritten = node_take_unwritten(node);
    for (struct flight *flight; (flight = flights_take(&unwritten)) != NULL;)
        if (flight->call == NULL || may_send(c, flight->call)) {
            node_queue(c, node, flight);
        } else {
            flights_put_back(&flight->call->waiting, flight);
            call_set_runnable(c, flight->call);
        }
}

/* ---- What comes back --------------------------------------------------------------------------------- */

static void take_refusal(struct carrier *c, struct node *node, struct flight *flight)
{
    const enum refusal refusal = flight->refusal;
    const bool was_fine = !task_has_failed(flight->call->task);
    struct node *to = NULL;
    bool took_over = false;

    if (flight->words != NULL && (refusal == REFUSAL_MOVED || refusal == REFUSAL_ASK))
        to = topology_redirect(&c->topology, node, flight->words, &took_over);
    if (refusal == REFUSAL_MOVED) {
        carrier_note_stale(c);
        c->store.server.moved++;
    }
    if (took_over)
        call_tell_all_restart(c, to);
    if (was_fine && task_has_failed(flight->call->task)) { /* it has just been told that a server forgot */
        call_end_flight(c, flight);
        return;
    }
    if (to == NULL && c->topology.lacks_memory && (refusal == REFUSAL_MOVED || refusal == REFUSAL_ASK)) {
        call_flight_failed(c, flight, node, HIBLOOM_ENOMEM, "out of memory", false);
        return;
    }
    if (to == NULL || flight->redirects++ == REDIRECTS_MAX) {
        call_flight_failed(c, flight, node, refusal_status(refusal), NULL, false);
        return;
    }
    c->store.server.stats.redirects++;
    (void)flight_resend(flight, false); /* its guard goes along: that is its last command */
    flight->to = to;
    flight->after_map = refusal == REFUSAL_MOVED && !took_over;
    flight->by_ask = refusal == REFUSAL_ASK;
    flights_put(&flight->call->waiting, flight);
    call_next_tick(c, flight->call);
}

/* A look-up asks on if what it would mend by the way is refused, and nobody else could take that. */
static bool is_passed_over(const struct carrier *c, const struct call *call, enum refusal refusal)
{
    return refusal == REFUSAL_READONLY && carrier_is_of_one(c) && call->task->reads;
}

/* Is the refusal kept from the task, since somebody else can answer, or the same server later? */
static bool is_held(const struct carrier *c, const struct flight *flight, enum refusal refusal)
{
    if (refusal == REFUSAL_MOVED || refusal == REFUSAL_ASK) /* where the URI names no cluster no try mends it */
        return c->topology.clustered;
    if (is_passed_over(c, flight->call, refusal))
        return false;
    return refusal_status(refusal) == HIBLOOM_EUNAVAILABLE &&
           !(refusal_is_of_size(refusal) && flight->exchange.replaceable) &&
           (call_may_retry(c, flight->call) || (flight->by_replica && !flight->replica_failed));
}

/* Keeps a refusal from the task. Notes the first reply behind it that is none. */
static void hold(struct flight *flight, const struct reply *reply, bool refused, enum refusal refusal)
{
    const uint32_t command = flight->index + flight->held++;

    if (flight->held == 1) {
        flight->refusal = refusal;
        flight->words = alloc_text(reply->text);
    } else if (!refused && command < flight->carried_out) {
        flight->carried_out = command;
    }
}

static void take_last(struct carrier *c, struct node *node, struct flight *flight, bool good)
{
    const bool late = proof_is_old(flight->sent_ns);
    struct call *call = flight->call;

    (void)flights_take(&node->sent);
    /* A replica sends each key elsewhere, and answers TIME and SCAN only. One that answers has taken over again. It may have
     * lost something meanwhile. */
    if (node->retired && node->role != NODE_REPLICA && flight->held == 0 && !flight->unserved &&
        flight->exchange.of != NULL) {
        topology_forget_history(node);
        call_tell_all_restart(c, node);
    }
    if (flight->held > 0) {
        take_refusal(c, node, flight);
    } else if (!flight->guard_ahead) {
        if (call->attempts > 0 && !flight->unserved)
            carrier_end_trouble(node);
        if (!flight->unserved) /* a refusal that a task goes on behind gives the rest no further time */
            call_note_progress(call);
        call->late = late ? call->late : 0;
        replicas_note(node, flight);
        call_set_runnable(c, call);
        flight_free(&c->pool, flight);
    } else {
        flight_end_guard_ahead(flight);
        flight->proven_ns = flight->sent_ns;
        call->late = !late ? 0 : flight->proven_late ? 2 : 1;
        call->slow_ns = clock_now_ns() - flight->sent_ns;
        if (good) { /* there, and not on another connection, which would have to be proven again */
            node_queue(c, node, flight);
            if (!node_owes(node) || !node->sent.first->guard_ahead) /* it ages; but those of calls come together */
                node_hurry(node);
        } else {
            call_end_flight(c, flight);
        }
    }
}

bool dispatch_take_reply(struct carrier *c, struct node *node, struct flight *flight, struct reply *reply)
{
    const bool refused = reply->type == REDIS_REPLY_ERROR;
    const enum refusal refusal = refused ? refusal_of(reply->text) : REFUSAL_OTHER;
    struct call *call = flight->call;
    struct task *task = call->task;
    const bool was_fine = !task_has_failed(task);
    bool good = true; /* false: its guard went alone, and was not good */

    if (!refused && !flight->guard_ahead && !(flight->exchange.proof && reply->type == REDIS_REPLY_STRING)) {
        call_note_node(c, call, node);
        replicas_note_node(c, flight, node);
    }
    node->down = refusal == REFUSAL_CLUSTERDOWN; /* or it has no slot, and is no part of the cluster any more */
    if (refusal == REFUSAL_MASTERDOWN || node->down)
        carrier_note_lost(c, node);
    if (refusal == REFUSAL_READONLY && !is_passed_over(c, call, refusal))
        carrier_note_demoted(c, node);
    if (flight->held == 0 && !(refused && is_held(c, flight, refusal))) {
        flight->unserved |= refused && refusal != REFUSAL_OTHER && refusal != REFUSAL_WRONGTYPE;
        const uint32_t index = flight->index++;
        reply->repeated = index >= flight->doubtful && !task->reads;
        reply->duplicate = index < flight->delivered;
        reply->by_replica = flight->by_replica;
        reply->asked_ns = flight->sent_ns;
        if (flight->guard_ahead)
            good = task_take_guard_ahead(task, flight->exchange.tag, reply);
        else
            task_reply(task, flight->exchange.tag, index, reply);
        if (was_fine && task_has_failed(task))
            call_note_failure(c, call, node);
    } else {
        hold(flight, reply, refused, refusal);
    }
    if (flight->index + flight->held < flight->exchange.replies)
        return false;
    take_last(c, node, flight, good);
    return true;
}

static hibloom_status explain_location(const struct carrier *c, const redisReply *reply, const char *wrong,
                                       struct error *error)
{
    if (reply->type != REDIS_REPLY_ERROR)
        return error_set(error, wrong == topology_no_memory ? HIBLOOM_ENOMEM : HIBLOOM_EUNAVAILABLE, "%s", wrong);
    if (c->topology.sentinels && refusal_of(wrong) == REFUSAL_UNKNOWN_COMMAND)
        return error_set(error, HIBLOOM_ESERVER, "this is no Sentinel but a Redis; redis:// connects to it");
    return settings_explain(c->settings, wrong, error);
}

void dispatch_take_location(struct carrier *c, struct node *node, struct flight *flight, const redisReply *reply)
{
    const uint32_t index = flight->index++;
    const bool last = flight->index == flight->exchange.replies;
    char where[WHERE_SIZE];
    struct error error;
    bool took_over = false;

    if (last)
        flight_free(&c->pool, flights_take(&node->sent));
    if (c->topology.clustered)
        node_close_dead(c);
    const char *wrong = topology_take(&c->topology, node, index, reply, &took_over);

    if (wrong != NULL) {
        carrier_note_unanswered(c, node, explain_location(c, reply, wrong, &error), error.words);
        c->locate.sound = false;
    }
    if (took_over)
        call_tell_all_restart(c, NULL);
    if (!last)
        return;
    c->locate.at = NULL;
    if (!c->locate.sound)
        return;
    if (c->locate.stale) /* a check each second is no news */
        settings_log(c->settings, HIBLOOM_LOG_INFO, "%s read from %s",
                     c->topology.sentinels ? "master and replicas" : "slot map",
                     carrier_where(c, node, where, sizeof where));
    c->locate.took_ns = c->topology.sentinels ? clock_now_ns() - c->locate.asked_ns : 0;
    c->store.server.count = topology_primaries(&c->topology);
    end_round(c, true, c->locate.asked_ns);
}
