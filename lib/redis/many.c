/* many.c: a call that need not send all of its items. See many.h. */
#include "redis/many.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "redis/cost.h"
#include "redis/near.h"
#include "spec/spec.h"

#include <string.h>

#define CHUNK (32u << 10)
#define SAMPLE 512u
#define GLANCE 64u
#define PROOFS 128u /* guards at a time */

/* What others have set may not be on their replicas yet: only an add of its own waits for that. */
static bool may_leave_out(const struct link *link, bool adds)
{
    return !adds || !link->server->sends_all;
}

static const struct bits *known_to(const struct many *many)
{
    return may_leave_out(many->task.link, many->task.adds) ? near_known(many->task.link) : NULL;
}

/* How many of a sample of the next n items are known. */
static size_t count_known(struct many *many, const struct bits *known, size_t n, size_t sample)
{
    size_t count = 0;

    for (size_t i = 0; i < sample; i++)
        many->left[i] = many->items[many->at + i * (n / sample)];
    bits_contains(known, many->left, sample, many->answers);
    for (size_t i = 0; i < sample; i++)
        count += many->answers[i];
    return count;
}

/* A bare bitmap need not be there before it is added to. */
static bool looks_first(const struct link *link, size_t n, bool adds, bool exact)
{
    return adds && !exact && link->spec->layout == HIBLOOM_LAYOUT_BLOCKED && !link->bare && n > 2 * SAMPLE &&
           may_leave_out(link, adds);
}

/* Is it less work to read or merge the bitmaps, where so many of n items have to be sent? An add
 * that reads them first may find nothing in: so that must be little work. */
static bool goes_by_bitmaps(const struct link *link, size_t n, double sent, bool adds, bool exact)
{
    const struct redis_server_traits *server = link->server;
    const struct cost_server to = {server->bitfield, server->link_mb_s};

    if (!adds)
        return bulk_pays_to_look(link, n, sent);
    const double items = sent * cost_item(link->spec, &to, exact ? COST_ADD_NEW : COST_ADD);
    if (!bulk_can(link) || (exact && link->spec->counters != 0)) /* what is in is counted, too */
        return false;
    if (!exact)
        return !server->may_not_merge && cost_merge(link->spec, &to, n) < items;
    return may_leave_out(link, adds) && cost_read(link->spec, &to, n) < items / 10;
}

bool many_pays(const struct link *link, size_t n, bool adds, bool exact)
{
    return n > 0 && (link->near != NULL || looks_first(link, n, adds, exact) ||
                     goes_by_bitmaps(link, n, (double)n, adds, exact));
}

/* ---- By whole bitmaps ------------------------------------------------------------------- */

/* How many have to be sent. */
static double expect_sent(struct many *many)
{
    const size_t sample = many->n < SAMPLE ? many->n : SAMPLE;
    const struct bits *known = known_to(many);

    if (known == NULL)
        return (double)many->n;
    return (double)many->n * (double)(sample - count_known(many, known, many->n, sample)) / (double)sample;
}

/* Whether it is so. */
static bool begin_bulk(struct many *many)
{
    const bool adds = many->task.adds;

    many->phase = MANY_CHUNK;
    if (!goes_by_bitmaps(many->task.link, many->n, (double)many->n, adds, many->exact) ||
        !goes_by_bitmaps(many->task.link, many->n, expect_sent(many), adds, many->exact))
        return false;
    if (adds && many->exact && (many->present = alloc.calloc(FLAGS_BYTES(many->n), 1)) == NULL)
        return false; /* item by item there need be no memory for it */
    many->phase = MANY_BULK;
    many->mark = near_mark(many->task.link);
    bulk_begin(&many->bulk, many->task.link, many->items, many->n, adds ? many->present : many->yes);
    return true;
}

static void drop_read(struct many *many)
{
    alloc.free(many->present);
    many->present = NULL;
    if (!many->task.adds)
        memset(many->yes, 0, FLAGS_BYTES(many->n));
}

/* Who may not merge, cannot while a slot moves, or has no memory for bitmaps, goes item by item. */
static void end_bulk(struct many *many)
{
    const bool merges = many->task.adds && !many->exact, denied = merges && many->inner.status == HIBLOOM_EDENIED,
               moves = merges && many->inner.refusal == REFUSAL_TRYAGAIN;

    if (many->task.status == HIBLOOM_OK && (denied || moves || many->inner.status == HIBLOOM_ENOMEM)) {
        many->task.link->server->may_not_merge |= denied;
        drop_read(many);
    } else {
        task_end_as(&many->task, &many->inner);
        if (many->present == NULL)
            many->at = many->n;
    }
    bulk_end(&many->bulk);
}

/* ---- What is known -------------------------------------------------------------------- */

static void note_answer(struct many *many, size_t item, bool yes)
{
    if (yes)
        flags_set(many->yes, many->at + item);
}

/* What is left out relies on the keys of these items: of a partitioned filter, on all. */
static void note_touched(struct many *many, const hibloom_item *items, const bool *out, size_t n)
{
    const hibloom_spec *spec = many->task.link->spec;
    const struct hasher hasher = positions_hasher(spec);
    uint64_t bits[HIBLOOM_HASHES_MAX];

    if (spec_segments(spec) == 1 && memchr(out, 1, n) != NULL)
        memset(many->touched, 1, many->task.link->count);
    for (size_t i = 0; spec_segments(spec) > 1 && i < n; i++)
        if (out[i])
            many->touched[hasher.indexes(&hasher, items[i].data, items[i].len, bits)] = 1;
}

/* What is worth looking at: where a few items are all new the rest most often are, too. To look at
 * them cost some percent of a call; what is sent though it is known is answered as rightly. */
static const struct bits *known_to_chunk(struct many *many)
{
    const struct bits *known = known_to(many);

    if (known == NULL || many->chunk < 4 * GLANCE || count_known(many, known, many->chunk, GLANCE) > 0)
        return known;
    return NULL;
}

static void take_chunk(struct many *many)
{
    struct link *link = many->task.link;
    const hibloom_item *items = many->items + many->at;

    if (many->present != NULL && many->mark != near_mark(link)) { /* cleared since, perhaps */
        alloc.free(many->present);
        many->present = NULL;
    }
    many->chunk = many->n - many->at < CHUNK ? many->n - many->at : CHUNK;
    const struct bits *known = known_to_chunk(many);
    many->count = many->known = 0;
    many->mark = near_mark(link);
    many->since_ns = many->begun_ns; /* one good guard in a call is enough for all that it leaves out */
    memset(many->touched, 0, link->count);
    if (known != NULL)
        bits_contains(known, items, many->chunk, many->answers);
    for (uint32_t i = 0; i < many->chunk; i++) {
        many->known += known != NULL && many->answers[i];
        if ((known == NULL || !many->answers[i]) &&
            (many->present == NULL || !flags_has(many->present, many->at + i))) {
            many->left[many->count] = items[i];
            many->which[many->count++] = i;
            continue;
        }
        note_answer(many, i, !many->task.adds);
    }
    if (known != NULL)
        note_touched(many, items, many->answers, many->chunk);
}

/* ---- What is asked ---------------------------------------------------------------------- */

static void look(struct many *many, enum many_phase phase, size_t from, size_t to)
{
    many->phase = phase;
    walk_begin_look(&many->walk, many->task.link, 1, many->left + from, to - from, NULL);
}

static void send(struct many *many)
{
    many->phase = MANY_ITEMS;
    if (many->task.adds)
        walk_begin_add(&many->walk, many->task.link, many->left, many->count, many->exact);
    else
        walk_begin_look(&many->walk, many->task.link, 1, many->left, many->count, NULL);
}

/* What is in needs not be sent; but see ask_proof. */
static void drop_found(struct many *many)
{
    size_t left = 0;

    many->since_ns = clock_now_ns();
    note_touched(many, many->left, many->answers, many->count);
    for (size_t i = 0; i < many->count; i++)
        if (!many->answers[i])
            many->left[left++] = many->left[i];
    many->count = left;
}

static bool half_is_found(const struct many *many)
{
    size_t found = 0;

    for (size_t i = 0; i < SAMPLE; i++)
        found += many->answers[i];
    return found >= SAMPLE / 2;
}

static void take_answers(struct many *many)
{
    for (size_t i = 0; i < many->count && (!many->task.adds || many->exact); i++)
        note_answer(many, many->which[i], many->answers[i]);
}

/* ---- What is proven ----------------------------------------------------------------------- */

static bool is_unproven(const struct proof *proof)
{
    return proof->touched[proof->at] && !near_is_fresh(proof->talk.task.link, proof->at, proof->since_ns);
}

static void take_proof(struct talk *talk, uint32_t tag, uint32_t index, const struct reply *reply)
{
    if (index == 0)
        (void)guard_take(talk, tag, index, reply);
    else
        (void)task_expect(&talk->task, reply, REDIS_REPLY_ARRAY, tag);
}

/* Of an add that is not sent, the server has to say that it would have taken it: a primary that
 * was demoted, and may lack what is known, says so to writing commands only. BITFIELD counts as one. */
static void ask_proof(struct proof *proof, struct outbox *outbox, uint32_t i)
{
    struct link *link = proof->talk.task.link;
    char name[KEYS_SIZE];
    const struct argument key = link_begin(link, outbox, i, i, name);

    guard_ask(link, outbox, key, i);
    if (proof->adds) {
        command_start(&outbox->commands, 5, "BITFIELD");
        command_argument(&outbox->commands, key);
        command_literal(&outbox->commands, "$3\r\nGET\r\n$2\r\nu1\r\n$1\r\n0\r\n");
    }
    outbox_end(outbox);
}

static void ask_proofs(struct talk *talk, struct outbox *outbox)
{
    struct proof *proof = (struct proof *)talk;
    const uint32_t count = talk->task.link->count;

    for (uint32_t asked = 0; proof->at < count && asked < PROOFS; proof->at++)
        if (is_unproven(proof)) {
            ask_proof(proof, outbox, proof->at);
            asked++;
        }
    talk->take = take_proof;
    if (proof->at < count)
        talk->step = ask_proofs;
}

static void prove(struct many *many)
{
    many->phase = MANY_PROOF;
    many->proof = (struct proof){.adds = many->task.adds, .touched = many->touched, .since_ns = many->since_ns};
    talk_begin(&many->proof.talk, many->task.link, ask_proofs);
}

/* What is left of the chunk; where nothing is, what was left out is proven. */
static void send_left(struct many *many)
{
    if (many->count > 0)
        send(many);
    else
        prove(many);
}

/* ---- One after the other -------------------------------------------------------------------- */

static void end_inner(struct many *many)
{
    if (many->phase == MANY_BULK) {
        end_bulk(many);
        return;
    }
    task_end_as(&many->task, &many->inner);
    if (many->phase == MANY_SAMPLE || many->phase == MANY_ITEMS)
        walk_end(&many->walk, !many->task.adds || many->exact || many->phase == MANY_SAMPLE ? many->answers : NULL);
    else if (many->phase == MANY_LOOK)
        walk_end(&many->walk, many->answers + SAMPLE);
}

/* What was known has been forgotten in the middle: so the chunk is begun once more, without it. */
static void end_chunk(struct many *many)
{
    many->phase = MANY_CHUNK;
    if (many->count == many->chunk || many->mark == near_mark(many->task.link)) {
        many->at += many->chunk;
        many->spared += many->known;
    } else if (!many->task.adds) {
        for (size_t i = many->at; i < many->at + many->chunk; i++)
            flags_unset(many->yes, i);
    }
}

/* Begins what follows; false: nothing does. */
static bool go_on(struct many *many)
{
    for (;;)
        switch (many->phase) {
        case MANY_BEGIN:
            if (begin_bulk(many))
                return true;
            break;
        case MANY_BULK:
            if (many->present == NULL) {
                many->phase = MANY_CHUNK;
                break;
            }
            /* what is in will be left out: on all keys */
            memset(many->touched, 1, many->task.link->count);
            many->since_ns = clock_now_ns();
            prove(many);
            return true;
        case MANY_CHUNK:
            if (many->at == many->n)
                return false;
            take_chunk(many);
            if (looks_first(many->task.link, many->count, many->task.adds, many->exact))
                look(many, MANY_SAMPLE, 0, SAMPLE);
            else
                send_left(many);
            return true;
        case MANY_SAMPLE:
            if (half_is_found(many))
                look(many, MANY_LOOK, SAMPLE, many->count);
            else
                send(many);
            return true;
        case MANY_LOOK:
            drop_found(many);
            send_left(many);
            return true;
        case MANY_ITEMS:
            take_answers(many);
            prove(many);
            return true;
        case MANY_PROOF: end_chunk(many); break;
        case MANY_DONE: return false;
        }
}

static enum task_next next(struct task *task, struct outbox *outbox)
{
    struct many *many = (struct many *)task;
    bool more = many->phase != MANY_BEGIN || (task->status == HIBLOOM_OK && go_on(many));

    while (more && many->phase != MANY_DONE) {
        const enum task_next what = task_next_inner(task, outbox);
        if (what != TASK_DONE)
            return what;
        end_inner(many);
        more = task->status == HIBLOOM_OK && go_on(many);
    }
    many->phase = MANY_DONE;
    return TASK_DONE;
}

static const struct task_class many_class = {next, task_reply_inner};

/* ---- Its begin and end ------------------------------------------------------------------------ */

/* What is known to be new stays so. */
static void again(struct task *task)
{
    struct many *many = (struct many *)task;

    near_forget(task->link);
    drop_read(many);
    task->status = HIBLOOM_OK;
    many->phase = MANY_BEGIN;
    many->at = many->chunk = many->count = many->spared = 0;
    many->begun_ns = clock_now_ns();
}

static void begin(struct many *many, struct link *link, const hibloom_item *items, size_t n)
{
    const size_t chunk = n < CHUNK ? n : CHUNK, keys = link->count;
    const size_t words = chunk * sizeof *many->left + chunk * sizeof *many->which;

    *many = (struct many){.task = {.class = &many_class,
                                   .link = link,
                                   .inner = &many->inner,
                                   .again = again,
                                   .take_guard = task_take_guard_inner},
                          .items = items,
                          .n = n,
                          .begun_ns = clock_now_ns()};
    many->left = alloc.malloc(words + chunk * sizeof *many->answers + keys);
    many->yes = alloc.calloc(FLAGS_BYTES(n), 1);
    if (many->left == NULL || many->yes == NULL) {
        many->phase = MANY_DONE;
        task_no_memory(&many->task);
        return;
    }
    many->which = (uint32_t *)(many->left + chunk);
    many->answers = (bool *)(many->which + chunk);
    many->touched = (unsigned char *)(many->answers + chunk);
}

void many_begin_add(struct many *many, struct link *link, const hibloom_item *items, size_t n, bool exact)
{
    begin(many, link, items, n);
    many->task.adds = true;
    many->exact = exact;
}

void many_begin_contains(struct many *many, struct link *link, const hibloom_item *items, size_t n)
{
    begin(many, link, items, n);
    many->task.reads = true;
}

void many_end(struct many *many, bool *answers)
{
    if (many->phase == MANY_BULK) /* it did not come to its end */
        bulk_end(&many->bulk);
    else if (many->phase == MANY_SAMPLE || many->phase == MANY_LOOK || many->phase == MANY_ITEMS)
        walk_end(&many->walk, NULL);
    if (many->task.status == HIBLOOM_OK)
        many->task.link->server->stats.items_near += many->spared;
    if (many->task.status == HIBLOOM_OK && answers != NULL)
        flags_read(many->yes, answers, many->n);
    alloc.free(many->left);
    alloc.free(many->yes);
    alloc.free(many->present);
}

void plain_begin_add(struct plain *call, struct link *link, const hibloom_item *items, size_t n, bool exact)
{
    call->is_many = many_pays(link, n, true, exact);
    if (call->is_many)
        many_begin_add(&call->many, link, items, n, exact);
    else
        walk_begin_add(&call->items, link, items, n, exact);
}

void plain_begin_contains(struct plain *call, struct link *link, const hibloom_item *items, size_t n)
{
    call->is_many = many_pays(link, n, false, true);
    if (call->is_many)
        many_begin_contains(&call->many, link, items, n);
    else
        walk_begin_look(&call->items, link, 1, items, n, NULL);
}

void plain_end(struct plain *call, bool *answers)
{
    if (call->is_many)
        many_end(&call->many, answers);
    else
        walk_end(&call->items, answers);
}
