/* call.c: when a call waits, tries again, or fails. See call.h. */
#include "net/flights/call.h"
#include "base/clock.h"

#include <stdio.h>

#define QUIET_MS 1000u     /* after that a pause begins small */
#define PAUSES_LEAST 4u    /* pauses that fit into retry_ms */
#define PAUSE_DOUBLINGS 7u /* between two tries: 10 ms, 20, 40 ... 640 */

/* ---- Calls that run, or sleep -------------------------------------------------------- */

void call_set_runnable(struct carrier *c, struct call *call)
{
    if (!call->runnable)
        TAILQ_INSERT_TAIL(&c->runnable, call, in_runnable);
    call->runnable = true;
}

void call_sleep(struct carrier *c, struct call *call, uint64_t at)
{
    if (call->wake_at == 0)
        TAILQ_INSERT_TAIL(&c->asleep, call, in_asleep);
    call->wake_at = sooner(at, call_deadline(c, call));
    c->wake_at = sooner(c->wake_at, call->wake_at);
}

/* Until then others of its flights come back, too. */
void call_next_tick(struct carrier *c, struct call *call)
{
    if (call->wake_at == 0)
        call_sleep(c, call, clock_now_ms());
}

static void end_wait(struct call *call)
{
    if (call->waiters != NULL)
        TAILQ_REMOVE(call->waiters, call, in_waiters);
    call->waiters = NULL;
}

void call_wake(struct carrier *c, struct call *call)
{
    if (call->wake_at != 0)
        TAILQ_REMOVE(&c->asleep, call, in_asleep);
    call->wake_at = 0;
    end_wait(call);
}

/* ---- May it be tried again? ---------------------------------------------------------- */

uint64_t call_deadline(const struct carrier *c, const struct call *call)
{
    const uint64_t timeout_ms = c->settings->options.command_timeout_ms, whole_ms = c->store.base.deadline_ms;
    const uint64_t more_ms = c->by_turns ? sooner(timeout_ms, whole_ms) : timeout_ms;
    const bool takes_back = !call->task->reads && (task_has_failed(call->task) || task_is_cleaning(call->task));

    if (call->deadline == 0 || !takes_back)
        return call->deadline;
    return more_ms != 0 ? call->deadline + more_ms : 0;
}

bool call_has_expired(const struct carrier *c, const struct call *call, uint64_t now)
{
    const uint64_t ends = call_deadline(c, call);

    return ends != 0 && now >= ends;
}

static bool has_time(const struct call *call)
{
    return call->deadline == 0 || clock_now_ms() < call->deadline;
}

/* A borrowed connection has no retry_ms. */
bool call_may_retry(const struct carrier *c, const struct call *call)
{
    return c->settings->options.retry_ms != 0 && !task_has_failed(call->task) && has_time(call) &&
           (call->retry_until == 0 || clock_now_ms() < call->retry_until);
}

/* None at first. Half of the others is drawn, so that a thousand clients do not come
 * back at once. */
static uint64_t draw_pause(struct carrier *c, unsigned attempts)
{
    if (attempts == 0)
        return 0;
    const uint64_t half = UINT64_C(5) << (attempts < PAUSE_DOUBLINGS ? attempts : PAUSE_DOUBLINGS) >> 1;

    c->random = c->random * UINT64_C(6364136223846793005) + 1442695040888963407u; /* Knuth, MMIX */
    return half + (c->random >> 33) % (half + 1);
}

void call_begin_pause(struct carrier *c, struct pause *pause)
{
    const uint64_t now = clock_now_ms(), most = c->settings->options.retry_ms / PAUSES_LEAST;

    if (now > pause->until + QUIET_MS)
        pause->count = 0;
    const uint64_t ms = draw_pause(c, pause->count++);
    pause->until = now + (ms < most ? ms : most);
}

bool call_must_pause(const struct carrier *c, const struct pause *pause)
{
    const struct call *first = TAILQ_FIRST(&c->calls);

    return first != NULL && TAILQ_NEXT(first, in_calls) != NULL && c->settings->options.retry_ms != 0 &&
           clock_now_ms() < pause->until;
}

/* Sleeps until then, or until it may not be tried any more. retry_ms does not bound the taking back of bits. */
static void sleep_until(struct carrier *c, struct call *call, uint64_t at)
{
    call_sleep(c, call, !task_has_failed(call->task) && call->retry_until < at ? call->retry_until : at);
}

/* From its first failure on it has retry_ms. */
static void begin_retries(struct carrier *c, struct call *call)
{
    if (call->retry_until == 0)
        call->retry_until = clock_now_ms() + c->settings->options.retry_ms;
}

void call_plan_retry(struct carrier *c, struct call *call)
{
    begin_retries(c, call);
    if (call->wake_at == 0)
        sleep_until(c, call, clock_now_ms() + draw_pause(c, call->attempts++));
}

bool call_hold(struct carrier *c, struct call *call, const struct pause *pause)
{
    const uint64_t now = clock_now_ms();
    const bool may = task_has_failed(call->task) ? !call_has_expired(c, call, now) : call_may_retry(c, call);

    if (!may)
        return false;
    begin_retries(c, call);
    if (call->wake_at == 0)
        sleep_until(c, call, pause->until);
    return true;
}

void call_begin_wait(struct carrier *c, struct call *call)
{
    if (c->settings->options.retry_ms != 0) /* else it has failed of nothing, and has its first try */
        begin_retries(c, call);
    call->waited = true;
    end_wait(call);
    call->waiters = &call->task->link->of->waiters;
    TAILQ_INSERT_TAIL(call->waiters, call, in_waiters);
}

void call_note_progress(struct call *call)
{
    if (call->begun_again || call->waited || call->waiting.first != NULL /* others answer meanwhile */)
        return;
    call->retry_until = 0;
    call->attempts = 0;
}

/* ---- A call ends or fails ------------------------------------------------------------ */

void call_end_flight(struct carrier *c, struct flight *flight)
{
    struct call *call = flight->call;
    const uint32_t replies = exchange_replies(&flight->exchange);

    flight_end_guard_ahead(flight);
    if (flight->index < flight->delivered)
        flight->index = flight->delivered;
    if (flight->exchange.guarded && !flight->written && flight->index == 0 && flight->doubtful == NO_COMMAND)
        (void)task_take_guard_ahead(call->task, flight->exchange.tag, NULL);
    if (flight->kind == FLIGHT_TASK)
        for (; flight->index < replies; flight->index++)
            task_reply(call->task, flight->exchange.tag, flight->index, NULL);
    else if (flight->kind == FLIGHT_TOUCH)
        call->replicas_left--;
    call_set_runnable(c, call);
    flight_free(&c->pool, flight);
}

void call_begin_drop(struct carrier *c, struct call *call)
{
    call->drops = true;
    call_wake(c, call);
    call_set_runnable(c, call); /* one that paused had no flight, whose end would do that */
    for (struct flight *flight; (flight = flights_take(&call->waiting)) != NULL;)
        call_end_flight(c, flight);
}

/* A hundred thousand calls may wait for a connection. So their flights are gone through once for all. */
void call_end_drops(struct carrier *c)
{
    for (unsigned i = 0; i < c->topology.count; i++) {
        struct flights *unwritten = &c->topology.nodes[i]->unwritten, all = {0};
        flights_join(&all, unwritten);
        for (struct flight *flight; (flight = flights_take(&all)) != NULL;)
            if (flight->call != NULL && flight->call->drops)
                call_end_flight(c, flight);
            else
                flights_put(unwritten, flight);
    }
    for (struct call *call = TAILQ_FIRST(&c->calls); call != NULL; call = TAILQ_NEXT(call, in_calls))
        call->drops = false;
}

void call_note_failure(const struct carrier *c, struct call *call, const struct node *at)
{
    call->revivals = c->revivals;
    call->at = at;
    call->tried = call->attempts > 0 ? call->attempts + 1 : 0;
}

void call_give_up(struct carrier *c, struct call *call, const struct node *at, hibloom_status status, const char *words)
{
    if (!task_has_failed(call->task))
        call_note_failure(c, call, at);
    task_fail(call->task, status, "%s", words);
    call_begin_drop(c, call);
}

/* A refusal that was held back, told to the task after all. */
static void tell_refusal(struct flight *flight)
{
    struct task *task = flight->call->task;
    struct reply reply = {.type = REDIS_REPLY_ERROR,
                          .repeated = flight->index >= flight->doubtful && !task->reads,
                          .duplicate = flight->index < flight->delivered};

    if (flight->words == NULL) { /* there was no memory to keep them */
        task_no_memory(task);
        return;
    }
    reply.text_len = (size_t)snprintf(reply.text, sizeof reply.text, "%s", flight->words);
    task_reply(task, flight->exchange.tag, flight->index++, &reply);
}

/* It is not sent again. */
static void fail_for_good(struct carrier *c, struct flight *flight, struct node *node, hibloom_status status,
                          const char *words)
{
    struct call *call = flight->call;

    if (!task_has_failed(call->task)) {
        call_note_failure(c, call, node);
        if (words == NULL)
            tell_refusal(flight);
        else
            call_give_up(c, call, node, status, words);
    }
    call_end_flight(c, flight);
}

/* Elsewhere: at the primary, as this replica did not do; at once, and that is no other try. */
static void plan_resend(struct carrier *c, struct flight *flight, bool doubtful, bool elsewhere)
{
    struct call *call = flight->call;
    const uint32_t in_doubt = flight_resend(flight, doubtful);

    if (!call->task->reads) /* those carried out behind a refusal, too */
        c->store.server.stats.in_doubt += in_doubt;
    flight->proven_ns = 0;
    c->store.server.stats.retries++;
    flight->replica_failed = elsewhere || flight->replica_failed;
    flight->redirects = 0; /* there is a pause now, and an end to them */
    flights_put(&call->waiting, flight);
    if (!elsewhere)
        call_plan_retry(c, call);
    else
        call_next_tick(c, call);
}

/* Nobody else may be named in its place. */
static bool is_final(const struct carrier *c, const struct node *node)
{
    return node != NULL && node->state == NODE_CLOSED && node->hopeless && !c->locate.stale;
}

void call_flight_failed(struct carrier *c, struct flight *flight, struct node *node, hibloom_status status,
                        const char *words, bool lost)
{
    struct call *call = flight->call;
    const bool elsewhere = flight->kind == FLIGHT_TASK && node != NULL && flight->by_replica &&
                           !flight->replica_failed && !task_has_failed(call->task) && has_time(call);
    const bool doubtful = lost && !flight->guard_ahead;
    const bool touch = flight->kind == FLIGHT_TOUCH && hibloom_is_retryable(status);
    const char *const why = words != NULL ? words : flight->words;
    struct error doubt;

    flight_end_guard_ahead(flight);
    if (touch)
        call_note_loss(call); /* replicas_may_end takes it for a restart */
    if (touch || (lost && flight->exchange.spare)) {
        call_end_flight(c, flight);
        return;
    }
    if (lost && flight->exchange.once) {
        (void)error_set(&doubt, status, "%s; the removes in flight may have been carried out, and are not sent again",
                        words);
        fail_for_good(c, flight, node, status, doubt.words);
        return;
    }
    if (!elsewhere && (!hibloom_is_retryable(status) || is_final(c, node) || !call_may_retry(c, call))) {
        fail_for_good(c, flight, node, status, words);
        return;
    }
    if (!lost) /* of a replica the log tells nothing: the primary answers */
        carrier_note_trouble(c, node != NULL ? node : c->topology.nodes[0], status, why != NULL ? why : "refused",
                             elsewhere ? NULL : "; trying again");
    plan_resend(c, flight, doubtful, elsewhere);
}

/* ---- A server that forgot --------------------------------------------------------------- */

void call_note_node(const struct carrier *c, struct call *call, const struct node *node)
{
    if (call->nodes == 0) /* a loss before the first command was done is no loss of this call */
        call->restarts = c->store.server.stats.restarts;
    call->nodes |= UINT64_C(1) << node->number % 64;
}

bool call_begin_again(struct carrier *c, struct call *call)
{
    struct task *task = call->task;

    if (!task_may_redo(task, c->settings->options.min_replicas != 0) || !call_may_retry(c, call))
        return false;
    task->redo(task);
    call->restarts = c->store.server.stats.restarts;
    call->begun_again = true;
    call_plan_retry(c, call);
    return true;
}

bool call_tell_restart(struct carrier *c, struct call *call, const struct node *at)
{
    const uint64_t restarts = c->store.server.stats.restarts;

    if (c->settings->options.accept_restarts || task_has_failed(call->task) || !task_tell_restart(call->task, restarts))
        return false;
    call_note_failure(c, call, at);
    return true;
}

void call_tell_all_restart(struct carrier *c, const struct node *node)
{
    char where[WHERE_SIZE];

    c->store.server.stats.restarts++;
    settings_log(c->settings, HIBLOOM_LOG_WARNING,
                 "%s: the server restarted, or another one took over; acknowledged adds may be missing",
                 carrier_where(c, node, where, sizeof where));
    for (struct call *call = TAILQ_FIRST(&c->calls); call != NULL; call = TAILQ_NEXT(call, in_calls))
        if ((!call->sent || call->task->reads || call->task->removes) && call_tell_restart(c, call, node))
            call_begin_drop(c, call);
    call_end_drops(c);
}
