/* near.c: what this process knows to be set in a filter in Redis. See near.h. */
#include "redis/near.h"
#include "base/alloc.h"
#include "spec/spec.h"

struct near *near_make(uint32_t max_age_ms)
{
    struct near *near = alloc.calloc(1, sizeof *near);

    if (near != NULL)
        near->max_age_ns = max_age_ms * UINT64_C(1000000);
    return near;
}

void near_free(hibloom *filter)
{
    struct redis_filter *own = redis_filter_of(filter);

    near_forget(filter);
    alloc.free(own->near);
    own->near = NULL;
}

uint64_t near_mark(const hibloom *filter)
{
    const struct redis_filter *own = redis_filter_of(filter);
    const hibloom_stats *stats = &own->server->stats;

    return own->clears + stats->connections + stats->restarts + stats->redirects + stats->retries;
}

uint64_t near_mark_to_look(const hibloom *filter)
{
    return redis_filter_of(filter)->server->asks_replicas ? NEAR_NEVER : near_mark(filter);
}

void near_forget(hibloom *filter)
{
    const struct redis_filter *own = redis_filter_of(filter);

    if (own == NULL || own->near == NULL || own->near->bits.start == NULL)
        return;
    own->server->near_room += own->near->bits.bytes;
    bits_free(&own->near->bits);
}

const struct bits *near_known(hibloom *filter)
{
    const struct near *near = redis_filter_of(filter)->near;

    if (near == NULL)
        return NULL;
    if (near->mark != near_mark(filter))
        near_forget(filter);
    return near->bits.start != NULL ? &near->bits : NULL;
}

/* Bits for as many keys as the store has room for. */
static bool begin(hibloom *filter, uint64_t mark)
{
    const struct redis_filter *own = redis_filter_of(filter);
    const uint64_t fit = own->server->near_room / spec_bitmap_bytes(&filter->spec);
    const uint32_t keys = fit < own->count ? (uint32_t)fit : own->count;

    if (keys < spec_item_keys(&filter->spec) || !bits_make(&own->near->bits, &filter->spec, keys))
        return false;
    own->server->near_room -= own->near->bits.bytes;
    own->near->mark = mark;
    return true;
}

struct bits *near_to_learn(hibloom *filter, uint64_t mark)
{
    struct near *near = redis_filter_of(filter)->near;

    if (near == NULL || mark != near_mark(filter))
        return NULL;
    return near_known(filter) != NULL || begin(filter, mark) ? &near->bits : NULL;
}

void near_learn_bits(hibloom *filter, const struct bits *more, uint32_t from, uint32_t to, uint64_t mark)
{
    struct bits *bits = near_to_learn(filter, mark);
    const size_t len = more->key_bytes;

    for (uint32_t i = from; bits != NULL && i < to && i < bits->bytes / len; i++)
        bits_merge(bits, &(struct piece){.key = i, .len = len}, more->start + (i - from) * len);
}

bool near_is_fresh(const hibloom *filter, uint32_t i, uint64_t then_ns)
{
    const struct redis_filter *own = redis_filter_of(filter);
    const uint64_t proven = own->keys[i].proven_ns, age = own->near != NULL ? own->near->max_age_ns : 0;

    return proven != 0 && proven + age >= then_ns;
}
