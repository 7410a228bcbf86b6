/* link.c: a handle's knowledge of its filter in Redis. See link.h. */
#include "redis/link.h"
#include "base/alloc.h"
#include "redis/near.h"
#include "redis/store.h"
#include "spec/spec.h"

#include <inttypes.h>
#include <string.h>

#define STRING_MAX (SPEC_STRING_BITS / 8) /* bytes */

/* ---- A handle's links --------------------------------------------------------------------- */

static void make(struct link *link, struct redis_filter *filter, uint32_t number, struct spec *spec)
{
    *link = (struct link){.of = filter,
                          .server = &((struct redis_store *)filter->handle->store)->server,
                          .number = number,
                          .bare = filter->handle->bare,
                          .spec = spec};
}

bool redis_filter_make(hibloom *handle)
{
    struct redis_filter *filter = alloc.calloc(1, sizeof *filter);

    if (filter == NULL)
        return false;
    filter->handle = handle;
    TAILQ_INIT(&filter->waiters);
    make(&filter->first, filter, 0, &handle->spec);
    handle->impl = filter;
    return true;
}

void redis_filter_moved(hibloom *handle)
{
    struct redis_filter *filter = redis_filter_of(handle);

    filter->handle = handle;
    filter->first.spec = &handle->spec;
}

void redis_filter_free(hibloom *handle)
{
    struct redis_filter *filter = redis_filter_of(handle);

    if (filter == NULL)
        return;
    link_close(&filter->first);
    alloc.free(filter->further);
    alloc.free(filter);
    handle->impl = NULL;
}

struct further {
    struct link link;
    struct spec spec;
};

struct link *link_new(struct redis_filter *filter, uint32_t number)
{
    struct further *further = alloc.calloc(1, sizeof *further);

    if (further == NULL)
        return NULL;
    make(&further->link, filter, number, &further->spec);
    return &further->link;
}

void link_free(struct link *link)
{
    if (link == NULL)
        return;
    link_close(link);
    explicit_bzero(link->spec, sizeof *link->spec); /* the seed */
    alloc.free(link);
}

bool link_add(struct link *link)
{
    struct redis_filter *filter = link->of;

    if (filter->further == NULL)
        filter->further = alloc.calloc(SPEC_LINKS_MAX, sizeof(struct link *));
    if (filter->further == NULL || link->number != redis_links(filter)) { /* another call of the handle was first */
        link_free(link);
        return filter->further != NULL;
    }
    filter->further[filter->further_count++] = link;
    if (filter->first.near != NULL)
        (void)near_begin(link, filter->first.near->max_age_ns); /* without memory nothing is known of it */
    return true;
}

struct link *redis_key_of(struct redis_filter *filter, uint32_t of_all, uint32_t *i)
{
    uint32_t number = 0;

    for (; number + 1 < redis_links(filter) && of_all >= redis_link(filter, number)->count; number++)
        of_all -= redis_link(filter, number)->count;
    *i = of_all;
    return redis_link(filter, number);
}

const char *link_name(const struct link *link, char name[LINK_NAME_SIZE])
{
    if (link->number == 0)
        return link->of->handle->name;
    keys_link(name, link->of->handle->name, link->number);
    return name;
}

const char *link_key(const struct link *link, uint32_t i, char key[KEYS_SIZE])
{
    keys_name(key, link, i);
    return key;
}

/* ---- Opened, and closed --------------------------------------------------------------------- */

void link_open(struct task *task, const struct spec *spec)
{
    struct link *link = task->link;
    char text[SPEC_TEXT_SIZE];
    const hibloom_status status = spec_format(spec, text, sizeof text);
    const size_t len = strnlen(text, sizeof text);
    const uint64_t bytes = spec_bitmap_bytes(spec);
    const uint64_t tail = link->bare ? 0 : record_list_bytes(0, spec_keys(spec)) + len + RECORD_TRAILER;

    link_close(link);
    explicit_bzero(text, sizeof text); /* the seed */
    if (status != HIBLOOM_OK)
        task_fail(task, status, "'%s': the spec could not be written as text", link_name(link, LINK_NAME));
    else if (bytes > STRING_MAX || bytes + tail > STRING_MAX)
        task_fail(task, HIBLOOM_ERANGE,
                  "'%s': a bitmap of %" PRIu64 " bits%s does not fit one Redis key, which holds 2^32 bits (512 MiB)",
                  link_name(link, LINK_NAME), bytes * 8, link->bare ? "" : " and its spec");
    if (task_has_failed(task))
        return;
    link->keys = alloc.calloc(spec_keys(spec), sizeof *link->keys);
    if (link->keys == NULL) {
        task_no_memory(task);
        return;
    }
    link->count = spec_keys(spec);
    link->text_len = (uint32_t)len;
    *link->spec = *spec;
    if (link->number == 0)
        link->of->restarts = link->server->stats.restarts;
}

void link_close(struct link *link)
{
    struct redis_filter *filter = link->of;

    near_free(link);
    alloc.free(link->keys);
    while (link->number == 0 && filter->further_count > 0)
        link_free(filter->further[--filter->further_count]);
    if (link->number == 0)
        filter->seen_changes = filter->clock_us = filter->replicated = 0;
    make(link, filter, link->number, link->spec);
}

/* ---- Its keys ---------------------------------------------------------------------------------- */

uint64_t link_trailer_at(const struct link *link, uint32_t i)
{
    return spec_bitmap_bytes(link->spec) + record_list_bytes(i, link->count) + link->text_len;
}

static uint16_t slot_of_root(const struct link *link)
{
    char key[KEYS_SIZE];

    return keys_slot(key, keys_name(key, link, 0));
}

/* Several keys each have a slot of their own, or all have a {tag}. */
bool link_is_together(const struct link *link, const struct link *other)
{
    return !link->server->clustered ||
           (slot_of_root(link) == slot_of_root(other) &&
            (link->count == 1 || (keys_has_tag(link->of->handle->name) && keys_has_tag(other->of->handle->name))));
}

struct argument link_begin(const struct link *link, struct outbox *outbox, uint32_t tag, uint32_t i,
                           char key[KEYS_SIZE])
{
    const struct argument name = {key, keys_name(key, link, i)};

    outbox_begin(outbox, tag, name);
    outbox_last(outbox)->of = link;
    outbox_last(outbox)->key = i;
    return name;
}

void link_expect(struct commands *out, const struct link *link, uint32_t i, size_t bytes)
{
    char identity[RECORD_IDENTITY + 1];

    if (link->bare) {
        command_text(out, RECORD_TRAILER_FROM_END);
        command_text(out, "");
        return;
    }
    record_identity(link->generation, link->keys[i].id, identity);
    command_number(out, link_trailer_at(link, i));
    command_argument(out, (struct argument){identity, bytes});
}

void link_command_ids(struct commands *out, const struct link *link, uint32_t keys)
{
    char id[RECORD_ID_DIGITS + 1];

    command_begin_argument(out, (size_t)keys * RECORD_ID_DIGITS);
    for (uint32_t i = 0; i < keys; i++) {
        record_format_id(link->keys[i].id, id);
        command_bytes(out, id, RECORD_ID_DIGITS);
    }
    command_literal(out, "\r\n");
}

bool link_next_step(const struct link *link, struct link_range *range)
{
    const uint64_t fit = STORE_PIECE / spec_bitmap_bytes(link->spec);
    const uint32_t most = fit < 1 ? 1 : fit > LINK_STEP_KEYS ? LINK_STEP_KEYS : (uint32_t)fit;
    const uint32_t left = link->count - range->first - range->count;

    range->first += range->count;
    range->count = left < most ? left : most;
    return left != 0;
}
