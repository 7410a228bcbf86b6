/* near.c: the bits that this process knows to be set in a filter in Redis. See near.h. */
#include "redis/near.h"
#include "base/alloc.h"
#include "spec/spec.h"

bool near_begin(struct link *link, uint64_t max_age_ns)
{
    near_free(link);
    link->near = alloc.calloc(1, sizeof *link->near);
    if (link->near != NULL)
        link->near->max_age_ns = max_age_ns;
    return link->near != NULL;
}

void near_free(struct link *link)
{
    near_forget(link);
    alloc.free(link->near);
    link->near = NULL;
}

uint64_t near_mark(const struct link *link, bool looks)
{
    const hibloom_stats *stats = &link->server->stats;

    if (looks && link->server->asks_replicas)
        return UINT64_MAX;
    return link->clears + stats->connections + stats->restarts + stats->redirects + stats->retries;
}

void near_forget(struct link *link)
{
    if (link->near == NULL || link->near->bits.start == NULL)
        return;
    link->server->near_room += link->near->bits.bytes;
    bits_free(&link->near->bits);
}

const struct bits *near_known(struct link *link)
{
    const struct near *near = link->near;

    if (near == NULL)
        return NULL;
    if (near->mark != near_mark(link, false))
        near_forget(link);
    return near->bits.start != NULL ? &near->bits : NULL;
}

/* Makes bits for the first keys, as far as the store has room. */
struct bits *near_to_learn(struct link *link, uint64_t mark)
{
    struct near *near = link->near;

    if (near == NULL || mark != near_mark(link, false))
        return NULL;
    if (near_known(link) != NULL)
        return &near->bits;
    const uint64_t fit = link->server->near_room / spec_bitmap_bytes(link->spec);
    const uint32_t keys = fit < link->count ? (uint32_t)fit : link->count;
    if (keys < spec_item_keys(link->spec) || !bits_make(&near->bits, link->spec, keys, true))
        return NULL;
    link->server->near_room -= near->bits.bytes;
    near->mark = mark;
    return &near->bits;
}

void near_learn_bits(struct link *link, const struct bits *more, uint32_t from, uint32_t to, uint64_t mark)
{
    struct bits *bits = near_to_learn(link, mark);
    const size_t len = more->key_bytes;

    for (uint32_t i = from; bits != NULL && i < to && i < bits->bytes / len; i++)
        bits_merge(bits, &(struct piece){.key = i, .len = len}, more->start + (i - from) * len);
}

bool near_is_fresh(const struct link *link, uint32_t i, uint64_t then_ns)
{
    const uint64_t proven = link->keys[i].proven_ns, age = link->near != NULL ? link->near->max_age_ns : 0;

    return proven != 0 && (proven >= then_ns || then_ns - proven <= age);
}
