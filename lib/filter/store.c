/* store.c: making a store of whatever kind its URI says, and what all kinds have in common. */
#include "base/alloc.h"
#include "filter/async.h"
#include "filter/handle.h"
#include "memory/memory.h"
#include "net/drivers/blocking.h"

#include <hiredis/hiredis.h>

hibloom_status store_unmade(hibloom_store **out, hibloom_status status, const struct error *error)
{
    hibloom_store *store = status != HIBLOOM_ENOMEM ? alloc.calloc(1, sizeof *store) : NULL;

    if (store != NULL)
        store->error = *error;
    *out = store;
    return store != NULL ? status : HIBLOOM_ENOMEM;
}

static hibloom_status connect_memory(hibloom_store **out, struct store_settings *settings)
{
    *out = memory_store(settings);
    if (*out == NULL)
        settings_free(settings);
    return *out != NULL ? HIBLOOM_OK : HIBLOOM_ENOMEM;
}

static hibloom_status without_memory_none(hibloom_store **out, hibloom_status status)
{
    if (status == HIBLOOM_ENOMEM) {
        hibloom_store_free(*out);
        *out = NULL;
    }
    return status;
}

hibloom_status hibloom_connect(hibloom_store **out, const char *uri, const hibloom_setup *setup)
{
    struct store_settings *settings = NULL;
    struct error error;
    hibloom_status status = settings_make(&settings, false, uri, setup, &error);

    *out = NULL;
    if (status != HIBLOOM_OK)
        status = store_unmade(out, status, &error);
    else if (settings->uri.kind == URI_MEMORY)
        status = connect_memory(out, settings);
    else
        status = blocking_make(out, settings, NULL);
    return without_memory_none(out, status);
}

hibloom_status hibloom_borrow(hibloom_store **out, struct redisContext *context, const hibloom_setup *setup)
{
    struct store_settings *settings = NULL;
    struct error error;
    hibloom_status status = HIBLOOM_OK;

    *out = NULL;
    if (context == NULL || (context->flags & REDIS_BLOCK) == 0)
        status = error_set(&error, HIBLOOM_EINVAL, "not a blocking hiredis context");
    if (status == HIBLOOM_OK)
        status = settings_make(&settings, true, NULL, setup, &error);
    status = status == HIBLOOM_OK ? blocking_make(out, settings, context) : store_unmade(out, status, &error);
    return without_memory_none(out, status);
}

void hibloom_store_deadline(hibloom_store *store, uint64_t ms)
{
    if (store != NULL && store->settings != NULL && !store->settings->borrowed)
        store->deadline_ms = ms < UINT32_MAX ? (uint32_t)ms : UINT32_MAX;
}

void hibloom_get_stats(const hibloom_store *store, hibloom_stats *out, size_t size)
{
    const hibloom_stats none = {0};

    filter_fill(out, size, store != NULL && store->stats != NULL ? store->stats : &none, sizeof none);
}

static hibloom_status list(hibloom_store *store, const char *pattern, hibloom_list_fn *each, void *each_data,
                           const struct how *how)
{
    const hibloom_status status = how_check(store, NULL, how, 0);

    return status == HIBLOOM_OK ? how_list(store, pattern != NULL ? pattern : "*", each, each_data, how) : status;
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

const char *hibloom_store_option(const hibloom_store *store, const char *name)
{
    return store != NULL && store->settings != NULL ? options_text(store->settings, name) : NULL;
}

void hibloom_store_free(hibloom_store *store)
{
    if (store == NULL)
        return;
    if (store->async != NULL) {
        async_free(store->async);
        return;
    }
    struct store_settings *settings = store->settings;
    if (store->class != NULL) {
        filters_leave(store);
        store->class->free(store);
    } else {
        alloc.free(store);
    }
    settings_free(settings);
}
