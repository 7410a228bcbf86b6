/* store.c: making a store of whatever kind its URI says, and what all kinds
 * have in common. */
#include "net/blocking.h"

#include <hiredis/hiredis.h>
#include <stdlib.h>

/* A store that never came about: for its error's sake. */
static hibloom_status fail_unmade(hibloom_store **out, hibloom_status status, const struct error *error)
{
    hibloom_store *store = status != HIBLOOM_ENOMEM ? calloc(1, sizeof *store) : NULL;

    if (store != NULL)
        store->error = *error;
    *out = store;
    return store != NULL ? status : HIBLOOM_ENOMEM;
}

hibloom_status hibloom_connect(hibloom_store **out, const char *uri, const hibloom_connect_options *options)
{
    static const hibloom_connect_options defaults = HIBLOOM_CONNECT_OPTIONS_INIT;
    struct uri parsed = {0};
    struct error error;
    hibloom_status status = uri_parse(&parsed, uri, &error);

    if (status == HIBLOOM_OK && options != NULL && options->commands != HIBLOOM_COMMANDS_SETBIT &&
        options->commands != HIBLOOM_COMMANDS_BITFIELD)
        status = error_set(&error, HIBLOOM_EINVAL, "options->commands is none of enum hibloom_commands");
    *out = NULL;
    if (status != HIBLOOM_OK)
        status = fail_unmade(out, status, &error);
    else if (parsed.kind == URI_MEMORY)
        status = hibloom_memory(out);
    else if ((status = blocking_new(out, NULL)) == HIBLOOM_OK)
        status = blocking_connect(*out, &parsed, options != NULL ? options : &defaults);
    uri_free(&parsed);
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
        return blocking_new(out, context);
    return fail_unmade(out, error_set(&error, HIBLOOM_EINVAL, "not a blocking hiredis context"), &error);
}

const char *hibloom_store_error(const hibloom_store *store)
{
    return store != NULL ? store->error.words : "";
}

void hibloom_store_free(hibloom_store *store)
{
    if (store == NULL)
        return;
    if (store->class != NULL)
        store->class->free(store);
    else
        free(store);
}
