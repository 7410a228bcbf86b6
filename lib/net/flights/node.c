/* node.c: a server's connection, from the first word to the last. See node.h.
 *
 *   closed -> opening -> greeting -> ready
 *      ^                    ^__________|     once a second
 *      |_________________________________    lost, from any state, or left */
#include "net/flights/node.h"
#include "base/clock.h"
#include "net/flights/call.h"

#include <string.h>

#define LATE_GREETINGS 3u /* in a row */

static const char is_closing[] = "its connection is closing, and answers are still to come";

/* ---- Nodes ------------------------------------------------------------------------------- */

static void shut(struct carrier *c, struct node *node)
{
    c->pipes->close(c, node);
    node->state = NODE_CLOSED;
    node->waits = node->wants_wait = false;
    node->unwritten_bytes = 0;
}

/* Need it not wait for a greeting? A flight whose guard was just answered goes before the next one: behind it the proof
 * would be old again, and so on. */
static bool goes(const struct node *node, const struct flight *flight)
{
    return node->state == NODE_READY || flight->kind == FLIGHT_GREETING ||
           (node->state == NODE_GREETING && node->greeting.again && flight_is_proven(flight));
}

/* The oldest call need not be the first: it may have slept in a pause. */
static void put_unwritten(const struct carrier *c, struct node *node, struct flight *flight)
{
    if (flight->call != NULL)
        node->expires_ms = sooner(node->expires_ms, call_deadline(c, flight->call));
    flights_put(&node->unwritten, flight);
}

void node_queue(struct carrier *c, struct node *node, struct flight *flight)
{
    if (flight->exchange.replies == 0 && node->state == NODE_READY) { /* it only wanted to get here */
        call_end_flight(c, flight);
        return;
    }
    put_unwritten(c, node, flight);
    if (!goes(node, flight))
        return;
    node->unwritten_bytes += 1 + flight->len + flight->exchange.payload_len; /* what is `remade` has no bytes yet */
    node->wants_wait = node->wants_wait || flight->kind == FLIGHT_TOUCH;
}

/* Is an earlier one of its call there whose guard went alone, and which is not written yet? Then the rest of that one would
 * come behind it, and items would be asked for in another order than they were given. */
static bool overtakes(const struct node *node, const struct flight *flight)
{
    const struct flight *at = LIST_FIRST(&flight->call->first);

    for (; at != NULL; at = LIST_NEXT(at, in_first))
        if (at->at == node && at->order < flight->order)
            return true;
    return false;
}

/* Does its guard go alone first? That is decided here, for all that is written. If it has waited for long, or the client
 * stood still, its filter may be another one by now. (If all proofs are late, the server is slow.) */
static bool must_prove(const struct node *node, const struct flight *flight)
{
    const struct call *call = flight->call;

    if (!flight->exchange.guarded || flight->guard_ahead || flight->index + 1 >= flight->exchange.replies)
        return false;
    if (flight->proven_ns <= node->proves_ns || overtakes(node, flight))
        return true;
    return proof_is_old(flight->proven_ns) &&
           (call->late < 2 || clock_now_ns() - flight->proven_ns >= 2 * call->slow_ns);
}

/* Commands of which no copy is kept are written again, into the outbox: no step writes there meanwhile. That notes it if
 * there is no memory. */
static void write_flight(struct carrier *c, struct node *node, struct flight *flight)
{
    static const char asking[] = "*1\r\n$6\r\nASKING\r\n";
    hibloom_stats *stats = &c->store.server.stats;

    if (must_prove(node, flight))
        flight_begin_guard_ahead(flight);
    flight->proven_late = flight->guard_ahead && flight->call->late > 0;
    const char *bytes = flight->bytes;
    if (flight->exchange.remade && !c->outbox.commands.failed) {
        outbox_empty(&c->outbox);
        task_remake(flight->call->task, &c->outbox);
        bytes = c->outbox.commands.bytes;
        flight->len = (uint32_t)c->outbox.commands.len;
    }
    if (c->outbox.commands.failed)
        return;
    size_t at = flight_from(flight, bytes);
    flight->sent_ns = clock_now_ns();
    if (flight->call != NULL)
        flight->call->sent = true;
    stats->commands += flight->exchange.replies - flight->index;
    stats->bytes_sent += flight->len - at + flight->exchange.payload_len;
    flight_note_written(flight, node);
    if (flight->exchange.payload != NULL) {
        if (flight->by_ask)
            c->pipes->put(node, asking, sizeof asking - 1);
        c->pipes->put_long(node, flight);
        at = flight->len;
    }
    while (flight->by_ask && at < flight->len) {
        const size_t len = command_length(bytes + at, flight->len - at);
        c->pipes->put(node, asking, sizeof asking - 1);
        c->pipes->put(node, bytes + at, len);
        at += len;
    }
    if (at < flight->len)
        c->pipes->put(node, bytes + at, flight->len - at);
}

hibloom_status node_greet(struct carrier *c, struct node *node)
{
    struct commands commands = {0};

    if (node->state == NODE_READY)
        greeting_write_again(&node->greeting, &commands);
    else
        greeting_write(&node->greeting, &commands, c->settings, node->role);
    const struct exchange exchange = {.replies = node->greeting.count};
    struct flight *flight = flight_of(&c->pool, NULL, FLIGHT_GREETING, &exchange, &commands);
    if (flight == NULL)
        return HIBLOOM_ENOMEM;
    node->state = NODE_GREETING;
    node_queue(c, node, flight);
    return HIBLOOM_OK;
}

/* Writes that were answered have their WAIT still to come. Nobody waits any more for one that is being made. */
static bool is_quiet(const struct node *node)
{
    return node->state != NODE_CLOSED && node->unwritten.first == NULL && node->sent.first == NULL &&
           node->touched.first == NULL;
}

static bool has_call(const struct node *node)
{
    const struct flight *at = node->unwritten.first;

    while (at != NULL && at->call == NULL)
        at = at->next;
    return at != NULL;
}

/* May it have keys of a call? By ASK commands go to a server that no map names, too. */
static bool has_keys(const struct node *node)
{
    return node->role == NODE_PRIMARY || (node->role == NODE_UNUSED && has_call(node));
}

/* Does it tell which run it is? */
static bool may_greet(const struct carrier *c, const struct node *node)
{
    return node->state == NODE_READY && (node->run.id[0] != '\0' || node->greeted_ns == 0) && !c->settings->borrowed;
}

struct flights node_take_unwritten(struct node *node)
{
    struct flights unwritten = {0};

    flights_join(&unwritten, &node->unwritten);
    node->unwritten_bytes = 0;
    node->expires_ms = 0;
    return unwritten;
}

hibloom_status node_flush(struct carrier *c, struct node *node, struct error *error)
{
    struct flights unwritten = node_take_unwritten(node);
    bool any = false; /* else their calls have ended */

    for (struct flight *flight; (flight = flights_take(&unwritten)) != NULL;)
        if (goes(node, flight)) {
            any = true;
            write_flight(c, node, flight);
            flights_put(&node->sent, flight);
        } else {
            put_unwritten(c, node, flight);
        }
    const bool failed = c->outbox.commands.failed;
    outbox_empty(&c->outbox);
    if (!any)
        return HIBLOOM_OK;
    c->store.server.stats.round_trips++;
    return failed ? error_set(error, HIBLOOM_ENOMEM, "out of memory") : c->pipes->flush(c, node, error);
}

static void fail_flights(struct carrier *c, struct node *node, struct flights *flights, hibloom_status status,
                         const char *words, bool lost)
{
    for (struct flight *flight; (flight = flights_take(flights)) != NULL;) {
        if (flight->call != NULL) {
            call_flight_failed(c, flight, node, status, words, lost);
            continue;
        }
        if (flight->kind == FLIGHT_LOCATE) {
            carrier_note_unanswered(c, node, status, words);
            c->locate.at = NULL;
        }
        flight_free(&c->pool, flight);
    }
}

/* One that is left waits for its last answers. Where calls are not tried again they go on with it meanwhile: look-ups
 * would fail. */
static bool takes_more(const struct carrier *c, const struct node *node)
{
    return !node->leave || (carrier_is_of_one(c) && c->settings->options.retry_ms == 0);
}

static void make_ready(struct carrier *c, struct node *node)
{
    struct flights unwritten = node_take_unwritten(node);

    node->state = NODE_READY;
    node->pause = (struct pause){0};
    if (node->status == HIBLOOM_EIO || node->status == HIBLOOM_ETIMEDOUT) /* it may go on with refusals */
        carrier_end_trouble(node);
    if (!takes_more(c, node)) /* another one was named while it was made */
        fail_flights(c, node, &unwritten, HIBLOOM_EUNAVAILABLE, is_closing, false);
    for (struct flight *flight; (flight = flights_take(&unwritten)) != NULL;)
        node_queue(c, node, flight);
}

/* Its server may have been a replica meanwhile, and have taken over again. So it is asked once a second. So are a replica,
 * whose primary may have forgotten something, and a server that is asked by ASK. Where there is no memory to ask, what is
 * unwritten fails: the server may be another run. */
void node_greet_again(struct carrier *c, struct node *node)
{
    if (node->unwritten_bytes == 0 || !(node->role == NODE_REPLICA || has_keys(node)) || !may_greet(c, node) ||
        clock_now_ns() <= node->greeted_ns + CHECK_NS || node_greet(c, node) == HIBLOOM_OK)
        return;
    struct flights unwritten = node_take_unwritten(node);
    fail_flights(c, node, &unwritten, HIBLOOM_ENOMEM, "out of memory", false);
}

/* A greeting that is under way was written behind what has just been answered: else that would have come later. */
void node_greet_behind(struct carrier *c, struct node *node, struct flight *flight)
{
    if (may_greet(c, node) && node_greet(c, node) != HIBLOOM_OK) {
        call_flight_failed(c, flight, node, HIBLOOM_ENOMEM, "out of memory", false);
        return;
    }
    flight->exchange.replies = 0; /* it only wants to get there */
    node_queue(c, node, flight);
}

/* A server that speaks TLS ends a connection without it. Its last words, an alert, begin with byte 0x15, and may be lost.
 * Returns words that name the scheme, or those given. */
static const char *explain_end(const struct carrier *c, const struct node *node, const char *words, struct error *error)
{
    const struct uri *uri = &c->settings->uri;
    const bool first = node->state == NODE_GREETING && node->run.id[0] == '\0' && node->sent.first != NULL &&
                       node->sent.first->index == 0;
    const bool alert = strstr(words, "\\x15") != NULL;

    if (!first || uri->tls || uri->kind == URI_UNIX || (!alert && strstr(words, "reset by peer") == NULL))
        return words;
    (void)error_set(error, HIBLOOM_EIO, "%s%s, use %s", alert ? "" : words,
                    alert ? "this port speaks TLS" : "; if this port speaks TLS", uri_scheme(uri->kind, true));
    return error->words;
}

void node_lose(struct carrier *c, struct node *node, hibloom_status status, const char *given)
{
    struct flights written = {0};
    struct error error;
    const char *words = explain_end(c, node, given, &error);
    struct flights unwritten = node_take_unwritten(node);

    /* of one that could not be made a flight tells that is tried again; else its call does */
    carrier_note_trouble(c, node, status, words, node->state == NODE_OPENING ? NULL : "");
    if (node->state != NODE_READY) {
        call_begin_pause(c, &node->pause);
        topology_doubt_teller(&c->topology, node);
    }
    flights_join(&written, &node->touched);
    flights_join(&written, &node->sent);
    shut(c, node);
    carrier_note_lost(c, node);
    fail_flights(c, node, &written, status, words, true);
    fail_flights(c, node, &unwritten, status, words, false);
}

/* The answer is as old as the question: the client may have stood still before it read it. So it asks again if the answer is
 * late. If all answers are, the server is slow, and they have to do. A question for locations that waited is asked now.
 * Calls wait no longer for that, unless the client stood still. */
static void note_greeted(struct carrier *c, struct node *node, uint64_t asked_ns)
{
    const uint64_t now = clock_now_ns();
    const bool late = now > asked_ns + CHECK_NS, slow = late && node->late_greetings == LATE_GREETINGS;

    node->greeted_ns = slow ? now : asked_ns;
    if (!late)
        node->late_greetings = 0;
    else if (!slow)
        node->late_greetings++;
    if (c->locate.at != node)
        return;
    c->locate.asked_ns = 0;
    if (now > c->locate.since_ns + CHECK_NS)
        c->locate.since_ns = 0;
}

/* The run is the first that is met. It may have begun after the map had named the node. Handles from before that are told.
 * No map names a server that has to be asked by ASK: so there the store's begin counts, and whether it took over from
 * another. Both times are whole seconds, so two are added. */
static bool began_unseen(const struct carrier *c, const struct node *node, uint64_t uptime_s)
{
    const bool by_ask = node->role == NODE_UNUSED;
    const uint64_t since_ns = by_ask ? c->topology.began_ns : node->told_ns;
    const struct server_run *now = &node->greeting.run;

    if (since_ns == 0 || node->run.id[0] != '\0' || now->id[0] == '\0')
        return false;
    return uptime_s < (clock_now_ns() - since_ns) / 1000000000 + 2 || (by_ask && now->branched);
}

/* Notes what the server has told of its run. May it have forgotten something? Node 0 of a Sentinel store is the master,
 * wherever it is: there another run is also another server. A replica's own restart loses nothing: it copies its primary. */
static bool take_run(const struct carrier *c, struct node *node)
{
    const struct greeting *g = &node->greeting;

    node->retired = c->topology.clustered && node->role != NODE_REPLICA && g->run.replica;
    if (node->retired) { /* it says where to go, and that tells, or the next map */
        if (node->run.id[0] == '\0')
            run_note(&node->run, &g->run);
        return false;
    }
    /* Before the first map there is no handle that could miss something. A server without keys is compared once it has
     * some: then it is asked for all of INFO. */
    const bool compares = has_keys(node) || (node->role == NODE_UNUSED && g->again);
    if (node->role == NODE_UNUSED && !compares && topology_primaries(&c->topology) > 0) {
        node->greeted_ns = 0;
        node->greeting.run.id[0] = '\0';
        return false;
    }
    /* A take-over was told of, and its server is met late: it may have been deposed meanwhile, and have taken over again. */
    const bool restarted = compares && !run_goes_on(&node->former, &g->run) &&
                           (run_is_another(&node->run, &g->run) ||
                            (node->unmet && clock_now_ns() > node->told_ns + CHECK_NS) ||
                            began_unseen(c, node, g->uptime_s));
    run_note(&node->run, &g->run);
    node->unmet = false;
    return restarted;
}

void node_take_greeting(struct carrier *c, struct node *node, struct flight *flight, const redisReply *object)
{
    struct greeting *g = &node->greeting;
    struct error error;
    const hibloom_status status = greeting_take(g, c->settings, flight->index++, object, &error);
    char where[WHERE_SIZE];

    if (status != HIBLOOM_OK) {
        node_lose(c, node, status, error.words);
        return;
    }
    if (flight->index < flight->exchange.replies)
        return;
    const uint64_t asked_ns = flight->sent_ns;
    note_greeted(c, node, asked_ns);
    if (!takes_more(c, node)) /* another one has its place: that has to be greeted */
        node->greeted_ns = 0;
    flight_free(&c->pool, flights_take(&node->sent));
    if (!g->again)
        settings_log(c->settings, HIBLOOM_LOG_INFO, "%s: connected", carrier_where(c, node, where, sizeof where));
    if (g->role == NODE_REPLICA && node->role != NODE_REPLICA) {
        node_lose(c, node, HIBLOOM_EUNAVAILABLE, "this replica is none of the primary any more");
        return;
    }
    if (node->role == NODE_PRIMARY && strcmp(node->run.history, g->run.history) != 0)
        topology_doubt_replicas(&c->topology, node);
    const bool was_primary = node->run.history[0] != '\0' && !node->run.replica;
    const bool restarted = take_run(c, node);
    if (restarted)
        call_tell_all_restart(c, node);
    if (was_primary && g->run.replica && carrier_is_of_one(c)) /* the name in the URI may lead to its master by now */
        carrier_note_demoted(c, node);
    if (restarted || !g->again)
        node->proves_ns = asked_ns;
    /* Its primary may have forgotten something. Only the primary tells whether it has, so it answers. Without a history of
     * the primary nothing can be compared. */
    if (node->role == NODE_REPLICA && !run_is_in_step(&c->topology.nodes[node->primary]->run, &node->run)) {
        if (has_call(node) || node->unwritten.first == NULL || !c->topology.clustered) {
            node_lose(c, node, HIBLOOM_EUNAVAILABLE, "this replica does not follow the primary");
            return;
        }
        node->role = NODE_UNUSED; /* it is asked for the map. Once all primaries are new no other server has one */
        node->run.id[0] = '\0';   /* it is met anew where it has keys, by the map or by ASK */
        node->greeted_ns = 0;
    }
    make_ready(c, node);
    node_hurry(node);
}

void node_close_unused(struct carrier *c, struct node *node)
{
    if (is_quiet(node) && (node->leave || (node->role == NODE_UNUSED && !node->named && !c->locate.stale)))
        shut(c, node);
}

void node_close_dead(struct carrier *c)
{
    for (unsigned i = 0; i < c->topology.count; i++)
        if (is_quiet(c->topology.nodes[i]) && !c->pipes->is_alive(c->topology.nodes[i]))
            shut(c, c->topology.nodes[i]);
}

static hibloom_status open_connection(struct carrier *c, struct node *node, struct error *error)
{
    if (call_must_pause(c, &node->pause)) { /* the search for locations goes on to the next one */
        *error = node->error;
        return node->status;
    }
    node->leave = node->hopeless = false;
    hibloom_status status = c->pipes->open(c, node, error);
    if (status != HIBLOOM_OK) {
        carrier_note_trouble(c, node, status, error->words, NULL);
        node->hopeless = error->for_good;
        call_begin_pause(c, &node->pause);
        return status;
    }
    c->store.server.stats.connections += !c->settings->borrowed;
    if (node->state == NODE_GREETING) /* it is the caller's, who has greeted */
        make_ready(c, node);
    return HIBLOOM_OK;
}

hibloom_status node_reach(struct carrier *c, struct node *node, struct flight *flight, struct error *error)
{
    if (is_quiet(node) && (node->leave || !c->pipes->is_alive(node)))
        shut(c, node);
    if (node->state != NODE_CLOSED && !takes_more(c, node))
        return error_set(error, HIBLOOM_EUNAVAILABLE, "%s", is_closing);
    const hibloom_status status = node->state == NODE_CLOSED ? open_connection(c, node, error) : HIBLOOM_OK;
    if (status == HIBLOOM_OK)
        node_queue(c, node, flight);
    return status;
}
