/* bulk.c: many items by whole bitmaps. See bulk.h. */
#include "redis/bulk.h"
#include "base/flags.h"
#include "redis/near.h"
#include "spec/spec.h"

#include <string.h>

#define ANSWERS 512u /* at a time */

bool bulk_can(const struct link *link)
{
    const uint64_t bytes = spec_bitmap_bytes(link->spec);

    return !link->bare && bytes * spec_item_keys(link->spec) <= STORE_PIECE;
}

bool bulk_pays(enum store_op op, const struct link *link, size_t n, double sent)
{
    const struct cost_server *to = &link->server->cost;
    const struct spec *spec = link->spec;

    if (!bulk_can(link) || (op != STORE_LOOK && link->server->may_not_merge))
        return false;
    return cost_bitmaps(spec, to, op, n) < sent * cost_item(spec, to, op);
}

/* Notes which items are found in the present keys; or new, that is, not in what was there before, nor among the items
 * in front of them. */
static void answer(struct bulk *bulk)
{
    bool yes[ANSWERS];

    for (size_t at = 0; at < bulk->n; at += ANSWERS) {
        const size_t n = bulk->n - at < ANSWERS ? bulk->n - at : ANSWERS;
        if (bulk->op == STORE_LOOK)
            bits_contains(&bulk->bits, bulk->items + at, n, yes);
        else
            bits_add(&bulk->before, bulk->items + at, n, yes);
        for (size_t i = 0; i < n; i++)
            if (yes[i])
                flags_set(bulk->yes, at + i);
    }
}

/* The group of keys from piece.key on. */
static void begin_group(struct bulk *bulk)
{
    bits_begin_at(&bulk->bits, bulk->piece.key);
    bulk->mark = near_mark(bulk->task.link, bulk->op == STORE_LOOK);
    if (bulk->op != STORE_LOOK) {
        bits_clear(&bulk->bits);
        bits_add(&bulk->bits, bulk->items, bulk->n, NULL);
    }
    if (bulk->op == STORE_ADD_NEW) { /* of a key that is not reached nothing is new */
        bits_begin_at(&bulk->before, bulk->piece.key);
        memset(bulk->before.start, 0xff, bulk->before.bytes);
    }
}

static void begin_key(struct bulk *bulk)
{
    const size_t at = bulk->piece.key % bulk->group * bulk->bits.key_bytes;
    unsigned char *const bits = bulk->bits.start + at;
    unsigned char *const before = bulk->op == STORE_ADD_NEW ? bulk->before.start + at : NULL;

    if (bulk->op == STORE_LOOK)
        transfer_begin_read(&bulk->transfer, bulk->task.link, &bulk->piece, bits);
    else
        transfer_begin_merge(&bulk->transfer, bulk->task.link, &bulk->piece, bits, before);
    bulk->transfer.replaceable = true;
    bulk->task.inner = &bulk->transfer.talk.task;
}

bool bulk_may_not(const struct bulk *bulk)
{
    return bulk->task.status == HIBLOOM_EDENIED || bulk->task.refusal == REFUSAL_UNKNOWN_COMMAND;
}

bool bulk_gave_way(const struct bulk *bulk)
{
    const struct task *task = &bulk->task;

    return task->status == HIBLOOM_ENOMEM ||
           (bulk->op != STORE_LOOK &&
            (bulk_may_not(bulk) || refusal_is_of_size(task->refusal) || transfer_gave_up(&bulk->transfer)));
}

/* At the end of a group: what an earlier sending merged is near, too. The answer has the key's trailer, and a loss changes
 * the mark. If it gave way: the caller may go on item by item, and then finds in what was merged here. What was not
 * merged is new to nobody yet. */
static void end_key(struct bulk *bulk)
{
    struct link *link = bulk->task.link;
    const uint32_t next = ++bulk->piece.key, first = (next - 1) / bulk->group * bulk->group;
    const bool in_doubt = transfer_may_be_done(&bulk->transfer);

    task_end_as(&bulk->task, &bulk->transfer.talk.task);
    if (bulk->task.status == HIBLOOM_OK && (next % bulk->group == 0 || next == link->count)) {
        if (bulk->op != STORE_ADD)
            answer(bulk);
        near_learn_bits(link, &bulk->bits, first, next, bulk->mark);
    } else if (bulk->op == STORE_ADD_NEW && bulk_gave_way(bulk)) {
        link->server->stats.in_doubt += in_doubt;
        memset(bulk->before.start + (next - 1 - first) * bulk->before.key_bytes, in_doubt ? 0 : 0xff,
               bulk->before.key_bytes);
        answer(bulk);
    }
}

static bool follow(struct task *task, struct task *ended)
{
    struct bulk *bulk = (struct bulk *)task;

    if (ended != NULL)
        end_key(bulk);
    const bool more = task->status == HIBLOOM_OK && bulk->piece.key < task->link->count;
    if (more && bulk->piece.key % bulk->group == 0)
        begin_group(bulk);
    if (more)
        begin_key(bulk);
    return more;
}

static void release(struct task *task)
{
    struct bulk *bulk = (struct bulk *)task;

    bits_free(&bulk->bits);
    bits_free(&bulk->before);
}

void bulk_begin(struct bulk *bulk, enum store_op op, struct link *link, const hibloom_item *items, size_t n,
                unsigned char *yes)
{
    const uint64_t bytes = spec_bitmap_bytes(link->spec);
    const uint32_t fit = (uint32_t)(STORE_PIECE / bytes), keys = link->count;

    memset(bulk, 0, sizeof *bulk);
    bulk->task = (struct task){.follow = follow, .link = link, .release = release};
    bulk->op = op;
    bulk->items = items;
    bulk->n = n;
    bulk->yes = yes;
    bulk->piece.len = bytes;
    bulk->group = fit < keys ? fit : keys;
    if (!bits_make(&bulk->bits, link->spec, bulk->group, false) ||
        (op == STORE_ADD_NEW && !bits_make(&bulk->before, link->spec, bulk->group, false)))
        task_no_memory(&bulk->task);
}
