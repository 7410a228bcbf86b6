/* filter.c: the filter's functions of hibloom.h. They check the caller's arguments, and the rest is the store's. */
#include "base/error.h"
#include "base/alloc.h"
#include "filter/filter.h"
#include "redis/keys.h"
#include "redis/prefer.h"
#include "spec/positions.h"
#include "spec/spec.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

static void free_text(char **text)
{
    if (*text != NULL)
        explicit_bzero(*text, strlen(*text)); /* there may be a seed in it */
    alloc.free(*text);
    *text = NULL;
}

static void forget_texts(hibloom *filter)
{
    free_text(&filter->text);
    free_text(&filter->said[0]);
    free_text(&filter->said[1]);
}

/* Overwritten first: some filters' seed is a secret. */
void filter_free(hibloom *filter)
{
    if (filter == NULL)
        return;
    forget_texts(filter);
    explicit_bzero(filter, offsetof(hibloom, spec) + filter->room);
    alloc.free(filter);
}

hibloom *filter_settle(hibloom *filter)
{
    const size_t room = spec_bytes(&filter->spec), bytes = offsetof(hibloom, spec) + room;
    hibloom *settled = room < filter->room ? alloc.malloc(bytes) : NULL;

    if (settled == NULL)
        return filter;
    memcpy(settled, filter, bytes);
    settled->room = room;
    if (filter->store->class->moved != NULL)
        filter->store->class->moved(settled);
    explicit_bzero(filter, sizeof *filter); /* the seed */
    alloc.free(filter);
    return settled;
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
    filter->room = sizeof filter->spec;
    strcpy(filter->name, name);
    return filter;
}

hibloom_status filter_check(hibloom *filter, const struct request *wanted, bool bare)
{
    struct error *error = &filter->store->error;
    const struct spec *spec = &wanted->spec;

    filter->bare = bare;
    if (!bare && (wanted->said & GIVEN_KEYS) != 0 && spec->keys != KEYS_OWN)
        return error_set(error, HIBLOOM_EINVAL,
                         "keys=: these are another library's keys, which has to make the filter: join it with "
                         "hibloom_attach (--bare)");
    if (!bare)
        return HIBLOOM_OK;
    const hibloom_status status = request_check_bare(wanted, error);
    if (status != HIBLOOM_OK)
        return status;
    if (spec->counters != 0)
        return error_set(error, HIBLOOM_ENOTSUP,
                         "'%s': a bare bitmap cannot count: it has nothing by which a step could tell, before it "
                         "changes a counter, whose that is",
                         filter->name);
    if (spec->window != 0)
        return error_set(error, HIBLOOM_ENOTSUP,
                         "window=: a bare bitmap is no window: nothing beside it could tell when it was emptied");
    if (spec->growth != 0)
        return error_set(error, HIBLOOM_ENOTSUP,
                         "growth=: a bare bitmap does not grow: nothing beside it could tell others that it has%s",
                         spec->hash == HASH_REDISBLOOM
                             ? " (the first link of a filter of RedisBloom has half of its error=, and no growth=)"
                             : "");
    filter->spec = *spec;
    return HIBLOOM_OK;
}

#define SPREAD_BITS (UINT64_C(1) << 23) /* up to 1 MB, one server does as well */

/* Over all servers, unless the text says segments or bits. One that has bits= may be of another filter, which is equal
 * only if it has as many keys. */
static hibloom_status spread(hibloom *filter, struct request *wanted)
{
    const struct store_class *class = filter->store->class;
    hibloom_status status = HIBLOOM_OK;

    if (class->servers != NULL && wanted->makes && !filter->bare && wanted->spec.bits > SPREAD_BITS &&
        (wanted->given & (GIVEN_BITS | GIVEN_SEGMENTS | GIVEN_NEW_SEGMENTS)) == 0)
        status = spec_spread(&wanted->spec, class->servers(filter->store));
    return status == HIBLOOM_OK ? status
                                : error_set(&filter->store->error, status, "too large for a key on each server");
}

hibloom_status filter_want(hibloom *filter, struct request *wanted, const char *text, bool bare)
{
    struct error error; /* words that are written on the way to an OK are not the store's */
    hibloom_status status = request_read(wanted, text, &error);

    if (status != HIBLOOM_OK)
        return error_set(&filter->store->error, status, "%s", error.words);
    status = filter_check(filter, wanted, bare);
    if (status == HIBLOOM_OK)
        status = prefer_pick(wanted, &filter->store->error);
    if (status == HIBLOOM_OK)
        status = spread(filter, wanted);
    if (status != HIBLOOM_OK || text == NULL)
        return status;
    filter->text = alloc_text(text);
    return filter->text != NULL ? HIBLOOM_OK : error_set(&filter->store->error, HIBLOOM_ENOMEM, "out of memory");
}

static hibloom_status open_filter(hibloom **out, hibloom_store *store, const char *name, const char *text, bool bare)
{
    struct request wanted = {.said = 0};
    hibloom_status status;
    hibloom *filter = filter_new(store, name, &status);

    if (filter == NULL)
        return status;
    status = filter_want(filter, &wanted, text, bare);
    if (status == HIBLOOM_OK)
        status = store->class->links(filter, LINKS_OPEN, &wanted, 0, NULL);
    explicit_bzero(&wanted, sizeof wanted); /* the seed */
    if (status == HIBLOOM_OK)
        *out = filter_settle(filter);
    else
        filter_free(filter);
    return status;
}

hibloom_status hibloom_open(hibloom **out, hibloom_store *store, const char *name, const char *spec)
{
    return open_filter(out, store, name, spec, false);
}

hibloom_status hibloom_attach(hibloom **out, hibloom_store *store, const char *name, const char *spec)
{
    return open_filter(out, store, name, spec, true);
}

hibloom_status hibloom_open_like(hibloom **out, hibloom_store *store, const char *name, const hibloom *like)
{
    const char *text = hibloom_secret_spec_of(like);

    if (*text == '\0')
        return error_set(&store->error, HIBLOOM_ENOMEM, "out of memory");
    return open_filter(out, store, name, text, false);
}

/* The new handle's filter becomes this one's, and the old one goes with the new handle. Each keeps its room. */
static void exchange(hibloom *filter, hibloom *fresh)
{
    const size_t fields = offsetof(hibloom, room);
    char old[sizeof(hibloom)];

    memcpy(old, filter, fields);
    memcpy(filter, fresh, fields);
    memcpy(fresh, old, fields);
    memcpy(&filter->spec, &fresh->spec, spec_bytes(&fresh->spec));
    if (filter->store->class->moved != NULL) {
        filter->store->class->moved(filter);
        filter->store->class->moved(fresh);
    }
}

hibloom_status hibloom_reopen(hibloom *filter)
{
    hibloom *fresh = NULL;
    hibloom_status status = open_filter(&fresh, filter->store, filter->name, filter->text, filter->bare);

    if (status == HIBLOOM_OK && filter->near) {
        status = hibloom_near_cache(fresh, filter->near_ms);
        if (status == HIBLOOM_ENOTSUP) /* the one that is there now has none */
            status = HIBLOOM_OK;
    }
    if (status == HIBLOOM_OK && spec_bytes(&fresh->spec) > filter->room)
        status = error_set(&filter->store->error, HIBLOOM_EMISMATCH,
                           "'%s' has a hash with many seeds now: open it with a new handle", filter->name);
    if (status == HIBLOOM_OK)
        exchange(filter, fresh);
    hibloom_close(fresh);
    return status;
}

bool hibloom_created(const hibloom *filter)
{
    return filter->created;
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

hibloom_status hibloom_drop_by_name(hibloom_store *store, const char *name)
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

hibloom_status hibloom_near_cache(hibloom *filter, uint64_t max_age_ms)
{
    const struct store_class *class = filter->store->class;
    const hibloom_status status = class->near_cache != NULL ? class->near_cache(filter, max_age_ms) : HIBLOOM_OK;

    if (status == HIBLOOM_OK) {
        filter->near = true;
        filter->near_ms = max_age_ms;
    }
    return status;
}

/* ---- The whole filter ----------------------------------------------------- */

void filter_fill(void *out, size_t size, const void *from, size_t from_size)
{
    memset(out, 0, size);
    memcpy(out, from, size < from_size ? size : from_size);
}

void filter_say_count(const struct store_count *count, hibloom_info *out, size_t size)
{
    const hibloom_info info = {.bits_set = count->bits_set,
                               .bytes = count->bytes,
                               .ttl_ms = count->ttl_ms,
                               .keys = count->keys,
                               .fill = fmin((double)count->bits_set / (double)count->bits, 1.0),
                               .estimated_items = count->items,
                               .estimated_error_rate = count->error_rate,
                               .links = count->links,
                               .capacity = count->capacity,
                               .used = count->capacity != 0 ? count->used : (double)NAN};

    filter_fill(out, size, &info, sizeof info);
}

static hibloom_status call_links(hibloom *filter, enum links_goal goal, uint64_t ms, struct store_count *count)
{
    return filter->store->class->links(filter, goal, NULL, ms, count);
}

hibloom_status hibloom_get_info(hibloom *filter, hibloom_info *out, size_t size)
{
    struct store_count count;
    const hibloom_status status = call_links(filter, LINKS_COUNT, 0, &count);

    if (status == HIBLOOM_OK)
        filter_say_count(&count, out, size);
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

hibloom_status filter_check_expiry(hibloom *filter, uint64_t ms)
{
    if (ms <= SETTINGS_TTL_MAX)
        return HIBLOOM_OK;
    return error_set(&filter->store->error, HIBLOOM_ERANGE, "more time than a time to live can have");
}

hibloom_status hibloom_expire(hibloom *filter, uint64_t ms)
{
    const hibloom_status status = filter_check_expiry(filter, ms);

    return status == HIBLOOM_OK ? call_links(filter, LINKS_EXPIRE, ms, NULL) : status;
}

/* ---- What it is ----------------------------------------------------------- */

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
    struct spec spec;

    if (*text != NULL)
        return *text;
    spec_copy(&spec, &filter->spec);
    if (!secret && spec.seeded) {
        spec.seeded = false;
        explicit_bzero(spec.seeds, sizeof spec.seeds);
    }
    if (spec_format_said(&spec, buf, sizeof buf) == HIBLOOM_OK)
        *text = alloc_text(buf);
    explicit_bzero(&spec, sizeof spec);
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
    if (filter == NULL)
        return;
    filter->store->class->close(filter);
    filter_free(filter);
}
