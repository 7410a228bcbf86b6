/* growing.c: adds to growing filters, and look-ups. See growing.h. */
#include "base/alloc.h"
#include "redis/sieve.h"
#include "spec/spec.h"

#include <math.h>

/* Eight adders at once shall not overfill a link. So it grows while some of its capacity is left. And each adds
 * only a small part of the rest before it counts again. So few items are uncounted. */
#define ADDERS 8u
#define SPARE 64u   /* this part of it is left, and an item for each adder */
#define PARTS 32u   /* the small part; */
#define LEAST 1024u /* and this part of its capacity */

/* Items at which a link grows. */
static double limit_of(uint64_t capacity)
{
    const uint64_t spare = capacity / SPARE, adders = capacity / 4 < ADDERS ? capacity / 4 : ADDERS;

    return (double)(capacity - spare - adders);
}

static void chunk(struct sieve *);
static void look(struct sieve *);

/* Several calls of one handle may be on their way: they share its room. Each takes its chunk out of the room, and
 * gives back the unused part. */
static void unreserve(struct sieve *s, size_t used)
{
    struct link *link = s->growing.reserved;

    if (link == NULL)
        return;
    link->reserved -= s->chunk;
    link->room += s->chunk - used;
    s->growing.reserved = NULL;
}

/* If a server may have forgotten that a link has grown, the call mends that first. Replicas may lack the mended root, so
 * no root counts as replicated. True: that has begun, and `then` follows. */
static bool begin_mending(struct sieve *s, void (*then)(struct sieve *))
{
    if (s->denied || !links_are_in_doubt(s->filter))
        return false;
    s->growing.replicated = s->filter->replicated = 0;
    sieve_reach(s, 0, then);
    return true;
}

/* ---- What replicas must have ------------------------------------------------------------- */

static void ask_grown_root(struct talk *talk, struct outbox *outbox)
{
    guard_ask_root(talk, outbox);
    outbox_last(outbox)->proof = false; /* its replicas must have it */
}

/* With min_replicas: the adds may lie in a further link. The root before it tells of it. Nobody finds it if a
 * replica that does not tell of it takes over. The client that grew the filter may have waited for the replicas,
 * or may not. So this call asks that root, and then waits for its server's replicas, too; once for each handle and
 * link. A link of one key has answered for the items themselves. */
static void replicate_roots(struct sieve *s)
{
    struct redis_filter *filter = s->filter;
    const uint32_t older = redis_links(filter) - 1;
    uint32_t *replicated = &s->growing.replicated;

    if (begin_mending(s, replicate_roots))
        return;
    if (!s->task.adds || !s->task.link->server->sends_all)
        *replicated = older;
    while (*replicated < older && redis_link(filter, *replicated)->count == 1)
        ++*replicated;
    if (*replicated >= older)
        return;
    sieve_ask(s, redis_link(filter, (*replicated)++), ask_grown_root, replicate_roots);
}

static void end_chunk(struct sieve *s)
{
    unreserve(s, 0); /* the whole chunk was in */
    sieve_end_chunk(s);
}

/* ---- Looking --------------------------------------------------------------------------- */

static void added(struct sieve *);

static void looked(struct sieve *s)
{
    s->growing.asked += s->inner->walk.links;
    walk_read(&s->inner->walk, s->answers);
    if (s->task.adds)
        sieve_keep(s, false);
    else
        sieve_note_found(s);
    if (s->count == 0)
        end_chunk(s);
    else
        look(s);
}

/* The last of the links that a look asks is the newest one. If it has one key, its guard is behind the items. */
static void ask_newest(struct talk *talk, struct outbox *outbox, uint32_t tag)
{
    const struct walk *walk = (struct walk *)talk;
    struct link *newest = walk->in[walk->links - 1].link;

    if (newest->count > 1)
        guard_ask_alone(newest, outbox, tag, 0);
}

static const struct aside beside_look = {ask_newest, guard_take_alone, .of_last = true};

/* An add may find all of its items, and set none. So the server of a look shows that it would have taken them. */
static void ask_write(struct talk *talk, struct outbox *outbox, uint32_t tag)
{
    struct link *first = ((struct walk *)talk)->in[0].link;

    sieve_put_write(&outbox->commands, link_begin(first, outbox, tag, 0, KEY_NAME));
    outbox_end(outbox);
}

static void take_write(struct talk *talk, uint32_t i, uint32_t index, const struct reply *reply)
{
    (void)task_expect(&talk->task, reply, REDIS_REPLY_ARRAY, i);
}

static const struct aside beside_add = {ask_write, take_write, .of_last = false};

/* The links to look in: for an add all but the newest, which it adds to. */
static uint32_t links_to_ask(const struct sieve *s)
{
    return redis_links(s->filter) - (s->task.adds ? 1 : 0);
}

/* Asks those that have not been asked yet. */
static void look(struct sieve *s)
{
    const uint32_t from = s->growing.asked, to = links_to_ask(s);

    if (from < to)
        sieve_look(s, redis_link(s->filter, from), to - from, s->left, s->count,
                   s->task.adds ? &beside_add : &beside_look, looked);
    else if (redis_newest(s->filter)->grown)
        sieve_reach(s, 0, look);
    else if (s->task.adds)
        sieve_set(s, redis_newest(s->filter), added);
    else if (!begin_mending(s, look))
        end_chunk(s);
}

/* ---- Adding ------------------------------------------------------------------------------ */

/* It is new if the link that it was set in is still the newest; else it goes on. */
static void judge_new(struct sieve *s)
{
    if (!redis_link(s->filter, s->growing.asked)->grown) {
        sieve_note(s);
        end_chunk(s);
    } else {
        s->growing.asked++;
        look(s);
    }
}

static void added(struct sieve *s)
{
    struct link *newest = redis_link(s->filter, s->growing.asked);

    unreserve(s, s->count);
    if (s->op != STORE_ADD_NEW || s->count == 0) {
        end_chunk(s);
    } else if (newest->count > 1 && !newest->grown) { /* of one key, the guard was behind the items */
        sieve_ask(s, newest, guard_ask_root, judge_new);
    } else {
        judge_new(s);
    }
}

/* ---- Growing ------------------------------------------------------------------------------- */

static void counted(struct sieve *s)
{
    struct link *link = s->inner->upkeep.talk.task.link;
    const uint64_t capacity = link->spec->capacity;
    struct store_count count = {0};

    spec_note_count(&count, link->spec, &s->inner->upkeep.count);
    const double missing = limit_of(capacity) - count.info.estimated_items - (double)link->reserved;
    const uint64_t least = capacity / LEAST + 1;
    const double part = floor(missing / PARTS) + (double)least;
    /* By those that wait for the count. Others may count at once, and a loop each may have as many that wait. */
    const double shared = fmin(part * (s->filter->waiting + 1.0), missing / (2 * ADDERS));
    link->room = missing > 0.0 ? (uint64_t)fmax(part, shared) : 0;
    if (link->room == 0 && !link->grown && link == redis_newest(s->filter)) /* another call may have grown it */
        s->growing.making = redis_links(s->filter) + 1;
    chunk(s);
}

/* ---- By whole bitmaps -------------------------------------------------------------------------- */

/* Has a link become older that is read with less work than it is asked for what is left of the call? Replicas must have
 * what an add finds in. A bitmap may show items that they lack. So with min_replicas an add reads none. */
static bool plan_reading(struct sieve *s)
{
    const uint32_t older = links_to_ask(s), from = s->in != NULL ? s->growing.read : 0;
    const bool may = s->task.adds ? !s->task.link->server->sends_all : s->at == 0;
    const bool more = from < older && older > s->growing.older && !s->bulk_gave_way;

    s->growing.older = older;
    if (!may || !more || !bulk_pays(STORE_LOOK, redis_link(s->filter, from), s->n - s->at, sieve_expect_sent(s)))
        return false;
    s->growing.read = from;
    if (s->in == NULL) /* item by item there need be no memory for it */
        s->in = s->task.adds ? alloc.calloc(FLAGS_BYTES(s->n), 1) : s->yes;
    return s->in != NULL;
}

/* If there is no memory for the bitmaps of one, asks the links. */
static void read_links(struct sieve *s)
{
    if (s->bulk_gave_way)
        s->growing.read--;
    const bool more = s->growing.read < links_to_ask(s) && !s->bulk_gave_way;
    struct link *link = more ? redis_link(s->filter, s->growing.read) : NULL;
    const size_t at = s->at / 8 * 8, left = s->n - at; /* where a byte of flags begins */

    if (link != NULL && bulk_pays(STORE_LOOK, link, left, (double)left)) {
        s->growing.read++;
        sieve_by_bitmaps(s, STORE_LOOK, link, s->items + at, left, s->in + at / 8, read_links);
    } else if (s->task.adds) {
        sieve_prove_read(s, s->growing.read > 0);
    } else {
        chunk(s);
    }
}

/* ---- A chunk of items ------------------------------------------------------------------------ */

/* An add has room for some in the newest link. Else (false) the links are mended, followed, made or counted, and it begins again.
 * Where the call begins anew while it makes one, it goes on with that. The filter may have been cleared meanwhile. Then
 * nobody else would make it, and it would stay, half made. */
static bool find_room(struct sieve *s)
{
    struct link *newest = redis_newest(s->filter);

    if (begin_mending(s, chunk))
        return false;
    if (newest->grown || s->growing.making == redis_links(s->filter) + 1) {
        sieve_reach(s, newest->grown ? 0 : s->growing.making, chunk);
    } else if (newest->room > 0) {
        return true;
    } else if (sieve_may_make(s, chunk)) {
        upkeep_begin_count(&s->inner->upkeep, newest);
        sieve_await(s, counted);
    }
    return false;
}

static void chunk(struct sieve *s)
{
    const uint64_t room = redis_newest(s->filter)->room;

    if (s->task.adds && !find_room(s))
        return;
    if (plan_reading(s)) {
        read_links(s);
        return;
    }
    if (s->task.adds)
        sieve_distrust(s); /* the links were counted, or followed */
    sieve_take(s, s->task.adds && room < s->most ? (uint32_t)room : s->most);
    s->growing.asked = s->in != NULL ? s->growing.read : 0;
    if (s->task.adds) {
        struct link *link = s->growing.reserved = redis_newest(s->filter);
        link->room -= s->chunk;
        link->reserved += s->chunk;
    }
    if (s->count > 0 || s->n == 0)
        look(s);
    else
        end_chunk(s);
}

/* ---- The call ---------------------------------------------------------------------------------- */

static void begin(struct sieve *s)
{
    s->growing.older = 0;
    s->growing.replicated = s->filter->replicated;
    chunk(s);
}

static void release(struct sieve *s)
{
    unreserve(s, s->chunk);
    if (s->task.status == HIBLOOM_OK && s->task.adds && s->filter->replicated < s->growing.replicated)
        s->filter->replicated = s->growing.replicated;
}

const struct policy growing_policy = {.begin = begin, .chunk = chunk, .end = replicate_roots, .release = release};
