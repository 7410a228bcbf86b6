/* growing.c: adds to growing filters, and look-ups. See growing.h. */
#include "redis/growing.h"
#include "base/alloc.h"
#include "spec/spec.h"

#include <string.h>

#define CHUNK (32u << 10)
/* Eight adders at once shall not overfill a link. So it grows while some of its capacity is left. And each adds only a
 * small part of what is left before it counts again: then few items come that nobody has counted. */
#define ADDERS 8u
#define SPARE 64u   /* so much of it is left, and an item for each of them */
#define PARTS 32u   /* the small part; */
#define LEAST 1024u /* and this part of its capacity */

/* Items at which a link grows. */
static double limit_of(uint64_t capacity)
{
    const uint64_t spare = capacity / SPARE, adders = capacity / 4 < ADDERS ? capacity / 4 : ADDERS;

    return (double)(capacity - spare - adders);
}

static void begin_chunk(struct chain *);
static void link_read(struct chain *);
static void look(struct chain *);

static struct link *newest_of(const struct chain *c)
{
    return redis_newest(c->filter);
}

/* Several calls of one handle may be on their way: they share its room. Each takes its chunk out of that, and gives back
 * what it has not used. */
static void reserve(struct chain *c)
{
    c->reserved = newest_of(c);
    c->reserved->room -= c->chunk;
    c->reserved->reserved += c->chunk;
}

static void unreserve(struct chain *c, size_t used)
{
    if (c->reserved == NULL)
        return;
    c->reserved->reserved -= c->chunk;
    c->reserved->room += c->chunk - used;
    c->reserved = NULL;
}

/* ---- Inner tasks ----------------------------------------------------------------------- */

static void end_links(struct chain *c)
{
    c->denied = c->denied || c->links->denied;
    task_fail_too(&c->links->task, &c->task); /* where it was given up before the inner one knew */
    links_end(c->links);
    alloc.free(c->links);
    c->links = NULL;
    c->task.inner = &c->inner;
    c->phase = CHAIN_BEGIN;
}

/* What the inner task holds. */
static void release(struct chain *c)
{
    unreserve(c, c->chunk);
    if (c->phase == CHAIN_READ)
        bulk_end(&c->bulk);
    else if (c->phase == CHAIN_LOOK)
        walk_end(&c->walk, NULL);
    else if (c->phase == CHAIN_ADD)
        plain_end(&c->plain, NULL);
    else if (c->phase == CHAIN_LINKS)
        end_links(c);
    c->phase = CHAIN_BEGIN;
}

static void begin_links(struct chain *c, enum links_goal goal, void (*then)(struct chain *))
{
    c->links = alloc.malloc(sizeof *c->links);
    c->phase = CHAIN_BEGIN;
    if (c->links == NULL) {
        task_no_memory(&c->task);
        return;
    }
    links_begin(c->links, goal, c->filter->handle, NULL, 0);
    c->links->asks = !c->task.adds;
    c->task.inner = &c->links->task;
    c->phase = CHAIN_LINKS;
    c->then = then;
}

/* If a server may have forgotten that a link has grown, that is mended first. From then on it is not known of any root
 * that its replicas tell of the next link. */
static bool mends(struct chain *c, void (*then)(struct chain *))
{
    if (c->denied || !links_are_in_doubt(c->filter))
        return false;
    c->reached = c->filter->reached = 0;
    begin_links(c, LINKS_FOLLOW, then);
    return true;
}

/* ---- What replicas must have ------------------------------------------------------------- */

static void ask_grown_root(struct talk *talk, struct outbox *outbox)
{
    char name[KEYS_SIZE];

    guard_ask(talk->task.link, outbox, link_begin(talk->task.link, outbox, 0, 0, name), 0);
    outbox_end(outbox);
    talk->take = guard_take_alone;
}

/* With min_replicas: the adds may lie in a further link, which nobody finds if the root that tells of it is
 * replaced by a replica that has not heard of it. Whoever made it grow has waited for that, or has not. So that root's
 * server is asked in this call, for its replicas to be waited for, too; once for each handle and link. A link of one
 * key has been asked for the items themselves. */
static void reach_replicas(struct chain *c)
{
    struct redis_filter *filter = c->filter;
    const uint32_t older = redis_links(filter) - 1;

    if (mends(c, reach_replicas))
        return;
    if (!c->task.adds || !filter->first.server->sends_all)
        c->reached = older;
    while (c->reached < older && redis_link(filter, c->reached)->count == 1)
        c->reached++;
    if (c->reached >= older) {
        c->phase = CHAIN_DONE;
        return;
    }
    talk_begin(&c->talk, redis_link(filter, c->reached++), ask_grown_root);
    c->phase = CHAIN_PROVE;
    c->then = reach_replicas;
}

static void end_chunk(struct chain *c)
{
    unreserve(c, 0); /* all of it was in */
    c->at += c->chunk;
    if (c->at < c->n)
        begin_chunk(c);
    else
        reach_replicas(c);
}

static void note_all(struct chain *c)
{
    for (size_t i = 0; i < c->count; i++)
        flags_set(c->yes, c->at + c->which[i]);
}

/* Leaves those of the items whose answer is this. */
static void keep(struct chain *c, bool answer)
{
    size_t kept = 0;

    for (size_t i = 0; i < c->count; i++)
        if (c->answers[i] == answer) {
            c->left[kept] = c->left[i];
            c->which[kept++] = c->which[i];
        }
    c->count = kept;
}

/* ---- Looking --------------------------------------------------------------------------- */

static void add(struct chain *);

static void looked(struct chain *c)
{
    c->asked += c->walk.links;
    walk_end(&c->walk, c->answers);
    c->phase = CHAIN_BEGIN;
    if (!c->task.adds)
        for (size_t i = 0; i < c->count; i++)
            if (c->answers[i])
                flags_set(c->yes, c->at + c->which[i]);
    keep(c, false);
    if (c->count == 0)
        end_chunk(c);
    else
        look(c);
}

/* The last of the links that a look asks is the newest one. Of one key, its guard is behind the items. */
static void ask_newest(struct walk *walk, struct outbox *outbox, uint32_t tag)
{
    struct link *newest = walk->in[walk->links - 1].link;

    if (newest->count > 1)
        guard_ask_alone(newest, outbox, tag, 0);
}

static void take_newest(struct walk *walk, uint32_t index, const struct reply *reply)
{
    if (walk_turn_to(walk, walk->links - 1))
        (void)guard_take(&walk->talk, 0, index, reply);
}

static const struct aside beside_look = {ask_newest, take_newest};

/* The links that are looked in: of an add all but the newest, which it is for. */
static uint32_t links_to_ask(const struct chain *c)
{
    return redis_links(c->filter) - (c->task.adds ? 1 : 0);
}

/* Asks those that have not been asked yet. */
static void look(struct chain *c)
{
    const uint32_t to = links_to_ask(c);

    if (c->asked == to && c->task.adds) {
        add(c);
        return;
    }
    if (c->asked == to && newest_of(c)->grown) {
        begin_links(c, LINKS_FOLLOW, look);
        return;
    }
    if (c->asked == to && mends(c, look))
        return;
    if (c->asked == to && to > 0) {
        end_chunk(c);
        return;
    }
    walk_begin_look(&c->walk, redis_link(c->filter, c->asked), to - c->asked, c->left, c->count,
                    c->task.adds ? NULL : &beside_look);
    c->phase = CHAIN_LOOK;
    c->then = looked;
}

/* ---- Adding ------------------------------------------------------------------------------ */

/* It is new if the link that it was set in is still the newest; else it goes on. */
static void judge_new(struct chain *c)
{
    if (redis_link(c->filter, c->asked)->grown) {
        c->asked++;
        if (c->asked < redis_links(c->filter))
            look(c);
        else
            begin_links(c, LINKS_FOLLOW, look);
        return;
    }
    note_all(c);
    end_chunk(c);
}

static void added(struct chain *c)
{
    struct link *newest = redis_link(c->filter, c->asked);

    c->phase = CHAIN_BEGIN;
    plain_end(&c->plain, c->exact ? c->answers : NULL);
    if (c->task.status != HIBLOOM_OK)
        return;
    if (c->exact)
        keep(c, true);
    unreserve(c, c->count);
    if (!c->exact || c->count == 0) {
        end_chunk(c);
    } else if (newest->count > 1 && !newest->grown) { /* of one key, the guard was behind the items */
        talk_begin(&c->talk, newest, guard_ask_root);
        c->phase = CHAIN_PROVE;
        c->then = judge_new;
    } else {
        judge_new(c);
    }
}

static void add(struct chain *c)
{
    plain_begin_add(&c->plain, redis_newest(c->filter), c->left, c->count, c->exact);
    c->phase = CHAIN_ADD;
    c->then = added;
}

/* ---- Growing ------------------------------------------------------------------------------- */

static void counted(struct chain *c)
{
    const hibloom_spec *spec = c->counted->spec;
    struct link *link = c->counted;
    struct store_count count = {0};

    c->phase = CHAIN_BEGIN;
    if (c->task.status != HIBLOOM_OK)
        return;
    spec_note_count(&count, spec, &c->upkeep.count);
    const double missing = limit_of(spec->capacity) - count.items - (double)link->reserved;
    link->room = missing > 0.0 ? (uint64_t)(missing / PARTS) + spec->capacity / LEAST + 1 : 0;
    if (link->room > 0 || link->grown || c->counted != redis_newest(c->filter)) /* another call may have grown it */
        begin_chunk(c);
    else
        begin_links(c, LINKS_GROW, begin_chunk);
}

static void count_newest(struct chain *c)
{
    c->counted = redis_newest(c->filter);
    upkeep_begin_count(&c->upkeep, c->counted);
    c->phase = CHAIN_COUNT;
    c->then = counted;
}

/* ---- A chunk of items ------------------------------------------------------------------------ */

static void begin_chunk(struct chain *c)
{
    const struct link *newest = newest_of(c);

    if (c->task.adds && mends(c, begin_chunk))
        return;
    if (newest->grown && c->task.adds) {
        begin_links(c, LINKS_FOLLOW, begin_chunk);
        return;
    }
    if (newest->room == 0 && c->task.adds) {
        count_newest(c);
        return;
    }
    c->chunk = c->n - c->at < CHUNK ? c->n - c->at : CHUNK;
    if (c->task.adds && c->chunk > newest->room)
        c->chunk = (size_t)newest->room;
    c->count = 0;
    for (uint32_t i = 0; i < c->chunk; i++) {
        if (c->in != NULL && flags_has(c->in, c->at + i))
            continue;
        c->left[c->count] = c->items[c->at + i];
        c->which[c->count++] = i;
    }
    c->asked = c->read;
    if (c->task.adds)
        reserve(c);
    if (c->count > 0 || c->n == 0)
        look(c);
    else
        end_chunk(c);
}

/* ---- By whole bitmaps -------------------------------------------------------------------------- */

static void read_links(struct chain *c)
{
    const bool more = c->in != NULL && c->read < links_to_ask(c);
    struct link *link = more ? redis_link(c->filter, c->read) : NULL;

    if (!more || !bulk_pays_to_look(link, c->n, (double)c->n)) {
        begin_chunk(c);
        return;
    }
    bulk_begin(&c->bulk, link, c->items, c->n, c->in);
    c->phase = CHAIN_READ;
    c->then = link_read;
}

static void link_read(struct chain *c)
{
    bulk_end(&c->bulk);
    c->phase = CHAIN_BEGIN;
    c->read++;
    read_links(c);
}

/* Where there is no memory for bitmaps, the links are asked. */
static void end_reading(struct chain *c)
{
    if (c->task.status != HIBLOOM_ENOMEM)
        return;
    release(c);
    c->task.status = HIBLOOM_OK;
    c->then = begin_chunk;
}

/* ---- The task ---------------------------------------------------------------------------------- */

static enum task_next next(struct task *task, struct outbox *outbox)
{
    struct chain *c = (struct chain *)task;

    if (c->phase == CHAIN_BEGIN && task->status == HIBLOOM_OK)
        read_links(c);
    while (c->phase != CHAIN_BEGIN && c->phase != CHAIN_DONE) {
        const enum task_next what = task_next_inner(task, outbox);
        if (what != TASK_DONE)
            return what;
        task_end_as(task, task->inner);
        if (c->phase == CHAIN_LINKS)
            end_links(c);
        else if (c->phase == CHAIN_READ)
            end_reading(c);
        if (task->status == HIBLOOM_OK)
            c->then(c);
        else
            release(c);
    }
    return TASK_DONE;
}

static const struct task_class chain_class = {next, task_reply_inner};

/* What is known to be new stays so. */
static void again(struct task *task)
{
    struct chain *c = (struct chain *)task;

    task->status = HIBLOOM_OK;
    c->phase = CHAIN_BEGIN;
    c->at = c->read = 0;
    c->reached = c->filter->reached;
    if (c->in != NULL)
        memset(c->in, 0, FLAGS_BYTES(c->n));
}

static void begin(struct chain *c, struct redis_filter *filter, const hibloom_item *items, size_t n)
{
    const size_t chunk = n < CHUNK ? n + 1 : CHUNK; /* one more: of none there is still a guard to ask */
    const size_t words = chunk * sizeof *c->left + chunk * sizeof *c->which;

    *c = (struct chain){.task = {.class = &chain_class,
                                 .link = &filter->first,
                                 .inner = &c->inner,
                                 .again = again,
                                 .take_guard = task_take_guard_inner},
                        .filter = filter,
                        .items = items,
                        .n = n,
                        .reached = filter->reached};
    c->left = alloc.malloc(words + chunk * sizeof *c->answers);
    c->yes = alloc.calloc(FLAGS_BYTES(n) + 1, 1);
    if (c->left == NULL || c->yes == NULL) {
        c->phase = CHAIN_DONE;
        task_no_memory(&c->task);
        return;
    }
    c->which = (uint32_t *)(c->left + chunk);
    c->answers = (bool *)(c->which + chunk);
}

void chain_begin_add(struct chain *c, struct redis_filter *filter, const hibloom_item *items, size_t n, bool exact)
{
    begin(c, filter, items, n);
    c->task.adds = true;
    c->exact = exact;
    if (redis_links(filter) > 1 && bulk_pays_to_look(&filter->first, n, (double)n))
        c->in = alloc.calloc(FLAGS_BYTES(n), 1); /* item by item there need be no memory for it */
}

void chain_begin_contains(struct chain *c, struct redis_filter *filter, const hibloom_item *items, size_t n)
{
    begin(c, filter, items, n);
    c->task.reads = true;
    c->in = c->yes;
}

void chain_end(struct chain *c, bool *answers)
{
    release(c);
    if (c->task.status == HIBLOOM_OK && c->task.adds && c->filter->reached < c->reached)
        c->filter->reached = c->reached;
    if (c->task.status == HIBLOOM_OK && answers != NULL)
        flags_read(c->yes, answers, c->n);
    alloc.free(c->left);
    if (c->in != c->yes)
        alloc.free(c->in);
    alloc.free(c->yes);
}
