/* store_memory.c: the store whose bits lie in this process.
 *
 * It keeps filters by name as Redis keeps keys, so that a program tested on it
 * meets the same rules: two handles of one name share their bits, a dropped
 * filter is an error to the handles that are left, and time to live is kept.
 * The bits themselves are memory_bits.h's. */
#include "base/clock.h"
#include "memory/bits.h"
#include "spec/spec.h"
#include "base/store.h"

#include <stdlib.h>
#include <string.h>

struct memory_filter {
    struct memory_filter *next;
    unsigned handles;
    bool listed; /* under its name; else dropped, and freed with its last handle */
    bool bare;
    uint64_t expires_ms; /* by the monotonic clock; 0 = never */
    struct memory_bits bits; /* and their spec */
    char text[HIBLOOM_SPEC_TEXT_SIZE];
    char name[HIBLOOM_NAME_MAX + 1];
};

struct memory_store {
    hibloom_store base;
    struct memory_filter *filters;
};

static struct memory_store *memory_store_of(const hibloom *filter)
{
    return (struct memory_store *)filter->store;
}

static hibloom_status fail(hibloom *filter, hibloom_status status, const char *words)
{
    return error_set(&filter->store->error, status, "'%s': %s", filter->name, words);
}

/* ---- Filters by name ------------------------------------------------------ */

static void release(struct memory_filter *stored)
{
    if (stored->listed || stored->handles > 0)
        return;
    memory_bits_free(&stored->bits);
    free(stored);
}

static void unlist(struct memory_store *store, struct memory_filter *stored)
{
    struct memory_filter **at = &store->filters;

    while (*at != stored)
        at = &(*at)->next;
    *at = stored->next;
    stored->listed = false;
}

static bool is_there(const struct memory_filter *stored)
{
    return stored->listed && (stored->expires_ms == 0 || clock_now_ms() < stored->expires_ms);
}

static struct memory_filter *find(struct memory_store *store, const char *name)
{
    struct memory_filter *stored = store->filters;

    while (stored != NULL && strcmp(stored->name, name) != 0)
        stored = stored->next;
    if (stored == NULL || is_there(stored))
        return stored;
    unlist(store, stored);
    release(stored);
    return NULL;
}

static hibloom_status create(hibloom *filter, const hibloom_spec *wanted, struct memory_filter **out)
{
    struct memory_store *store = memory_store_of(filter);
    struct memory_filter *stored = calloc(1, sizeof *stored);
    hibloom_spec spec = *wanted;

    if (stored == NULL)
        return fail(filter, HIBLOOM_ENOMEM, "out of memory");
    hibloom_status status = filter->bare ? HIBLOOM_OK : spec_draw_seed(&spec);
    if (status == HIBLOOM_OK)
        status = hibloom_spec_format(&spec, stored->text, sizeof stored->text);
    if (status == HIBLOOM_OK && !memory_bits_make(&stored->bits, &spec))
        status = HIBLOOM_ENOMEM;
    if (status != HIBLOOM_OK) {
        free(stored);
        return fail(filter, status, "no memory or no seed for it");
    }
    stored->bare = filter->bare;
    strcpy(stored->name, filter->name);
    stored->listed = true;
    stored->next = store->filters;
    store->filters = stored;
    *out = stored;
    return HIBLOOM_OK;
}

static void bind_handle(hibloom *filter, struct memory_filter *stored)
{
    stored->handles++;
    filter->impl = stored;
    filter->spec = stored->bits.spec;
    strcpy(filter->text, stored->text);
}

static hibloom_status memory_open(hibloom *filter, const hibloom_spec *wanted)
{
    struct memory_filter *stored = find(memory_store_of(filter), filter->name);
    hibloom_status status = HIBLOOM_OK;
    hibloom_spec spec;

    if (stored == NULL && wanted == NULL)
        return fail(filter, HIBLOOM_ENOTFOUND, "there is no such filter");
    if (stored == NULL)
        status = create(filter, wanted, &stored);
    else if (stored->bare)
        status = fail(filter, HIBLOOM_EMISMATCH, "is a bare bitmap");
    else if ((status = spec_adopt(&spec, wanted, stored->text)) != HIBLOOM_OK)
        status = fail(filter, status, "is stored with another spec or seed");
    if (status == HIBLOOM_OK)
        bind_handle(filter, stored);
    return status;
}

static hibloom_status memory_attach(hibloom *filter)
{
    struct memory_filter *stored = find(memory_store_of(filter), filter->name);
    hibloom_status status = HIBLOOM_OK;

    if (stored == NULL)
        status = create(filter, &filter->spec, &stored);
    else if (!stored->bare || strcmp(stored->text, filter->text) != 0)
        status = fail(filter, HIBLOOM_EMISMATCH, "is a filter with a spec, or joined with another");
    if (status == HIBLOOM_OK)
        bind_handle(filter, stored);
    return status;
}

static void memory_close(hibloom *filter)
{
    struct memory_filter *stored = filter->impl;

    stored->handles--;
    release(stored);
}

/* The guard: is the handle's filter still there under its name? If it was
 * made anew just so, the handle goes over to that, as it would in Redis. */
static hibloom_status guard(hibloom *filter)
{
    struct memory_filter *stored = filter->impl;

    if (is_there(stored))
        return HIBLOOM_OK;
    stored = find(memory_store_of(filter), filter->name);
    if (stored == NULL)
        return fail(filter, HIBLOOM_ENOTFOUND, "dropped or expired");
    if (stored->bare != filter->bare || strcmp(stored->text, filter->text) != 0)
        return fail(filter, HIBLOOM_EMISMATCH, "was made anew with another spec or seed");
    memory_close(filter);
    bind_handle(filter, stored);
    return HIBLOOM_OK;
}

/* ---- Bits ----------------------------------------------------------------- */

static struct memory_bits *bits_of(const hibloom *filter)
{
    return &((struct memory_filter *)filter->impl)->bits;
}

static hibloom_status memory_add(hibloom *filter, const hibloom_item *items, size_t n, bool *is_new)
{
    hibloom_status status = guard(filter);

    if (status == HIBLOOM_OK)
        memory_bits_add(bits_of(filter), items, n, is_new);
    return status;
}

static hibloom_status memory_contains(hibloom *filter, const hibloom_item *items, size_t n, bool *found)
{
    hibloom_status status = guard(filter);

    if (status == HIBLOOM_OK)
        memory_bits_contains(bits_of(filter), items, n, found);
    return status;
}

static hibloom_status memory_count(hibloom *filter, struct store_count *out)
{
    hibloom_status status = guard(filter);

    if (status != HIBLOOM_OK)
        return status;
    *out = (struct store_count){memory_bits_count(bits_of(filter)), bits_of(filter)->bytes, -1};
    return HIBLOOM_OK;
}

static hibloom_status memory_read(hibloom *filter, const struct piece *piece, unsigned char *out)
{
    hibloom_status status = guard(filter);

    if (status == HIBLOOM_OK)
        memory_bits_read(bits_of(filter), piece, out);
    return status;
}

static hibloom_status memory_merge(hibloom *filter, const struct piece *piece, const unsigned char *bits)
{
    hibloom_status status = guard(filter);

    if (status == HIBLOOM_OK)
        memory_bits_merge(bits_of(filter), piece, bits);
    return status;
}

/* ---- Whole filters -------------------------------------------------------- */

static hibloom_status memory_clear(hibloom *filter)
{
    hibloom_status status = guard(filter);

    if (status == HIBLOOM_OK)
        memory_bits_clear(bits_of(filter));
    return status;
}

static hibloom_status memory_drop(hibloom *filter)
{
    hibloom_status status = guard(filter);

    if (status == HIBLOOM_OK)
        unlist(memory_store_of(filter), filter->impl);
    return status;
}

static hibloom_status memory_expire(hibloom *filter, uint64_t seconds)
{
    hibloom_status status = guard(filter);
    struct memory_filter *stored = filter->impl;

    if (status == HIBLOOM_OK)
        stored->expires_ms = seconds != 0 ? clock_now_ms() + seconds * 1000 : 0;
    return status;
}

/* A filter here is whole, or not there. */
static hibloom_status memory_repair(hibloom *filter)
{
    const struct memory_filter *stored = find(memory_store_of(filter), filter->name);

    if (stored == NULL || stored->bare)
        return fail(filter, HIBLOOM_ENOTFOUND, "there is no such filter");
    return HIBLOOM_OK;
}

static hibloom_status memory_delete(hibloom *filter)
{
    hibloom_status status = memory_repair(filter);

    if (status == HIBLOOM_OK) {
        struct memory_filter *stored = find(memory_store_of(filter), filter->name);
        unlist(memory_store_of(filter), stored);
        release(stored);
    }
    return status;
}

static void memory_free(hibloom_store *base)
{
    struct memory_store *store = (struct memory_store *)base;

    while (store->filters != NULL) {
        struct memory_filter *stored = store->filters;
        unlist(store, stored);
        release(stored);
    }
    free(store);
}

static const struct store_class memory_class = {
    .open = memory_open,
    .attach = memory_attach,
    .add = memory_add,
    .contains = memory_contains,
    .count = memory_count,
    .clear = memory_clear,
    .drop = memory_drop,
    .expire = memory_expire,
    .read = memory_read,
    .merge = memory_merge,
    .repair = memory_repair,
    .delete = memory_delete,
    .close = memory_close,
    .free = memory_free,
};

hibloom_status store_memory_new(hibloom_store **out)
{
    struct memory_store *store = calloc(1, sizeof *store);

    *out = NULL;
    if (store == NULL)
        return HIBLOOM_ENOMEM;
    store->base.class = &memory_class;
    *out = &store->base;
    return HIBLOOM_OK;
}
