/* sieve.c: the items of an add or a look-up, chunk by chunk. See sieve.h. */
#include "redis/sieve.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "redis/near.h"
#include "spec/positions.h"

#include <string.h>

#define CHUNK (32u << 10) /* items, at most; a policy may say its own */
#define SAMPLE 512u
#define GLANCE 64u
#define PROOFS 128u /* guards at a time */

/* A link that is new here changes nothing that is known of others. */
static uint64_t mark_of(const struct sieve *s)
{
    uint64_t mark = near_mark(&s->filter->first, false);

    for (uint32_t i = 1; i < redis_links(s->filter); i++)
        mark += redis_link(s->filter, i)->clears;
    return mark;
}

/* ---- Inner tasks ----------------------------------------------------------------------------- */

static struct task *inner_of(const struct sieve *s)
{
    return s->links != NULL ? &s->links->task : s->bulk != NULL ? &s->bulk->task : &s->inner->task;
}

static void free_inner(struct sieve *s)
{
    task_release(inner_of(s));
    alloc.free(s->links);
    alloc.free(s->bulk);
    s->links = NULL;
    s->bulk = NULL;
}

void sieve_await(struct sieve *s, void (*ended)(struct sieve *))
{
    s->task.inner = inner_of(s);
    s->ended = ended;
}

void sieve_ask(struct sieve *s, struct link *link, talk_step *step, void (*ended)(struct sieve *))
{
    free_inner(s);
    talk_begin(&s->inner->talk, link, step);
    sieve_await(s, ended);
}

static void rest(struct talk *talk, struct outbox *outbox)
{
    talk->task.pause_ms = TASK_UNTIL_MADE;
}

/* If the other one has failed, or goes on beyond this one's deadline, this one waits no more until another has done well. */
bool sieve_may_make(struct sieve *s, void (*ended)(struct sieve *))
{
    struct redis_filter *filter = s->filter;

    if (filter->maker != NULL && filter->maker != &s->task && s->waited != filter->made + 1) {
        s->waited = filter->made + 1;
        filter->waiting++;
        sieve_ask(s, &filter->first, rest, ended);
        return false;
    }
    free_inner(s);
    s->task.makes = true;
    filter->maker = filter->maker != NULL ? filter->maker : &s->task;
    return true;
}

void sieve_reach(struct sieve *s, uint32_t links, void (*ended)(struct sieve *))
{
    if (!sieve_may_make(s, ended))
        return;
    s->links = alloc.malloc(sizeof *s->links);
    if (s->links == NULL) {
        task_no_memory(&s->task);
        return;
    }
    links_begin(s->links, LINKS_REACH, s->filter->handle, NULL, links);
    s->links->asks = !s->task.adds;
    sieve_await(s, ended);
}

void sieve_look(struct sieve *s, struct link *link, uint32_t links, const hibloom_item *items, size_t n,
                const struct aside *aside, void (*ended)(struct sieve *))
{
    free_inner(s);
    walk_begin_look(&s->inner->walk, link, links, items, n, aside);
    sieve_await(s, ended);
}

void sieve_add(struct sieve *s, struct link *link, struct slice_add *slice, void (*ended)(struct sieve *))
{
    free_inner(s);
    walk_begin_add(&s->inner->walk, link, s->left, s->count, s->op == STORE_ADD_NEW);
    s->inner->walk.slice = slice;
    sieve_await(s, ended);
}

void sieve_by_bitmaps(struct sieve *s, enum store_op op, struct link *link, const hibloom_item *items, size_t n,
                      unsigned char *yes, void (*ended)(struct sieve *))
{
    free_inner(s);
    s->bulk = alloc.malloc(sizeof *s->bulk);
    if (s->bulk == NULL) {
        s->bulk_gave_way = true;
        ended(s);
        return;
    }
    bulk_begin(s->bulk, op, link, items, n, yes);
    sieve_await(s, ended);
}

/* Nothing is under way any more. */
static void release(struct sieve *s)
{
    free_inner(s);
    if (s->policy->release != NULL)
        s->policy->release(s);
    alloc.free(s->set.fresh);
    s->set.fresh = NULL;
    s->ended = NULL;
}

/* A look-up reads into its answers, which stay. */
static void forget_read(struct sieve *s)
{
    alloc.free(s->in != s->yes ? s->in : NULL);
    s->in = NULL;
}

static void begin_call(struct sieve *s)
{
    s->at = 0;
    s->out.mark = mark_of(s);
    s->begun_ns = clock_now_ns();
    s->policy->begin(s);
}

static bool follow(struct task *task, struct task *inner)
{
    struct sieve *s = (struct sieve *)task;
    void (*const ended)(struct sieve *) = s->ended;

    s->ended = NULL;
    s->bulk_gave_way = inner != NULL && s->bulk != NULL && task->status == HIBLOOM_OK && bulk_gave_way(s->bulk);
    if (s->bulk_gave_way) /* the call goes item by item then */
        s->filter->first.server->may_not_merge |= bulk_may_not(s->bulk);
    else if (inner != NULL)
        task_end_as(task, inner);
    s->denied |= s->links != NULL && s->links->denied;
    s->task.makes = s->task.makes && s->denied; /* that helps no other call, so it does not count as done well */
    if (ended != NULL && task->status == HIBLOOM_OK)
        ended(s);
    if (task->status != HIBLOOM_OK)
        release(s);
    return s->ended != NULL;
}

/* ---- What is left ------------------------------------------------------------------------------- */

void sieve_keep(struct sieve *s, bool answer)
{
    uint32_t kept = 0;

    for (size_t i = 0; i < s->count; i++)
        if (s->answers[i] == answer) {
            s->left[kept] = s->left[i];
            s->which[kept++] = s->which[i];
        }
    s->count = kept;
}

void sieve_note(struct sieve *s)
{
    for (size_t i = 0; i < s->count; i++)
        flags_set(s->yes, s->at + s->which[i]);
}

void sieve_note_found(struct sieve *s)
{
    for (size_t i = 0; i < s->count; i++)
        if (s->answers[i])
            flags_set(s->yes, s->at + s->which[i]);
    sieve_keep(s, false);
}

/* ---- What is left out ----------------------------------------------------------------------------- */

/* Bits of other clients may not be on their replicas yet: only an add of its own waits for them. */
static bool may_leave_out(const struct link *link, bool adds)
{
    return !adds || !link->server->sends_all;
}

static uint32_t first_key(const struct link *link)
{
    uint32_t key = 0;

    for (uint32_t i = 0; i < link->number; i++)
        key += redis_link(link->of, i)->count;
    return key;
}

/* Room for the keys of all links: there may be more by now. */
static bool make_relied(struct sieve *s)
{
    const struct link *newest = redis_newest(s->filter);
    const uint32_t keys = first_key(newest) + newest->count;
    unsigned char *relied = keys > s->out.keys ? alloc.realloc(s->out.relied, keys) : s->out.relied;

    if (relied == NULL)
        return false;
    memset(relied + s->out.keys, 0, keys - s->out.keys);
    s->out.relied = relied;
    s->out.keys = keys;
    return true;
}

/* Items that are left out rely on their keys; in a partitioned link, on all keys. */
static void rely_on(struct sieve *s, const struct link *link, const hibloom_item *items, const bool *out, size_t n)
{
    const struct hasher hasher = positions_hasher(link->spec);
    unsigned char *const relied = s->out.relied + first_key(link);
    uint64_t bits[HIBLOOM_HASHES_MAX];

    if (memchr(out, 1, n) == NULL)
        return;
    s->out.any = true;
    if (link->number > 0)
        s->out.relied[0] = 1; /* while keys expire the first root goes first */
    if (spec_segments(link->spec) == 1)
        memset(relied, 1, link->count);
    for (size_t i = 0; spec_segments(link->spec) > 1 && i < n; i++)
        if (out[i])
            relied[hasher.indexes(&hasher, items[i].data, items[i].len, bits)] = 1;
}

bool sieve_rely_on_all(struct sieve *s)
{
    if (!make_relied(s))
        return false;
    memset(s->out.relied, 1, s->out.keys);
    s->out.since_ns = clock_now_ns();
    return true;
}

/* Is anything near that a call may rely on? */
static bool has_near(struct sieve *s)
{
    bool near = false;

    if (s->filter->first.near == NULL)
        return false;
    for (uint32_t i = 0; i < redis_links(s->filter); i++)
        near = near_known(redis_link(s->filter, i)) != NULL || near;
    return near && may_leave_out(&s->filter->first, s->task.adds) && s->in != s->yes;
}

/* Notes in `answers` whether each item is near. */
static void find_near(struct sieve *s, const hibloom_item *items, size_t n, bool relies)
{
    bool found[SAMPLE];

    memset(s->answers, 0, n * sizeof *s->answers);
    for (uint32_t l = 0; l < redis_links(s->filter); l++) {
        struct link *link = redis_link(s->filter, l);
        const struct bits *near = near_known(link);
        for (size_t at = 0, some; near != NULL && at < n; at += some) {
            some = n - at < SAMPLE ? n - at : SAMPLE;
            bits_contains(near, items + at, some, found);
            if (relies)
                rely_on(s, link, items + at, found, some);
            for (size_t i = 0; i < some; i++)
                s->answers[at + i] = s->answers[at + i] || found[i];
        }
    }
}

/* Some of the next n items are left. */
static void take_sample(struct sieve *s, size_t n, size_t sample)
{
    for (size_t i = 0; i < sample; i++)
        s->left[i] = s->items[s->at + i * (n / sample)];
}

/* The number of near items in a sample of the next n items. */
static size_t count_near(struct sieve *s, size_t n, size_t sample)
{
    size_t count = 0;

    take_sample(s, n, sample);
    find_near(s, s->left, sample, false);
    for (size_t i = 0; i < sample; i++)
        count += s->answers[i];
    return count;
}

double sieve_expect_sent(struct sieve *s)
{
    const size_t left = s->n - s->at, sample = left < SAMPLE ? left : SAMPLE;

    if (!has_near(s))
        return (double)left;
    return (double)left * (double)(sample - count_near(s, left, sample)) / (double)sample;
}

/* Where a few items are all not near the rest most often are not, either. To look at them cost some percent of a call. Items
 * that are near may also be sent: the answers are as right. */
void sieve_take(struct sieve *s, uint32_t most)
{
    const hibloom_item *items = s->items + s->at;
    const uint64_t mark = mark_of(s);
    size_t excluded = 0;

    if (s->in != s->yes && s->out.mark != mark) /* cleared since, perhaps */
        forget_read(s);
    s->chunk = s->n - s->at < most ? (uint32_t)(s->n - s->at) : most;
    s->count = 0;
    s->out.known = 0;
    s->out.any = false;
    s->out.mark = mark;
    s->out.since_ns = s->begun_ns; /* one good guard in a call is enough for all that it leaves out */
    if (s->out.keys > 0)
        memset(s->out.relied, 0, s->out.keys);
    const bool near = !s->out.none && has_near(s) && make_relied(s) &&
                      (s->chunk < 4 * GLANCE || count_near(s, s->chunk, GLANCE) > 0);
    if (near)
        find_near(s, items, s->chunk, true);
    for (uint32_t i = 0; i < s->chunk; i++) {
        const bool known = near && s->answers[i];
        s->out.known += known;
        if (known && !s->task.adds)
            flags_set(s->yes, s->at + i);
        if (s->in != NULL && flags_has(s->in, s->at + i))
            excluded++;
        else if (!known) {
            s->left[s->count] = items[i];
            s->which[s->count++] = i;
        }
    }
    s->out.any = s->out.any || (excluded > 0 && s->in != s->yes);
}

/* ---- What is proven ------------------------------------------------------------------------------- */

void sieve_take_proof(struct talk *talk, uint32_t i, uint32_t index, const struct reply *reply)
{
    if (index == 0)
        (void)guard_take(talk, i, index, reply);
    else
        (void)task_expect(&talk->task, reply, REDIS_REPLY_ARRAY, i);
}

void sieve_put_write(struct commands *out, struct argument key)
{
    command_start_on(out, 5, "BITFIELD", key);
    command_literal(out, "$3\r\nGET\r\n$2\r\nu1\r\n$1\r\n0\r\n");
}

static void take_proof(struct talk *talk, uint32_t tag, uint32_t index, const struct reply *reply)
{
    uint32_t i;
    struct link *link = redis_key_of(sieve_of(talk)->filter, tag, &i);

    if (talk_turn_to(talk, link))
        sieve_take_proof(talk, i, index, reply);
}

static void ask_proofs(struct talk *talk, struct outbox *outbox)
{
    struct sieve *s = sieve_of(talk);

    for (uint32_t asked = 0, i; s->out.at < s->out.keys && asked < PROOFS; s->out.at++) {
        struct link *link = redis_key_of(s->filter, s->out.at, &i);
        if (!s->out.relied[s->out.at] || near_is_fresh(link, i, s->out.since_ns))
            continue;
        const struct argument key = link_begin(link, outbox, s->out.at, i, KEY_NAME);
        guard_ask(link, outbox, key, i);
        if (s->task.adds)
            sieve_put_write(&outbox->commands, key);
        outbox_end(outbox);
        asked++;
    }
    talk_then(talk, take_proof, s->out.at < s->out.keys ? ask_proofs : NULL);
}

void sieve_prove(struct sieve *s, void (*ended)(struct sieve *))
{
    s->out.at = 0;
    sieve_ask(s, &s->filter->first, ask_proofs, ended);
}

void sieve_prove_read(struct sieve *s, bool read)
{
    if (read && sieve_rely_on_all(s)) {
        sieve_prove(s, s->policy->chunk);
        return;
    }
    forget_read(s);
    s->policy->chunk(s);
}

/* ---- Chunks ----------------------------------------------------------------------------------------- */

static void chunk_decided(struct sieve *s)
{
    s->at += s->chunk;
    s->out.none = false;
    s->out.spared += s->out.known;
    if (s->at < s->n)
        s->policy->chunk(s);
    else if (s->policy->end != NULL)
        s->policy->end(s);
}

/* If known bits were forgotten in the middle, the chunk begins again, as a whole. While a slot moves each look forgets
 * them. */
static void chunk_proven(struct sieve *s)
{
    if (s->out.mark == mark_of(s)) {
        chunk_decided(s);
        return;
    }
    for (size_t i = s->at; i < s->at + s->chunk && !s->task.adds; i++)
        flags_unset(s->yes, i);
    s->out.none = true;
    s->policy->chunk(s);
}

void sieve_end_chunk(struct sieve *s)
{
    if (s->out.any)
        sieve_prove(s, chunk_proven);
    else
        chunk_decided(s);
}

/* ---- An add to one link -------------------------------------------------------------------------------- */

/* By the commands, or by whole bitmaps. What is new by either is left. */
static void was_set(struct sieve *s)
{
    if (s->bulk != NULL)
        memset(s->answers, 0, s->count * sizeof *s->answers);
    else
        walk_read(&s->inner->walk, s->answers);
    for (size_t i = 0; s->set.fresh != NULL && i < s->count; i++)
        s->answers[i] = s->answers[i] || flags_has(s->set.fresh, i);
    alloc.free(s->set.fresh);
    s->set.fresh = NULL;
    if (s->op == STORE_ADD_NEW)
        sieve_keep(s, true);
    s->set.ended(s);
}

static void merged(struct sieve *s)
{
    if (s->bulk_gave_way)
        sieve_add(s, s->set.link, NULL, was_set);
    else
        was_set(s);
}

void sieve_distrust(struct sieve *s)
{
    s->begun_ns = s->out.since_ns = clock_now_ns();
}

/* Items that are in need not be sent; but see sieve_put_write. */
static void rest_looked(struct sieve *s)
{
    walk_read(&s->inner->walk, s->answers + SAMPLE);
    rely_on(s, s->set.link, s->left, s->answers, s->count);
    sieve_distrust(s);
    sieve_keep(s, false);
    if (s->count > 0)
        sieve_add(s, s->set.link, NULL, was_set);
    else
        s->set.ended(s);
}

bool sieve_sample_is_new(struct sieve *s)
{
    size_t found = 0;

    sieve_distrust(s);
    walk_read(&s->inner->walk, s->answers);
    for (size_t i = 0; i < SAMPLE; i++)
        found += s->answers[i];
    return found < SAMPLE / 2;
}

/* It costs an eighth of the merge that it may save, at most: of a small filter the merge costs less. */
bool sieve_sample(struct sieve *s, void (*ended)(struct sieve *))
{
    const struct spec *spec = s->task.link->spec;
    const struct cost_server *to = &s->task.link->server->cost;

    if (s->n <= 2 * SAMPLE ||
        8 * SAMPLE * cost_item(spec, to, STORE_LOOK) >= cost_bitmaps(spec, to, STORE_ADD_NEW, s->n))
        return false;
    take_sample(s, s->n, SAMPLE);
    sieve_look(s, s->task.link, 1, s->left, SAMPLE, NULL, ended);
    return true;
}

static void sample_looked(struct sieve *s)
{
    if (!sieve_sample_is_new(s) && make_relied(s))
        sieve_look(s, s->set.link, 1, s->left + SAMPLE, s->count - SAMPLE, NULL, rest_looked);
    else
        sieve_add(s, s->set.link, NULL, was_set);
}

/* A bare bitmap need not be there before it is added to. */
bool sieve_looks_first(const struct link *link, size_t n, enum store_op op)
{
    return op == STORE_ADD && link->spec->layout == LAYOUT_BLOCKED && !link->bare && n > 2 * SAMPLE &&
           may_leave_out(link, true);
}

/* A merge tells what is new by flags: without memory for them the items go by commands. */
void sieve_set(struct sieve *s, struct link *link, void (*ended)(struct sieve *))
{
    const bool merges = bulk_pays(s->op, link, s->count, (double)s->count);

    s->set = (struct setting){.link = link, .ended = ended};
    if (merges && s->op == STORE_ADD_NEW)
        s->set.fresh = alloc.calloc(FLAGS_BYTES(s->count), 1);
    if (merges && (s->set.fresh != NULL || s->op == STORE_ADD))
        sieve_by_bitmaps(s, s->op, link, s->left, s->count, s->set.fresh, merged);
    else if (!merges && !s->out.none && sieve_looks_first(link, s->count, s->op))
        sieve_look(s, link, 1, s->left, SAMPLE, NULL, sample_looked);
    else
        sieve_add(s, link, NULL, was_set);
}

/* ---- The task -------------------------------------------------------------------------------------------- */

/* Items known to be new stay so. */
static void redo(struct task *task)
{
    struct sieve *s = (struct sieve *)task;

    for (uint32_t i = 0; i < redis_links(s->filter); i++) /* it may have learned from a server that is none any more */
        near_forget(redis_link(s->filter, i));
    if (!s->task.adds)
        memset(s->yes, 0, FLAGS_BYTES(s->n));
    forget_read(s);
    s->out.spared = 0;
    s->ended = begin_call;
    task->status = HIBLOOM_OK;
}

/* Without memory for it its inner task is run, which has failed. */
static struct task *begin_sieve(struct items_task *inner, const struct policy *policy, enum store_op op,
                                struct link *link, const hibloom_item *items, size_t n)
{
    const bool adds = op != STORE_LOOK;
    const uint32_t chunk = policy->most != NULL ? policy->most(link, n, adds) : CHUNK;
    const uint32_t most = n < chunk ? (uint32_t)n : chunk;
    const size_t arrays = most * (sizeof(hibloom_item) + sizeof(uint32_t) + sizeof(bool));
    struct sieve *s = alloc.malloc(sizeof *s + arrays + FLAGS_BYTES(n));

    memset(inner, 0, sizeof *inner);
    if (s == NULL) {
        talk_begin(&inner->talk, link, NULL);
        task_no_memory(&inner->task);
        return &inner->task;
    }
    *s = (struct sieve){.task = {.follow = follow, .link = link, .redo = redo, .adds = adds, .reads = !adds},
                        .inner = inner,
                        .ended = begin_call,
                        .policy = policy,
                        .filter = link->of,
                        .op = op,
                        .items = items,
                        .n = n,
                        .most = most};
    s->which = (uint32_t *)(s->left + most);
    s->answers = (bool *)(s->which + most);
    s->yes = memset(s->answers + most, 0, FLAGS_BYTES(n));
    inner->of = s;
    return &s->task;
}

struct task *items_task_begin(struct items_task *c, enum store_op op, hibloom *handle, const hibloom_item *items,
                              size_t n)
{
    struct link *link = &redis_filter_of(handle)->first;
    const struct policy *policy = op == STORE_REMOVE        ? NULL
                                  : link->spec->growth != 0 ? &growing_policy
                                  : link->spec->window != 0 ? &window_policy
                                  : plain_pays(link, n, op) ? &plain_policy
                                                            : NULL;

    if (policy != NULL)
        return begin_sieve(c, policy, op, link, items, n);
    c->of = NULL;
    if (op == STORE_REMOVE)
        walk_begin_remove(&c->walk, link, items, n);
    else if (op == STORE_LOOK)
        walk_begin_look(&c->walk, link, 1, items, n, NULL);
    else
        walk_begin_add(&c->walk, link, items, n, op == STORE_ADD_NEW);
    return &c->task;
}

void items_task_end(struct items_task *c, bool *answers)
{
    struct sieve *s = c->of;
    hibloom_stats *stats = &(s != NULL ? &s->task : &c->task)->link->server->stats;

    if (s == NULL) {
        stats->items += c->walk.n;
        walk_read(&c->walk, answers);
        task_release(&c->task);
        return;
    }
    release(s);
    stats->items += s->n;
    if (s->task.status == HIBLOOM_OK) {
        stats->items_near += s->out.spared;
        if (answers != NULL)
            flags_read(s->yes, answers, s->n);
    }
    alloc.free(s->out.relied);
    forget_read(s);
    alloc.free(s);
}
