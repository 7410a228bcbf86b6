/* calls.c: a step as calls that the oracles know. They hear of each before the library has it, and once it has ended.
 * This file checks what the client alone can see. See calls.h. */
#include "sim/calls.h"

#include <string.h>

/* Where clients race, every other one comes from the other end, so that they are not at the same item all the time. */
static bool is_backwards(const struct client *c)
{
    return world.plan->races != 0 && c->id % 2 != 0;
}

static bool is_by_pairs(const struct step *step)
{
    return step->verb >= VERB_ADD && step->verb <= VERB_LOOK && step->arg % 10 >= BY_PAIRS &&
           (uint32_t)__builtin_popcount(step->items) * step->times <= ITEMS;
}

bool is_reopen(const struct client *c, const struct step *step)
{
    return step->verb == VERB_OPEN && step->arg / 1000 == 500 && c->handles[step->name].filter != NULL;
}

/* Pairs are of the filters of all names; no bare one is on a loop. */
size_t parts_of(const struct client *c, const struct step *step)
{
    const bool bare = c->loop != NULL && (plan_kind(world.plan, 0)->bare || plan_kind(world.plan, 1)->bare);

    return is_by_pairs(step) && !bare ? world.plan->names : 1;
}

int name_of(const struct step *step, size_t part)
{
    return (step->name + (int)part) % NAMES;
}

/* The other filter is asked for the same items, or for others, but for as many. */
static uint32_t items_of(const struct step *step, size_t part)
{
    const uint32_t turn = part > 0 ? (uint32_t)(step->arg / 10 % 3) : 0;

    return (step->items << turn | step->items >> (ITEMS - turn)) & ((1u << ITEMS) - 1);
}

const bool *answers_of(const struct running *r, size_t part)
{
    static bool answers[ITEMS * TIMES_ROOM];
    size_t n = 0;

    for (size_t i = 0; i < r->count; i++) {
        const size_t at = is_backwards(r->client) ? r->count - 1 - i : i;
        if (r->part[at] == part)
            memcpy(&answers[n++], &r->answers[at], 1); /* of a call that has failed it is no bool */
    }
    return answers;
}

static void prepare_items(struct running *r, const struct step *step, size_t times)
{
    const size_t all = r->parts * times * (size_t)__builtin_popcount(step->items);

    r->count = 0;
    for (int i = 0; i < ITEMS; i++) /* so that the same one comes in several pipelines */
        for (size_t t = 0; t < times; t++)
            for (size_t part = 0; part < r->parts; part++)
                if ((items_of(step, part) >> i & 1) != 0) {
                    const size_t at = is_backwards(r->client) ? all - 1 - r->count : r->count;
                    const struct blob item = oracle_item(i);
                    r->items[at] = (hibloom_item){memcpy(r->lent[i], item.bytes, item.len), item.len};
                    r->part[at] = (unsigned char)part;
                    r->count++;
                }
}

/* The source of a merge: the filter of the other name, if they are kin; or the one into which it goes. */
static void find_source(const struct client *c, struct call *call)
{
    const int other = (call->name + 1) % NAMES;
    /* On a loop no other call may be bound to end while it waits. */
    const bool may_open = c->loop == NULL || world.plan->client[c->id].deadline_ms == 0;
    const bool has_other = world.plan->kin != 0 && call->arg != 500000 &&
                           (may_open || c->handles[other].filter != NULL);

    if (call->verb != VERB_MERGE || call->times != MERGED_STORED)
        return;
    call->from = 1 + (has_other ? other : call->name);
    call->items = oracle_in(call->from - 1);
    call->from_own = !may_open || (call->arg % 2 == 0 && c->handles[call->from - 1].filter != NULL);
    call->from_root = call->from_own ? c->handles[call->from - 1].root : oracle_root(call->from - 1);
}

static void prepare(struct running *r, const struct step *step)
{
    const struct client *c = r->client;
    const size_t times = step->times < TIMES_ROOM ? step->times : TIMES_ROOM;

    r->told = (struct told){.created = false};
    r->ends = false;
    r->by_pairs = is_by_pairs(step);
    r->as_one = r->by_pairs && world.call[c->id] % 4 == 1;
    r->parts = parts_of(c, step);
    prepare_items(r, step, times);
    for (size_t part = 0; part < r->parts; part++) {
        const struct handle *h = &c->handles[name_of(step, part)];
        r->calls[part] = (struct call){.client = c->id,
                                       .ordinal = world.call[c->id],
                                       .name = name_of(step, part),
                                       .verb = step->verb,
                                       .items = items_of(step, part),
                                       .times = times,
                                       .arg = step->arg,
                                       .by_pairs = r->by_pairs,
                                       .told = &r->told,
                                       .runs = stats_of(c).restarts,
                                       .handle = h->root};
        memcpy(r->calls[part].ids, h->ids, sizeof h->ids);
        find_source(c, &r->calls[part]);
    }
}

hibloom_stats stats_of(const struct client *c)
{
    hibloom_stats stats = {0};

    hibloom_get_stats(c->store, &stats, sizeof stats);
    return stats;
}

static uint64_t sent_again(const struct client *c)
{
    return stats_of(c).in_doubt + stats_of(c).redirects;
}

void check_unwritten(const struct running *r)
{
    for (size_t i = 0; i < r->unwritten; i++)
        if (((const unsigned char *)r->answers)[i] != UNWRITTEN || (r->by_pairs && r->each[i] != HIBLOOM_ECANCELED))
            fail_call(r->calls, "it failed, but has written an answer");
}

static void begin(struct running *r, const struct step *step)
{
    const int id = r->client->id;
    struct step what = *step;

    world.call[id]++;
    world.pieces[id] = 0;
    world.calls++;
    if (what.verb == VERB_LOAD)
        what.items = r->client->saved;
    check_unwritten(r);
    prepare(r, &what);
    memset(r->answers, UNWRITTEN, r->count);
    r->unwritten = 0;
    r->busy = true;
    r->again = sent_again(r->client);
    for (struct call *call = r->calls; call < r->calls + r->parts; call++) {
        world_say("call %d of client %d%s: %s '%s' items %x, %d of them%s", world.call[id], id,
                  r->client->loop != NULL ? " on a loop" : "", verb_names[step->verb], oracle_name(call->name),
                  (unsigned)call->items, (int)r->count, r->by_pairs ? ", by pairs" : "");
        call->reopens = is_reopen(r->client, step);
        call->only_new = step->verb == VERB_OPEN && step->arg == ONLY_NEW && !plan_kind(world.plan, call->name)->bare;
        oracle_begin(call);
    }
}

/* A handle is told of each other run of a server once; calls that were pending then are told together. */
static void note_told(struct client *c, const struct call *call, hibloom_status status)
{
    const uint64_t runs = stats_of(c).restarts;
    struct handle *h = &c->handles[call->name], *other = call->from_own ? &c->handles[call->from - 1] : h;

    if (!needs_handle(call->verb) || status != HIBLOOM_ELOST || merges_here(call) ||
        (call->from != 0 && !call->from_own) /* the other handle may be told */)
        return;
    const bool behind = call->begun_us >= h->told_us;
    if (behind && runs <= h->told_runs && runs <= other->told_runs)
        fail_call(call, "its handle of '%s' is told again of %d other runs", oracle_name(call->name), (int)runs);
    h->told_runs = other->told_runs = call->runs; /* a merge tells both */
    h->told_us = other->told_us = net_now_us();
    if (call->from != 0)
        return;
    if (behind && ++h->told > runs)
        fail_call(call, "its handle of '%s' is told %d times of %d other runs of servers", oracle_name(call->name),
                  (int)h->told, (int)runs);
    /* Uptimes are whole seconds: a server that restarted, and has given a slot away, may tell again as it is met. So may an
     * heir that is met a second later, one that was cut off, and a replica where the map has had a hole. */
    const bool late = net_now_us() >= world.first_us + 1000000 ||
                      (world.plan->holes && world.plan->client[c->id].from_replicas);
    if (world.plan->topology == CLUSTER && !world_had(FAULT_ISOLATE) && net_now_us() > world.young_us &&
        h->told > world.other_runs + (late ? world.take_overs : 0) &&
        world.plan->client[c->id].min_replicas == 0 /* else it goes to a server that it used, too */ &&
        (world.last_us[CAUSE_SLOTS] == 0 || (!late && net_now_us() > world.last_us[CAUSE_RESTART] + 3000000)))
        fail_call(call, "its handle of '%s' is told %d times, and there were %u other runs of servers",
                  oracle_name(call->name), (int)h->told, world.other_runs);
}

/* Which filter an open has opened: the only one that was there. A server that is not the truth may have shown another. */
static void note_root(struct client *c, const struct call *call, hibloom_status status)
{
    struct handle *h = &c->handles[call->name];

    if (status != HIBLOOM_OK || plan_kind(world.plan, call->name)->bare)
        return;
    h->root = call->ready == 1 && !world.stale[c->id] ? oracle_root(call->name) : 0;
    memset(h->ids, 0, sizeof h->ids);
    if (!world.stale[c->id])
        oracle_ids(call->name, h->ids);
}

/* What has become of that part. Where the call fails as one, another part may have failed. By ELOST all are told. */
static hibloom_status status_of(const struct running *r, size_t part, hibloom_status status)
{
    if (r->as_one)
        return r->parts == 1 || status == HIBLOOM_OK || status == HIBLOOM_ELOST ? status : HIBLOOM_ECANCELED;
    for (size_t i = 0; i < r->count && r->by_pairs; i++)
        if (r->part[i] == part)
            return r->each[i];
    return status;
}

/* The call fails as the first of its pairs, but for what is about one filter alone (hibloom_open_many). */
static void check_each(const struct running *r, hibloom_status status)
{
    hibloom_status wanted = HIBLOOM_OK;

    for (size_t i = 0; i < r->count; i++) {
        if (r->each[i] != status_of(r, r->part[i], status))
            fail_call(r->calls, "items of one filter have two statuses");
        if (r->each[i] != HIBLOOM_OK && ((const unsigned char *)r->answers)[i] != UNWRITTEN)
            fail_call(r->calls, "an item that has failed has an answer");
        if (wanted == HIBLOOM_OK && r->each[i] < HIBLOOM_ENOTFOUND)
            wanted = r->each[i];
    }
    if (status != wanted)
        fail_call(r->calls, "a failure of the call is not returned");
}

/* Those whose `done` is still to come. */
static void check_in_flight(const struct client *c)
{
    uint64_t due = 0;

    for (const struct running *r = c->running; r < c->running + AT_ONCE; r++)
        due += !r->busy ? 0 : r->calls[0].verb == VERB_FILL ? r->filling : 1;
    if (stats_of(c).in_flight > due)
        oracle_fail("client %d has %d calls in flight", c->id, (int)stats_of(c).in_flight);
}

static void on_nothing(hibloom_status status, void *data)
{
    fail_call(data, "a call that was refused has ended");
}

/* Within the `done` of what is cancelled. */
static void check_refused(struct client *c)
{
    struct call *call = c->running[0].calls;
    bool found;

    if ((c->closing != NULL &&
         hibloom_async_contains(c->closing, "x", 1, &found, on_nothing, call) != HIBLOOM_ECANCELED) ||
        (c->store_goes == GOES && hibloom_async_repair(c->store, "x", on_nothing, call) != HIBLOOM_ECANCELED))
        fail_call(call, "what is being closed takes another call");
}

void call_end(hibloom_status status, void *running)
{
    struct running *r = running;
    struct client *c = r->client;
    const bool doubtful = sent_again(c) != r->again; /* on a loop it may be one beside it that was */
    const bool canceled = r->parts > 1 && (r->calls[0].canceled || r->calls[1].canceled);

    r->busy = false;
    if (r->by_pairs && !r->as_one)
        check_each(r, status);
    for (size_t part = 0; part < r->parts; part++) {
        struct call *call = &r->calls[part];
        const hibloom_status its = status_of(r, part, status);
        call->doubtful = doubtful;
        call->canceled |= r->as_one && (canceled || its != status);
        oracle_end(call, its, answers_of(r, part), hibloom_store_error(c->store));
        if (!r->as_one)
            note_told(c, call, its);
    }
    if (r->calls[0].verb == VERB_SAVE) { /* what was in all the time */
        c->saved = status == HIBLOOM_OK && !world.stale[c->id] ? r->calls[0].demanded : 0;
        c->saved_name = r->calls[0].name;
    }
    if (status != HIBLOOM_OK && r->calls[0].verb <= VERB_REMOVE && (!r->by_pairs || r->as_one || c->store_goes == GOES))
        r->unwritten = r->count;
    check_unwritten(r);
    check_in_flight(c);
    if (status == HIBLOOM_ECANCELED)
        check_refused(c);
    world_call_ended(c->id);
    if (c->store_goes == WITHIN)
        free_store(c, world.calls % 2 == 0);
    if (r->calls[0].verb == VERB_OPEN)
        note_root(c, r->calls, status);
}

/* Whether a failure has been told to each of its handles; `before` it were the store's numbers. */
static void note_failed(struct client *c, const struct running *r, hibloom_status status, const hibloom_stats *before)
{
    const hibloom_stats now = stats_of(c);
    const bool one = r->count == 1 && r->calls[0].verb != VERB_FILL && !world.plan->client[c->id].fast; /* by itself */

    if (now.items_near - before->items_near > now.items - before->items)
        fail_call(r->calls, "of its items more are near than it has");
    for (size_t part = 0; part < r->parts; part++) {
        const hibloom_status its = status_of(r, part, status);
        bool *failed = &c->handles[r->calls[part].name].failed;
        const bool again = now.restarts != before->restarts; /* it may have learned the items before */
        if (one && *failed && !again && now.items_near != before->items_near)
            fail_call(r->calls, "the call before it has failed, but its near cache is still believed");
        *failed = !(r->as_one && r->parts > 1) && its != HIBLOOM_OK && its != HIBLOOM_ENOTSUP &&
                  its != HIBLOOM_ENOMEM && !merges_here(&r->calls[part]) &&
                  r->calls[part].from == 0; /* nothing need have been asked for it */
    }
}

hibloom_status call_blocking(struct client *c, const struct step *step)
{
    struct running *r = &c->running[0];

    world.stale[c->id] = false;
    world.connects[c->id] = world.connects_most[c->id] = 0;
    begin(r, step);
    const hibloom_stats before = stats_of(c);
    const hibloom_status status = carry_out(c, r, step);
    if (needs_handle(step->verb))
        note_failed(c, r, status, &before);
    else if (r->away) /* its handle has added, and so learned */
        c->handles[step->name].failed = false;
    call_end(status, r);
    for (size_t part = 0; part < r->parts; part++) {
        const hibloom_status its = status_of(r, part, status);
        /* some callers ignore that a key is lost, or the filter */
        const bool ignores = (its == HIBLOOM_ECORRUPT && plan_chance(world.plan, (uint64_t)c->id, 1) % 4 == 0) ||
                             (its == HIBLOOM_ENOTFOUND && plan_chance(world.plan, (uint64_t)c->id, 8) % 4 == 0);
        if (step->verb == VERB_DROP || (loses_handle(its) && needs_handle(step->verb) && !ignores))
            close_handle(c, r->calls[part].name);
    }
    return status;
}

void call_start(struct client *c, struct running *r, const struct step *step)
{
    begin(r, step);
    const hibloom_status status = carry_out(c, r, step);
    if (step->verb <= VERB_REMOVE || step->verb == VERB_FILL) { /* items are copied (async.h): here they go at once */
        memset(r->items, 0, (step->verb == VERB_FILL ? FILL : r->count) * sizeof *r->items);
        memset(r->fillers, 0, sizeof r->fillers);
        memset(r->lent, 0, sizeof r->lent);
    }
    if (status != HIBLOOM_OK && r->busy)
        call_end(status, r);
}
