/* store.c: making a store of whatever kind its URI says, and what all kinds have in common. */
#include "base/alloc.h"
#include "filter/async.h"
#include "filter/handle.h"
#include "memory/memory.h"
#include "net/drivers/blocking.h"

#include <hiredis/hiredis.h>

hibloom_status store_make(hibloom_store **out, const char *wrong, bool borrowed, const char *uri,
                          const hibloom_setup *setup, store_maker *maker, void *with)
{
    struct store_settings *settings = NULL;
    struct error error;
    hibloom_status status = HIBLOOM_EINVAL;

    if (wrong == NULL)
        status = settings_make(&settings, borrowed, uri, setup, &error);
    else
        (void)error_set(&error, status, "%s", wrong);
    *out = NULL;
    if (status == HIBLOOM_OK)
        status = maker(out, settings, with);
    else if (status != HIBLOOM_ENOMEM && (*out = alloc.calloc(1, sizeof **out)) != NULL)
        (*out)->error = error;
    if (status == HIBLOOM_ENOMEM || *out == NULL) {
        hibloom_store_free(*out);
        *out = NULL;
        return HIBLOOM_ENOMEM;
    }
    return status;
}

static hibloom_status make(hibloom_store **out, struct store_settings *settings, void *theirs)
{
    if (theirs != NULL || settings->uri.kind != URI_MEMORY)
        return blocking_make(out, settings, theirs);
    *out = memory_store(settings);
    if (*out == NULL)
        settings_free(settings);
    return HIBLOOM_OK;
}

hibloom_status hibloom_connect(hibloom_store **out, const char *uri, const hibloom_setup *setup)
{
    return store_make(out, NULL, false, uri, setup, make, NULL);
}

hibloom_status hibloom_borrow(hibloom_store **out, struct redisContext *context, const hibloom_setup *setup)
{
    const bool good = context != NULL && (context->flags & REDIS_BLOCK) != 0;

    return store_make(out, good ? NULL : "not a blocking hiredis context", true, NULL, setup, make, context);
}

void hibloom_store_deadline(hibloom_store *store, uint64_t ms)
{
    if (store != NULL && store->settings != NULL && !store->settings->borrowed)
        store->deadline_ms = ms < UINT32_MAX ? (uint32_t)ms : UINT32_MAX;
}

void hibloom_get_stats(const hibloom_store *store, hibloom_stats *out, size_t size)
{
    hibloom_stats stats = {0};

    if (store != NULL && store->stats != NULL)
        stats = *store->stats;
    if (store != NULL && store->async != NULL)
        stats.in_flight = store->async->calls;
    filter_fill(out, size, &stats, sizeof stats);
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
    if (store->free != NULL) {
        filters_leave(store);
        store->free(store);
    } else {
        alloc.free(store);
    }
    settings_free(settings);
}
