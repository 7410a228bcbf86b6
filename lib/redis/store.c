/* store.c: what a store in Redis does without a task. See store.h. */
#include "redis/store.h"
#include "redis/near.h"

static hibloom_status redis_near_cache(hibloom *filter, uint64_t max_age_ms)
{
    struct redis_filter *own = redis_filter_of(filter);
    const uint64_t age_ns = max_age_ms < UINT64_MAX / 1000000 ? max_age_ms * 1000000 : UINT64_MAX;

    const char *why = filter->bare ? "is a bare bitmap, which says nothing by which to see that it was emptied"
                      : filter->spec.counters != 0
                          ? "is a counting filter: what is in may be removed by others, and nothing would tell"
                      : filter->spec.window != 0
                          ? "is a sliding window: what is in is forgotten after a time, so all of it must be asked for"
                          : NULL;

    if (why != NULL)
        return error_set(&filter->store->error, HIBLOOM_ENOTSUP, "'%s' %s", filter->name, why);
    for (uint32_t i = 0; i < redis_links(own); i++)
        if (!near_begin(redis_link(own, i), age_ns))
            return error_set(&filter->store->error, HIBLOOM_ENOMEM, "out of memory");
    return HIBLOOM_OK;
}

const struct store_class redis_store_class = {
    .near_cache = redis_near_cache,
    .close = redis_filter_free,
};
