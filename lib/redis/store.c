/* store.c: the functions of a store, each as a task. See store.h. */
#include "redis/store.h"
#include "base/alloc.h"
#include "redis/cost.h"
#include "redis/links.h"
#include "redis/list.h"
#include "redis/near.h"
#include "redis/replace.h"
#include "redis/scandump.h"
#include "redis/transfer.h"

#include <string.h>

#define NEAR_BYTES (UINT64_C(64) << 20) /* for near caches, where the caller names no number */

void redis_server_make(struct redis_server_traits *server, const hibloom_connect_options *o, bool clustered)
{
    *server = (struct redis_server_traits){
        .clustered = clustered,
        .retry_ms = o->retry_ms,
        .bitfield = o->commands == HIBLOOM_COMMANDS_BITFIELD,
        .sends_all = o->min_replicas > 0 || o->read_from_replicas,
        .asks_replicas = o->read_from_replicas,
        .link_mb_s = o->link_mb_s > 0 ? o->link_mb_s : COST_LINK_MB_S,
        .near_room = o->near_bytes > 0 ? o->near_bytes : NEAR_BYTES,
    };
}

static hibloom_status run(hibloom *filter, struct task *task)
{
    struct redis_store *store = (struct redis_store *)filter->store;

    return store->run(store, task);
}

/* ---- How a filter comes to be and goes ------------------------------------------- */

static hibloom_status run_links(hibloom *filter, enum links_goal goal, const hibloom_spec *wanted, uint64_t ms,
                                struct store_count *count)
{
    struct links links;

    links_begin(&links, goal, filter, wanted, ms);
    const hibloom_status status = run(filter, &links.task);
    if (count != NULL)
        *count = links.count;
    links_end(&links);
    return status;
}

static hibloom_status redis_open(hibloom *filter, const hibloom_spec *wanted)
{
    return run_links(filter, LINKS_OPEN, wanted, 0, NULL);
}

static hibloom_status redis_repair(hibloom *filter)
{
    return run_links(filter, LINKS_REPAIR, NULL, 0, NULL);
}

static hibloom_status redis_delete(hibloom *filter)
{
    return run_links(filter, LINKS_DELETE, NULL, 0, NULL);
}

static hibloom_status redis_drop(hibloom *filter)
{
    return run_links(filter, LINKS_DROP, NULL, 0, NULL);
}

static hibloom_status redis_count(hibloom *filter, struct store_count *out)
{
    return run_links(filter, LINKS_COUNT, NULL, 0, out);
}

static hibloom_status redis_clear(hibloom *filter)
{
    return run_links(filter, LINKS_CLEAR, NULL, 0, NULL);
}

static hibloom_status redis_expire(hibloom *filter, uint64_t seconds)
{
    return run_links(filter, LINKS_EXPIRE, NULL, seconds * 1000, NULL);
}

/* ---- Items -------------------------------------------------------------------------- */

void store_begin_add(struct store_items *call, hibloom *filter, const hibloom_item *items, size_t n, bool exact)
{
    call->n = n;
    if (filter->spec.growth != 0)
        chain_begin_add(&call->chain, filter, items, n, exact);
    else if (filter->spec.window != 0)
        slices_begin_add(&call->slices, filter, items, n, exact);
    else
        plain_begin_add(&call->plain, filter, items, n, exact);
}

void store_begin_contains(struct store_items *call, hibloom *filter, const hibloom_item *items, size_t n)
{
    call->n = n;
    if (filter->spec.growth != 0)
        chain_begin_contains(&call->chain, filter, items, n);
    else if (filter->spec.window != 0)
        slices_begin_contains(&call->slices, filter, items, n);
    else
        plain_begin_contains(&call->plain, filter, items, n);
}

void store_begin_remove(struct store_items *call, hibloom *filter, const hibloom_item *items, size_t n)
{
    call->n = n;
    call->plain.is_many = false;
    items_begin_remove(&call->plain.items, filter, items, n);
}

void store_end_items(struct store_items *call, bool *answers)
{
    ((struct redis_store *)call->task.filter->store)->server.stats.items += call->n;
    if (call->task.filter->spec.growth != 0)
        chain_end(&call->chain, answers);
    else if (call->task.filter->spec.window != 0)
        slices_end(&call->slices, answers);
    else
        plain_end(&call->plain, answers);
}

static hibloom_status redis_add(hibloom *filter, const hibloom_item *items, size_t n, bool *is_new)
{
    struct store_items call;

    store_begin_add(&call, filter, items, n, is_new != NULL);
    hibloom_status status = run(filter, &call.task);
    store_end_items(&call, is_new);
    return status;
}

/* What has an answer for each item. */
static hibloom_status ask(hibloom *filter, const hibloom_item *items, size_t n, bool *answers,
                          void (*begin)(struct store_items *, hibloom *, const hibloom_item *, size_t n))
{
    struct store_items call;

    begin(&call, filter, items, n);
    hibloom_status status = run(filter, &call.task);
    store_end_items(&call, answers);
    return status;
}

static hibloom_status redis_contains(hibloom *filter, const hibloom_item *items, size_t n, bool *found)
{
    return ask(filter, items, n, found, store_begin_contains);
}

static hibloom_status redis_remove(hibloom *filter, const hibloom_item *items, size_t n, bool *was_in)
{
    return ask(filter, items, n, was_in, store_begin_remove);
}

hibloom_status store_near_cache(hibloom *filter, uint32_t max_age_ms)
{
    struct redis_filter *own = redis_filter_of(filter);

    if (filter->bare)
        return error_set(&filter->store->error, HIBLOOM_ENOTSUP,
                         "'%s': a bare bitmap says nothing by which to see that it was emptied", filter->name);
    if (filter->spec.counters != 0)
        return error_set(&filter->store->error, HIBLOOM_ENOTSUP,
                         "'%s' is a counting filter: what is in may be removed by others, and nothing would tell",
                         filter->name);
    if (filter->spec.growth != 0)
        return error_set(&filter->store->error, HIBLOOM_ENOTSUP,
                         "'%s' grows: what is known of one link spares no command on the others", filter->name);
    if (filter->spec.window != 0)
        return error_set(
            &filter->store->error, HIBLOOM_ENOTSUP,
            "'%s' is a sliding window: what is in is forgotten after a time, so all of it must be asked for",
            filter->name);
    near_free(filter);
    own->near = near_make(max_age_ms);
    return own->near != NULL ? HIBLOOM_OK : error_set(&filter->store->error, HIBLOOM_ENOMEM, "out of memory");
}

/* ---- Pieces ------------------------------------------------------------------------------ */

static hibloom_status reach_links(hibloom *filter, uint32_t at_least)
{
    struct links reach;

    if (filter->spec.growth == 0)
        return HIBLOOM_OK;
    links_begin_reach(&reach, filter, at_least);
    const hibloom_status status = run(filter, &reach.task);
    links_end(&reach);
    return status;
}

/* Of further links of the same text the sizes are their maker's, who may have another rule than ours (docs/format.md, 15):
 * those bits do not fit into a link of ours, nor does ours into them. */
static hibloom_status check_sizes(hibloom *filter)
{
    hibloom_spec size;

    for (uint32_t i = 1; i < redis_links(filter); i++) {
        const hibloom *link = redis_link(filter, i);
        if (spec_link_size(&size, &filter->spec, i) != HIBLOOM_OK || size.bits != link->spec.bits ||
            size.hashes != link->spec.hashes || spec_segments(&size) != spec_segments(&link->spec))
            return error_set(&filter->store->error, HIBLOOM_ENOTSUP,
                             "'%s' has a size that its maker's rule gave it, another client's: filters with such links "
                             "are not merged, saved or loaded",
                             link->name);
    }
    return HIBLOOM_OK;
}

static hibloom_status redis_reach(hibloom *filter, uint32_t at_least)
{
    const hibloom_status status = reach_links(filter, at_least);

    return status == HIBLOOM_OK ? check_sizes(filter) : status;
}

/* ---- In place of another -------------------------------------------------------------------- */

/* Removes link number `number` of the name, if its root has that id; gives the id that it has, or else 0. */
static uint64_t remove_link(hibloom *filter, const char *name, uint32_t number, uint64_t dead)
{
    hibloom link = {.store = filter->store};
    struct life life;

    keys_link(link.name, name, number);
    life_begin(&life, LIFE_DELETE, &link, NULL);
    life.link = (struct life_link){.number = number, .dead = dead};
    (void)run(filter, &life.talk.task);
    const uint64_t id = life.foreign;
    life_end(&life);
    explicit_bzero(&link, sizeof link); /* the seed */
    return id;
}

/* Is there no growing filter of the name? */
static bool grows_no_more(hibloom *filter, const char *name)
{
    hibloom now = {.store = filter->store};

    strcpy(now.name, name);
    const hibloom_status status = redis_open(&now, NULL);
    const bool no_more = status == HIBLOOM_ENOTFOUND || (status == HIBLOOM_OK && now.spec.growth == 0);
    redis_filter_free(&now);
    explicit_bzero(&now, sizeof now);
    return no_more;
}

/* In the place of a further link is one that a grower of `old` is making, or that a filter has left over
 * which is gone. The one is gone on with, so that it is a link of `old`; the other is removed. False: it is neither. */
static bool clear_way(hibloom *filter, const char *name, hibloom *old, uint32_t number)
{
    if (old != NULL && old->spec.growth != 0)
        return reach_links(old, number + 1) == HIBLOOM_OK;
    const uint64_t id = remove_link(filter, name, number, 0);
    if (id == 0 || !grows_no_more(filter, name))
        return false;
    (void)remove_link(filter, name, number, id);
    return true;
}

/* A grower may have made a further link that nobody tells of. It is no matter if it stays. */
static void remove_left_over(hibloom *old)
{
    struct unchain unchain;

    unchain_begin(&unchain, old, redis_root_id(old));
    (void)run(old, &unchain.group.task);
    unchain_end(&unchain);
}

/* A call before, whose answer was lost, may have done it: then the filter is not where it was, and is `old` itself. */
static hibloom_status redis_replace(hibloom *filter, const char *name, hibloom *old)
{
    struct replacement replacement;
    hibloom_status status = reach_links(filter, 1);

    if (status != HIBLOOM_OK && status != HIBLOOM_ENOTFOUND && status != HIBLOOM_EMISMATCH)
        return status;
    replace_begin(&replacement, filter, name, old);
    status = run(filter, &replacement.talk.task);
    if (replacement.taken > 0) {
        const struct error error = filter->store->error;
        if (clear_way(filter, name, old, replacement.taken))
            return HIBLOOM_EBUSY;
        filter->store->error = error;
    }
    if (status == HIBLOOM_OK && old != NULL && old->spec.growth != 0 && redis_root_id(old) != redis_root_id(filter))
        remove_left_over(old);
    return status;
}

static hibloom_status redis_read(hibloom *filter, const struct piece *piece, unsigned char *out)
{
    struct transfer transfer;

    transfer_begin_read(&transfer, redis_link(filter, piece->link), piece, out);
    return run(filter, &transfer.talk.task);
}

/* A link that is about to get some has less room than was counted. */
static hibloom *link_for_more(hibloom *into, uint32_t i)
{
    hibloom *link = redis_link(into, i);

    redis_filter_of(link)->room = 0;
    return link;
}

static hibloom_status redis_merge(hibloom *into, const struct piece *piece, const unsigned char *bits)
{
    struct transfer transfer;

    if (keys_have_counter(&into->spec))
        return error_set(
            &into->store->error, HIBLOOM_ENOTSUP,
            "'%s': a counter of its items lies beside it, and bits do not tell how many items are new; add "
            "the items themselves",
            into->name);
    transfer_begin_merge(&transfer, link_for_more(into, piece->link), piece, bits);
    return run(into, &transfer.talk.task);
}

static hibloom_status redis_merge_within(hibloom *into, hibloom *from, const struct piece *piece)
{
    struct transfer transfer;

    transfer_begin_merge_within(&transfer, link_for_more(into, piece->link), redis_link(from, piece->link), piece);
    return run(into, &transfer.talk.task);
}

static bool redis_together(const hibloom *into, const hibloom *from)
{
    for (uint32_t i = 0; i < redis_links(into) && i < redis_links(from); i++)
        if (!redis_is_together(redis_link((hibloom *)into, i), redis_link((hibloom *)from, i)))
            return false;
    return true;
}

static hibloom_status redis_scandump(hibloom_store *base, const char *key, struct dumped *piece)
{
    struct redis_store *store = (struct redis_store *)base;
    struct scandump dump;

    scandump_begin(&dump, key, piece);
    return store->run(store, &dump.talk.task);
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

static hibloom_status redis_list(hibloom_store *base, const char *pattern, hibloom_list_fn *each, void *data)
{
    struct redis_store *store = (struct redis_store *)base;
    struct listing *listing = listing_make(store, pattern);
    hibloom_status status = listing != NULL ? HIBLOOM_OK : error_set(&base->error, HIBLOOM_ENOMEM, "out of memory");
    bool wanted = true;

    while (status == HIBLOOM_OK && wanted && !listing_is_over(listing)) {
        status = store->run(store, listing_begin(listing));
        for (const char *name; status == HIBLOOM_OK && wanted && (name = listing_next(listing)) != NULL;)
            wanted = each(name, data);
    }
    alloc.free(listing);
    return status;
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
    .remove = redis_remove,
    .near_cache = store_near_cache,
    .count = redis_count,
    .reach = redis_reach,
    .links = redis_links,
    .read = redis_read,
    .merge = redis_merge,
    .merge_within = redis_merge_within,
    .together = redis_together,
    .scandump = redis_scandump,
    .servers = redis_servers,
    .clear = redis_clear,
    .drop = redis_drop,
    .expire = redis_expire,
    .replace = redis_replace,
    .repair = redis_repair,
    .delete = redis_delete,
    .close = redis_filter_free,
    .list = redis_list,
    .set_deadline = redis_set_deadline,
    .stats = redis_stats,
    .free = redis_free,
};
