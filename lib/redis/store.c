/* store.c: the functions of a store, each as a task. See store.h. */
#include "redis/store.h"
#include "base/alloc.h"
#include "redis/life.h"
#include "redis/near.h"
#include "redis/transfer.h"
#include "redis/upkeep.h"

static hibloom_status run(hibloom *filter, struct task *task)
{
    struct redis_store *store = (struct redis_store *)filter->store;

    hibloom_status status = store->run(store, task);
    if (status != HIBLOOM_OK)
        near_forget(filter);
    return status;
}

/* ---- How a filter comes to be and goes ------------------------------------------- */

static hibloom_status run_life(hibloom *filter, enum life_goal goal, const hibloom_spec *wanted)
{
    struct life life;

    life_begin(&life, goal, filter, wanted);
    hibloom_status status = run(filter, &life.talk.task);
    life_end(&life);
    return status;
}

static hibloom_status redis_open(hibloom *filter, const hibloom_spec *wanted)
{
    return run_life(filter, LIFE_OPEN, wanted);
}

static hibloom_status redis_repair(hibloom *filter)
{
    return run_life(filter, LIFE_REPAIR, NULL);
}

static hibloom_status redis_delete(hibloom *filter)
{
    return run_life(filter, LIFE_DELETE, NULL);
}

static hibloom_status redis_drop(hibloom *filter)
{
    near_forget(filter);
    return run_life(filter, LIFE_DROP, NULL);
}

/* ---- Items -------------------------------------------------------------------------- */

void store_begin_add(struct store_items *call, hibloom *filter, const hibloom_item *items, size_t n, bool exact)
{
    call->n = n;
    call->is_many = many_pays(filter, n, true, exact);
    if (call->is_many)
        many_begin_add(&call->many, filter, items, n, exact);
    else
        items_begin_add(&call->items, filter, items, n, exact);
}

void store_begin_contains(struct store_items *call, hibloom *filter, const hibloom_item *items, size_t n)
{
    call->n = n;
    call->is_many = many_pays(filter, n, false, true);
    if (call->is_many)
        many_begin_contains(&call->many, filter, items, n);
    else
        items_begin_contains(&call->items, filter, items, n);
}

void store_end_items(struct store_items *call, bool *answers)
{
    ((struct redis_store *)call->task.filter->store)->server.stats.items += call->n;
    if (call->is_many)
        many_end(&call->many, answers);
    else
        items_end(&call->items, answers);
}

static hibloom_status redis_add(hibloom *filter, const hibloom_item *items, size_t n, bool *is_new)
{
    struct store_items call;

    store_begin_add(&call, filter, items, n, is_new != NULL);
    hibloom_status status = run(filter, &call.task);
    store_end_items(&call, is_new);
    return status;
}

static hibloom_status redis_contains(hibloom *filter, const hibloom_item *items, size_t n, bool *found)
{
    struct store_items call;

    store_begin_contains(&call, filter, items, n);
    hibloom_status status = run(filter, &call.task);
    store_end_items(&call, found);
    return status;
}

hibloom_status store_near_cache(hibloom *filter, uint32_t max_age_ms)
{
    struct redis_filter *own = redis_filter_of(filter);

    if (filter->bare)
        return error_set(&filter->store->error, HIBLOOM_ENOTSUP,
                         "'%s': a bare bitmap says nothing by which to see that it was emptied", filter->name);
    near_free(filter);
    own->near = near_make(max_age_ms);
    return own->near != NULL ? HIBLOOM_OK : error_set(&filter->store->error, HIBLOOM_ENOMEM, "out of memory");
}

/* ---- All keys ------------------------------------------------------------------------- */

static hibloom_status redis_count(hibloom *filter, struct store_count *out)
{
    struct upkeep upkeep;

    upkeep_begin_count(&upkeep, filter);
    hibloom_status status = run(filter, &upkeep.talk.task);
    *out = upkeep.count;
    return status;
}

static hibloom_status redis_clear(hibloom *filter)
{
    struct upkeep upkeep;

    upkeep_begin_clear(&upkeep, filter);
    return run(filter, &upkeep.talk.task);
}

static hibloom_status redis_expire(hibloom *filter, uint64_t seconds)
{
    struct upkeep upkeep;

    upkeep_begin_expire(&upkeep, filter, seconds);
    return run(filter, &upkeep.talk.task);
}

/* ---- Pieces ------------------------------------------------------------------------------ */

static hibloom_status redis_read(hibloom *filter, const struct piece *piece, unsigned char *out)
{
    struct transfer transfer;

    transfer_begin_read(&transfer, filter, piece, out);
    return run(filter, &transfer.talk.task);
}

static hibloom_status redis_merge(hibloom *into, const struct piece *piece, const unsigned char *bits)
{
    struct transfer transfer;

    transfer_begin_merge(&transfer, into, piece, bits);
    return run(into, &transfer.talk.task);
}

static hibloom_status redis_merge_within(hibloom *into, hibloom *from, const struct piece *piece)
{
    struct transfer transfer;

    transfer_begin_merge_within(&transfer, into, from, piece);
    return run(into, &transfer.talk.task);
}

/* ---- The store ------------------------------------------------------------------------------ */

static uint32_t redis_servers(const hibloom_store *store)
{
    return ((const struct redis_store *)store)->server.count;
}

static void redis_set_deadline(hibloom_store *store, uint32_t ms)
{
    ((struct redis_store *)store)->set_deadline((struct redis_store *)store, ms);
}

const hibloom_stats *redis_stats(const hibloom_store *store)
{
    return &((const struct redis_store *)store)->server.stats;
}

static void redis_free(hibloom_store *base)
{
    struct redis_store *store = (struct redis_store *)base;

    store->close(store);
    alloc.free(store);
}

const struct store_class redis_store_class = {
    .open = redis_open,
    .add = redis_add,
    .contains = redis_contains,
    .near_cache = store_near_cache,
    .count = redis_count,
    .read = redis_read,
    .merge = redis_merge,
    .merge_within = redis_merge_within,
    .together = redis_is_together,
    .servers = redis_servers,
    .clear = redis_clear,
    .drop = redis_drop,
    .expire = redis_expire,
    .repair = redis_repair,
    .delete = redis_delete,
    .close = redis_filter_free,
    .set_deadline = redis_set_deadline,
    .stats = redis_stats,
    .free = redis_free,
};
