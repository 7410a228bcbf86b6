/* filter.c: what a handle knows of its filter in Redis. See filter.h. */
#include "redis/filter.h"
#include "base/alloc.h"
#include "redis/near.h"
#include "redis/store.h"
#include "spec/spec.h"

#include <inttypes.h>
#include <string.h>

#define STRING_MAX (SPEC_STRING_BITS / 8) /* bytes */

static bool fits(struct task *task, const hibloom_spec *spec)
{
    const hibloom *filter = task->filter;
    const uint64_t bytes = spec_bitmap_bytes(spec);
    const uint64_t tail = record_list_bytes(0, spec_keys(spec)) + strlen(filter->text) + RECORD_TRAILER;

    if (bytes <= STRING_MAX && (filter->bare || bytes + tail <= STRING_MAX))
        return true;
    task_fail(task, HIBLOOM_ERANGE,
              "'%s': a bitmap of %" PRIu64 " bits%s does not fit one Redis key, which holds 2^32 bits (512 MiB)",
              filter->name, bytes * 8, filter->bare ? "" : " and its spec");
    return false;
}

void redis_filter_make(struct task *task, const hibloom_spec *spec)
{
    hibloom *filter = task->filter;
    const uint32_t count = spec_keys(spec);

    redis_filter_free(filter);
    hibloom_status status = hibloom_spec_format(spec, filter->text, sizeof filter->text);
    if (status != HIBLOOM_OK)
        task_fail(task, status, "'%s': the spec could not be written as text", filter->name);
    if (status != HIBLOOM_OK || !fits(task, spec))
        return;
    struct redis_filter *own = alloc.calloc(1, sizeof *own + count * sizeof own->keys[0]);
    if (own == NULL) {
        task_no_memory(task);
        return;
    }
    own->server = &((struct redis_store *)filter->store)->server;
    own->restarts = own->server->stats.restarts;
    own->count = count;
    filter->spec = *spec;
    filter->impl = own;
}

void redis_filter_free(hibloom *filter)
{
    struct redis_filter *own = redis_filter_of(filter);

    if (own == NULL)
        return;
    near_free(filter);
    for (uint32_t i = 0; i < own->further_count; i++)
        redis_link_free(own->further[i]);
    alloc.free(own->further);
    alloc.free(own);
    filter->impl = NULL;
}

hibloom *redis_link_new(hibloom *filter, uint32_t i)
{
    hibloom *link = alloc.calloc(1, sizeof *link);

    if (link == NULL)
        return NULL;
    link->store = filter->store;
    link->head = filter;
    keys_link(link->name, filter->name, i);
    return link;
}

void redis_link_free(hibloom *link)
{
    if (link == NULL)
        return;
    redis_filter_free(link);
    explicit_bzero(link, sizeof *link); /* the seed */
    alloc.free(link);
}

bool redis_link_add(hibloom *filter, hibloom *link)
{
    struct redis_filter *own = redis_filter_of(filter);

    if (own->further == NULL)
        own->further = alloc.calloc(HIBLOOM_LINKS_MAX, sizeof(hibloom *));
    if (own->further == NULL || link->spec.link != redis_links(filter)) { /* another call of the handle was first */
        redis_link_free(link);
        return own->further != NULL;
    }
    own->further[own->further_count++] = link;
    return true;
}

struct record redis_filter_record(const hibloom *filter, uint32_t i)
{
    const struct redis_filter *own = redis_filter_of(filter);

    return (struct record){
        .text_len = (uint32_t)strlen(filter->text),
        .key = i,
        .keys = own->count,
        .bytes = spec_bitmap_bytes(&filter->spec),
        .generation = own->generation,
        .id = own->keys[i].id,
        .epoch = own->keys[i].epoch,
        .state = RECORD_READY,
    };
}

uint64_t redis_trailer_at(const hibloom *filter, uint32_t i)
{
    return record_trailer_of(spec_bitmap_bytes(&filter->spec), i, redis_filter_of(filter)->count, strlen(filter->text));
}

static uint16_t slot_of(const hibloom *filter, uint32_t i)
{
    char key[KEYS_SIZE];

    return keys_slot(key, keys_name(key, filter, i));
}

/* Of several keys all have a slot of their own, or a {tag}. */
bool redis_is_together(const hibloom *filter, const hibloom *other)
{
    const struct redis_filter *own = redis_filter_of(filter);

    return !own->server->clustered ||
           (slot_of(filter, 0) == slot_of(other, 0) && (own->count == 1 || strchr(filter->name, '{') != NULL));
}

struct argument redis_begin(hibloom *filter, struct outbox *outbox, uint32_t tag, uint32_t i, char key[KEYS_SIZE])
{
    const struct argument name = {key, keys_name(key, filter, i)};

    outbox_begin(outbox, tag, name);
    if (outbox->count > 0) {
        outbox->exchanges[outbox->count - 1].of = filter;
        outbox->exchanges[outbox->count - 1].key = i;
    }
    return name;
}

void redis_expect(struct commands *out, const hibloom *filter, uint32_t i, size_t bytes)
{
    const struct redis_filter *own = redis_filter_of(filter);
    char identity[RECORD_IDENTITY + 1];

    if (filter->bare) {
        command_text(out, RECORD_TRAILER_FROM_END);
        command_text(out, "");
        return;
    }
    record_identity(own->generation, own->keys[i].id, identity);
    command_number(out, redis_trailer_at(filter, i));
    command_argument(out, (struct argument){identity, bytes});
}

void redis_command_ids(struct commands *out, const hibloom *filter, uint32_t keys)
{
    char id[RECORD_ID_DIGITS + 1];

    command_begin_argument(out, (size_t)keys * RECORD_ID_DIGITS);
    for (uint32_t i = 0; i < keys; i++) {
        record_format_id(redis_filter_of(filter)->keys[i].id, id);
        command_bytes(out, id, RECORD_ID_DIGITS);
    }
    command_literal(out, "\r\n");
}

bool redis_next_step(const hibloom *filter, struct redis_range *range)
{
    const uint64_t fit = STORE_PIECE / spec_bitmap_bytes(&filter->spec);
    const uint32_t most = fit < 1 ? 1 : fit > REDIS_STEP_KEYS ? REDIS_STEP_KEYS : (uint32_t)fit;
    const uint32_t left = redis_filter_of(filter)->count - range->first - range->count;

    range->first += range->count;
    range->count = left < most ? left : most;
    return left != 0;
}
