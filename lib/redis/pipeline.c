/* pipeline.c: the items of a walk, cut into batches, which are hashed, and pipelines, which
 * are sent. See walk.h. */
#include "redis/walk.h"
#include "base/alloc.h"
#include "base/number.h"
#include "redis/near.h"
#include "spec/positions.h"
#include "spec/spec.h"

#include <stdlib.h>
#include <string.h>

/* Bytes of commands, or of answers, after which a pipeline is closed. Two are on their way at once. That much fits
 * into the buffers of two sockets. So even a proxy that takes no commands while it cannot pass on answers goes on.
 * A call of few pipelines is cut into four: 1/8, 3/8, 3/8 and 1/8 of it. The server idles while the first is
 * written here, and while the last is read: so these are short. */
#define PIPELINE_BYTES (64u << 10)
#define PIPELINE_BYTES_LEAST (8u << 10)
#define PIPELINE_BITS 8192u /* and at most these positions; */
#define SCRIPT_BITS 2048u   /* of what a script counts, during which the server does nothing else: some 3 ms */

#define SCRIPT_BYTES 1600u /* of one that counts; about */

/* Positions of a batch; where there are several keys more, for more items a pack. */
#define BATCH_BITS_SEVERAL (4 * PIPELINE_BITS)

/* Values of a digest, of those hashes that filters of several links may have: spec.c, check_links. */
#define VALUES 2u

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static bool is_segmented(const struct link *link)
{
    return spec_segments(link->spec) > 1;
}

static bool has_several_packs(const struct walk *walk, const struct link *first)
{
    return walk->links > 1 || is_segmented(first);
}

/* ---- A batch of items ------------------------------------------------------------ */

static int compare(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* The bits of one item stay where it was hashed. (For the answers of several links that are blocks all are kept.) */
static bool has_one_item(const struct walk *walk)
{
    return walk->n == 1 && (walk->links == 1 || walk->encoding->answer_bytes == 0);
}

void pipeline_index(const struct walk *walk, const struct pack *pack)
{
    if (!has_one_item(walk))
        return;
    const struct hasher hasher = positions_hasher(walk->in[pack->nth].link->spec);
    (void)hasher_offsets(&hasher, walk->batch.values, walk->batch.bits);
}

/* Takes the next items; or the next link for the same ones, which are digested once. Those of one segment keep their
 * order: one that comes twice is new the first time. */
static void fill_batch(struct walk *walk)
{
    struct batch *batch = &walk->batch;

    if (batch->end == batch->base || ++batch->nth == walk->links) {
        batch->nth = 0;
        batch->base = batch->end;
        batch->end += least(walk->n - batch->end, walk->batch_items);
    }
    batch->items = batch->next = 0;
    const struct link *link = walk->in[batch->nth].link;
    const struct hasher hasher = positions_hasher(link->spec);
    const uint32_t k = link->spec->hashes, count = (uint32_t)(batch->end - batch->base);

    for (uint32_t i = 0; i < count; i++) {
        const hibloom_item *item = &walk->items[batch->base + i];
        if (positions_count(link->spec, item->len) == 0) { /* it has no bits: none to be new, yet it is not found */
            if (!walk->encoding->sets)
                flags_set(walk->missing, batch->nth * walk->n + batch->base + i);
            continue;
        }
        uint64_t *const bits = batch->bits + (size_t)batch->items * k, *const values = &batch->values[VALUES * i];
        if (walk->links > 1 && batch->nth == 0)
            hasher.digest(&hasher, item->data, item->len, values);
        const uint64_t segment = walk->links > 1 ? hasher_offsets(&hasher, values, bits)
                                                 : hasher.indexes(&hasher, item->data, item->len, bits);
        batch->at[i] = batch->items;
        batch->order[batch->items++] = segment << 32 | i;
    }
    if (is_segmented(link))
        qsort(batch->order, batch->items, sizeof *batch->order, compare);
}

/* Has the batch links left to go through? */
static bool has_links(const struct walk *walk)
{
    return walk->batch.end > walk->batch.base && walk->batch.nth + 1 < walk->links;
}

static bool has_items(struct walk *walk)
{
    while (walk->batch.next == walk->batch.items && (walk->batch.end < walk->n || has_links(walk)))
        fill_batch(walk);
    return walk->batch.next < walk->batch.items;
}

/* ---- A pipeline of them -------------------------------------------------------------- */

static bool is_full(const struct walk *walk, const struct pipeline *pipeline, size_t bytes)
{
    const size_t answers = pipeline->items * walk->encoding->answer_bytes;
    const size_t more = bytes > answers ? bytes : answers, eighths = walk->started ? 3 : 1;

    return pipeline->items == walk->pipeline_items || more >= walk->pipeline_bytes ||
           (more >= PIPELINE_BYTES_LEAST && pipeline->items >= walk->n * walk->links / 8 * eighths);
}

static void put_item(struct walk *walk, struct pipeline *pipeline, uint64_t place)
{
    const struct link *link = walk->in[walk->batch.nth].link;
    const uint32_t k = link->spec->hashes, item = (uint32_t)place, segment = (uint32_t)(place >> 32);
    const size_t at = pipeline->used;
    struct pack *pack = &pipeline->pack[pipeline->packs - (pipeline->packs > 0)];

    if (pipeline->packs == 0 || pack->segment != segment || pack->nth != walk->batch.nth) {
        pack = &pipeline->pack[pipeline->packs++];
        *pack = (struct pack){.nth = walk->batch.nth,
                              .segment = segment,
                              .first = pipeline->items,
                              .bits = has_one_item(walk) ? walk->batch.bits : pipeline->bits + at,
                              .known = pipeline->known + at,
                              .order = pipeline->order,
                              .from = pipeline->from,
                              .slice = walk->slice,
                              .begins = walk->slice != NULL && encoding_begins_slice(link, walk->slice, segment)};
    }
    pack->items++;
    pipeline->item[pipeline->items++] = (uint32_t)(walk->batch.base - pipeline->base) + item;
    pipeline->used += k;
    if (!has_one_item(walk))
        memcpy(pipeline->bits + at, walk->batch.bits + (size_t)walk->batch.at[item] * k, k * sizeof *pipeline->bits);
    memset(pipeline->known + at, BIT_UNKNOWN, k);
}

/* Spanning: sorts the numbers of the bits by the bits' keys. */
static void sort_by_key(const struct link *link, struct pack *pack)
{
    const uint32_t keys = link->count, bits = pack->items * link->spec->hashes;

    memset(pack->from, 0, (keys + 1) * sizeof *pack->from);
    for (uint32_t at = 0; at < bits; at++)
        pack->from[pack->bits[at] / SPEC_SPAN_BITS + 1]++;
    for (uint32_t key = 0; key < keys; key++)
        pack->from[key + 1] += pack->from[key];
    for (uint32_t at = 0; at < bits; at++)
        pack->order[pack->from[pack->bits[at] / SPEC_SPAN_BITS]++] = at;
    memmove(pack->from + 1, pack->from, keys * sizeof *pack->from); /* each has come to the next one's begin */
    pack->from[0] = 0;
}

/* If a pipeline may hold several packs, they are of one batch: then no key has two of them. */
bool pipeline_fill(struct walk *walk, struct pipeline *pipeline)
{
    const bool of_one_batch = has_several_packs(walk, walk->in->link);
    struct batch *batch = &walk->batch;
    size_t bytes = 0;

    if (!has_items(walk))
        return false;
    pipeline->base = batch->base;
    pipeline->items = pipeline->packs = pipeline->used = 0;
    do {
        const uint32_t packs = pipeline->packs;
        put_item(walk, pipeline, batch->order[batch->next++]);
        bytes += walk->item_bytes + (pipeline->packs - packs) * walk->guard_bytes;
    } while (!is_full(walk, pipeline, bytes) && (!of_one_batch || batch->next < batch->items || has_links(walk)) &&
             has_items(walk));
    if (pipeline->order != NULL)
        sort_by_key(walk->in->link, pipeline->pack);
    return true;
}

/* ---- Memory ------------------------------------------------------------------------------------ */

/* The most packs of a pipeline. With several segments or links it holds one pack a key, all of one batch. Else it holds
 * one pack, whose items may come from two batches. So no batch ends in a short pipeline. */
static size_t most_packs(const struct walk *walk, const struct link *first)
{
    return has_several_packs(walk, first) ? least(walk->pipeline_items, walk->keys) : 1;
}

/* Estimates by the encoding's figures for a bit and an item, and by the digits of key and offset. These are the last
 * link's: it has the longest name, and most often is the largest. An encoding by keys walks one link. */
static void estimate(struct walk *walk, const struct link *first, const struct link *last, uint32_t k, bool answers)
{
    const struct encoding *encoding = walk->encoding;
    const size_t guards = walk_by_key(walk) ? walk->keys : 1, entries = walk->n * walk->links;
    const size_t names = encoding->all_keys || encoding->own_guard ? 0
                         : encoding->each_bit                      ? k
                                                                   : 1;                                  /* of keys, an item */
    const size_t others = encoding->own_guard && answers ? first->spec->slices : 0; /* keys of a script */
    char name[KEYS_SIZE];
    const size_t key = keys_name(name, last, last->count - 1) + 8;
    const size_t digits = number_digits(spec_bitmap_bits(last->spec) * spec_width(last->spec)) + 4;

    walk->item_bytes = encoding->item_bytes + k * (encoding->bit_bytes + digits) + names * key;
    walk->guard_bytes = (guards + others) * (key + 40) + (encoding->own_guard ? SCRIPT_BYTES : 0);
    /* the guards shall not be most of it */
    walk->pipeline_bytes = 4 * walk->guard_bytes > PIPELINE_BYTES ? 4 * walk->guard_bytes : PIPELINE_BYTES;
    walk->pipeline_items = (uint32_t)least(entries, (encoding->own_guard ? SCRIPT_BITS : PIPELINE_BITS) / k);
    walk->batch_items = (uint32_t)least(walk->n,
                                        (has_several_packs(walk, first) ? BATCH_BITS_SEVERAL : PIPELINE_BITS) / k);
    const size_t bytes = entries *
                             (walk->item_bytes > encoding->answer_bytes ? walk->item_bytes : encoding->answer_bytes) +
                         most_packs(walk, first) * walk->guard_bytes;
    const bool one = bytes < PIPELINE_BYTES_LEAST; /* which is far less than so many bits take */
    walk->pipelined = one ? 1 : WALK_PIPELINES;    /* one that is not full has all */
    walk->together = one && !encoding->sets && !walk_by_key(walk) && !encoding->once && !first->server->clustered;
}

/* Takes `count` elements from `memory`, or only counts if that is NULL. A call of one item has a dozen small arrays: so
 * they are aligned no more than they need. */
static void *take_array_of(unsigned char *memory, size_t *used, size_t count, size_t size)
{
    const size_t unit = size < sizeof(uint64_t) ? size : sizeof(uint64_t), at = (*used + unit - 1) / unit * unit;

    *used = at + count * size;
    return memory != NULL ? memory + at : NULL;
}

/* Flags, none of which is set. */
static unsigned char *take_flags(unsigned char *memory, size_t *used, size_t count)
{
    unsigned char *flags = take_array_of(memory, used, FLAGS_BYTES(count), 1);

    return flags != NULL ? memset(flags, 0, FLAGS_BYTES(count)) : NULL;
}

static size_t lay_out(struct walk *walk, const struct link *first, uint32_t k, bool answers, unsigned char *memory)
{
    const size_t items = walk->pipeline_items, packs = most_packs(walk, first);
    const size_t exchanges = walk_exchanges(walk, packs);
    const bool spanning = spec_is_spanning(first->spec);
    const bool may_be_late = walk->encoding->sets && first->spec->window != 0;
    struct pipeline of = {.base = 0};
    size_t used = 0;

    walk->in = take_array_of(memory, &used, walk->links, sizeof *walk->in);
    walk->pipelines = take_array_of(memory, &used, walk->pipelined, sizeof *walk->pipelines);
    walk->batch.values = take_array_of(memory, &used, walk->links > 1 ? walk->batch_items * VALUES : 0,
                                       sizeof *walk->batch.values);
    walk->batch.bits = take_array_of(memory, &used, walk->batch_items * k, sizeof *walk->batch.bits);
    walk->batch.order = take_array_of(memory, &used, walk->batch_items, sizeof *walk->batch.order);
    for (unsigned w = 0; w < walk->pipelined; w++) {
        of.bits = take_array_of(memory, &used, has_one_item(walk) ? 0 : items * k, sizeof *of.bits);
        of.pack = take_array_of(memory, &used, packs, sizeof *of.pack);
        of.item = take_array_of(memory, &used, items, sizeof *of.item);
        of.answers = take_array_of(memory, &used, exchanges, sizeof *of.answers);
        of.order = spanning ? take_array_of(memory, &used, items * k, sizeof *of.order) : NULL;
        of.from = spanning ? take_array_of(memory, &used, walk->keys + 1, sizeof *of.from) : NULL;
        of.known = take_array_of(memory, &used, items * k, 1);
        of.proven = take_array_of(memory, &used, exchanges, 1);
        if (memory != NULL)
            walk->pipelines[w] = of;
    }
    walk->batch.at = take_array_of(memory, &used, walk->batch_items, sizeof *walk->batch.at);
    walk->missing = answers ? take_flags(memory, &used, walk->n * walk->links) : NULL;
    walk->late = may_be_late ? take_flags(memory, &used, walk->n) : NULL;
    return used;
}

bool pipeline_make(struct walk *walk, struct link *first, bool answers)
{
    struct link *link = first;
    uint32_t hashes = 1; /* the most of any link */

    for (uint32_t i = 0; i < walk->links; i++) {
        link = redis_link(first->of, first->number + i);
        hashes = link->spec->hashes > hashes ? link->spec->hashes : hashes;
        walk->keys += link->count;
    }
    estimate(walk, first, link, hashes, answers);
    walk->memory = alloc.malloc(lay_out(walk, first, hashes, answers, NULL));
    if (walk->memory == NULL)
        return false;
    (void)lay_out(walk, first, hashes, answers, walk->memory);
    for (uint32_t i = 0; i < walk->links; i++) {
        link = redis_link(first->of, first->number + i);
        walk->in[i] = (struct walk_link){link, near_mark(link, !walk->encoding->sets)};
    }
    return true;
}
