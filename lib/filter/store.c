/* store.c: making a store of whatever kind its URI says, and what all kinds have in common. */
#include "base/alloc.h"
#include "filter/async.h"
#include "filter/filter.h"
#include "net/drivers/blocking.h"
#include "spec/spec.h"

#include <hiredis/hiredis.h>
#include <string.h>

hibloom_status store_unmade(hibloom_store **out, hibloom_status status, const struct error *error)
{
    hibloom_store *store = status != HIBLOOM_ENOMEM ? alloc.calloc(1, sizeof *store) : NULL;

    if (store != NULL)
        store->error = *error;
    *out = store;
    return store != NULL ? status : HIBLOOM_ENOMEM;
}

hibloom_status hibloom_connect(hibloom_store **out, const char *uri, const hibloom_connect_options *options)
{
    struct store_settings settings = {0};
    struct error error;
    hibloom_status status = settings_make(&settings, uri, options, &error);

    *out = NULL;
    if (status != HIBLOOM_OK)
        status = store_unmade(out, status, &error);
    else if (settings.uri.kind == URI_MEMORY)
        status = hibloom_memory(out);
    else
        status = blocking_connect(out, &settings);
    settings_free(&settings);
    if (status == HIBLOOM_ENOMEM) {
        hibloom_store_free(*out);
        *out = NULL;
    }
    return status;
}

hibloom_status hibloom_borrow(hibloom_store **out, struct redisContext *context)
{
    struct error error;

    *out = NULL;
    if (context != NULL && (context->flags & REDIS_BLOCK))
        return blocking_borrow(out, context);
    return store_unmade(out, error_set(&error, HIBLOOM_EINVAL, "not a blocking hiredis context"), &error);
}

#define SPREAD_BITS (UINT64_C(1) << 23) /* up to 1 MB, one server does as well */

hibloom_status hibloom_spec_spread(hibloom_spec *spec, const hibloom_store *store)
{
    hibloom_status status = spec_check(spec);

    if (status == HIBLOOM_OK && store != NULL && store->class != NULL && store->class->servers != NULL &&
        spec->bits > SPREAD_BITS)
        status = spec_spread(spec, store->class->servers(store));
    return status;
}

void hibloom_store_deadline(hibloom_store *store, uint32_t ms)
{
    if (store != NULL && store->class != NULL && store->class->set_deadline != NULL)
        store->class->set_deadline(store, ms);
}

void(hibloom_get_stats)(const hibloom_store *store, hibloom_stats *out)
{
    const uint32_t size = out->size < sizeof *out ? out->size : (uint32_t)sizeof *out;
    const hibloom_stats none = {0};
    const bool counts = store != NULL && store->class != NULL && store->class->stats != NULL;

    memcpy(out, counts ? store->class->stats(store) : &none, size);
    out->size = size;
}

static hibloom_status list(hibloom_store *store, const char *pattern, hibloom_list_fn *each, void *each_data,
                           const struct how *how)
{
    const hibloom_status status = call_check(store, how, 0);

    if (status != HIBLOOM_OK)
        return status;
    pattern = pattern != NULL ? pattern : "*";
    if (call_is_task(store))
        return async_list(store, pattern, each, each_data, how);
    return call_end(store, NULL, store->class->list(store, pattern, each, each_data), how);
}

hibloom_status hibloom_list(hibloom_store *store, const char *pattern, hibloom_list_fn *each, void *data)
{
    return list(store, pattern, each, data, WAITS(list));
}

hibloom_status hibloom_async_list(hibloom_store *store, const char *pattern, hibloom_list_fn *each, void *each_data,
                                  hibloom_done_fn *done, void *data)
{
    return list(store, pattern, each, each_data, LATER(list));
}

const char *hibloom_store_error(const hibloom_store *store)
{
    return store != NULL ? store->error.words : "";
}

void hibloom_store_free(hibloom_store *store)
{
    if (store == NULL)
        return;
    if (store->async != NULL) {
        async_free(store->async);
    } else if (store->class != NULL) {
        filters_leave(store);
        store->class->free(store);
    } else {
        alloc.free(store);
    }
}
