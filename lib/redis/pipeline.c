/* pipeline.c: the items of a call, cut into chunks, which are hashed, and pipelines, which
 * are sent. See items.h. */
#include "redis/items.h"
#include "base/alloc.h"
#include "base/number.h"
#include "spec/positions.h"
#include "spec/spec.h"

#include <stdlib.h>
#include <string.h>

/* Bytes of commands, or of answers, after which a pipeline is closed. Two are on
 * their way at once, and that much fits into the buffers of two sockets: so a
 * proxy that takes no commands while it cannot pass on answers does not stop.
 * A call that is not many pipelines long is cut into four, 1/8, 3/8, 3/8 and 1/8
 * of it: while the first is written here, and the last one read, the server has
 * nothing to do. */
#define PIPELINE_BYTES (64u << 10)
#define PIPELINE_BYTES_LEAST (8u << 10)
#define PIPELINE_BITS 8192u /* and no more positions; */
#define SCRIPT_BITS 2048u   /* of what a script counts, during which the server does nothing else: some 3 ms */

#define SCRIPT_BYTES 1600u /* of one that counts; about */

/* Positions of a chunk; where there are segments more, for longer runs. */
#define CHUNK_BITS_SEGMENTED (4 * PIPELINE_BITS)

static bool is_segmented(const hibloom *filter)
{
    return spec_segments(&filter->spec) > 1;
}

/* ---- A chunk of items ------------------------------------------------------------ */

static int compare(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* Hashes the next items. Those of one segment keep their order: one that comes
 * twice is new the first time. */
static void fill_chunk(struct items *walk)
{
    struct chunk *chunk = &walk->chunk;
    const hibloom_spec *spec = &walk->talk.task.filter->spec;
    const struct hasher hasher = positions_hasher(spec);
    uint32_t i = 0;

    chunk->base = chunk->end;
    chunk->items = chunk->next = 0;
    for (; i < walk->chunk_items && chunk->base + i < walk->n; i++) {
        const hibloom_item *item = &walk->items[chunk->base + i];
        if (positions_count(spec, item->len) == 0) { /* it has no bits: none to be new, yet it is not found */
            if (!walk->encoding->sets)
                flags_set(walk->missing, chunk->base + i);
            continue;
        }
        const uint64_t segment = hasher.indexes(&hasher, item->data, item->len,
                                                chunk->bits + (size_t)chunk->items * spec->hashes);
        chunk->at[i] = chunk->items;
        chunk->order[chunk->items++] = segment << 32 | i;
    }
    chunk->end = chunk->base + i;
    if (is_segmented(walk->talk.task.filter))
        qsort(chunk->order, chunk->items, sizeof *chunk->order, compare);
}

static bool has_items(struct items *walk)
{
    while (walk->chunk.next == walk->chunk.items && walk->chunk.end < walk->n)
        fill_chunk(walk);
    return walk->chunk.next < walk->chunk.items;
}

/* ---- A pipeline of them -------------------------------------------------------------- */

static bool is_full(const struct items *walk, const struct pipeline *pipeline, size_t bytes)
{
    const size_t answers = pipeline->items * walk->encoding->answer_bytes;
    const size_t more = bytes > answers ? bytes : answers, eighths = walk->started ? 3 : 1;

    return pipeline->items == walk->pipeline_items || more >= walk->pipeline_bytes ||
           (more >= PIPELINE_BYTES_LEAST && pipeline->items >= walk->n / 8 * eighths);
}

static void put_item(struct items *walk, struct pipeline *pipeline, uint64_t place)
{
    const uint32_t k = walk->talk.task.filter->spec.hashes, item = (uint32_t)place, segment = (uint32_t)(place >> 32);
    const size_t at = (size_t)pipeline->items * k;
    struct run *run = &pipeline->run[pipeline->runs - (pipeline->runs > 0)];

    if (pipeline->runs == 0 || run->segment != segment) {
        run = &pipeline->run[pipeline->runs++];
        *run = (struct run){.segment = segment,
                            .bits = pipeline->bits + at,
                            .known = pipeline->known + at,
                            .order = pipeline->order,
                            .from = pipeline->from,
                            .slice = &walk->slice,
                            .begins = encoding_begins_slice(walk->talk.task.filter, &walk->slice, segment)};
    }
    run->items++;
    pipeline->item[pipeline->items++] = (uint32_t)(walk->chunk.base - pipeline->base) + item;
    memcpy(pipeline->bits + at, walk->chunk.bits + (size_t)walk->chunk.at[item] * k, k * sizeof *pipeline->bits);
    memset(pipeline->known + at, BIT_UNKNOWN, k);
}

/* Spanning: puts the numbers of the bits into the order of the keys in which they lie. */
static void sort_by_key(const hibloom *filter, struct run *run)
{
    const uint32_t keys = redis_filter_of(filter)->count, bits = run->items * filter->spec.hashes;

    memset(run->from, 0, (keys + 1) * sizeof *run->from);
    for (uint32_t at = 0; at < bits; at++)
        run->from[run->bits[at] / SPEC_SPAN_BITS + 1]++;
    for (uint32_t key = 0; key < keys; key++)
        run->from[key + 1] += run->from[key];
    for (uint32_t at = 0; at < bits; at++)
        run->order[run->from[run->bits[at] / SPEC_SPAN_BITS]++] = at;
    memmove(run->from + 1, run->from, keys * sizeof *run->from); /* each has come to the next one's begin */
    run->from[0] = 0;
}

/* A pipeline may hold items of two chunks, or each chunk would end in a short one.
 * Where there are segments it may not: then a segment would have two runs in it. */
bool pipeline_fill(struct items *walk, struct pipeline *pipeline)
{
    struct chunk *chunk = &walk->chunk;
    const bool spans = !is_segmented(walk->talk.task.filter);
    size_t bytes = 0;

    if (!has_items(walk))
        return false;
    pipeline->base = chunk->base;
    pipeline->items = pipeline->runs = 0;
    do {
        const uint32_t runs = pipeline->runs;
        put_item(walk, pipeline, chunk->order[chunk->next++]);
        bytes += walk->item_bytes + (pipeline->runs - runs) * walk->guard_bytes;
    } while (!is_full(walk, pipeline, bytes) && (spans ? has_items(walk) : chunk->next < chunk->items));
    if (pipeline->order != NULL)
        sort_by_key(walk->talk.task.filter, pipeline->run);
    return true;
}

/* ---- Memory ------------------------------------------------------------------------------------ */

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Estimates: what the encoding says of a bit and an item, and key and offset by
 * their digits. */
static void estimate(struct items *walk)
{
    const hibloom *filter = walk->talk.task.filter;
    const uint32_t k = filter->spec.hashes;
    char name[KEYS_SIZE];
    const size_t key = keys_name(name, filter, redis_filter_of(filter)->count - 1) + 8;
    const size_t digits = number_digits(spec_bitmap_bits(&filter->spec) * spec_width(&filter->spec)) + 4;
    const struct encoding *encoding = walk->encoding;
    const size_t guards = items_by_key(walk) ? redis_filter_of(filter)->count : 1;
    const size_t names = encoding->all_keys || encoding->proves ? 0 : encoding->each_bit ? k : 1; /* of keys, an item */
    const size_t others = encoding->proves && walk->missing != NULL ? filter->spec.slices : 0;    /* keys of a script */
    /* look-ups in all slices of a window are on their way side by side */
    const size_t sharers = encoding->sets ? 1 : 1 + filter->spec.slices;

    walk->step = encoding->each_bit && !encoding->each_key ? 1 : k;
    walk->item_bytes = encoding->item_bytes + k * (encoding->bit_bytes + digits) + names * key;
    walk->guard_bytes = (guards + others) * (key + 40) + (encoding->proves ? SCRIPT_BYTES : 0);
    /* the guards shall not be most of it */
    walk->pipeline_bytes = (4 * walk->guard_bytes > PIPELINE_BYTES ? 4 * walk->guard_bytes : PIPELINE_BYTES) / sharers;
    walk->pipeline_items = (uint32_t)least(walk->n, (encoding->proves ? SCRIPT_BITS : PIPELINE_BITS) / k);
    walk->chunk_items = (uint32_t)least(walk->n, (is_segmented(filter) ? CHUNK_BITS_SEGMENTED : PIPELINE_BITS) / k);
}

/* Takes so many elements from `memory`, or only counts where that is NULL. */
static void *take_array_of(unsigned char *memory, size_t *used, size_t count, size_t size)
{
    void *array = memory != NULL ? memory + *used : NULL;

    *used += (count * size + 7) / 8 * 8;
    return array;
}

static size_t lay_out(struct items *walk, unsigned char *memory)
{
    const hibloom *filter = walk->talk.task.filter;
    const size_t k = filter->spec.hashes, items = walk->pipeline_items, keys = redis_filter_of(filter)->count;
    const size_t runs = is_segmented(filter) ? least(items, keys) : 1;
    const bool spanning = spec_is_spanning(&filter->spec);
    size_t used = 0;

    walk->chunk.bits = take_array_of(memory, &used, walk->chunk_items * k, sizeof *walk->chunk.bits);
    walk->chunk.order = take_array_of(memory, &used, walk->chunk_items, sizeof *walk->chunk.order);
    walk->chunk.at = take_array_of(memory, &used, walk->chunk_items, sizeof *walk->chunk.at);
    for (unsigned w = 0; w < 2; w++) {
        struct pipeline *pipeline = &walk->pipelines[w];
        pipeline->bits = take_array_of(memory, &used, items * k, sizeof *pipeline->bits);
        pipeline->run = take_array_of(memory, &used, runs, sizeof *pipeline->run);
        pipeline->item = take_array_of(memory, &used, items, sizeof *pipeline->item);
        pipeline->known = take_array_of(memory, &used, items * k, 1);
        pipeline->proven = take_array_of(memory, &used, keys, 1);
        pipeline->answers = take_array_of(memory, &used, keys, sizeof *pipeline->answers);
        pipeline->order = spanning ? take_array_of(memory, &used, items * k, sizeof *pipeline->order) : NULL;
        pipeline->from = spanning ? take_array_of(memory, &used, keys + 1, sizeof *pipeline->from) : NULL;
    }
    return used;
}

bool pipeline_make(struct items *walk)
{
    estimate(walk);
    walk->memory = alloc.malloc(lay_out(walk, NULL));
    if (walk->memory != NULL)
        (void)lay_out(walk, walk->memory);
    return walk->memory != NULL;
}
