/* bulk.c: many items by whole bitmaps. See bulk.h. */
#include "redis/bulk.h"
#include "base/flags.h"
#include "redis/cost.h"
#include "redis/near.h"
#include "spec/spec.h"

#include <string.h>

#define ANSWERS 512u /* at a time */

bool bulk_can(const struct link *link)
{
    const uint64_t bytes = spec_bitmap_bytes(link->spec);

    return !link->bare && bytes * spec_item_keys(link->spec) <= STORE_PIECE;
}

bool bulk_pays_to_look(const struct link *link, size_t n, double sent)
{
    const struct redis_server_traits *server = link->server;
    const struct cost_server to = {server->bitfield, server->link_mb_s};

    return bulk_can(link) && cost_read(link->spec, &to, n) < sent * cost_item(link->spec, &to, COST_LOOK_UP);
}

bool bulk_pays_to_merge(const struct link *link, size_t n, double sent)
{
    const struct redis_server_traits *server = link->server;
    const struct cost_server to = {server->bitfield, server->link_mb_s};

    return bulk_can(link) && !server->may_not_merge &&
           cost_merge(link->spec, &to, n) < sent * cost_item(link->spec, &to, COST_ADD);
}

static uint32_t keys_of(const struct bulk *bulk)
{
    return bulk->task.link->count;
}

static void answer(struct bulk *bulk)
{
    bool found[ANSWERS];

    for (size_t at = 0; at < bulk->n; at += ANSWERS) {
        const size_t n = bulk->n - at < ANSWERS ? bulk->n - at : ANSWERS;
        bits_contains(&bulk->bits, bulk->items + at, n, found);
        for (size_t i = 0; i < n; i++)
            if (found[i])
                flags_set(bulk->yes, at + i);
    }
}

/* The group of keys from piece.key on. */
static void begin_group(struct bulk *bulk)
{
    bits_begin_at(&bulk->bits, bulk->piece.key);
    bulk->mark = bulk->yes != NULL ? near_mark_to_look(bulk->task.link) : near_mark(bulk->task.link);
    if (bulk->yes != NULL)
        return;
    bits_clear(&bulk->bits);
    bits_add(&bulk->bits, bulk->items, bulk->n, NULL);
}

static void begin_key(struct bulk *bulk)
{
    unsigned char *const bits = bulk->bits.start + bulk->piece.key % bulk->group * bulk->bits.key_bytes;

    if (bulk->yes != NULL)
        transfer_begin_read(&bulk->inner, bulk->task.link, &bulk->piece, bits);
    else
        transfer_begin_merge(&bulk->inner, bulk->task.link, &bulk->piece, bits);
    bulk->busy = true;
}

/* The inner task has ended; false: nothing follows. */
static bool go_on(struct bulk *bulk)
{
    const uint32_t next = bulk->piece.key + 1;

    bulk->busy = false;
    if (bulk->task.status != HIBLOOM_OK)
        return false;
    if (next % bulk->group == 0 || next == keys_of(bulk)) {
        if (bulk->yes != NULL)
            answer(bulk);
        near_learn_bits(bulk->task.link, &bulk->bits, bulk->piece.key / bulk->group * bulk->group, next, bulk->mark);
    }
    bulk->piece.key = next;
    return next < keys_of(bulk);
}

static enum task_next next(struct task *task, struct outbox *outbox)
{
    struct bulk *bulk = (struct bulk *)task;

    while (task->status == HIBLOOM_OK || bulk->busy) {
        if (!bulk->busy) {
            if (bulk->piece.key % bulk->group == 0)
                begin_group(bulk);
            begin_key(bulk);
        }
        const enum task_next what = task_next_inner(task, outbox);
        if (what != TASK_DONE)
            return what;
        task_end_as(task, task->inner);
        if (!go_on(bulk))
            break;
    }
    return TASK_DONE;
}

static const struct task_class bulk_class = {next, task_reply_inner};

static void release(struct task *task)
{
    bits_free(&((struct bulk *)task)->bits);
}

void bulk_begin(struct bulk *bulk, struct link *link, const hibloom_item *items, size_t n, unsigned char *yes)
{
    const uint64_t bytes = spec_bitmap_bytes(link->spec);
    const uint32_t fit = (uint32_t)(STORE_PIECE / bytes), keys = link->count;

    memset(bulk, 0, sizeof *bulk);
    bulk->task = (struct task){.class = &bulk_class, .link = link, .inner = &bulk->inner.talk.task, .release = release};
    bulk->items = items;
    bulk->n = n;
    bulk->yes = yes;
    bulk->piece.len = bytes;
    bulk->group = fit < keys ? fit : keys;
    if (!bits_make(&bulk->bits, link->spec, bulk->group))
        task_no_memory(&bulk->task);
}
