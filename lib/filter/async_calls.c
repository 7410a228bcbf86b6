/* async_calls.c: calls on a loop's store, each as a work. See filter/async.h. */
#include "base/alloc.h"
#include "filter/async.h"
#include "filter/filter.h"
#include "redis/links.h"
#include "redis/list.h"
#include "redis/sieve.h"

#include <string.h>

/* ---- The whole filter ----------------------------------------------------------------------- */

struct links_work {
    struct work work;
    struct links links;
    struct request wanted;
    hibloom *made; /* a handle that is the work's; NULL: none */
    hibloom **out; /* where it goes; NULL: nowhere, or in the place of the work's */
    void *info;    /* where the count goes; NULL: nowhere */
    size_t info_size;
};

/* It is open, and its owner is still there. */
static hibloom_status hand_over(struct links_work *own)
{
    hibloom *again = own->work.filter;

    if (again != NULL && again->uses > 1) {
        filter_close(own->made);
        return error_set(&again->store->error, HIBLOOM_EBUSY, "'%s': other calls on its handle are pending",
                         again->name);
    }
    if (again != NULL)
        return filter_take_over(again, own->made);
    *own->out = filter_opened(own->made);
    return HIBLOOM_OK;
}

static hibloom_status finish_links(struct work *work, hibloom_status status)
{
    struct links_work *own = (struct links_work *)work;
    const bool opened = own->links.goal == LINKS_OPEN && status == HIBLOOM_OK;

    task_release(&own->links.task);
    explicit_bzero(&own->wanted, sizeof own->wanted);
    if (opened && work->done != NULL)
        return hand_over(own);
    if (opened)
        filter_close(own->made);
    else
        filter_free(own->made);
    if (own->info != NULL && status == HIBLOOM_OK && work->done != NULL)
        filter_say_count(&own->links.count, own->info, own->info_size);
    return status;
}

/* For a handle that it makes, or is given. NULL: out of memory, and that is freed. */
static struct links_work *new_links(hibloom_store *store, hibloom *made, const struct how *how)
{
    struct links_work *own = async_new_work(store->async, how, sizeof *own, 0, finish_links);

    if (own == NULL) {
        filter_free(made);
        return NULL;
    }
    own->made = made;
    own->out = NULL;
    own->info = NULL;
    return own;
}

hibloom_status async_open(hibloom *filter, hibloom *again, const struct request *wanted, hibloom **out,
                          const struct how *how)
{
    struct links_work *own = new_links(filter->store, filter, how);

    if (own == NULL)
        return HIBLOOM_ENOMEM;
    own->work.filter = again;
    own->out = out;
    own->wanted = *wanted;
    links_begin(&own->links, LINKS_OPEN, filter, &own->wanted, 0);
    return async_begin(&own->work, &own->links.task);
}

hibloom_status async_by_name(hibloom *filter, enum links_goal goal, const struct how *how)
{
    struct links_work *own = new_links(filter->store, filter, how);

    if (own == NULL)
        return HIBLOOM_ENOMEM;
    links_begin(&own->links, goal, filter, NULL, 0);
    return async_begin(&own->work, &own->links.task);
}

hibloom_status async_links(hibloom *filter, enum links_goal goal, uint64_t ms, hibloom_info *out, size_t size,
                           const struct how *how)
{
    struct links_work *own = new_links(filter->store, NULL, how);

    if (own == NULL)
        return HIBLOOM_ENOMEM;
    own->work.filter = filter;
    own->info = out;
    own->info_size = size;
    links_begin(&own->links, goal, filter, NULL, ms);
    return async_begin(&own->work, &own->links.task);
}

/* ---- Items ------------------------------------------------------------------------------------ */

/* Behind it the items and their bytes. */
struct items_work {
    struct work work;
    struct sieve sieve;
    bool *answers; /* NULL: not wanted */
    hibloom_item items[];
};

static hibloom_status finish_items(struct work *work, hibloom_status status)
{
    struct items_work *own = (struct items_work *)work;

    sieve_end(&own->sieve, work->done != NULL && status == HIBLOOM_OK ? own->answers : NULL);
    return status;
}

/* NULL: out of memory. */
static struct items_work *copy_items(struct async *async, const struct how *how, const hibloom_item *items, size_t n)
{
    size_t size = sizeof(struct items_work);
    bool fits = !__builtin_mul_overflow(n, sizeof *items, &size) &&
                !__builtin_add_overflow(size, sizeof(struct items_work), &size);

    for (size_t i = 0; i < n; i++)
        fits = fits && !__builtin_add_overflow(size, items[i].len, &size);
    struct items_work *own = async_new_work(async, how, fits ? size : 0, n, finish_items);
    if (own == NULL)
        return NULL;
    char *at = (char *)(own->items + n);
    for (size_t i = 0; i < n; i++) {
        own->items[i] = (hibloom_item){at, items[i].len};
        if (items[i].len > 0)
            memcpy(at, items[i].data, items[i].len);
        at += items[i].len;
    }
    return own;
}

hibloom_status async_items(hibloom *filter, enum store_call call, const hibloom_item *items, size_t n, bool *answers,
                           const struct how *how)
{
    struct items_work *own = copy_items(filter->store->async, how, items, n);

    if (own == NULL)
        return HIBLOOM_ENOMEM;
    own->work.filter = filter;
    own->answers = answers;
    sieve_begin(&own->sieve, call, filter, own->items, n);
    return async_begin(&own->work, own->sieve.run);
}

/* ---- Names ------------------------------------------------------------------------------------ */

struct list_work {
    struct work work;
    struct listing *listing;
    hibloom_list_fn *each;
    void *each_data;
    char pattern[];
};

/* A task for each page. Between two names its owner's function may even free the store: then done is NULL. */
static hibloom_status finish_list(struct work *work, hibloom_status status)
{
    struct list_work *own = (struct list_work *)work;
    bool wanted = status == HIBLOOM_OK;

    for (const char *name; wanted && work->done != NULL && (name = listing_next(own->listing)) != NULL;)
        wanted = own->each(name, own->each_data);
    const bool goes_on = wanted && work->done != NULL && !listing_is_over(own->listing);
    if (goes_on && !work->async->looped.closing)
        work->next = listing_begin(own->listing);
    else
        alloc.free(own->listing);
    return goes_on && work->next == NULL ? HIBLOOM_ECANCELED : status;
}

hibloom_status async_list(hibloom_store *store, const char *pattern, hibloom_list_fn *each, void *each_data,
                          const struct how *how)
{
    const size_t len = strlen(pattern) + 1;
    struct list_work *own = async_new_work(store->async, how, sizeof *own + len, 0, finish_list);

    if (own == NULL)
        return HIBLOOM_ENOMEM;
    memcpy(own->pattern, pattern, len);
    own->each = each;
    own->each_data = each_data;
    own->listing = listing_make((struct redis_store *)store, own->pattern);
    if (own->listing == NULL) {
        alloc.free(own);
        return error_set(&store->error, HIBLOOM_ENOMEM, "out of memory");
    }
    return async_begin(&own->work, listing_begin(own->listing));
}
