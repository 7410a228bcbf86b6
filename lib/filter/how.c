/* how.c: a call is made, and waits; or it becomes a work on its store's loop. See how.h. */
#include "filter/how.h"
#include "base/alloc.h"
#include "filter/async.h"
#include "filter/handle.h"
#include "redis/sieve.h"
#include "redis/links.h"

#include <string.h>

/* ---- May it be made? -------------------------------------------------------------------------- */

hibloom_status how_check(hibloom_store *store, const hibloom *filter, const struct how *how, size_t n)
{
    const bool whole = how->told == NULL;

    if (store->class == NULL)
        return HIBLOOM_EINVAL; /* its error already says why there is no store */
    if (how->async && store->async == NULL)
        return error_set(&store->error, HIBLOOM_ENOTSUP, "calls on this store wait: use hibloom_%s", how->name);
    if (whole && !how->async && store->async != NULL)
        return error_set(&store->error, HIBLOOM_ENOTSUP, "this store is on an event loop: use hibloom_async_%s",
                         how->name);
    if (filter != NULL && filter->closing)
        return error_set(&store->error, HIBLOOM_ECANCELED, "the handle is being closed");
    return whole && store->async != NULL ? async_may_call(store->async, how, n) : HIBLOOM_OK;
}

/* ---- The whole filter ----------------------------------------------------------------------- */

struct links_work {
    struct work work;
    struct links links;
    struct links_args args;
    struct request wanted;
};

static hibloom_status hand_over(const struct links_args *args, hibloom_status status, const struct store_count *count,
                                bool wanted)
{
    const bool opened = args->goal == LINKS_OPEN && status == HIBLOOM_OK;

    if (opened && wanted && args->filter != NULL)
        return filter_take_over(args->filter, args->made);
    if (opened && wanted)
        *args->out = filter_opened(args->made);
    else if (opened)
        filter_close(args->made);
    else
        filter_free(args->made);
    if (args->info != NULL && status == HIBLOOM_OK && wanted)
        filter_fill(args->info, args->size, &count->info, sizeof count->info);
    return status;
}

static hibloom_status finish_links(struct work *work, hibloom_status status)
{
    struct links_work *own = (struct links_work *)work;
    hibloom *filter = work->filter;
    bool wanted = work_is_wanted(work);
    const bool busy = wanted && status == HIBLOOM_OK && own->args.made != NULL && filter != NULL && filter->uses > 1;

    task_release(&own->links.task);
    explicit_bzero(&own->wanted, sizeof own->wanted);
    status = hand_over(&own->args, status, &own->links.count, wanted && !busy);
    return !busy ? status
                 : error_set(&filter->store->error, HIBLOOM_EBUSY, "'%s': other calls on its handle are pending",
                             filter->name);
}

hibloom_status how_links(hibloom_store *store, const struct links_args *args, const struct how *how)
{
    const bool at_once = store_is_in_memory(store);
    hibloom *filter = args->made != NULL ? args->made : args->filter;
    struct store_count count;
    struct links_work here,
        *own = work_make(store, how, &here, at_once ? sizeof own->work : sizeof *own, 0, finish_links);

    if (own == NULL) {
        filter_free(args->made);
        return HIBLOOM_ENOMEM;
    }
    own->work.filter = args->filter;
    if (at_once) {
        const hibloom_status status = store->class->links(filter, args->goal, args->wanted, args->ms, &count);
        return work_end(&own->work, hand_over(args, status, &count, true));
    }
    own->args = *args;
    if (args->wanted != NULL)
        own->wanted = *args->wanted;
    links_begin(&own->links, args->goal, filter, args->wanted != NULL ? &own->wanted : NULL, args->ms);
    return work_go(&own->work, &own->links.task);
}

/* ---- Items ------------------------------------------------------------------------------------ */

/* Behind it the items and their bytes. */
struct items_work {
    struct work work;
    struct items_task items_task;
    bool *answers; /* NULL: not wanted */
    hibloom_item items[];
};

static hibloom_status finish_items(struct work *work, hibloom_status status)
{
    struct items_work *own = (struct items_work *)work;

    items_task_end(&own->items_task, work_is_wanted(work) && status == HIBLOOM_OK ? own->answers : NULL);
    return status;
}

/* The bytes of a work and of what is copied behind it; 0: more than memory can have. */
static size_t size_with(const hibloom_item *items, size_t n)
{
    size_t size;
    bool fits = !__builtin_mul_overflow(n, sizeof *items, &size) &&
                !__builtin_add_overflow(size, sizeof(struct items_work), &size);

    for (size_t i = 0; i < n; i++)
        fits = fits && !__builtin_add_overflow(size, items[i].len, &size);
    return fits ? size : 0;
}

static const hibloom_item *copy_items(struct items_work *own, const hibloom_item *items, size_t n)
{
    char *at = (char *)(own->items + n);

    for (size_t i = 0; i < n; i++) {
        own->items[i] = (hibloom_item){at, items[i].len};
        if (items[i].len > 0)
            memcpy(at, items[i].data, items[i].len);
        at += items[i].len;
    }
    return own->items;
}

hibloom_status how_items(hibloom *filter, enum store_op op, const hibloom_item *items, size_t n, bool *answers,
                         const struct how *how)
{
    hibloom_store *store = filter->store;
    const bool at_once = store_is_in_memory(store), waits = how->done == NULL;
    const bool copies = store->async != NULL; /* a call that waits has its caller's, and so have its parts */
    struct items_work here, *own;
    hibloom_status status = how_check(store, filter, how, n);

    if (status == HIBLOOM_OK)
        status = filter_check_items(filter, op, items, n);
    if (status != HIBLOOM_OK)
        return status;
    if (waits && n == 0)
        return HIBLOOM_OK;
    if (waits && at_once)
        return store->class->items(filter, op, items, n, answers);
    const size_t size = at_once ? sizeof own->work : copies ? size_with(items, n) : sizeof *own;
    own = work_make(store, how, &here, size, at_once ? 0 : n, finish_items);
    if (own == NULL)
        return HIBLOOM_ENOMEM;
    own->work.filter = filter;
    if (at_once)
        return work_end(&own->work, store->class->items(filter, op, items, n, answers));
    own->answers = answers;
    items = copies ? copy_items(own, items, n) : items;
    return work_go(&own->work, items_task_begin(&own->items_task, op, filter, items, n));
}
