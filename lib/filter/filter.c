/* filter.c: the filter's functions of hibloom.h. They check the caller's arguments, and the rest is the store's. */
#include "base/error.h"
#include "base/alloc.h"
#include "filter/filter.h"
#include "redis/keys.h"
#include "spec/positions.h"
#include "spec/spec.h"

#include <math.h>
#include <string.h>

#define EXPIRE_MAX (UINT64_C(1) << 40) /* seconds; Redis counts milliseconds in 63 bits */

/* Overwritten first: some filters' seed is a secret. */
void filter_free(hibloom *filter)
{
    if (filter == NULL)
        return;
    explicit_bzero(filter, sizeof *filter);
    alloc.free(filter);
}

hibloom_status filter_check_name(hibloom_store *store, const char *name)
{
    const hibloom_status status = keys_check(name);

    if (status != HIBLOOM_OK)
        (void)error_set(&store->error, status,
                        "a filter's name has 1 to %u bytes, and braces only if they make a {tag} with more beside it",
                        HIBLOOM_NAME_MAX);
    return status;
}

hibloom *filter_new(hibloom_store *store, const char *name, hibloom_status *status)
{
    *status = HIBLOOM_EINVAL;
    if (store->class == NULL)
        return NULL; /* its error already says why there is no store */
    *status = filter_check_name(store, name);
    if (*status != HIBLOOM_OK)
        return NULL;
    hibloom *filter = alloc.calloc(1, sizeof *filter);
    if (filter == NULL) {
        *status = error_set(&store->error, HIBLOOM_ENOMEM, "out of memory");
        return NULL;
    }
    filter->store = store;
    strcpy(filter->name, name);
    return filter;
}

hibloom_status filter_check(hibloom *filter, const hibloom_spec *spec, bool bare)
{
    struct error *error = &filter->store->error;

    filter->bare = bare;
    if (spec == NULL)
        return HIBLOOM_OK;
    const hibloom_status status = spec_check_words(spec, error);
    if (status != HIBLOOM_OK)
        return status;
    if (bare && spec->counters != 0)
        return error_set(error, HIBLOOM_ENOTSUP,
                         "'%s': a bare bitmap cannot count: it has nothing by which a step could tell, before it "
                         "changes a counter, whose that is",
                         filter->name);
    if (!bare && spec->keys != HIBLOOM_KEYS_OWN)
        return error_set(error, HIBLOOM_EINVAL,
                         "keys=: these are another library's keys, which has to make the filter: join it with "
                         "hibloom_attach (--bare)");
    if (spec->link != 0)
        return error_set(error, HIBLOOM_EINVAL, "link=: a further link is not opened by itself");
    if (bare && spec->window != 0)
        return error_set(error, HIBLOOM_ENOTSUP,
                         "window=: a bare bitmap is no window: nothing beside it could tell when it was emptied");
    if (bare && spec->growth != 0)
        return error_set(error, HIBLOOM_ENOTSUP,
                         "growth=: a bare bitmap does not grow: nothing beside it could tell others that it has%s",
                         spec->hash == HIBLOOM_HASH_REDISBLOOM
                             ? " (the first link of a filter of RedisBloom has half of its error=, and no growth=)"
                             : "");
    if (bare)
        filter->spec = *spec;
    return HIBLOOM_OK;
}

static hibloom_status open_filter(hibloom **out, hibloom_store *store, const char *name, const hibloom_spec *spec,
                                  bool bare)
{
    hibloom_status status;
    hibloom *filter = filter_new(store, name, &status);

    if (filter == NULL)
        return status;
    status = filter_check(filter, spec, bare);
    if (status == HIBLOOM_OK)
        status = store->class->links(filter, LINKS_OPEN, spec, 0, NULL);
    if (status == HIBLOOM_OK)
        *out = filter;
    else
        filter_free(filter);
    return status;
}

hibloom_status hibloom_open(hibloom **out, hibloom_store *store, const char *name, const hibloom_spec *spec)
{
    return open_filter(out, store, name, spec, false);
}

hibloom_status hibloom_attach(hibloom **out, hibloom_store *store, const char *name, const hibloom_spec *spec)
{
    return open_filter(out, store, name, spec, true);
}

/* A call on a filter that need not be open. */
static hibloom_status call_by_name(hibloom_store *store, const char *name, enum links_goal goal)
{
    hibloom_status status;
    hibloom *filter = filter_new(store, name, &status);

    if (filter == NULL)
        return status;
    status = store->class->links(filter, goal, NULL, 0, NULL);
    filter_free(filter);
    return status;
}

hibloom_status hibloom_repair(hibloom_store *store, const char *name)
{
    return call_by_name(store, name, LINKS_REPAIR);
}

hibloom_status hibloom_delete(hibloom_store *store, const char *name)
{
    return call_by_name(store, name, LINKS_DELETE);
}

/* ---- Items ---------------------------------------------------------------- */

hibloom_status filter_check_items(hibloom *filter, enum store_call call, const hibloom_item *items, size_t n)
{
    struct error *error = &filter->store->error;

    if (call == STORE_REMOVE && filter->spec.counters == 0)
        return error_set(error, HIBLOOM_ENOTSUP,
                         "'%s' has bits, which several items share, and no counters: only a filter that was made with "
                         "counters= can remove",
                         filter->name);
    for (size_t i = 0; i < n; i++) {
        const char *wrong = positions_refuse(&filter->spec, items[i].data, items[i].len);
        if (wrong != NULL)
            return error_set(error, HIBLOOM_EINVAL, "an item of %zu bytes: %s", items[i].len, wrong);
    }
    return HIBLOOM_OK;
}

static hibloom_status call_items(hibloom *filter, enum store_call call, const hibloom_item *items, size_t n,
                                 bool *answers)
{
    const hibloom_status status = filter_check_items(filter, call, items, n);

    return status != HIBLOOM_OK || n == 0 ? status : filter->store->class->items(filter, call, items, n, answers);
}

hibloom_status hibloom_add_many(hibloom *filter, const hibloom_item *items, size_t n, bool *is_new)
{
    return call_items(filter, is_new != NULL ? STORE_ADD_NEW : STORE_ADD, items, n, is_new);
}

hibloom_status hibloom_contains_many(hibloom *filter, const hibloom_item *items, size_t n, bool *found)
{
    return call_items(filter, STORE_LOOK, items, n, found);
}

hibloom_status hibloom_remove_many(hibloom *filter, const hibloom_item *items, size_t n, bool *was_in)
{
    return call_items(filter, STORE_REMOVE, items, n, was_in);
}

hibloom_status hibloom_add(hibloom *filter, const void *item, size_t len, bool *is_new)
{
    return hibloom_add_many(filter, &(hibloom_item){item, len}, 1, is_new);
}

hibloom_status hibloom_contains(hibloom *filter, const void *item, size_t len, bool *found)
{
    return hibloom_contains_many(filter, &(hibloom_item){item, len}, 1, found);
}

hibloom_status hibloom_remove(hibloom *filter, const void *item, size_t len, bool *was_in)
{
    return hibloom_remove_many(filter, &(hibloom_item){item, len}, 1, was_in);
}

hibloom_status hibloom_near_cache(hibloom *filter, uint32_t max_age_ms)
{
    const struct store_class *class = filter->store->class;

    return class->near_cache != NULL ? class->near_cache(filter, max_age_ms) : HIBLOOM_OK;
}

/* ---- The whole filter ----------------------------------------------------- */

void filter_say_count(const struct store_count *count, hibloom_info *out)
{
    const hibloom_info info = {.size = out->size,
                               .bits_set = count->bits_set,
                               .bytes = count->bytes,
                               .ttl_ms = count->ttl_ms,
                               .keys = count->keys,
                               .fill = fmin((double)count->bits_set / (double)count->bits, 1.0),
                               .estimated_items = count->items,
                               .estimated_error_rate = count->error_rate,
                               .links = count->links,
                               .capacity = count->capacity,
                               .used = count->capacity != 0 ? count->used : (double)NAN};

    memcpy(out, &info, out->size < sizeof info ? out->size : sizeof info);
}

static hibloom_status call_links(hibloom *filter, enum links_goal goal, uint64_t ms, struct store_count *count)
{
    return filter->store->class->links(filter, goal, NULL, ms, count);
}

hibloom_status(hibloom_get_info)(hibloom *filter, hibloom_info *out)
{
    struct store_count count;
    const hibloom_status status = call_links(filter, LINKS_COUNT, 0, &count);

    if (status == HIBLOOM_OK)
        filter_say_count(&count, out);
    return status;
}

hibloom_status hibloom_clear(hibloom *filter)
{
    return call_links(filter, LINKS_CLEAR, 0, NULL);
}

hibloom_status hibloom_drop(hibloom *filter)
{
    return call_links(filter, LINKS_DROP, 0, NULL);
}

hibloom_status filter_check_expiry(hibloom *filter, uint64_t seconds)
{
    if (seconds <= EXPIRE_MAX)
        return HIBLOOM_OK;
    return error_set(&filter->store->error, HIBLOOM_ERANGE, "more seconds than a time to live can have");
}

hibloom_status hibloom_expire(hibloom *filter, uint64_t seconds)
{
    const hibloom_status status = filter_check_expiry(filter, seconds);

    return status == HIBLOOM_OK ? call_links(filter, LINKS_EXPIRE, seconds * 1000, NULL) : status;
}

const hibloom_spec *hibloom_spec_of(const hibloom *filter)
{
    return &filter->spec;
}

void hibloom_close(hibloom *filter)
{
    if (filter == NULL)
        return;
    filter->store->class->close(filter);
    filter_free(filter);
}
