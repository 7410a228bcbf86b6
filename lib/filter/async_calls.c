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
    hibloom_spec wanted;
    hibloom *made; /* a handle that is the work's; NULL: none */
    void *out;     /* hibloom **; hibloom_info *; nothing */
};

static hibloom_status finish_links(struct work *work, hibloom_status status)
{
    struct links_work *own = (struct links_work *)work;
    const enum links_goal goal = own->links.goal;

    task_release(&own->links.task);
    explicit_bzero(&own->wanted, sizeof own->wanted);
    if (goal == LINKS_OPEN && status == HIBLOOM_OK && work->done != NULL)
        *(hibloom **)own->out = filter_opened(own->made);
    else if (goal == LINKS_OPEN && status == HIBLOOM_OK)
        filter_close(own->made);
    else
        filter_free(own->made);
    if (goal == LINKS_COUNT && status == HIBLOOM_OK && work->done != NULL)
        filter_say_count(&own->links.count, own->out);
    return status;
}

hibloom_status async_links(hibloom *filter, enum links_goal goal, const hibloom_spec *wanted, uint64_t ms, void *out,
                           const struct how *how)
{
    const bool takes = goal == LINKS_OPEN || goal == LINKS_DELETE || goal == LINKS_REPAIR;
    struct links_work *own = async_new_work(filter->store->async, how, sizeof *own, 0, finish_links);

    if (own == NULL) {
        filter_free(takes ? filter : NULL);
        return HIBLOOM_ENOMEM;
    }
    own->made = takes ? filter : NULL;
    own->work.filter = takes ? NULL : filter;
    own->out = out;
    if (wanted != NULL)
        own->wanted = *wanted;
    links_begin(&own->links, goal, filter, wanted != NULL ? &own->wanted : NULL, ms);
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
    if (wanted && work->done != NULL && !listing_is_over(own->listing))
        work->next = listing_begin(own->listing);
    else
        alloc.free(own->listing);
    return status;
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
