/* many.c: one call over many filters: items of pairs, and opens.
 *
 * Each filter has a task of its own, so one that is gone fails alone. All go on together: their commands share the
 * round trips.
 *
 *     pairs, in their order   a1 b1 a2      at      0 2 1       a part for each filter: a, b
 *     items, by their filter  a1 a2 b1      part    a a b
 *
 * Each part is a work. It takes 2 KB, and 13 KB if it opens a filter. So a blocking store runs AT_ONCE parts at a time. On a
 * loop the call itself is a work that ends behind them. */
#include "base/alloc.h"
#include "base/clock.h"
#include "filter/async.h"
#include "filter/handle.h"
#include "redis/store.h"

#include <string.h>

enum { AT_ONCE = 1000 };

struct part {
    struct many *many;
    hibloom *filter;
    size_t first, n; /* its items, or its name */
    uint64_t told;   /* see task_take_told */
};

struct many {
    struct work work;
    size_t n;                        /* pairs, or names */
    size_t parts_n, begun, to, left; /* parts: in all; that have begun; that may; that have not ended */
    size_t silent;                   /* those of the last thousand to which no server answered, */
    hibloom_status silence;          /* and how the last one of them failed */
    hibloom_item *items;
    size_t count; /* of them */
    size_t *at;   /* the pair of each item */
    size_t *of;   /* the part of each pair */
    hibloom_status *statuses, *each;
    enum store_op op;
    bool *answers, *out;            /* of the items; the caller's. NULL: not wanted */
    hibloom **opened, **out_opened; /* NULL: they are pairs */
    struct request wanted;
    hibloom_status failed; /* of the failure that the call returns, or else of the first one: */
    size_t failed_at;      /* its pair; n more if the call does not return it */
    struct error error;
    struct part parts[]; /* and then the other arrays */
};

static bool keeps_words(const struct many *m)
{
    return m->opened != NULL || !store_is_silent(m->work.store, m->op);
}

/* The words are the store's. */
static void note(struct many *m, size_t pair, hibloom_status status)
{
    const bool of_call = m->each == NULL || status < HIBLOOM_ENOTFOUND;
    const size_t at = of_call ? pair : m->n + pair;

    m->statuses[pair] = status;
    if (status == HIBLOOM_OK || at >= m->failed_at)
        return;
    m->failed = status;
    m->failed_at = at;
    if (keeps_words(m))
        m->error = m->work.store->error;
}

static void note_part(const struct part *part, hibloom_status status)
{
    for (size_t i = part->first; i < part->first + part->n; i++)
        note(part->many, part->many->at[i], status);
}

static hibloom_status result(const struct many *m)
{
    return m->failed_at < m->n ? m->failed : HIBLOOM_OK;
}

/* The caller learns by `each` which filters may lack adds, or by the call's status that some may. If it learns neither,
 * the next call on the handle tells it. */
static void note_told(const struct many *m)
{
    const bool tells = m->each != NULL || result(m) == HIBLOOM_ELOST;

    for (const struct part *part = m->parts; part < m->parts + m->parts_n && tells; part++)
        if (part->told != 0)
            redis_filter_told(redis_filter_of(part->filter), part->told);
}

/* To the caller, if it still wants that. */
static hibloom_status hand_over(struct many *m, bool wanted)
{
    const hibloom_status status = result(m);
    const bool good = wanted && (m->each != NULL || status == HIBLOOM_OK);

    if (m->failed != HIBLOOM_OK && keeps_words(m))
        m->work.store->error = m->error;
    if (m->opened == NULL)
        note_told(m);
    if (wanted && m->each != NULL)
        memcpy(m->each, m->statuses, m->n * sizeof *m->each);
    for (size_t i = 0; i < m->count && good; i++)
        if (m->out != NULL && m->statuses[m->at[i]] == HIBLOOM_OK)
            m->out[m->at[i]] = m->answers[i];
    for (size_t i = 0; i < m->n && m->opened != NULL; i++)
        if (good)
            m->out_opened[i] = m->opened[i];
        else
            filter_close(m->opened[i]);
    return status;
}

static hibloom_status finish(struct work *work, hibloom_status status)
{
    struct many *m = (struct many *)work;

    status = hand_over(m, work->done != NULL);
    for (size_t i = 0; i < m->parts_n && m->opened == NULL; i++)
        filter_release(m->parts[i].filter);
    explicit_bzero(&m->wanted, sizeof m->wanted); /* the seed */
    return status;
}

/* It did not come about, or has ended at once. */
static hibloom_status end(struct many *m, hibloom_status status)
{
    const bool waits = m->work.async == NULL;

    explicit_bzero(&m->wanted, sizeof m->wanted);
    status = work_end(&m->work, status);
    if (waits)
        alloc.free(m);
    return status;
}

/* NULL: out of memory. */
static struct many *make(hibloom_store *store, size_t n, hibloom_status *each, const struct how *how)
{
    struct many *m;
    const size_t room = sizeof *m->parts + sizeof *m->items + sizeof *m->at + sizeof *m->of + sizeof *m->opened +
                        sizeof *m->statuses + sizeof *m->answers;
    size_t size;

    if (__builtin_mul_overflow(n, room, &size) || __builtin_add_overflow(size, sizeof *m, &size))
        size = 0;
    m = work_make(store, how, !how->async && size > 0 ? alloc.malloc(size) : NULL, size, 0, finish);
    if (m == NULL)
        return NULL;
    memset((char *)m + sizeof m->work, 0, size - sizeof m->work);
    m->n = n;
    m->each = each;
    m->failed_at = SIZE_MAX;
    m->items = (hibloom_item *)(m->parts + n);
    m->at = (size_t *)(m->items + n);
    m->of = m->at + n;
    m->opened = (hibloom **)(m->of + n);
    m->statuses = (hibloom_status *)(m->opened + n);
    m->answers = (bool *)(m->statuses + n);
    for (size_t i = 0; i < n; i++)
        m->at[i] = i;
    return m;
}

/* The call fails as a whole, and nothing was sent. */
static hibloom_status refuse(hibloom_status *each, size_t n, hibloom_status status)
{
    for (size_t i = 0; i < n && each != NULL; i++)
        each[i] = status;
    return status;
}

/* ---- Parts ------------------------------------------------------------------------------------- */

static void end_one(struct many *m)
{
    if (--m->left == 0)
        work_ended(&m->work);
}

static void part_done(hibloom_status status, void *part)
{
    struct many *m = ((struct part *)part)->many;

    note_part(part, status);
    if (status == HIBLOOM_EIO || status == HIBLOOM_ETIMEDOUT) {
        m->silent++;
        m->silence = status;
    }
    end_one(m);
}

/* As a work of its own; in memory it is made at once. */
static void begin_part(struct part *part)
{
    struct many *m = part->many;
    const bool at_once = store_is_in_memory(m->work.store);
    const struct how how = {.done = at_once ? NULL : part_done, .data = part, .told = &part->told};
    bool *answers = m->answers != NULL ? m->answers + part->first : NULL;
    hibloom_status status;

    if (m->opened != NULL) {
        hibloom **opened = m->opened + part->first;
        const struct links_args args = {.goal = LINKS_OPEN, .made = part->filter, .wanted = &m->wanted, .out = opened};
        status = how_links(m->work.store, &args, &how);
    } else {
        status = how_items(part->filter, m->op, m->items + part->first, part->n, answers, &how);
    }
    if (at_once || status != HIBLOOM_OK)
        part_done(status, part);
}

/* Those up to m->to. */
static void begin_parts(void *many)
{
    struct many *m = many;

    while (m->begun < m->to)
        begin_part(&m->parts[m->begun++]);
}

/* Without `each` one failure is enough; but one ELOST stands for all filters. If the one server answered to none of a
 * thousand, nobody waits for it again. */
static bool is_over(const struct many *m, size_t parts)
{
    const hibloom_status status = result(m);
    const bool clustered = ((const struct redis_store *)m->work.store)->server.clustered;

    return (m->each == NULL && status != HIBLOOM_OK && status < HIBLOOM_ENOTFOUND) ||
           (!clustered && m->silent == parts);
}

/* The parts that have not begun. */
static void fail_rest(struct many *m, hibloom_status status)
{
    for (struct part *part = m->parts + m->begun; part < m->parts + m->parts_n; part++) {
        note_part(part, status);
        if (m->opened != NULL)
            filter_free(part->filter);
    }
    m->begun = m->parts_n;
}

static void fail_late(struct many *m)
{
    (void)error_set(&m->work.store->error, HIBLOOM_ETIMEDOUT, "no time is left for the rest (hibloom_store_deadline)");
    fail_rest(m, HIBLOOM_ETIMEDOUT);
}

/* The parts that begin later have the time that is left of the call's. */
static void wait_for_parts(struct many *m)
{
    struct redis_store *store = (struct redis_store *)m->work.store;
    const uint32_t ms = store->base.deadline_ms;
    const bool timed = ms != 0 && m->parts_n > AT_ONCE;
    const uint64_t deadline = timed ? clock_now_ms() + ms : 0;

    while (m->begun < m->parts_n) {
        const uint64_t now = timed ? clock_now_ms() : 0;
        if (timed && now >= deadline) {
            fail_late(m);
            break;
        }
        if (timed)
            store->base.deadline_ms = (uint32_t)(deadline - now);
        m->to = m->parts_n - m->begun < AT_ONCE ? m->parts_n : m->begun + AT_ONCE;
        const size_t first = m->begun;
        m->silent = 0;
        store->run_all(store, begin_parts, works_deliver, m);
        if (is_over(m, m->begun - first))
            fail_rest(m, m->each == NULL ? result(m) : m->silence);
    }
    store->base.deadline_ms = ms;
}

/* On a loop the filters are held until the whole call ends. */
static void leave_parts(struct many *m)
{
    struct looped *looped = &m->work.async->looped;

    for (size_t i = 0; i < m->parts_n && m->opened == NULL; i++)
        filter_hold(m->parts[i].filter);
    work_accept(&m->work);
    begin_parts(m);
    events_go(&looped->carrier);
    end_one(m);
    looped_watch(looped);
}

/* All parts are known. If the caller wants no `each`, one failure is enough. */
static hibloom_status go(struct many *m)
{
    const bool failed = result(m) != HIBLOOM_OK && m->each == NULL;

    for (size_t i = 0; i < m->parts_n && failed && m->opened != NULL; i++)
        filter_free(m->parts[i].filter);
    m->left = m->parts_n + 1; /* itself, so that it ends behind the last one that begins */
    m->to = m->parts_n;
    if (!failed && store_is_in_memory(m->work.store)) {
        begin_parts(m);
    } else if (!failed && m->work.async != NULL) {
        leave_parts(m);
        return HIBLOOM_OK;
    } else if (!failed) {
        wait_for_parts(m);
    }
    return end(m, hand_over(m, true));
}

/* ---- Pairs ------------------------------------------------------------------------------------- */

/* The number of the filter's part. In memory each pair has its own: there many threads may ask at once. */
static size_t part_of(struct many *m, hibloom *filter)
{
    const bool alone = store_is_in_memory(m->work.store);

    if (!alone && filter->part != 0)
        return filter->part - 1;
    m->parts[m->parts_n++] = (struct part){.many = m, .filter = filter};
    if (!alone)
        filter->part = m->parts_n;
    return m->parts_n - 1;
}

/* Items that a filter does not take fail alone. */
static void sort_pairs(struct many *m, const hibloom_pair *pairs)
{
    for (size_t i = 0; i < m->n; i++) {
        note(m, i, filter_check_items(pairs[i].filter, m->op, &pairs[i].item, 1));
        if (m->statuses[i] == HIBLOOM_OK)
            m->parts[m->of[i] = part_of(m, pairs[i].filter)].n++;
    }
    for (size_t p = 0; p < m->parts_n; p++) {
        m->parts[p].first = m->count;
        m->count += m->parts[p].n;
        m->parts[p].n = 0;
        if (!store_is_in_memory(m->work.store))
            m->parts[p].filter->part = 0;
    }
    for (size_t i = 0; i < m->n; i++) {
        struct part *part = &m->parts[m->of[i]];
        if (m->statuses[i] != HIBLOOM_OK)
            continue;
        m->items[part->first + part->n] = pairs[i].item;
        m->at[part->first + part->n++] = i;
    }
}

static hibloom_status check_pairs(const hibloom_pair *pairs, size_t n, const struct how *how)
{
    hibloom_store *store = pairs[0].filter->store;
    const hibloom_status status = how_check(store, NULL, how, n);

    for (size_t i = 1; i < n && status == HIBLOOM_OK; i++)
        if (pairs[i].filter->store != store)
            return error_set(&store->error, HIBLOOM_EINVAL, "'%s' and '%s' are of two stores", pairs[0].filter->name,
                             pairs[i].filter->name);
    return status;
}

static hibloom_status call_pairs(const hibloom_pair *pairs, size_t n, enum store_op op, bool *out, hibloom_status *each,
                                 const struct how *how)
{
    if (n == 0)
        return how->async ? HIBLOOM_EINVAL : HIBLOOM_OK;
    hibloom_store *store = pairs[0].filter->store;
    const hibloom_status status = check_pairs(pairs, n, how);
    if (status != HIBLOOM_OK)
        return refuse(each, n, status);
    struct many *m = make(store, n, each, how);
    if (m == NULL)
        return refuse(each, n, HIBLOOM_ENOMEM);
    m->opened = NULL;
    m->op = op;
    m->out = out;
    m->answers = out != NULL ? m->answers : NULL;
    sort_pairs(m, pairs);
    return go(m);
}

hibloom_status hibloom_add_pairs(const hibloom_pair *pairs, size_t n, bool *is_new, hibloom_status *each)
{
    return call_pairs(pairs, n, store_add(is_new), is_new, each, WAITS(add_pairs));
}

hibloom_status hibloom_async_add_pairs(const hibloom_pair *pairs, size_t n, bool *is_new, hibloom_status *each,
                                       hibloom_done_fn *done, void *data)
{
    return call_pairs(pairs, n, store_add(is_new), is_new, each, LATER(add_pairs));
}

hibloom_status hibloom_contains_pairs(const hibloom_pair *pairs, size_t n, bool *found, hibloom_status *each)
{
    return call_pairs(pairs, n, STORE_LOOK, found, each, WAITS(contains_pairs));
}

hibloom_status hibloom_async_contains_pairs(const hibloom_pair *pairs, size_t n, bool *found, hibloom_status *each,
                                            hibloom_done_fn *done, void *data)
{
    return call_pairs(pairs, n, STORE_LOOK, found, each, LATER(contains_pairs));
}

/* ---- Opens ------------------------------------------------------------------------------------- */

/* One that cannot be opened by its name fails alone. */
static void make_handles(struct many *m, const char *const *names, const char *spec)
{
    for (size_t i = 0; i < m->n; i++) {
        hibloom_status status;
        hibloom *filter = filter_new(m->work.store, names[i], &status);
        if (filter != NULL)
            status = filter_say(filter, &m->wanted, spec, false);
        note(m, i, status);
        if (status == HIBLOOM_OK)
            m->parts[m->parts_n++] = (struct part){.many = m, .filter = filter, .first = i, .n = 1};
        else
            filter_free(filter);
    }
}

static hibloom_status open_many(hibloom **out, hibloom_store *store, const char *const *names, size_t n,
                                const char *spec, hibloom_status *each, const struct how *how)
{
    hibloom_status status = how_check(store, NULL, how, n);

    for (size_t i = 0; i < n && each != NULL; i++)
        out[i] = NULL;
    if (status != HIBLOOM_OK || (n == 0 && !how->async))
        return refuse(each, n, status);
    struct many *m = make(store, n, each, how);
    if (m == NULL)
        return refuse(each, n, HIBLOOM_ENOMEM);
    m->out_opened = out;
    status = filter_want(store, "", &m->wanted, spec, false);
    if (status != HIBLOOM_OK)
        return refuse(each, n, end(m, status));
    make_handles(m, names, spec);
    return go(m);
}

hibloom_status hibloom_open_many(hibloom **out, hibloom_store *store, const char *const *names, size_t n,
                                 const char *spec, hibloom_status *each)
{
    return open_many(out, store, names, n, spec, each, WAITS(open_many));
}

hibloom_status hibloom_async_open_many(hibloom **out, hibloom_store *store, const char *const *names, size_t n,
                                       const char *spec, hibloom_status *each, hibloom_done_fn *done, void *data)
{
    return open_many(out, store, names, n, spec, each, LATER(open_many));
}
