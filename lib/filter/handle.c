/* handle.c: a filter's handle: made, given to its caller, moved, closed. And what it says of itself. See handle.h. */
#include "filter/handle.h"
#include "base/alloc.h"
#include "filter/async.h"
#include "redis/link.h"
#include "spec/spec.h"

#include <stddef.h>
#include <string.h>

static void free_text(char *text)
{
    if (text != NULL)
        explicit_bzero(text, strlen(text)); /* there may be a seed in it */
    alloc.free(text);
}

/* Overwritten first: some filters' seed is a secret. */
void filter_free(hibloom *filter)
{
    if (filter == NULL)
        return;
    alloc.free(filter->name);
    free_text(filter->text);
    free_text(filter->said[0]);
    free_text(filter->said[1]);
    explicit_bzero(filter, offsetof(hibloom, spec) + filter->room);
    alloc.free(filter);
}

static hibloom *settled(hibloom *filter)
{
    const size_t room = spec_bytes(&filter->spec), bytes = offsetof(hibloom, spec) + room;
    hibloom *small = room < filter->room ? alloc.malloc(bytes) : NULL;

    if (small == NULL)
        return filter;
    memcpy(small, filter, bytes);
    small->room = room;
    if (!store_is_in_memory(filter->store))
        redis_filter_moved(small);
    explicit_bzero(filter, sizeof *filter); /* the seed */
    alloc.free(filter);
    return small;
}

hibloom *filter_opened(hibloom *filter)
{
    hibloom *opened = settled(filter);

    LIST_INSERT_HEAD(&opened->store->filters, opened, in_store);
    return opened;
}

void filter_close(hibloom *filter)
{
    if (filter == NULL)
        return;
    if (filter->store != NULL)
        filter->store->class->close(filter);
    if (filter->in_store.le_prev != NULL)
        LIST_REMOVE(filter, in_store);
    filter_free(filter);
}

void filter_hold(hibloom *filter)
{
    if (filter != NULL)
        filter->uses++;
}

void filter_release(hibloom *filter)
{
    if (filter != NULL && filter->uses-- == 0)
        filter_close(filter);
}

void filters_leave(hibloom_store *store)
{
    for (hibloom *filter; (filter = LIST_FIRST(&store->filters)) != NULL;) {
        store->class->close(filter);
        LIST_REMOVE(filter, in_store);
        filter->in_store.le_prev = NULL;
        filter->store = NULL;
    }
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
    *status = filter_check_name(store, name);
    if (*status != HIBLOOM_OK)
        return NULL;
    hibloom *filter = alloc.calloc(1, sizeof *filter);
    char *const own = alloc_text(name);
    if (filter == NULL || own == NULL) {
        alloc.free(filter);
        alloc.free(own);
        *status = error_set(&store->error, HIBLOOM_ENOMEM, "out of memory");
        return NULL;
    }
    filter->store = store;
    filter->room = sizeof filter->spec;
    filter->name = own;
    return filter;
}

/* ---- What it is ----------------------------------------------------------- */

bool hibloom_created(const hibloom *filter)
{
    return filter->created;
}

hibloom_store *hibloom_store_of(const hibloom *filter)
{
    return filter->store;
}

const char *hibloom_name_of(const hibloom *filter)
{
    return filter->name;
}

/* Written when somebody asks: most handles are never asked. "": out of memory. */
static const char *text_of(const hibloom *filter, bool secret)
{
    char **text = &((hibloom *)(uintptr_t)filter)->said[secret], buf[HIBLOOM_TEXT_SIZE] = "";
    struct spec spec AT_END(spec_wipe);

    if (*text != NULL)
        return *text;
    spec_copy(&spec, &filter->spec);
    if (!secret)
        spec_forget_seed(&spec);
    if (spec_format_said(&spec, buf, sizeof buf) == HIBLOOM_OK)
        *text = alloc_text(buf);
    explicit_bzero(buf, sizeof buf);
    return *text != NULL ? *text : "";
}

const char *hibloom_spec_of(const hibloom *filter)
{
    return text_of(filter, false);
}

const char *hibloom_secret_spec_of(const hibloom *filter)
{
    return text_of(filter, true);
}

void hibloom_close(hibloom *filter)
{
    if (filter != NULL && filter->store != NULL && filter->store->async != NULL)
        async_close_filter(filter->store->async, filter);
    else
        filter_release(filter);
}
