/* locate.c: asks who is where. See locate.h. */
#include "net/locate.h"
#include "base/clock.h"
#include "net/carrier.h"
#include "net/dispatch.h"
#include "net/node.h"

static bool is_sentinel_store(const struct carrier *c)
{
    return c->settings.uri.kind == URI_SENTINEL;
}

/* The sooner the better: who is connected answers at once. */
static unsigned rank(const struct carrier *c, const struct node *node)
{
    if (node->asked == c->locate.round || (is_sentinel_store(c) && node->role != NODE_SENTINEL))
        return 0;
    return node->state == NODE_READY ? 3 : node->role != NODE_UNUSED || !node->seed ? 1 : 2;
}

static struct node *next_candidate(const struct carrier *c)
{
    struct node *best = NULL;

    for (unsigned i = 0; i < c->topology.count; i++) {
        struct node *node = c->topology.nodes[i];
        if (rank(c, node) > (best != NULL ? rank(c, best) : 0))
            best = node;
    }
    return best;
}

static uint32_t write_question(const struct carrier *c, struct commands *out)
{
    const char *master = c->settings.uri.master;

    if (!is_sentinel_store(c)) {
        command_start(out, 2, "CLUSTER");
        command_text(out, "SLOTS");
        return 1;
    }
    command_start(out, 3, "SENTINEL");
    command_text(out, "GET-MASTER-ADDR-BY-NAME");
    command_text(out, master);
    if (!c->settings.options.read_from_replicas)
        return 1;
    command_start(out, 3, "SENTINEL");
    command_text(out, "REPLICAS");
    command_text(out, master);
    return 2;
}

static hibloom_status ask(struct carrier *c, struct node *node, struct error *error)
{
    struct commands commands = {0};
    const uint32_t replies = write_question(c, &commands);
    struct flight *flight = NULL;

    c->locate.told = true;
    if (!commands.failed)
        flight = flight_new(&c->pool, NULL, FLIGHT_LOCATE, &(struct exchange){.replies = replies}, commands.bytes,
                            commands.len);
    commands_free(&commands);
    if (flight == NULL)
        return error_set(error, HIBLOOM_ENOMEM, "out of memory");
    const hibloom_status status = node_send_flight(c, node, flight, error);
    if (status != HIBLOOM_OK)
        flight_free(flight);
    return status;
}

/* Have all calls that wait gone on for as long as they may? Silent nodes cost a time-out each. */
static bool is_over(const struct carrier *c)
{
    const uint64_t now = clock_now_ms();

    for (const struct call *call = TAILQ_FIRST(&c->calls); call != NULL; call = TAILQ_NEXT(call, in_calls))
        if (call->waiting.first != NULL && (call->retry_until == 0 || now < call->retry_until))
            return false;
    return c->locate.asked > 0;
}

/* Of Sentinels the words have to say which; of a cluster's node carrier_error does. */
static void note_failure(struct carrier *c, const struct node *node, hibloom_status status, const char *words)
{
    char where[WHERE_SIZE];

    c->locate.hopeless = node->hopeless && (c->locate.hopeless || c->locate.asked == 1);
    if (is_sentinel_store(c))
        c->locate.status = error_set(&c->locate.error, status, "Sentinel %s: %s",
                                     carrier_where(c, node, where, sizeof where), words);
    else
        c->locate.status = error_set(&c->locate.error, status, "%s", words);
}

static void end_round(struct carrier *c, bool knows)
{
    c->locate.asking = false;
    c->locate.knows = knows;
    c->locate.stale = !knows;
    call_begin_pause(c, &c->locate.pause);
}

/* Asks the next node that can be reached; if there is none, or no time, all that waits has failed. */
static void ask_next(struct carrier *c)
{
    struct node *node;

    while (!is_over(c) && (node = next_candidate(c)) != NULL) {
        c->locate.asked++;
        node->asked = c->locate.round;
        struct error error = {0};
        const hibloom_status status = ask(c, node, &error);
        if (status == HIBLOOM_OK)
            return;
        note_failure(c, node, status, error.words);
    }
    end_round(c, false);
    dispatch_fail_all(c);
}

/* Where that is not fixed, it has to be asked before more is sent. */
void locate_note_stale(struct carrier *c)
{
    c->locate.stale = c->topology.clustered || is_sentinel_store(c);
}

bool locate_is_known(const struct carrier *c)
{
    return !c->locate.stale || (c->locate.knows && call_must_pause(c, &c->locate.pause));
}

void locate_begin(struct carrier *c)
{
    if (c->locate.asking)
        return;
    c->locate.asking = true;
    c->locate.round++;
    c->locate.asked = 0;
    c->locate.hopeless = false;
    c->locate.status = error_set(&c->locate.error, HIBLOOM_EUNAVAILABLE, "there is nobody to ask who is where");
    ask_next(c);
}

void locate_failed(struct carrier *c, const struct node *node, hibloom_status status, const char *words)
{
    note_failure(c, node, status, words);
    ask_next(c);
}

/* In words, why this is no answer; NULL: it is one. */
static const char *take_answer(struct carrier *c, const struct node *node, uint32_t index, const redisReply *reply,
                               bool *took_over)
{
    if (reply->type == REDIS_REPLY_ERROR)
        return reply->str;
    if (c->topology.clustered)
        return topology_take_slots(&c->topology, node, reply, took_over)
                   ? NULL
                   : "the server's answer to CLUSTER SLOTS makes no sense";
    if (index == 0 && reply->type == REDIS_REPLY_NIL)
        return "knows no master of that name";
    if (index == 0 ? topology_take_master(&c->topology, reply) : topology_take_replicas(&c->topology, reply))
        return NULL;
    return "the answer makes no sense";
}

void locate_take(struct carrier *c, const struct node *node, uint32_t index, bool last, const redisReply *reply)
{
    char where[WHERE_SIZE];
    bool took_over = false;
    const char *wrong = take_answer(c, node, index, reply, &took_over);

    if (wrong != NULL) {
        const hibloom_status status = reply->type == REDIS_REPLY_ERROR ? refusal_status(refusal_of(wrong))
                                                                       : HIBLOOM_EUNAVAILABLE;
        note_failure(c, node, status, wrong);
        c->locate.told = false;
    }
    if (took_over)
        call_tell_all_restart(c, NULL);
    if (!last)
        return;
    if (!c->locate.told) {
        ask_next(c);
        return;
    }
    settings_log(&c->settings, HIBLOOM_LOG_INFO, "%s was heard: it is known who is where",
                 carrier_where(c, node, where, sizeof where));
    end_round(c, true);
    c->store.server.count = topology_primaries(&c->topology);
    dispatch_all(c);
}
