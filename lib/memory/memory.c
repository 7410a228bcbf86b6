/* memory.c: the store whose bits lie in this process.
 *
 * It keeps filters by name as Redis keeps keys: a program tested on it meets the same rules. Two handles of one name
 * share their bits. If a filter was dropped or has expired, the handles that are left return an error. They also do if
 * another one was made under its name, with any spec. linked.c has the bits.
 *
 * Threads may ask at once. So a look-up changes nothing. An expired filter is freed when the next one is made, or with
 * the store. */
#include "memory/memory.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/glob.h"
#include "memory/linked.h"
#include "spec/request.h"

#include <stdio.h>
#include <string.h>
#include <sys/queue.h>

struct memory_filter {
    LIST_ENTRY(memory_filter) in_filters;
    unsigned handles;
    bool listed; /* under its name; else dropped, and freed with its last handle */
    bool bare;
    uint64_t expires_ms; /* by the monotonic clock; 0 = never */
    struct linked bits;  /* and their spec */
    char text[SPEC_TEXT_SIZE];
    char name[HIBLOOM_NAME_MAX + 1];
};

struct memory_store {
    hibloom_store base;
    LIST_HEAD(memory_filters, memory_filter) filters;
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
    linked_free(&stored->bits);
    explicit_bzero(stored, sizeof *stored); /* the seed */
    alloc.free(stored);
}

static void remove_filter(struct memory_filter *stored)
{
    LIST_REMOVE(stored, in_filters);
    stored->listed = false;
    release(stored);
}

static bool is_there(const struct memory_filter *stored)
{
    return stored->listed && (stored->expires_ms == 0 || clock_now_ms() < stored->expires_ms);
}

/* NULL: there is none. */
static struct memory_filter *find(const struct memory_store *store, const char *name)
{
    struct memory_filter *stored = LIST_FIRST(&store->filters);

    while (stored != NULL && !(is_there(stored) && strcmp(stored->name, name) == 0))
        stored = LIST_NEXT(stored, in_filters);
    return stored;
}

static void remove_expired(struct memory_store *store)
{
    struct memory_filter *next;

    for (struct memory_filter *stored = LIST_FIRST(&store->filters); stored != NULL; stored = next) {
        next = LIST_NEXT(stored, in_filters);
        if (!is_there(stored))
            remove_filter(stored);
    }
}

static hibloom_status make_bits(hibloom *filter, const struct request *wanted, struct memory_filter *stored)
{
    struct spec spec AT_END(spec_wipe) = wanted->spec;
    hibloom_status status = filter->bare ? HIBLOOM_OK : spec_draw_seed(&spec);

    if (status != HIBLOOM_OK)
        return fail(filter, status, "the system gave no random seed");
    status = spec_format(&spec, stored->text, sizeof stored->text);
    if (status != HIBLOOM_OK)
        return fail(filter, status, "its spec has no text");
    status = linked_make(&stored->bits, &spec);
    if (status == HIBLOOM_ENOMEM)
        return fail(filter, status, "this process has no memory for its bits");
    return status == HIBLOOM_OK ? status : fail(filter, status, "it would be too large");
}

static hibloom_status create(hibloom *filter, const struct request *wanted, struct memory_filter **out)
{
    struct memory_store *store = memory_store_of(filter);
    struct memory_filter *stored = alloc.calloc(1, sizeof *stored);

    remove_expired(store);
    if (stored == NULL)
        return fail(filter, HIBLOOM_ENOMEM, "out of memory");
    const hibloom_status status = make_bits(filter, wanted, stored);
    if (status != HIBLOOM_OK) {
        release(stored);
        return status;
    }
    stored->bare = filter->bare;
    stored->expires_ms = wanted->ttl_ms != 0 ? clock_now_ms() + wanted->ttl_ms : 0;
    filter->created = !filter->bare;
    strcpy(stored->name, filter->name);
    stored->listed = true;
    LIST_INSERT_HEAD(&store->filters, stored, in_filters);
    *out = stored;
    return HIBLOOM_OK;
}

static hibloom_status fail_absent(hibloom *filter, const struct request *wanted)
{
    const char *lacks = wanted != NULL ? wanted->lacks : NULL;
    char words[256];

    snprintf(words, sizeof words, "there is no such filter%s%s", lacks != NULL ? "; to make one, " : "",
             lacks != NULL ? lacks : "");
    return fail(filter, HIBLOOM_ENOTFOUND, words);
}

/* Is it what was said? */
static hibloom_status check_stored(hibloom *filter, const struct memory_filter *stored, const struct request *wanted)
{
    struct error error;
    struct spec spec AT_END(spec_wipe);

    if (stored->bare != filter->bare)
        return fail(filter, HIBLOOM_EMISMATCH,
                    stored->bare ? "is a bare bitmap; attach it" : "is no bare bitmap, it has a spec; open it");
    if (filter->bare)
        return spec_says(&filter->spec, stored->text)
                   ? HIBLOOM_OK
                   : fail(filter, HIBLOOM_EMISMATCH, "is attached with another spec; attach it with that one");
    const hibloom_status status = request_adopt(&spec, wanted, stored->text, &error);
    if (status != HIBLOOM_OK)
        return fail(filter, status, error.words);
    if (wanted != NULL && wanted->create == CREATE_ONLY)
        return fail(filter, HIBLOOM_EMISMATCH, "is there already, and the text says create=only");
    return HIBLOOM_OK;
}

static hibloom_status open_filter(hibloom *filter, const struct request *wanted)
{
    struct memory_filter *stored = find(memory_store_of(filter), filter->name);

    filter->created = false;
    if (filter->bare && spec_is_unsized(&filter->spec))
        return fail(filter, HIBLOOM_ENOTSUP,
                    "in memory there is no config to take bits and hashes from; give capacity= and error=");
    if (stored == NULL && (wanted == NULL || !wanted->makes))
        return fail_absent(filter, wanted);
    const hibloom_status status = stored == NULL ? create(filter, wanted, &stored)
                                                 : check_stored(filter, stored, wanted);
    if (status != HIBLOOM_OK)
        return status;
    stored->handles++; /* NOLINT(*NullDereference): where there was none, create has made it or failed */
    filter->impl = stored;
    filter->spec = stored->bits.link[0].spec;
    return HIBLOOM_OK;
}

static void memory_close(hibloom *filter)
{
    struct memory_filter *stored = filter->impl;

    stored->handles--;
    release(stored);
}

/* Is the very filter that this handle was opened on still there, and under this name? Another
 * handle of it may have put it in the place of another one. Many threads may ask. */
static hibloom_status state_of(const hibloom *filter)
{
    const struct memory_filter *stored = filter->impl;

    if (is_there(stored) && strcmp(stored->name, filter->name) == 0)
        return HIBLOOM_OK;
    return find(memory_store_of(filter), filter->name) == NULL ? HIBLOOM_ENOTFOUND : HIBLOOM_EMISMATCH;
}

static hibloom_status guard(hibloom *filter)
{
    const hibloom_status status = state_of(filter);

    if (status == HIBLOOM_OK)
        return status;
    return fail(filter, status,
                status == HIBLOOM_ENOTFOUND
                    ? "was dropped or has expired; hibloom_reopen can make a new one"
                    : "was dropped or has expired, and is a new filter now; call hibloom_reopen");
}

/* ---- Bits ----------------------------------------------------------------- */

static struct linked *bits_of(const hibloom *filter)
{
    return &((struct memory_filter *)filter->impl)->bits;
}

/* Puts down why a call that needs memory or a further link failed. */
static hibloom_status tell(hibloom *filter, hibloom_status status)
{
    if (status == HIBLOOM_ENOMEM)
        return fail(filter, status, "this process has no memory for it");
    return status == HIBLOOM_OK ? status : fail(filter, status, "can grow no more");
}

static hibloom_status memory_items(hibloom *filter, enum store_op op, const hibloom_item *items, size_t n,
                                   bool *answers)
{
    const hibloom_status status = store_is_silent(filter->store, op) ? state_of(filter) : guard(filter);

    if (status != HIBLOOM_OK)
        return status;
    if (op == STORE_LOOK)
        linked_contains(bits_of(filter), items, n, answers);
    else if (op == STORE_REMOVE)
        counters_remove(&bits_of(filter)->link[0], items, n, answers);
    else
        return tell(filter, linked_add(bits_of(filter), items, n, answers));
    return HIBLOOM_OK;
}

static void count_bits(const struct memory_filter *stored, struct store_count *out)
{
    const uint64_t now = clock_now_ms(), end = stored->expires_ms;

    *out = (struct store_count){.info.ttl_ms = end == 0 ? -1 : end > now ? (int64_t)(end - now) : 0};
    for (uint32_t i = 0; i < stored->bits.links; i++) {
        const struct bits *bits = &stored->bits.link[i];
        spec_note_count(out, &bits->spec, &(hibloom_info){.bits_set = bits_count(bits), .bytes = bits->bytes});
    }
}

static hibloom_status memory_read(hibloom *filter, const struct piece *piece, unsigned char *out)
{
    hibloom_status status = guard(filter);

    if (status == HIBLOOM_OK)
        bits_read(&bits_of(filter)->link[piece->link], piece, out);
    return status;
}

static hibloom_status memory_merge(hibloom *filter, const struct piece *piece, const unsigned char *bits)
{
    const hibloom_status status = guard(filter);

    if (status == HIBLOOM_OK)
        linked_merge(bits_of(filter), piece, bits);
    return status;
}

static hibloom_status reach(hibloom *filter, uint64_t at_least)
{
    struct linked *bits = bits_of(filter);
    hibloom_status status = HIBLOOM_OK;

    while (status == HIBLOOM_OK && bits->links < at_least)
        status = tell(filter, linked_grow(bits));
    return status;
}

static uint32_t memory_count_links(const hibloom *filter)
{
    return bits_of(filter)->links;
}

/* ---- Whole filters -------------------------------------------------------- */

/* It need not be open. Nothing is ever lost here but a whole filter: so there is nothing to repair. */
static hibloom_status repair_or_delete(hibloom *filter, enum links_goal goal)
{
    struct memory_filter *stored = find(memory_store_of(filter), filter->name);

    if (stored == NULL)
        return fail(filter, HIBLOOM_ENOTFOUND, "there is no such filter; open it with a spec to make one");
    if (stored->bare)
        return fail(filter, HIBLOOM_ENOTFOUND, "is a bare bitmap; attach it to drop it");
    if (goal == LINKS_DELETE)
        remove_filter(stored);
    return HIBLOOM_OK;
}

static hibloom_status memory_on_links(hibloom *filter, enum links_goal goal, const struct request *wanted,
                                      uint64_t number, struct store_count *count)
{
    struct memory_filter *stored = filter->impl;

    if (goal == LINKS_OPEN)
        return open_filter(filter, wanted);
    if (goal == LINKS_REPAIR || goal == LINKS_DELETE)
        return repair_or_delete(filter, goal);
    const hibloom_status status = guard(filter);
    if (status == HIBLOOM_ENOTFOUND && goal == LINKS_DROP && filter->bare) /* as in Redis */
        return HIBLOOM_OK;
    if (status != HIBLOOM_OK)
        return status;
    if (goal == LINKS_COUNT)
        count_bits(stored, count);
    else if (goal == LINKS_CLEAR)
        linked_clear(&stored->bits);
    else if (goal == LINKS_EXPIRE)
        stored->expires_ms = number != 0 ? clock_now_ms() + number : 0;
    else if (goal == LINKS_REACH)
        return reach(filter, number);
    else
        remove_filter(stored);
    return HIBLOOM_OK;
}

/* The store is one thread's while anything but a look-up is called, so this is one step. */
static hibloom_status memory_replace(hibloom *filter, char **name, hibloom *old)
{
    struct memory_filter *stored = filter->impl, *there = find(memory_store_of(filter), *name);
    const hibloom_status status = guard(filter);

    if (status != HIBLOOM_OK)
        return status;
    stored->expires_ms = old != NULL ? ((const struct memory_filter *)old->impl)->expires_ms : 0;
    if (there != NULL)
        remove_filter(there);
    strcpy(stored->name, *name);
    handle_swap_name(filter, name);
    return HIBLOOM_OK;
}

/* The names are copied first: `each` may remove filters. */
static hibloom_status memory_list(hibloom_store *base, const char *pattern, hibloom_list_fn *each, void *data)
{
    const struct memory_store *store = (struct memory_store *)base;
    const struct memory_filter *stored;
    size_t len = 0, at = 0;

    LIST_FOREACH (stored, &store->filters, in_filters)
        len += strlen(stored->name) + 1;
    char *names = alloc.malloc(len + 1);
    if (names == NULL)
        return error_set(&base->error, HIBLOOM_ENOMEM, "out of memory");
    len = 0;
    LIST_FOREACH (stored, &store->filters, in_filters)
        if (is_there(stored) && !stored->bare && glob_matches(pattern, stored->name)) {
            strcpy(names + len, stored->name);
            len += strlen(stored->name) + 1;
        }
    while (at < len && each(names + at, data))
        at += strlen(names + at) + 1;
    alloc.free(names);
    return HIBLOOM_OK;
}

static void memory_free(hibloom_store *base)
{
    struct memory_store *store = (struct memory_store *)base;

    while (!LIST_EMPTY(&store->filters))
        remove_filter(LIST_FIRST(&store->filters));
    alloc.free(store);
}

static const struct store_class memory_class = {
    .links = memory_on_links,
    .items = memory_items,
    .replace = memory_replace,
    .count_links = memory_count_links,
    .read = memory_read,
    .merge = memory_merge,
    .close = memory_close,
    .list = memory_list,
};

hibloom_store *memory_store(struct store_settings *settings)
{
    struct memory_store *store = alloc.calloc(1, sizeof *store);

    if (store == NULL)
        return NULL;
    store->base.class = &memory_class;
    store->base.free = memory_free;
    store->base.settings = settings;
    return &store->base;
}
