/* memory.c: the store whose bits lie in this process.
 *
 * It keeps filters by name as Redis keeps keys, so that a program that is tested
 * on it meets the same rules: two handles of one name share their bits, a filter
 * that was dropped or has expired is an error to the handles that are left, and
 * so is another one made under its name, whatever its spec. bits.c has the bits.
 *
 * Threads may ask at once. So a look-up changes nothing; a filter whose time has
 * passed is freed when the next one is made, or with the store. */
#include "base/clock.h"
#include "base/alloc.h"
#include "base/glob.h"
#include "bits/counters.h"
#include "spec/period.h"
#include "base/store.h"

#include <stdatomic.h>
#include <string.h>

#define BLOCK 512u /* items at a time, where there are further links */
#define UNCOUNTED UINT64_MAX

struct memory_filter {
    struct memory_filter *next;
    unsigned handles;
    bool listed; /* under its name; else dropped, and freed with its last handle */
    bool bare;
    uint64_t expires_ms; /* by the monotonic clock; 0 = never */
    struct bits bits;    /* and their spec */
    struct bits *more;   /* of the further links, if it grows, or is a sliding window; NULL: none */
    uint32_t links;      /* in all */
    uint64_t *period;    /* of a window, a link each: see period.h; NULL: it is none */
    uint64_t newest;     /* items in the newest; UNCOUNTED: some were merged into it */
    char text[HIBLOOM_SPEC_TEXT_SIZE];
    char name[HIBLOOM_NAME_MAX + 1];
};

struct memory_store {
    hibloom_store base;
    struct memory_filter *filters;
    atomic_flag writes_words; /* look-ups of several threads may fail at once */
};

static struct memory_store *memory_store_of(const hibloom *filter)
{
    return (struct memory_store *)filter->store;
}

static hibloom_status fail(hibloom *filter, hibloom_status status, const char *words)
{
    struct memory_store *store = memory_store_of(filter);

    while (atomic_flag_test_and_set(&store->writes_words))
        continue;
    (void)error_set(&store->base.error, status, "'%s': %s", filter->name, words);
    atomic_flag_clear(&store->writes_words);
    return status;
}

/* ---- Filters by name ------------------------------------------------------ */

static void release(struct memory_filter *stored)
{
    if (stored->listed || stored->handles > 0)
        return;
    bits_free(&stored->bits);
    for (uint32_t i = 1; i < stored->links; i++)
        bits_free(&stored->more[i - 1]);
    if (stored->more != NULL)
        explicit_bzero(stored->more, HIBLOOM_LINKS_MAX * sizeof *stored->more);
    alloc.free(stored->more);
    alloc.free(stored->period);
    explicit_bzero(stored, sizeof *stored); /* the seed */
    alloc.free(stored);
}

static void remove_filter(struct memory_filter **at)
{
    struct memory_filter *stored = *at;

    *at = stored->next;
    stored->listed = false;
    release(stored);
}

static bool is_there(const struct memory_filter *stored)
{
    return stored->listed && (stored->expires_ms == 0 || clock_now_ms() < stored->expires_ms);
}

/* Where the filter of a name is listed, NULL if there is none. */
static struct memory_filter **find(struct memory_store *store, const char *name)
{
    for (struct memory_filter **at = &store->filters; *at != NULL; at = &(*at)->next)
        if (is_there(*at) && strcmp((*at)->name, name) == 0)
            return at;
    return NULL;
}

static void remove_expired(struct memory_store *store)
{
    for (struct memory_filter **at = &store->filters; *at != NULL;)
        if (is_there(*at))
            at = &(*at)->next;
        else
            remove_filter(at);
}

/* Makes a further link; the first one is there. */
static hibloom_status add_link(struct memory_filter *stored)
{
    hibloom_spec spec = {.hashes = 0};
    hibloom_status status = spec_link(&spec, &stored->bits.spec, stored->links, 1);

    if (status == HIBLOOM_OK && stored->more == NULL)
        stored->more = alloc.calloc(HIBLOOM_LINKS_MAX, sizeof *stored->more);
    if (status == HIBLOOM_OK &&
        (stored->more == NULL || !bits_make(&stored->more[stored->links - 1], &spec, spec_keys(&spec))))
        status = HIBLOOM_ENOMEM;
    explicit_bzero(&spec, sizeof spec); /* the seed */
    stored->links += status == HIBLOOM_OK;
    return status;
}

static hibloom_status make_slices(struct memory_filter *stored)
{
    hibloom_status status = HIBLOOM_OK;

    if (stored->bits.spec.window == 0)
        return HIBLOOM_OK;
    stored->period = alloc.calloc(HIBLOOM_LINKS_MAX, sizeof *stored->period);
    if (stored->period == NULL)
        return HIBLOOM_ENOMEM;
    while (status == HIBLOOM_OK && stored->links <= stored->bits.spec.slices)
        status = add_link(stored);
    return status;
}

static hibloom_status create(hibloom *filter, const hibloom_spec *wanted, struct memory_filter **out)
{
    struct memory_store *store = memory_store_of(filter);
    struct memory_filter *stored = alloc.calloc(1, sizeof *stored);
    hibloom_spec spec = *wanted;

    remove_expired(store);
    if (stored == NULL)
        return fail(filter, HIBLOOM_ENOMEM, "out of memory");
    hibloom_status status = filter->bare ? HIBLOOM_OK : spec_draw_seed(&spec);
    if (status == HIBLOOM_OK)
        status = hibloom_spec_format(&spec, stored->text, sizeof stored->text);
    if (status == HIBLOOM_OK && !bits_make(&stored->bits, &spec, spec_keys(&spec)))
        status = HIBLOOM_ENOMEM;
    stored->links = 1;
    if (status == HIBLOOM_OK)
        status = make_slices(stored);
    if (status != HIBLOOM_OK) {
        release(stored);
        return fail(filter, status,
                    status == HIBLOOM_ENOMEM ? "this process has no memory for its bits"
                                             : "the system gave no random seed");
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
    stored->handles++; /* NOLINT(*NullDereference): where there was none, create has made it or failed */
    filter->impl = stored;
    filter->spec = stored->bits.spec;
    strcpy(filter->text, stored->text);
}

static hibloom_status memory_open(hibloom *filter, const hibloom_spec *wanted)
{
    struct memory_filter **at = find(memory_store_of(filter), filter->name), *stored = at != NULL ? *at : NULL;
    hibloom_status status = HIBLOOM_OK;
    hibloom_spec spec;

    if (wanted != NULL && spec_is_unsized(wanted))
        return fail(filter, HIBLOOM_ENOTSUP,
                    "in memory there is no config to take bits and hashes from; give capacity= and error=");
    if (stored == NULL && wanted == NULL)
        return fail(filter, HIBLOOM_ENOTFOUND, "there is no such filter; it takes a spec to make one");
    if (stored == NULL)
        status = create(filter, wanted, &stored);
    else if (stored->bare != filter->bare)
        status = fail(filter, HIBLOOM_EMISMATCH,
                      stored->bare ? "is a bare bitmap; attach it" : "is no bare bitmap, it has a spec; open it");
    else if (filter->bare && strcmp(stored->text, filter->text) != 0)
        status = fail(filter, HIBLOOM_EMISMATCH, "is attached with another spec; attach it with that one");
    else if (!filter->bare && (status = spec_adopt(&spec, wanted, stored->text)) != HIBLOOM_OK)
        status = fail(filter, status, "is there with another spec or seed; open it without a spec, or drop it first");
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

/* Is the very filter that this handle was opened on still there, and under this name? Another
 * handle of it may have put it in the place of another one. */
static hibloom_status guard(hibloom *filter)
{
    const struct memory_filter *stored = filter->impl;

    if (is_there(stored) && strcmp(stored->name, filter->name) == 0)
        return HIBLOOM_OK;
    if (find(memory_store_of(filter), filter->name) == NULL)
        return fail(filter, HIBLOOM_ENOTFOUND, "was dropped or has expired; open it again to make a new one");
    return fail(filter, HIBLOOM_EMISMATCH, "was dropped or has expired, and is a new filter now; open it again");
}

/* ---- Bits ----------------------------------------------------------------- */

static struct bits *bits_of(const hibloom *filter)
{
    return &((struct memory_filter *)filter->impl)->bits;
}

static struct bits *link_of(struct memory_filter *stored, uint32_t i)
{
    return i == 0 ? &stored->bits : &stored->more[i - 1];
}

/* The period that it is now, for a window; the clock begins with one that has others before it. */
static uint64_t period_now(const struct memory_filter *stored)
{
    const hibloom_spec *spec = &stored->bits.spec;

    return stored->period != NULL ? period_at(spec, (clock_now_ms() + spec->window * UINT64_C(3000)) * 1000) : 0;
}

static bool link_counts(const struct memory_filter *stored, uint32_t i, uint64_t now)
{
    return stored->period == NULL || period_counts(&stored->bits.spec, stored->period[i], now);
}

/* Whether it is in any of the first `links`. */
static void look(struct memory_filter *stored, uint32_t links, const hibloom_item *items, size_t n, bool *found)
{
    const uint64_t now = period_now(stored);
    bool one[BLOCK];

    memset(found, 0, n * sizeof *found);
    for (size_t at = 0; at < n; at += BLOCK) {
        const size_t count = n - at < BLOCK ? n - at : BLOCK;
        for (uint32_t i = links; i-- > 0;) {
            if (!link_counts(stored, i, now))
                continue;
            bits_contains(link_of(stored, i), items + at, count, one);
            for (size_t k = 0; k < count; k++)
                found[at + k] = found[at + k] || one[k];
        }
    }
}

static hibloom_status grow(hibloom *filter, struct memory_filter *stored)
{
    const hibloom_status status = add_link(stored);

    if (status != HIBLOOM_OK)
        return fail(filter, status,
                    status == HIBLOOM_ENOMEM ? "this process has no memory for a further link" : "can grow no more");
    stored->newest = 0;
    return HIBLOOM_OK;
}

static void count_newest(struct memory_filter *stored)
{
    const struct bits *bits = link_of(stored, stored->links - 1);
    const double items = spec_items_at(&bits->spec, (double)bits_count(bits) / (double)spec_all_bits(&bits->spec));

    stored->newest = items < (double)bits->spec.capacity ? (uint64_t)items : bits->spec.capacity;
}

/* As many items as the newest link has room for go there, if they are in no older one. */
static hibloom_status add_to_chain(hibloom *filter, const hibloom_item *items, size_t n, bool *is_new)
{
    struct memory_filter *stored = filter->impl;
    bool found[BLOCK], one;

    if (stored->newest == UNCOUNTED)
        count_newest(stored);
    for (size_t at = 0, count; at < n; at += count) {
        const uint64_t capacity = link_of(stored, stored->links - 1)->spec.capacity;
        const hibloom_status status = stored->newest >= capacity ? grow(filter, stored) : HIBLOOM_OK;
        if (status != HIBLOOM_OK)
            return status;
        struct bits *newest = link_of(stored, stored->links - 1);
        const uint64_t room = newest->spec.capacity - stored->newest;
        count = n - at < BLOCK ? n - at : BLOCK;
        if (count > room)
            count = (size_t)room;
        look(stored, stored->links - 1, items + at, count, found);
        for (size_t k = 0; k < count; k++) {
            one = false;
            if (!found[k])
                bits_add(newest, &items[at + k], 1, &one);
            stored->newest += one;
            is_new[at + k] = one;
        }
    }
    return HIBLOOM_OK;
}

/* All go to the slice of the period, as it may be asked for longer than what has them now. */
static hibloom_status add_to_window(hibloom *filter, const hibloom_item *items, size_t n, bool *is_new)
{
    struct memory_filter *stored = filter->impl;
    const uint64_t now = period_now(stored);
    const uint32_t number = period_slice(&filter->spec, now);
    struct bits *slice = link_of(stored, number);

    if (stored->period[number] != now)
        bits_clear(slice);
    stored->period[number] = now;
    look(stored, stored->links, items, n, is_new);
    for (size_t i = 0; i < n; i++) {
        bool one;
        bits_add(slice, &items[i], 1, &one);
        is_new[i] = one && !is_new[i];
    }
    return HIBLOOM_OK;
}

static hibloom_status memory_add(hibloom *filter, const hibloom_item *items, size_t n, bool *is_new)
{
    hibloom_status status = guard(filter);

    if (status == HIBLOOM_OK && spec_has_links(&filter->spec)) {
        hibloom_status (*const add)(hibloom *, const hibloom_item *, size_t,
                                    bool *) = filter->spec.window != 0 ? add_to_window : add_to_chain;
        bool *answers = alloc.malloc(n + 1); /* is_new is written only if all of it is OK */
        if (answers == NULL)
            return fail(filter, HIBLOOM_ENOMEM, "out of memory");
        status = add(filter, items, n, answers);
        if (status == HIBLOOM_OK && is_new != NULL)
            memcpy(is_new, answers, n);
        alloc.free(answers);
    } else if (status == HIBLOOM_OK)
        bits_add(bits_of(filter), items, n, is_new);
    return status;
}

static hibloom_status memory_contains(hibloom *filter, const hibloom_item *items, size_t n, bool *found)
{
    struct memory_filter *stored = filter->impl;
    hibloom_status status = guard(filter);

    if (status == HIBLOOM_OK && stored->links > 1)
        look(stored, stored->links, items, n, found);
    else if (status == HIBLOOM_OK)
        bits_contains(&stored->bits, items, n, found);
    return status;
}

static hibloom_status memory_remove(hibloom *filter, const hibloom_item *items, size_t n, bool *was_in)
{
    hibloom_status status = guard(filter);

    if (status == HIBLOOM_OK)
        counters_remove(bits_of(filter), items, n, was_in);
    return status;
}

static int64_t remaining_ms(const struct memory_filter *stored)
{
    const uint64_t now = clock_now_ms();

    if (stored->expires_ms == 0)
        return -1;
    return stored->expires_ms > now ? (int64_t)(stored->expires_ms - now) : 0;
}

static hibloom_status memory_count(hibloom *filter, struct store_count *out)
{
    struct memory_filter *stored = filter->impl;
    const hibloom_status status = guard(filter);

    if (status != HIBLOOM_OK)
        return status;
    *out = (struct store_count){.ttl_ms = remaining_ms(stored)};
    for (uint32_t i = 0; i < stored->links; i++) {
        const struct bits *bits = link_of(stored, i);
        spec_note_count(out, &bits->spec, &(struct store_count){.bits_set = bits_count(bits), .bytes = bits->bytes});
    }
    return HIBLOOM_OK;
}

static hibloom_status memory_read(hibloom *filter, const struct piece *piece, unsigned char *out)
{
    hibloom_status status = guard(filter);

    if (status == HIBLOOM_OK)
        bits_read(link_of(filter->impl, piece->link), piece, out);
    return status;
}

static hibloom_status memory_merge(hibloom *filter, const struct piece *piece, const unsigned char *bits)
{
    struct memory_filter *stored = filter->impl;
    hibloom_status status = guard(filter);

    if (status == HIBLOOM_OK)
        bits_merge(link_of(stored, piece->link), piece, bits);
    if (status == HIBLOOM_OK && piece->link + 1 == stored->links)
        stored->newest = UNCOUNTED;
    return status;
}

static hibloom_status memory_links(hibloom *filter, uint32_t at_least, uint32_t *links)
{
    struct memory_filter *stored = filter->impl;
    hibloom_status status = guard(filter);

    while (status == HIBLOOM_OK && filter->spec.growth != 0 && stored->links < at_least)
        status = grow(filter, stored);
    *links = stored->links;
    return status;
}

/* ---- Whole filters -------------------------------------------------------- */

static hibloom_status memory_clear(hibloom *filter)
{
    struct memory_filter *stored = filter->impl;
    hibloom_status status = guard(filter);

    for (uint32_t i = 0; i < stored->links && status == HIBLOOM_OK; i++)
        bits_clear(link_of(stored, i));
    if (status == HIBLOOM_OK)
        stored->newest = 0;
    return status;
}

static hibloom_status memory_drop(hibloom *filter)
{
    struct memory_filter **at = find(memory_store_of(filter), filter->name);

    if (at == NULL || *at != filter->impl)
        return guard(filter);
    remove_filter(at);
    return HIBLOOM_OK;
}

static hibloom_status memory_expire(hibloom *filter, uint64_t seconds)
{
    hibloom_status status = guard(filter);
    struct memory_filter *stored = filter->impl;

    if (status == HIBLOOM_OK)
        stored->expires_ms = seconds != 0 ? clock_now_ms() + seconds * 1000 : 0;
    return status;
}

static struct memory_filter **find_with_spec(hibloom *filter)
{
    struct memory_filter **at = find(memory_store_of(filter), filter->name);

    if (at != NULL && !(*at)->bare)
        return at;
    (void)fail(filter, HIBLOOM_ENOTFOUND,
               at == NULL ? "there is no such filter; open it with a spec to make one"
                          : "is a bare bitmap; attach it to drop it");
    return NULL;
}

/* Nothing is ever lost here but a whole filter. */
static hibloom_status memory_repair(hibloom *filter)
{
    return find_with_spec(filter) != NULL ? HIBLOOM_OK : HIBLOOM_ENOTFOUND;
}

static hibloom_status memory_delete(hibloom *filter)
{
    struct memory_filter **at = find_with_spec(filter);

    if (at == NULL)
        return HIBLOOM_ENOTFOUND;
    remove_filter(at);
    return HIBLOOM_OK;
}

/* The store is one thread's while anything but a look-up is called, so this is one step. */
static hibloom_status memory_replace(hibloom *filter, const char *name, hibloom *old)
{
    struct memory_filter *stored = filter->impl, **at = find(memory_store_of(filter), name);
    const hibloom_status status = guard(filter);

    if (status != HIBLOOM_OK)
        return status;
    stored->expires_ms = old != NULL ? ((const struct memory_filter *)old->impl)->expires_ms : 0;
    if (at != NULL)
        remove_filter(at);
    strcpy(stored->name, name);
    strcpy(filter->name, name);
    return HIBLOOM_OK;
}

/* The names are copied first: the caller may remove filters while it is told of them. */
static hibloom_status memory_list(hibloom_store *base, const char *pattern, hibloom_list_fn *each, void *data)
{
    const struct memory_store *store = (struct memory_store *)base;
    size_t len = 0, at = 0;

    for (const struct memory_filter *stored = store->filters; stored != NULL; stored = stored->next)
        len += strlen(stored->name) + 1;
    char *names = alloc.malloc(len + 1);
    if (names == NULL)
        return error_set(&base->error, HIBLOOM_ENOMEM, "out of memory");
    len = 0;
    for (const struct memory_filter *stored = store->filters; stored != NULL; stored = stored->next)
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

    while (store->filters != NULL)
        remove_filter(&store->filters);
    alloc.free(store);
}

static const struct store_class memory_class = {
    .open = memory_open,
    .add = memory_add,
    .contains = memory_contains,
    .remove = memory_remove,
    .count = memory_count,
    .clear = memory_clear,
    .drop = memory_drop,
    .expire = memory_expire,
    .replace = memory_replace,
    .links = memory_links,
    .read = memory_read,
    .merge = memory_merge,
    .repair = memory_repair,
    .delete = memory_delete,
    .close = memory_close,
    .list = memory_list,
    .free = memory_free,
};

hibloom_status hibloom_memory(hibloom_store **out)
{
    struct memory_store *store = alloc.calloc(1, sizeof *store);

    *out = NULL;
    if (store == NULL)
        return HIBLOOM_ENOMEM;
    store->base.class = &memory_class;
    atomic_flag_clear(&store->writes_words);
    *out = &store->base;
    return HIBLOOM_OK;
}
